import assert from "node:assert/strict";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, test } from "node:test";
import { locate } from "@crewd/client";

let dir: string;

beforeEach(() => (dir = realpathSync(mkdtempSync(join(tmpdir(), "crewd-ts-")))));
afterEach(() => rmSync(dir, { recursive: true }));

function writeDaemonFile(stateDir: string, changed: object = {}): void {
  mkdirSync(stateDir, { recursive: true });
  const texts = {
    instance_id: "i",
    store_id: "s",
    version: "0",
    token_file: join(dir, "its-token"),
    state_dir: stateDir,
  };
  const data = { protocol: 1, pid: 1, socket: join(dir, "its.sock"), ...texts, ...changed };
  writeFileSync(join(stateDir, "daemon.json"), JSON.stringify(data));
}

test("the default state directory has its socket in the runtime directory, any other has its own", () => {
  const env = { HOME: dir, XDG_RUNTIME_DIR: dir };
  assert.deepEqual(locate(env), {
    stateDir: `${dir}/.local/state/crewd`,
    socket: `${dir}/crewd/crewd.sock`,
    taskToken: false,
    anyDaemon: false,
  });
  assert.equal(locate(env, { stateDir: `${dir}/x` }).socket, `${dir}/x/crewd.sock`);
});

test("what is named goes before variables, and empty or relative ones are unset", () => {
  const env = { HOME: dir, CREWD_STATE_DIR: `${dir}/a`, XDG_STATE_HOME: "b", CREWD_SOCKET: "" };
  assert.equal(locate(env).stateDir, `${dir}/a`);
  assert.equal(locate(env, { stateDir: "~/c" }).stateDir, `${dir}/c`);
  assert.equal(locate({ ...env, CREWD_STATE_DIR: "" }).stateDir, `${dir}/.local/state/crewd`);
});

test("symbolic links are resolved, to what is not there yet too", () => {
  symlinkSync(`${dir}/later`, `${dir}/link`);
  assert.equal(locate({}, { stateDir: `${dir}/link/a` }).stateDir, `${dir}/later/a`);
  mkdirSync(`${dir}/later`);
  assert.equal(locate({}, { stateDir: `${dir}/link/a` }).stateDir, `${dir}/later/a`);
});

test("a path that is too long for a socket gets one by its digest", () => {
  const stateDir = `${dir}/${"x".repeat(100)}`;
  assert.match(
    locate({ XDG_RUNTIME_DIR: dir }, { stateDir }).socket,
    /\/crewd\/[0-9a-f]{12}\.sock$/,
  );
  assert.match(locate({}, { stateDir }).socket, /^\/tmp\/crewd-\d+\/[0-9a-f]{12}\.sock$/);
});

test("a temporary directory that others can write to is refused", () => {
  const place = { stateDir: `${dir}/${"x".repeat(100)}` };
  const shared = `${dir}/crewd-${process.getuid?.()}`;
  mkdirSync(shared, { mode: 0o700 });
  assert.ok(locate({ TMPDIR: dir }, place).socket.startsWith(shared));
  chmodSync(shared, 0o777);
  assert.throws(() => locate({ TMPDIR: dir }, place), { code: "UNAVAILABLE" });
});

test("daemon.json tells socket and token, unless it is about another directory or damaged", () => {
  writeFileSync(join(dir, "its-token"), "secret\n");
  writeDaemonFile(`${dir}/a`);
  const { socket, token } = locate({}, { stateDir: `${dir}/a` });
  assert.deepEqual([socket, token], [`${dir}/its.sock`, "secret"]);
  for (const changed of [{ state_dir: `${dir}/b` }, { pid: "1" }, { socket: 5 }]) {
    writeDaemonFile(`${dir}/a`, changed);
    assert.equal(locate({}, { stateDir: `${dir}/a` }).socket, `${dir}/a/crewd.sock`);
  }
});

test("a worker's token stands alone, before the operator's and those in files", () => {
  writeFileSync(join(dir, "token"), "of the directory");
  writeFileSync(join(dir, "named"), "named");
  const tokens = {
    CREWD_TASK_TOKEN: "task",
    CREWD_TOKEN: "operator",
    CREWD_TOKEN_FILE: `${dir}/named`,
  };
  const found = Object.keys(tokens).map((name) => {
    const { token, taskToken } = locate(tokens, { stateDir: dir });
    Object.assign(tokens, { [name]: "" });
    return [token, taskToken];
  });
  assert.deepEqual(found, [
    ["task", true],
    ["operator", false],
    ["named", false],
  ]);
  assert.equal(locate(tokens, { stateDir: dir }).token, "of the directory");
});
