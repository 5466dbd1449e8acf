import { setTimeout as passed } from "node:timers/promises";
import * as es from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { AskService } from "./crewd/v1/ask_service_pb.js";
import { CatalogService } from "./crewd/v1/catalog_service_pb.js";
import { DaemonService } from "./crewd/v1/daemon_service_pb.js";
import { RunService } from "./crewd/v1/run_service_pb.js";
import type { ServerInfo } from "./crewd/v1/server_pb.js";
import { WorkerService } from "./crewd/v1/worker_service_pb.js";
import { CrewdError, translate } from "./errors.js";
import { type Env, locate, type Place, resolved } from "./locate.js";

/** `timeoutMs`: 10 s for unary calls, none for streams. `silenceMs`: the longest a stream may be quiet. */
export type CallOptions = { timeoutMs?: number; silenceMs?: number; signal?: AbortSignal | undefined };
type Call<I extends es.DescMessage, R> = (request?: es.MessageInitShape<I>, options?: CallOptions) => R;
export type Told = { draining?: unknown };
export type Open<R> = (options: CallOptions) => AsyncIterable<R>;
/** The methods of a service: unary ones give a promise, streaming ones what `for await` takes. */
export type Methods<S extends es.DescService> = { [M in keyof S["method"]]:
  S["method"][M] extends es.DescMethodUnary<infer I, infer O> ? Call<I, Promise<es.MessageShape<O>>> :
  S["method"][M] extends es.DescMethodServerStreaming<infer I, infer O> ?
    Call<I, AsyncIterable<es.MessageShape<O>>> : never };

const OPTIONS = { "grpc.default_authority": "localhost", "grpc.enable_http_proxy": 0, "grpc.enable_retries": 0,
  "grpc.initial_reconnect_backoff_ms": 50, "grpc.max_reconnect_backoff_ms": 500, "grpc.use_local_subchannel_pool": 1 };

/** A connection to the daemon, which may come back from a restart elsewhere. `worker` is for workers only. */
export class Client {
  readonly runs = this.methods(RunService);
  readonly asks = this.methods(AskService);
  readonly worker = this.methods(WorkerService);
  readonly catalog = this.methods(CatalogService);
  readonly daemon = this.methods(DaemonService);
  server?: ServerInfo;
  private readonly calls = new Set<{ cancel(): void }>();
  private closed = false;
  private answered = false; // A daemon that was there may come back; one that never answered is not waited for.

  private constructor(private env: Env, private place: Place, private clientName: string,
    public location = locate(env, place), private channel = dial(location.socket)) {}

  /** Connects to the daemon that is meant; code UNAVAILABLE if it is not there. */
  static async connect(options: Place & { env?: Env; clientName?: string } = {}): Promise<Client> {
    const { env = process.env, clientName = "crewd-client-typescript/0.1.0", ...place } = options;
    const client = new Client(env, place, clientName);
    if (client.location.taskToken) return client; // It allows the calls of its task only.
    try {
      const { server } = await client.daemon.getServerInfo();
      const { anyDaemon, stateDir, socket } = client.location;
      if (server && (anyDaemon || resolved(server.stateDir) === stateDir)) return Object.assign(client, { server });
      throw new CrewdError("UNAVAILABLE", `the daemon at ${socket} serves ${server?.stateDir}, not ${stateDir}`);
    } catch (error) {
      client.close();
      throw error;
    }
  }

  /** Ends the calls and watches of this client, and nothing else. */
  close(): void {
    this.closed = true;
    for (const call of this.calls) call.cancel();
    this.channel.close();
  }

  /** @internal Opens a stream, and anew when it breaks, until `end`, or ends though it may not. */
  async *resumed<R extends Told>(open: Open<R>, mayEnd: boolean, signal?: AbortSignal, end = Infinity) {
    const silenceMs = 3 * durationMs(this.server?.heartbeatInterval ?? durationFromMs(15_000));
    for (let waits = backoff(); ; ) {
      let draining = false;
      try {
        for await (const response of open({ silenceMs, signal })) {
          waits = backoff();
          draining ||= response.draining !== undefined;
          yield response;
        }
        if (mayEnd && !draining) return;
        throw new CrewdError("UNAVAILABLE", "the stream has ended");
      } catch (error) {
        if (!(error instanceof CrewdError) || error.code !== "UNAVAILABLE") throw error;
        const wait = error.retryAfter ?? waits();
        if ((!this.answered && !error.reason) || performance.now() + wait > end) throw error;
        await passed(wait, undefined, signal && { signal }).catch(() => this.check(signal));
        this.location = locate(this.env, this.place);
      }
    }
  }

