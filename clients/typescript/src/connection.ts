import { setTimeout as sleep } from "node:timers/promises";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { CrewdError, translate } from "./errors.js";
import { type Env, type Location, locate, type Place } from "./locate.js";

/**
 * Which daemon is meant, by default the user's own, and who calls. `env`: the environment that says
 * where the daemon is; default: `process.env`. `clientName`: the caller's `name/version`, for the
 * daemon's records; default: this package's.
 */
export type ConnectOptions = Place & { env?: Env; clientName?: string };

/**
 * How a call is made. `timeoutMs`: milliseconds until DEADLINE_EXCEEDED; default: 10 000 for a unary
 * call, none for a stream. `signal`: ends the call, with code CANCELLED.
 */
export type CallOptions = { timeoutMs?: number; signal?: AbortSignal | undefined };

/** `silenceMs`: a stream that gives nothing for so many milliseconds is broken. */
export type StreamOptions = CallOptions & { silenceMs?: number };

/** Opens a stream, anew each time. */
export type Open<R> = (options: StreamOptions) => AsyncIterable<R>;

/** `mayEnd`: the stream may end by itself, unless the daemon drains; else an end is a break. */
type Following = Pick<CallOptions, "signal"> & { mayEnd: boolean };

const PATIENCE_MS = 10_000;
const FIRST_WAIT_MS = 50;
const LONGEST_WAIT_MS = 1000;
const CHANNEL_OPTIONS: grpc.ChannelOptions = {
  // Else it is made of the socket's path, which is no authority to strict servers.
  "grpc.default_authority": "localhost",
  "grpc.enable_retries": 0,
  // A new channel must not share a connection that failed, and waits, with an old one.
  "grpc.use_local_subchannel_pool": 1,
};

/** The way to the daemon: makes the calls, and finds the daemon again when it was restarted. */
export class Connection {
  /** A daemon of which nothing is heard for so long is not there. */
  silenceMs = 45_000;
  location: Location;
  private channel: grpc.Client;
  // A daemon that was there may come back; one that never answered is not waited for.
  private answered = false;
  private readonly closing = new AbortController();

  constructor(private readonly options: ConnectOptions) {
    this.location = locate(this.options.env, this.options);
    this.channel = dial(this.location.socket);
  }

  /** Ends all calls. */
  close(): void {
    this.closing.abort();
    this.channel.close();
  }

  /** Makes a unary call. While the daemon is away it is tried again, for at most 10 s. */
  async unary(method: DescMethod, init: object = {}, options: CallOptions = {}): Promise<Message> {
    const { timeoutMs = PATIENCE_MS, signal } = options;
    const request = made(method, init);
    const deadline = Date.now() + timeoutMs;
    const lastTry = Date.now() + Math.min(timeoutMs, PATIENCE_MS);
    for (let tries = 0; ; tries++) {
      try {
        return await this.tryUnary(this.told(method, request, deadline), signal);
      } catch (error) {
        await this.pause(this.failure(error, method, signal), tries, signal, lastTry);
      }
    }
  }

  /** Makes a streaming call, once. To leave the loop over it cancels it. */
  async *stream(method: DescMethod, init: object = {}, options: StreamOptions = {}) {
    const { timeoutMs = Infinity, silenceMs, signal } = options;
    const told = this.told(method, made(method, init), Date.now() + timeoutMs);
    const call = this.readyChannel(signal).makeServerStreamRequest(...told);
    const cancel = () => call.cancel();
    const release = this.onLeaving(cancel, signal);
    const listen = () => (silenceMs === undefined ? undefined : setTimeout(cancel, silenceMs));
    // Whoever leaves early does not hear how the call ended, and Node throws what nobody hears.
    call.on("error", () => {});
    let timer = listen();
    try {
      for await (const response of call as AsyncIterable<Message>) {
        // The time that the reader takes is no silence of the daemon.
        clearTimeout(timer);
        this.answered = true;
        yield response;
        timer = listen();
      }
    } catch (error) {
      throw this.failure(error, method, signal);
    } finally {
      clearTimeout(timer);
      release();
      cancel();
    }
  }

  /** Makes a streaming call by `open`, and again when it breaks or ends though it may not. */
  async *follow<R extends { draining?: unknown }>(open: Open<R>, { mayEnd, signal }: Following) {
    for (let tries = 0; ; tries++) {
      let draining = false;
      try {
        for await (const response of open({ signal, silenceMs: this.silenceMs })) {
          tries = 0;
          draining ||= response.draining !== undefined;
          yield response;
        }
        if (mayEnd && !draining) return;
        throw new CrewdError("UNAVAILABLE", "the daemon ended the stream");
      } catch (error) {
        await this.pause(error, tries, signal);
      }
    }
  }

