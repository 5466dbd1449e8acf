import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { type CallOptions, Connection, type ConnectOptions } from "./connection.js";
import { AskService } from "./crewd/v1/ask_service_pb.js";
import { CatalogService } from "./crewd/v1/catalog_service_pb.js";
import { DaemonService } from "./crewd/v1/daemon_service_pb.js";
import { RunService } from "./crewd/v1/run_service_pb.js";
import type { ServerInfo } from "./crewd/v1/server_pb.js";
import { WorkerService } from "./crewd/v1/worker_service_pb.js";
import { CrewdError } from "./errors.js";
import { resolved } from "./locate.js";

/**
 * The methods of a service. A unary one gives a promise, a streaming one what `for await` takes;
 * both fail with a `CrewdError`. Requests are plain objects, or messages, which stay as they are.
 */
export type Methods<S extends DescService> = { [M in keyof S["method"]]: Method<S["method"][M]> };
type Method<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? Call<I, Promise<MessageShape<O>>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? Call<I, AsyncIterable<MessageShape<O>>>
      : never;
type Call<I extends DescMessage, R> = (request?: MessageInitShape<I>, options?: CallOptions) => R;

/** A connection to the daemon, over its restarts, with the methods of its services. */
export class Client {
  readonly runs: Methods<typeof RunService> = this.methodsOf(RunService);
  readonly asks: Methods<typeof AskService> = this.methodsOf(AskService);
  /** For a worker, with the token of its task. */
  readonly worker: Methods<typeof WorkerService> = this.methodsOf(WorkerService);
  readonly catalog: Methods<typeof CatalogService> = this.methodsOf(CatalogService);
  readonly daemon: Methods<typeof DaemonService> = this.methodsOf(DaemonService);
  /** What the daemon told of itself when this client connected; with a task's token, nothing. */
  server: ServerInfo | undefined;

  private constructor(/** @internal */ readonly connection: Connection) {}

  /**
   * Connects to the running daemon. With a task's token nothing is checked; else `CrewdError` with
   * code UNAVAILABLE and no reason: none answers, or one of another state directory.
   */
  static async connect(options: ConnectOptions = {}): Promise<Client> {
    const client = new Client(new Connection(options));
    try {
      // A task's token allows the calls of its task only, so not even this one.
      if (!client.location.taskToken) await client.greet();
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  /** Where the daemon was when it was last looked for. */
  get location() {
    return this.connection.location;
  }

  /** Ends the calls and watches of this client, with code CANCELLED, and nothing else. */
  close(): void {
    this.connection.close();
  }

  private async greet(): Promise<void> {
    const { server } = await this.daemon.getServerInfo();
    const { anyDaemon, stateDir, socket } = this.location;
    if (!server || (!anyDaemon && resolved(server.stateDir) !== stateDir)) {
      const message = `the daemon at ${socket} serves ${server?.stateDir}, not ${stateDir}`;
      throw new CrewdError("UNAVAILABLE", message);
    }
    this.server = server;
    const { heartbeatInterval } = server;
    if (heartbeatInterval) this.connection.silenceMs = 3 * durationMs(heartbeatInterval);
  }

  private methodsOf<S extends DescService>(service: S): Methods<S> {
    const methods = service.methods.map((each) => [each.localName, this.methodOf(each)]);
    return Object.fromEntries(methods) as Methods<S>;
  }

  private methodOf(method: DescMethod): Call<DescMessage, unknown> {
    if (method.methodKind === "unary") return (...given) => this.connection.unary(method, ...given);
    return (...given) => this.connection.stream(method, ...given);
  }
}