  private methods<S extends es.DescService>(service: S): Methods<S> {
    const call = (m: es.DescMethod) => m.methodKind === "unary" ? this.unary.bind(this, m) : this.stream.bind(this, m);
    return Object.fromEntries(service.methods.map((each) => [each.localName, call(each)])) as Methods<S>;
  }

  private check(signal?: AbortSignal): void {
    if (this.closed || signal?.aborted) throw new CrewdError("CANCELLED", "given up, or the client is closed");
  }

  private async unary(method: es.DescMethod, init: object = {}, { timeoutMs = 10_000, signal }: CallOptions = {}) {
    const [request, begun] = [encoded(method, init), performance.now()];
    const left = () => Math.max(begun + timeoutMs - performance.now(), 1);
    const open = (): AsyncIterable<Told> => this.stream(method, request, { timeoutMs: left(), signal });
    let answer; // All that such a stream gives, once its status has come too.
    for await (answer of this.resumed(open, true, signal, begun + Math.min(timeoutMs, 10_000)));
    return answer;
  }

  private async *stream(method: es.DescMethod, init: object = {}, { timeoutMs, silenceMs, signal }: CallOptions = {}) {
    this.check(signal);
    const { token, socket } = this.location;
    // A channel that failed waits before it connects again; a new one does not.
    const old = this.channel.getChannel();
    const failed = old.getConnectivityState(false) === grpc.connectivityState.TRANSIENT_FAILURE;
    if (failed || old.getTarget() !== `unix:${socket}`) this.channel = (old.close(), dial(socket));
    const request = init instanceof Buffer ? init : encoded(method, init);
    const headers = { "x-crewd-client": this.clientName, ...(token && { authorization: `Bearer ${token}` }) };
    const decode = (bytes: Buffer) => es.fromBinary(method.output, bytes);
    const call = this.channel.makeServerStreamRequest(`/${method.parent.typeName}/${method.name}`, Buffer.from, decode,
      request, grpc.Metadata.fromHttp2Headers(headers), { deadline: Date.now() + (timeoutMs ?? Infinity) });
    const cancel = () => call.cancel();
    const listen = () => (silenceMs === undefined ? undefined : setTimeout(cancel, silenceMs));
    let timer = listen();
    this.calls.add(call.on("error", () => {})); // Whoever leaves early does not hear how the call ended.
    signal?.addEventListener("abort", cancel);
    try {
      for await (const response of call) {
        clearTimeout(timer);
        this.answered = true;
        yield response;
        timer = listen();
      }
    } catch (error) {
      this.check(signal);
      const ours = translate(error as grpc.ServiceError);
      // A stream that is silent was cancelled here; a daemon that ends cancels those it still serves.
      const away = ours.code === "UNAVAILABLE" || (ours.code === "CANCELLED" && method.methodKind !== "unary");
      const gone = away ? !ours.reason : ours.code === "DEADLINE_EXCEEDED" && !this.answered;
      throw gone ? new CrewdError("UNAVAILABLE", `no daemon answers at ${socket}`) : ours;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      if (this.calls.delete(call)) cancel();
    }
  }
}

const backoff = (next = 25) => () => (next = Math.min(next * 2, 1000)); // Milliseconds before each further try.
const dial = (socket: string) => new grpc.Client(`unix:${socket}`, grpc.credentials.createInsecure(), OPTIONS);

/** Gives the request's bytes, with a `request_id` so that it may be sent again; `init` stays as it is. */
function encoded({ input }: es.DescMethod, init: object): Buffer {
  const request: es.Message & { requestId?: string } = es.create(input, { ...init });
  if (request.requestId === "") request.requestId = crypto.randomUUID();
  return Buffer.from(es.toBinary(input, request));
}
