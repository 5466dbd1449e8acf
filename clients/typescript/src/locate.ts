import { createHash } from "node:crypto";
import { lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve } from "node:path";
import { attempt, CrewdError } from "./errors.js";

export type Env = Readonly<Record<string, string | undefined>>;
export type Place = { stateDir?: string; socket?: string };
/** Where the daemon is. `taskToken`: the token is a worker's. `anyDaemon`: only the socket was named. */
export type Location = { stateDir: string; socket: string; token?: string; taskToken: boolean; anyDaemon: boolean };

const DAEMON_FILE = { protocol: "number", pid: "number", instance_id: "string", store_id: "string", version: "string",
  socket: "string", token_file: "string", state_dir: "string" };
const OURS = `crewd-${process.getuid?.()}`;

/** Finds state directory, socket and token by the rules of all clients. Reads files, starts nothing. */
export function locate(env: Env, place: Place = {}): Location {
  const [namedDir, namedSocket] = [place.stateDir ?? env.CREWD_STATE_DIR, place.socket ?? env.CREWD_SOCKET];
  const stateDir = namedDir ? resolved(expanded(namedDir, env)) : defaultDir(env);
  const daemon = daemonFile(stateDir);
  const socket = namedSocket ? absolute(expanded(namedSocket, env)) : (daemon?.socket ?? defaultSocket(stateDir, env));
  const dir = basename(dirname(socket)) === OURS && lstatSync(dirname(socket), { throwIfNoEntry: false });
  if (dir && (!dir.isDirectory() || dir.uid !== process.getuid?.() || dir.mode & 0o022))
    throw new CrewdError("UNAVAILABLE", `${dirname(socket)} is not a directory that only its owner, you, can write to`);
  const file = env.CREWD_TOKEN_FILE ? expanded(env.CREWD_TOKEN_FILE, env) : daemon?.token_file || `${stateDir}/token`;
  const token = env.CREWD_TASK_TOKEN || env.CREWD_TOKEN || attempt(() => readFileSync(file, "utf8").trim());
  const fits = token && /^[ -~]+$/.test(token) && { token }; // No call could carry another.
  return { stateDir, socket, ...fits, taskToken: !!env.CREWD_TASK_TOKEN, anyDaemon: !!namedSocket && !namedDir };
}

/** Gives the path with its symbolic links resolved, as far as it is there. */
export function resolved(path: string): string {
  const [whole, above] = [absolute(path), dirname(absolute(path))];
  const there = attempt(() => realpathSync.native(whole));
  if (there || above === whole) return there ?? whole;
  const link = attempt(() => readlinkSync(whole));
  return link ? resolved(resolve(above, link)) : join(resolved(above), basename(whole));
}

function defaultSocket(stateDir: string, env: Env): string {
  const name = `${createHash("sha256").update(stateDir).digest("hex").slice(0, 12)}.sock`;
  const given = rooted(env.XDG_RUNTIME_DIR);
  const runtime = given && attempt(() => statSync(given).isDirectory()) && join(given, "crewd");
  const shared = runtime && stateDir === defaultDir(env) && join(runtime, "crewd.sock");
  const temporary = [rooted(env.TMPDIR) ?? "/tmp", "/tmp"].map((dir) => join(dir, OURS, name));
  const candidates = [shared, join(stateDir, "crewd.sock"), runtime && join(runtime, name), ...temporary];
  return candidates.find((path) => path && Buffer.byteLength(path) <= 100) || "";
}

/** Reads `daemon.json`. One that is damaged, or about another state directory, counts for nothing. */
function daemonFile(stateDir: string): { socket: string; token_file: string } | undefined {
  const data = attempt(() => JSON.parse(readFileSync(join(stateDir, "daemon.json"), "utf8")));
  const whole = Object.entries(DAEMON_FILE).every(([key, type]) => typeof data?.[key] === type);
  return whole && resolved(data.state_dir) === stateDir ? data : undefined;
}

const defaultDir = (env: Env) => resolved(join(rooted(env.XDG_STATE_HOME) ?? join(home(env), ".local/state"), "crewd"));
const expanded = (path: string, env: Env) => path.replace(/^~(?=\/|$)/, () => home(env));
const absolute = (path: string) => (isAbsolute(path) ? path : `${process.cwd()}/${path}`).replace(/\/(\.?\/)+/g, "/");
const home = (env: Env) => rooted(env.HOME) ?? homedir();
const rooted = (path: string | undefined) => (path?.startsWith("/") ? path : undefined);
