import { createHash } from "node:crypto";
import { lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join } from "node:path";
import { CrewdError, ifReadable } from "./errors.js";

/** Variables of an environment. An empty one counts as unset. */
export type Env = Readonly<Record<string, string | undefined>>;

/** Which daemon is meant, as `--state-dir` and `--socket` say it; `~/` is the home of the `Env`. */
export type Place = { stateDir?: string; socket?: string };

/** Where a client looks for the daemon. */
export type Location = {
  /** Absolute, its symbolic links resolved. */
  stateDir: string;
  socket: string;
  /** Not there: none was found, and the daemon will say what is missing. */
  token?: string;
  /** The token is a worker's, for the calls of its task only. */
  taskToken: boolean;
  /** Only a socket was named, so whichever daemon answers there is the one meant. */
  anyDaemon: boolean;
};

const NUMBERS = ["protocol", "pid"];
const TEXTS = ["instance_id", "store_id", "version", "socket", "token_file", "state_dir"] as const;
type DaemonFile = Record<(typeof TEXTS)[number], string>;

const LONGEST_SOCKET_BYTES = 100;
const PRIVATE_NAME = `crewd-${process.getuid?.()}`;

/**
 * Finds state directory, socket and token by the rules that the daemon follows itself. Reads files
 * and connects to nothing. `CrewdError` with code UNAVAILABLE: others could tamper with the socket.
 */
export function locate(env: Env = process.env, place: Place = {}): Location {
  const namedDir = place.stateDir || env.CREWD_STATE_DIR;
  const namedSocket = place.socket || env.CREWD_SOCKET;
  const stateDir = namedDir ? resolved(expanded(namedDir, env)) : defaultStateDir(env);
  const daemon = readDaemonFile(stateDir);
  const foundSocket = daemon?.socket ?? defaultSocket(stateDir, env);
  const socket = namedSocket ? absolute(expanded(namedSocket, env)) : foundSocket;
  checkPrivate(dirname(socket));
  const token = findToken(env, daemon?.token_file || join(stateDir, "token"));
  const anyDaemon = !!namedSocket && !namedDir;
  const taskToken = !!env.CREWD_TASK_TOKEN;
  return { stateDir, socket, ...(token && { token }), taskToken, anyDaemon };
}

/** Gives the absolute path with its symbolic links resolved, as far as it is there. */
export function resolved(path: string, mostLinks = 40): string {
  const whole = absolute(path);
  const above = dirname(whole);
  const real = ifReadable(() => realpathSync.native(whole));
  if (real !== undefined || above === whole) return real ?? whole;
  const link = ifReadable(() => readlinkSync(whole));
  if (link === undefined || mostLinks === 0) return join(resolved(above), basename(whole));
  return resolved(isAbsolute(link) ? link : `${above}/${link}`, mostLinks - 1);
}

/** Reads `daemon.json`. One that is damaged, or about another directory, counts for nothing. */
function readDaemonFile(stateDir: string): DaemonFile | undefined {
  const text = ifReadable(() => readFileSync(join(stateDir, "daemon.json"), "utf8")) ?? "";
  const data = ifReadable(() => JSON.parse(text));
  const areNumbers = NUMBERS.every((key) => typeof data?.[key] === "number");
  const isWhole = areNumbers && TEXTS.every((key) => typeof data[key] === "string");
  return isWhole && resolved(data.state_dir) === stateDir ? data : undefined;
}

/** Gives the first place whose path is short enough for a socket. */
function defaultSocket(stateDir: string, env: Env): string {
  const name = `${createHash("sha256").update(stateDir).digest("hex").slice(0, 12)}.sock`;
  const base = ifAbsolute(env.XDG_RUNTIME_DIR);
  const runtime = base && ifReadable(() => statSync(base).isDirectory()) && join(base, "crewd");
  const shared = runtime && stateDir === defaultStateDir(env) && join(runtime, "crewd.sock");
  const own = join(stateDir, "crewd.sock");
  const temporary = (dir: string) => join(dir, PRIVATE_NAME, name);
  const named = temporary(ifAbsolute(env.TMPDIR) ?? "/tmp");
  const candidates = [shared, own, runtime && join(runtime, name), named, temporary("/tmp")];
  return candidates.find((path) => path && Buffer.byteLength(path) <= LONGEST_SOCKET_BYTES) || "";
}

/** Refuses a directory for our sockets alone if others could tamper with it. */
function checkPrivate(directory: string): void {
  if (basename(directory) !== PRIVATE_NAME) return;
  const found = lstatSync(directory, { throwIfNoEntry: false });
  const isOurs = found?.isDirectory() && found.uid === process.getuid?.() && !(found.mode & 0o022);
  if (!found || isOurs) return;
  throw new CrewdError("UNAVAILABLE", `${directory} is no directory that only you can write to`);
}

/** Gives the token. A worker's stands alone: it must not reach for the operator's by mistake. */
function findToken(env: Env, file: string): string | undefined {
  const named = env.CREWD_TOKEN_FILE ? expanded(env.CREWD_TOKEN_FILE, env) : file;
  const given = env.CREWD_TASK_TOKEN || env.CREWD_TOKEN;
  const token = given || ifReadable(() => readFileSync(named, "utf8").trim());
  // No call could carry another.
  return token && /^[ -~]+$/.test(token) ? token : undefined;
}

/** Makes a path absolute. `..` stays: what is above a symbolic link only the link tells. */
const absolute = (path: string) =>
  (isAbsolute(path) ? path : `${process.cwd()}/${path}`).replace(/\/(\.?\/)+/g, "/");
const defaultStateDir = (env: Env) =>
  resolved(join(ifAbsolute(env.XDG_STATE_HOME) ?? join(home(env), ".local/state"), "crewd"));
const expanded = (path: string, env: Env) => path.replace(/^~(?=\/|$)/, () => home(env));
const home = (env: Env) => ifAbsolute(env.HOME) ?? homedir();
const ifAbsolute = (path: string | undefined) => (path?.startsWith("/") ? path : undefined);
