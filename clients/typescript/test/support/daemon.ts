import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import { Client } from "@crewd/client";
import { AskService } from "@crewd/client/v1/ask_service";
import { DaemonService, GetServerInfoResponseSchema } from "@crewd/client/v1/daemon_service";
import { RunService } from "@crewd/client/v1/run_service";

/** A unary one gives the answer, or the error, to a request; a streaming one is given the call. */
type Handler = (given: any, metadata: grpc.Metadata) => unknown;
export type Handlers = { [name: string]: Handler };

const METHODS = [RunService, AskService, DaemonService].flatMap((service) => service.methods);

/** A daemon's place: a directory of its own with a socket, on which servers come and go. */
export class Place {
  readonly dir = mkdtempSync(join(tmpdir(), "crewd-ts-"));
  readonly socket = join(this.dir, "crewd.sock");
  private readonly clients: Client[] = [];
  private server: grpc.Server | undefined;

  async serve(handlers: Handlers, socket = this.socket): Promise<void> {
    const server = (this.server = new grpc.Server());
    for (const method of METHODS) {
      const handler = handlers[method.localName] ?? (method.localName === "getServerInfo" ? () => this.info() : undefined);
      if (handler) server.addService({ [method.name]: definition(method) }, { [method.name]: implementation(method, handler) });
    }
    await new Promise<void>((resolve, reject) => server.bindAsync(`unix:${socket}`,
      grpc.ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())));
  }

  /** Serves on another socket, and writes where. */
  async serveElsewhere(handlers: Handlers): Promise<void> {
    const socket = join(this.dir, "other.sock");
    const texts = { instance_id: "i", store_id: "s", version: "9", token_file: "", state_dir: this.dir };
    writeFileSync(join(this.dir, "daemon.json"), JSON.stringify({ protocol: 1, pid: 1, socket, ...texts }));
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

  info(heartbeatMs = 15_000): Message {
    const heartbeatInterval = { seconds: BigInt(Math.floor(heartbeatMs / 1000)), nanos: (heartbeatMs % 1000) * 1e6 };
    return create(GetServerInfoResponseSchema, { server: { stateDir: this.dir, version: "9", heartbeatInterval } });
  }
}

function definition(method: DescMethod): grpc.MethodDefinition<any, any> {
  return {
    path: `/${method.parent.typeName}/${method.name}`,
    requestStream: false,
    responseStream: method.methodKind === "server_streaming",
    requestSerialize: Buffer.from,
    requestDeserialize: (bytes) => fromBinary(method.input, bytes),
    responseSerialize: (message) => Buffer.from(toBinary(method.output, message)),
    responseDeserialize: (bytes) => fromBinary(method.output, bytes),
  };
}

function implementation(method: DescMethod, handler: Handler): grpc.UntypedHandleCall {
  if (method.methodKind !== "unary") return (call: grpc.ServerWritableStream<any, Message>) => handler(call, call.metadata);
  const unary: grpc.handleUnaryCall<any, any> = async ({ request, metadata }, callback) => {
    const answer = await handler(request, metadata);
    answer instanceof Error ? callback(answer) : callback(null, answer);
  };
  return unary;
}
