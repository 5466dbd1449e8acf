-- Every statement of the store but its migrations: a name, a line that says what it does, the SQL.
-- {table.columns}, {table.marks} and {table.assignments} are filled in from the dataclasses.

-- name: insert_event
-- One event of a run.
INSERT INTO event (run_id, sequence, run_sequence, kind, chatter, data) VALUES (?, ?, ?, ?, ?, ?);

-- name: set_next_sequence
-- The first sequence not given out, written with the events that raise it.
UPDATE meta SET value = ? WHERE key = 'next_sequence';

-- name: insert_run
-- A new run.
INSERT INTO run (cwd, labels, {run.columns}) VALUES (?, ?, {run.marks});

-- name: insert_run_spec
-- What the run's creator asked for.
INSERT INTO run_spec (run_id, spec) VALUES (?, ?);

-- name: update_run
-- Everything of a run but its status: naming an indexed column rewrites its indexes, changed or not.
UPDATE run SET {run.assignments} WHERE id = ?;

-- name: update_run_status
-- A run's status, if it is another one.
UPDATE run SET status = ?1 WHERE id = ?2 AND status <> ?1;

-- name: mark_run_deleted
-- The run is gone for every reader; its rows follow in slices.
UPDATE run SET deleted_sequence = ? WHERE id = ?;

-- name: insert_task
-- A new task.
INSERT INTO task ({task.columns}) VALUES ({task.marks});

-- name: insert_task_spec
-- What a task is to do.
INSERT INTO task_spec (run_id, task_id, spec) VALUES (?, ?, ?);

-- name: update_task
-- Everything of a task that changes.
UPDATE task SET {task.assignments} WHERE run_id = ? AND id = ?;

-- name: insert_attempt
-- A new attempt.
INSERT INTO attempt ({attempt.columns}) VALUES ({attempt.marks});

-- name: update_attempt
-- Everything of an attempt that changes.
UPDATE attempt SET {attempt.assignments} WHERE run_id = ? AND task_id = ? AND number = ?;

-- name: upsert_ask
-- A new or changed question.
INSERT INTO ask ({ask.columns}) VALUES ({ask.marks})
ON CONFLICT (id) DO UPDATE SET {ask.taken};

-- name: insert_artifact
-- Something a run keeps; what was recorded before stays as it was.
INSERT INTO artifact ({artifact.columns}) VALUES ({artifact.marks}) ON CONFLICT (id) DO NOTHING;

-- name: insert_outbox
-- A message on its way to a worker.
INSERT INTO outbox ({outbox.columns}) VALUES ({outbox.marks});

-- name: take_outbox
-- The host has every message of the attempt up to this one.
DELETE FROM outbox WHERE run_id = ? AND task_id = ? AND attempt = ? AND seq <= ?;

-- name: insert_request
-- A write that was carried out, with its answer.
INSERT INTO request (id, run_id, method, digest, response, time) VALUES (?, ?, ?, ?, ?, ?);

-- name: purge_requests
-- A slice of the requests that are too old to be repeated.
DELETE FROM request WHERE rowid IN (SELECT rowid FROM request WHERE time < ? ORDER BY time LIMIT ?);

-- name: deleted_runs
-- Runs marked deleted whose rows are not all gone yet.
SELECT id, deleted_sequence FROM run WHERE deleted_sequence > 0;

-- name: slice_event
-- A slice of a deleted run's events before the one that stays.
DELETE FROM event WHERE run_id = :run_id AND sequence <= (
    SELECT max(sequence) FROM (
        SELECT sequence FROM event WHERE run_id = :run_id AND sequence < :kept
        ORDER BY sequence LIMIT :limit
    )
);

-- name: slice_outbox
-- A slice of a deleted run's messages.
DELETE FROM outbox WHERE rowid IN (SELECT rowid FROM outbox WHERE run_id = :run_id LIMIT :limit);

-- name: slice_artifact
-- A slice of a deleted run's artifacts.
DELETE FROM artifact WHERE rowid IN (SELECT rowid FROM artifact WHERE run_id = :run_id LIMIT :limit);

-- name: slice_ask
-- A slice of a deleted run's questions.
DELETE FROM ask WHERE rowid IN (SELECT rowid FROM ask WHERE run_id = :run_id LIMIT :limit);

-- name: slice_attempt
-- A slice of a deleted run's attempts.
DELETE FROM attempt WHERE rowid IN (SELECT rowid FROM attempt WHERE run_id = :run_id LIMIT :limit);

-- name: slice_task_spec
-- A slice of a deleted run's task specs.
DELETE FROM task_spec WHERE rowid IN (SELECT rowid FROM task_spec WHERE run_id = :run_id LIMIT :limit);

-- name: slice_task
-- A slice of a deleted run's tasks.
DELETE FROM task WHERE rowid IN (SELECT rowid FROM task WHERE run_id = :run_id LIMIT :limit);

-- name: slice_run_spec
-- A deleted run's spec.
DELETE FROM run_spec WHERE rowid IN (SELECT rowid FROM run_spec WHERE run_id = :run_id LIMIT :limit);

