import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  fromBinary,
  type Message,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import * as grpc from "@grpc/grpc-js";
import { Client } from "@crewd/client";
import { AskService } from "@crewd/client/v1/ask_service";
import {
  DaemonService,
  type GetServerInfoResponse,
  GetServerInfoResponseSchema,
} from "@crewd/client/v1/daemon_service";
import { RunService } from "@crewd/client/v1/run_service";

type Methods = (typeof RunService)["method"] &
  (typeof AskService)["method"] &
  (typeof DaemonService)["method"];
type Answer<R> = R | grpc.ServiceError;
type Handler<M> =
  M extends DescMethodUnary<infer I, infer O>
    ? (
        request: MessageShape<I>,
        metadata: grpc.Metadata,
      ) => Answer<MessageShape<O>> | Promise<Answer<MessageShape<O>>>
    : M extends DescMethodServerStreaming<infer I, infer O>
      ? (call: grpc.ServerWritableStream<MessageShape<I>, MessageShape<O>>) => void
      : never;

/** What a server does: a unary method gives its answer or error, a streaming one is given the call. */
export type Handlers = { [Name in keyof Methods]?: Handler<Methods[Name]> };

// What all methods have in common, when it is not known which one it is.
type AnyUnary = (request: Message, metadata: grpc.Metadata) => Promise<Answer<Message>>;
type AnyStreaming = (call: grpc.ServerWritableStream<Message, Message>) => void;

const METHODS = [RunService, AskService, DaemonService].flatMap((service) => service.methods);

/** A daemon's place: a directory of its own with a socket, on which servers come and go. */
export class Place {
  readonly dir = mkdtempSync(join(tmpdir(), "crewd-ts-"));
  readonly socket = join(this.dir, "crewd.sock");
  private readonly clients: Client[] = [];
  private server: grpc.Server | undefined;

  async serve(handlers: Handlers, socket = this.socket): Promise<void> {
    const server = new grpc.Server();
    this.server = server;
    const all: Handlers = { getServerInfo: () => this.info(), ...handlers };
    for (const method of METHODS) {
      const handler: unknown = Reflect.get(all, method.localName);
      if (!handler) continue;
      const service = { [method.name]: definition(method) };
      server.addService(service, { [method.name]: implementation(method, handler) });
    }
    await new Promise<void>((resolve, reject) => {
      const bound = (error: Error | null) => (error ? reject(error) : resolve());
      server.bindAsync(`unix:${socket}`, grpc.ServerCredentials.createInsecure(), bound);
    });
  }

  /** Serves on another socket, and writes where. */
  async serveElsewhere(handlers: Handlers): Promise<void> {
    const socket = join(this.dir, "other.sock");
    const texts = {
      instance_id: "i",
      store_id: "s",
      version: "9",
      token_file: "",
      state_dir: this.dir,
    };
    writeFileSync(
      join(this.dir, "daemon.json"),
      JSON.stringify({ protocol: 1, pid: 1, socket, ...texts }),
    );
    await this.serve(handlers, socket);
  }

  /** Ends the server at once, as a kill does. */
  kill(): void {
    this.server?.forceShutdown();
    rmSync(this.socket, { force: true });
  }

  async connect(): Promise<Client> {
    const client = await Client.connect({ env: { HOME: this.dir }, stateDir: this.dir });
    this.clients.push(client);
    return client;
  }

  close(): void {
    for (const client of this.clients) client.close();
    this.kill();
    rmSync(this.dir, { recursive: true });
  }

  /** What this daemon tells of itself. */
  info(heartbeatMs = 15_000): GetServerInfoResponse {
    const heartbeatInterval = durationFromMs(heartbeatMs);
    const server = { stateDir: this.dir, version: "9", heartbeatInterval };
    return create(GetServerInfoResponseSchema, { server });
  }
}

function definition(method: DescMethod): grpc.MethodDefinition<Message, Message> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: method.methodKind === "server_streaming",
    requestSerialize: (message) => Buffer.from(toBinary(method.input, message)),
    requestDeserialize: (bytes) => fromBinary(method.input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function implementation(method: DescMethod, handler: unknown): grpc.UntypedHandleCall {
  if (method.methodKind !== "unary") return handler as AnyStreaming;
  const unary: grpc.handleUnaryCall<Message, Message> = async (call, callback) => {
    const answer = await (handler as AnyUnary)(call.request, call.metadata);
    if (answer instanceof Error) callback(answer);
    else callback(null, answer);
  };
  return unary;
}
