-- Columns bear the names of the fields of crewd.core.model; nested values are JSON text.
-- Specs live apart from the rows that change: an UPDATE rewrites the whole row it touches.

PRAGMA auto_vacuum = INCREMENTAL;

CREATE TABLE meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (key, value) VALUES
    ('store_id', lower(hex(randomblob(8)))),
    ('next_sequence', 1);

CREATE TABLE run (
    id TEXT PRIMARY KEY,
    cwd TEXT NOT NULL,                              -- spec.cwd
    labels TEXT NOT NULL,                           -- spec.labels
    deleted_sequence INTEGER NOT NULL DEFAULT 0,    -- when deleted: its first event that stays
    title TEXT NOT NULL,
    status TEXT NOT NULL,
    status_reason TEXT NOT NULL,
    status_message TEXT NOT NULL,
    stopping TEXT NOT NULL,
    requeueing TEXT NOT NULL,
    cancel_reason TEXT NOT NULL,
    cancel_force INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    request_id TEXT NOT NULL,
    progress TEXT,
    usage TEXT NOT NULL,
    limits_reached TEXT NOT NULL,
    result TEXT,
    error TEXT,
    resume_count INTEGER NOT NULL,
    task_counts TEXT NOT NULL,
    open_ask_count INTEGER NOT NULL,
    create_time INTEGER NOT NULL,
    start_time INTEGER,
    end_time INTEGER,
    update_time INTEGER NOT NULL,
    deadline INTEGER,
    last_sequence INTEGER NOT NULL,
    last_run_sequence INTEGER NOT NULL
) STRICT;

CREATE INDEX run_by_status ON run (status, create_time, id) WHERE deleted_sequence = 0;
CREATE INDEX run_by_cwd ON run (cwd, status, create_time, id) WHERE deleted_sequence = 0;
CREATE INDEX run_deleted ON run (deleted_sequence) WHERE deleted_sequence > 0;

CREATE TABLE run_spec (
    run_id TEXT PRIMARY KEY,
    spec TEXT NOT NULL
) STRICT;

CREATE TABLE task (
    run_id TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    status TEXT NOT NULL,
    status_reason TEXT NOT NULL,
    status_message TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    spent_attempts INTEGER NOT NULL,
    not_before INTEGER,
    progress TEXT,
    current_tool TEXT NOT NULL,
    last_activity_time INTEGER,
    capabilities TEXT NOT NULL,
    open_ask_ids TEXT NOT NULL,
    usage TEXT NOT NULL,
    result TEXT,
    error TEXT,
    resolution_note TEXT NOT NULL,
    create_time INTEGER NOT NULL,
    start_time INTEGER,
    end_time INTEGER,
    update_time INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL,
    PRIMARY KEY (run_id, id)
) STRICT;

CREATE UNIQUE INDEX task_by_position ON task (run_id, position);

CREATE TABLE task_spec (
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    spec TEXT NOT NULL,
    PRIMARY KEY (run_id, task_id)
) STRICT;

CREATE TABLE attempt (
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    epoch TEXT NOT NULL,
    outcome TEXT,
    cause TEXT,
    message TEXT NOT NULL,
    retryable INTEGER NOT NULL,
    stop_cause TEXT NOT NULL,
    adapter TEXT NOT NULL,
    model TEXT NOT NULL,
    worker_name TEXT NOT NULL,
    worker_version TEXT NOT NULL,
    session_id TEXT NOT NULL,
    argv TEXT NOT NULL,
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    exit_code INTEGER,
    signal INTEGER,
    survivors TEXT NOT NULL,
    usage TEXT NOT NULL,
    result TEXT,
    handed_in TEXT,
    nudges INTEGER NOT NULL,
    rejections INTEGER NOT NULL,
    prompt_artifact_id TEXT NOT NULL,
    transcript_artifact_id TEXT NOT NULL,
    stdout_offset INTEGER NOT NULL,
    stderr_offset INTEGER NOT NULL,
    stdout_bytes INTEGER NOT NULL,
    stderr_bytes INTEGER NOT NULL,
    adapter_state TEXT NOT NULL,
    stdin_seq INTEGER NOT NULL,
    deadline INTEGER,
    time_left INTEGER,
    stall_at INTEGER,
    linger_until INTEGER,
    force_until INTEGER,
    create_time INTEGER NOT NULL,
    start_time INTEGER,
    end_time INTEGER,
    PRIMARY KEY (run_id, task_id, number)
) STRICT;

CREATE TABLE ask (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    worker_ref TEXT NOT NULL,
    channel TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    title TEXT NOT NULL,
    question TEXT NOT NULL,
    detail TEXT NOT NULL,
    options TEXT NOT NULL,
    allow_text INTEGER NOT NULL,
    min_choices INTEGER NOT NULL,
    max_choices INTEGER NOT NULL,
    default_option_id TEXT NOT NULL,
    on_timeout TEXT NOT NULL,
    expire_time INTEGER,
    answer TEXT,
    answer_masked INTEGER NOT NULL,
    raw_text TEXT NOT NULL,
    answered_by TEXT,
    delivery TEXT NOT NULL,
    run_title TEXT NOT NULL,
    task_title TEXT NOT NULL,
    workspace_cwd TEXT NOT NULL,
    create_time INTEGER NOT NULL,
    settle_time INTEGER,
    last_sequence INTEGER NOT NULL
) STRICT;

CREATE INDEX ask_by_status ON ask (status, create_time, id);
CREATE INDEX ask_by_run ON ask (run_id, status, create_time, id);

CREATE TABLE outbox (
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    ref TEXT NOT NULL,
    PRIMARY KEY (run_id, task_id, attempt, seq)
) STRICT;

-- Appended at its end whatever the run: many runs at once still fill one page after the other.
CREATE TABLE event (
    sequence INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL,
    run_sequence INTEGER NOT NULL,
    kind TEXT NOT NULL,
    chatter INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

CREATE INDEX event_by_run ON event (run_id);

-- In the order of their rowids they were recorded.
CREATE TABLE artifact (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    name TEXT NOT NULL,
    kind TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    sha256 TEXT NOT NULL,
    source_path TEXT NOT NULL,
    description TEXT NOT NULL,
    truncated INTEGER NOT NULL,
    redacted INTEGER NOT NULL,
    create_time INTEGER NOT NULL,
    last_sequence INTEGER NOT NULL
) STRICT;

CREATE INDEX artifact_by_run ON artifact (run_id);
CREATE INDEX artifact_by_task ON artifact (run_id, task_id);

CREATE TABLE request (
    id TEXT PRIMARY KEY,
    run_id TEXT NOT NULL,
    method TEXT NOT NULL,
    digest BLOB NOT NULL,
    response BLOB NOT NULL,
    time INTEGER NOT NULL
) STRICT;

CREATE INDEX request_by_time ON request (time);