-- name: slice_run
-- A deleted run itself, when all that belonged to it is gone.
DELETE FROM run WHERE id = :run_id AND deleted_sequence = :kept;

-- name: store_id
-- Which store this is: a cursor of another one means nothing here.
SELECT value FROM meta WHERE key = 'store_id';

-- name: next_sequence
-- The first sequence that is not in the log.
SELECT value FROM meta WHERE key = 'next_sequence';

-- name: run_ids_by_prefix
-- Ids from the first to before the second.
SELECT id FROM run WHERE id >= ? AND id < ? AND deleted_sequence = 0 ORDER BY id LIMIT ?;

-- name: run_ids_by_status
-- Runs of these statuses, oldest first.
SELECT id FROM run
WHERE deleted_sequence = 0 AND status IN (SELECT value FROM json_each(?))
ORDER BY create_time, id;

-- name: run_count
-- How many runs have one of these statuses.
SELECT count(*) FROM run WHERE deleted_sequence = 0 AND status IN (SELECT value FROM json_each(?));

-- name: run_keys_by_status
-- Where to find the runs of one status and these labels that are older than a run, newest first.
SELECT create_time, id FROM run
WHERE deleted_sequence = 0 AND status = :status AND (create_time, id) < (:time, :id)
    AND (:labels = '{}' OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS (
            SELECT 1 FROM json_each(run.labels) AS had
            WHERE had.key = wanted.key AND had.value = wanted.value)))
ORDER BY create_time DESC, id DESC LIMIT :limit;

-- name: run_keys_by_cwd
-- The same, of one working directory.
SELECT create_time, id FROM run
WHERE deleted_sequence = 0 AND status = :status AND cwd = :cwd AND (create_time, id) < (:time, :id)
    AND (:labels = '{}' OR NOT EXISTS (
        SELECT 1 FROM json_each(:labels) AS wanted WHERE NOT EXISTS (
            SELECT 1 FROM json_each(run.labels) AS had
            WHERE had.key = wanted.key AND had.value = wanted.value)))
ORDER BY create_time DESC, id DESC LIMIT :limit;

-- name: runs
-- The runs with these ids.
SELECT {run.selected}, run_spec.spec
FROM json_each(?) AS wanted
    CROSS JOIN run ON run.id = wanted.value
    JOIN run_spec ON run_spec.run_id = run.id
WHERE run.deleted_sequence = 0;

-- name: run_versions
-- When each of these runs last changed.
SELECT run.id, run.update_time
FROM json_each(?) AS wanted
    CROSS JOIN run ON run.id = wanted.value
WHERE run.deleted_sequence = 0;

-- name: tasks_of_runs
-- All tasks of these runs, in no order that is promised.
SELECT {task.selected}, task_spec.spec
FROM json_each(?) AS wanted
    CROSS JOIN task ON task.run_id = wanted.value
    CROSS JOIN task_spec ON task_spec.run_id = task.run_id AND task_spec.task_id = task.id;

-- name: tasks_page
-- Tasks of a run after a position, of these statuses if any are named.
SELECT {task.selected}, task_spec.spec
FROM task JOIN task_spec ON task_spec.run_id = task.run_id AND task_spec.task_id = task.id
WHERE task.run_id = ?1 AND task.position > ?2
    AND (?3 = '[]' OR task.status IN (SELECT value FROM json_each(?3)))
    AND EXISTS (SELECT 1 FROM run WHERE run.id = ?1 AND run.deleted_sequence = 0)
ORDER BY task.position LIMIT ?4;

-- name: task
-- One task.
SELECT {task.selected}, task_spec.spec
FROM task JOIN task_spec ON task_spec.run_id = task.run_id AND task_spec.task_id = task.id
WHERE task.run_id = ?1 AND task.id = ?2
    AND EXISTS (SELECT 1 FROM run WHERE run.id = ?1 AND run.deleted_sequence = 0);

-- name: attempts
-- All attempts of a task, in order.
SELECT {attempt.selected} FROM attempt
WHERE run_id = ?1 AND task_id = ?2
    AND EXISTS (SELECT 1 FROM run WHERE run.id = ?1 AND run.deleted_sequence = 0)
ORDER BY number;

-- name: attempt
-- One attempt; number 0 is the latest.
SELECT {attempt.selected} FROM attempt
WHERE run_id = ?1 AND task_id = ?2 AND (?3 = 0 OR number = ?3)
    AND EXISTS (SELECT 1 FROM run WHERE run.id = ?1 AND run.deleted_sequence = 0)
ORDER BY number DESC LIMIT 1;

-- name: survivors
-- Attempts that ended with processes not proven gone, the latest first.
SELECT run_id, task_id, number, survivors FROM attempt
WHERE survivors <> '[]' ORDER BY create_time DESC LIMIT ?;

-- name: attempts_to_recover
-- Of these runs, the latest attempt of each task and every attempt that has not ended.
SELECT {attempt.selected}
FROM json_each(?) AS wanted
    CROSS JOIN task ON task.run_id = wanted.value
    JOIN attempt ON attempt.run_id = task.run_id AND attempt.task_id = task.id