  private tryUnary(told: ReturnType<Connection["told"]>, signal?: AbortSignal) {
    return new Promise<Message>((resolve, reject) => {
      const call = this.readyChannel(signal).makeUnaryRequest(...told, (error, response) => {
        release();
        if (response === undefined) return reject(error);
        this.answered = true;
        resolve(response);
      });
      const release = this.onLeaving(() => call.cancel(), signal);
    });
  }

  /** What grpc-js is told of every call. */
  private told(method: DescMethod, request: Message, deadline: number) {
    const path = `/${method.parent.typeName}/${method.name}`;
    const encode = (message: Message) => Buffer.from(toBinary(method.input, message));
    const decode = (bytes: Buffer): Message => fromBinary(method.output, bytes);
    const metadata = new grpc.Metadata();
    metadata.set("x-crewd-client", this.options.clientName ?? "crewd-client-typescript/0.1.0");
    if (this.location.token) metadata.set("authorization", `Bearer ${this.location.token}`);
    return [path, encode, decode, request, metadata, { deadline }] as const;
  }

  /** Gives a channel to where the daemon is now, for a call that is not given up yet. */
  private readyChannel(signal?: AbortSignal): grpc.Client {
    if (this.isLeft(signal)) throw givenUp();
    const channel = this.channel.getChannel();
    // A channel that failed waits before it connects again; a new one connects at once.
    const failed = channel.getConnectivityState(false) === grpc.connectivityState.TRANSIENT_FAILURE;
    if (failed || channel.getTarget() !== `unix:${this.location.socket}`) {
      channel.close();
      this.channel = dial(this.location.socket);
    }
    return this.channel;
  }

  /** Gives the error of a call that failed with what grpc-js throws. */
  private failure(error: unknown, method: DescMethod, signal?: AbortSignal): CrewdError {
    if (this.isLeft(signal)) return givenUp();
    const ours = translate(error as grpc.ServiceError);
    const isStream = method.methodKind !== "unary";
    // A stream is cancelled here when it is silent, and by a daemon that is stopped.
    const isAway = ours.code === "UNAVAILABLE" || (ours.code === "CANCELLED" && isStream);
    const isDeaf = ours.code === "DEADLINE_EXCEEDED" && !this.answered;
    if (ours.reason !== "" || !(isAway || isDeaf)) return ours;
    return new CrewdError("UNAVAILABLE", `no daemon answers at ${this.location.socket}`);
  }

  /** Waits after so many failed tries; throws the error if there must be no other. */
  private async pause(error: unknown, tries: number, signal?: AbortSignal, lastTry = Infinity) {
    const passes = error instanceof CrewdError && error.code === "UNAVAILABLE";
    if (!passes || !(this.answered || error.reason)) throw error;
    const waitMs = error.retryAfter ?? Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
    if (Date.now() + waitMs > lastTry) throw error;
    const left = new AbortController();
    const release = this.onLeaving(() => left.abort(), signal);
    // Whether the wait was cut short the next try sees.
    await sleep(waitMs, undefined, { signal: left.signal }).catch(() => undefined);
    release();
    // A daemon that comes back may have another socket and token.
    this.location = locate(this.options.env, this.options);
  }

  private isLeft(signal?: AbortSignal): boolean {
    return this.closing.signal.aborted || (signal?.aborted ?? false);
  }

  /** Has something done when the signal is given or this is closed; gives what takes that back. */
  private onLeaving(act: () => void, signal?: AbortSignal): () => void {
    const signals = [this.closing.signal, signal];
    signals.forEach((each) => each?.addEventListener("abort", act));
    return () => signals.forEach((each) => each?.removeEventListener("abort", act));
  }
}

const dial = (socket: string) =>
  new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure(), CHANNEL_OPTIONS);

/** Makes a request, with a `request_id` so that it may be sent again; `init` stays as it is. */
function made({ input }: DescMethod, init: object): Message {
  const request: Message & { requestId?: string } = create(input, { ...init });
  if (request.requestId === "") request.requestId = crypto.randomUUID();
  return request;
}

const givenUp = () => new CrewdError("CANCELLED", "given up, or the client is closed");