WHERE attempt.number = task.attempt OR attempt.status <> 'ended';

-- name: asks_to_recover
-- Of these runs, the asks that are open or belong to a task that may still ask again.
SELECT {ask.selected}
FROM json_each(?1) AS wanted
    CROSS JOIN ask ON ask.run_id = wanted.value
    LEFT JOIN task ON task.run_id = ask.run_id AND task.id = ask.task_id
WHERE ask.status = 'open' OR task.status NOT IN (SELECT value FROM json_each(?2))
ORDER BY ask.create_time, ask.id;

-- name: outbox_to_recover
-- Messages of these runs that the host may not have.
SELECT {outbox.selected}
FROM json_each(?) AS wanted CROSS JOIN outbox ON outbox.run_id = wanted.value
ORDER BY outbox.run_id, outbox.task_id, outbox.attempt, outbox.seq;

-- name: ask
-- One question.
SELECT {ask.selected} FROM ask JOIN run ON run.id = ask.run_id AND run.deleted_sequence = 0
WHERE ask.id = ?;

-- name: ask_keys_by_status
-- Where to find the asks of one status older than an ask, newest first, of a directory if named.
SELECT ask.create_time, ask.id
FROM ask JOIN run ON run.id = ask.run_id AND run.deleted_sequence = 0
WHERE ask.status = :status AND (ask.create_time, ask.id) < (:time, :id)
    AND (:cwd = '' OR ask.workspace_cwd = :cwd)
ORDER BY ask.create_time DESC, ask.id DESC LIMIT :limit;

-- name: ask_keys_by_run
-- The same, of one run.
SELECT ask.create_time, ask.id
FROM ask JOIN run ON run.id = ask.run_id AND run.deleted_sequence = 0
WHERE ask.status = :status AND ask.run_id = :run_id AND (ask.create_time, ask.id) < (:time, :id)
    AND (:cwd = '' OR ask.workspace_cwd = :cwd)
ORDER BY ask.create_time DESC, ask.id DESC LIMIT :limit;

-- name: asks
-- The asks with these ids.
SELECT {ask.selected} FROM json_each(?) AS wanted CROSS JOIN ask ON ask.id = wanted.value;

-- name: ask_count
-- How many questions wait for an answer.
SELECT count(*) FROM ask JOIN run ON run.id = ask.run_id AND run.deleted_sequence = 0
WHERE ask.status = 'open';

-- name: artifact
-- One artifact.
SELECT {artifact.selected}
FROM artifact JOIN run ON run.id = artifact.run_id AND run.deleted_sequence = 0
WHERE artifact.id = ?;

-- name: latest_artifact
-- The last artifact of a name that a run recorded.
SELECT {artifact.selected} FROM artifact
WHERE run_id = ?1 AND name = ?2
    AND EXISTS (SELECT 1 FROM run WHERE run.id = ?1 AND run.deleted_sequence = 0)
ORDER BY rowid DESC LIMIT 1;

-- name: artifacts_of_run
-- Artifacts of a run after a place, of these kinds if any are named, as they were recorded.
SELECT artifact.rowid, {artifact.selected} FROM artifact
WHERE run_id = :run_id AND artifact.rowid > :after
    AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
    AND EXISTS (SELECT 1 FROM run WHERE run.id = :run_id AND run.deleted_sequence = 0)
ORDER BY artifact.rowid LIMIT :limit;

-- name: artifacts_of_task
-- The same, of one task.
SELECT artifact.rowid, {artifact.selected} FROM artifact
WHERE run_id = :run_id AND task_id = :task_id AND artifact.rowid > :after
    AND (:kinds = '[]' OR kind IN (SELECT value FROM json_each(:kinds)))
    AND EXISTS (SELECT 1 FROM run WHERE run.id = :run_id AND run.deleted_sequence = 0)
ORDER BY artifact.rowid LIMIT :limit;

-- name: last_sequence
-- The last event of a run.
SELECT max(sequence) FROM event WHERE run_id = ?;

-- name: first_kept_sequence
-- When a run is deleted: its first event that stays.
SELECT deleted_sequence FROM run WHERE id = ?;

-- name: events
-- Events of a run after a sequence.
SELECT sequence, run_sequence, kind, chatter, data FROM event
WHERE run_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3;

-- name: events_window_end
-- Where the search for a kind pauses: so many events after a sequence.
SELECT max(sequence) FROM (
    SELECT sequence FROM event WHERE run_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3
);

-- name: events_of_kinds
-- Events of these kinds of a run after a sequence, up to another.
SELECT sequence, run_sequence, kind, chatter, data FROM event
WHERE run_id = ?1 AND sequence > ?2 AND sequence <= ?3
    AND kind IN (SELECT value FROM json_each(?4))
ORDER BY sequence LIMIT ?5;

-- name: request
-- A write that was carried out.
SELECT id, run_id, method, digest, response, time FROM request WHERE id = ?;
