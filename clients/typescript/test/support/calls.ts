import {
  createRegistry,
  type DescFile,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type JsonObject,
  type JsonValue,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import {
  type CallOptions,
  type Change,
  type Client,
  pages,
  watchAsks,
  watchRun,
  watchRuns,
} from "@crewd/client";
import { fromJson, toJson } from "@crewd/client/json";
import { AskSchema } from "@crewd/client/v1/ask";
import { AskService, WatchAsksRequestSchema } from "@crewd/client/v1/ask_service";
import { CatalogService } from "@crewd/client/v1/catalog_service";
import { DaemonService } from "@crewd/client/v1/daemon_service";
import { EventSchema } from "@crewd/client/v1/event";
import { RunSchema } from "@crewd/client/v1/run";
import { RunService } from "@crewd/client/v1/run_service";
import { WatchRunRequestSchema, WatchRunsRequestSchema } from "@crewd/client/v1/run_stream";
import { WorkerService } from "@crewd/client/v1/worker_service";
import type { Step } from "./scenarios.js";
import { Watch } from "./watching.js";

const SERVICES = {
  runs: RunService,
  asks: AskService,
  worker: WorkerService,
  catalog: CatalogService,
  daemon: DaemonService,
} as const;
const CONTRACT = createRegistry(
  ...new Set(Object.values(SERVICES).flatMap(({ file }) => [file, ...below(file)])),
);
// A field that no version knows: number 999, a varint, 1.
const UNKNOWN_FIELD = Uint8Array.of(0xb8, 0x3e, 0x01);

// Scenarios name methods by texts, so what the methods are is known to whoever calls them only.
type Unary = (request?: Message, options?: CallOptions) => Promise<Message>;
type Streaming = (request?: Message) => AsyncIterable<Message>;
type List = (request?: Message) => Promise<Message & { nextPageToken: string }>;

export function messageNamed(name: string): DescMessage {
  const found = CONTRACT.getMessage(`crewd.v1.${name}`);
  if (!found) throw new Error(`there is no message ${name}`);
  return found;
}

/** What a step that talks to the daemon gives. */
export async function ask(client: Client, verb: string, step: Step): Promise<JsonValue> {
  const { call, method } = methodNamed(client, String(step[verb]));
  const request = requestOf(method, step);
  if (verb === "call") {
    const options = step.timeout === undefined ? {} : { timeoutMs: step.timeout * 1000 };
    return toJson(method.output, await (call as Unary)(request, options));
  }
  if (verb === "stream") return shownAll((call as Streaming)(request));
  if (verb === "pages") return shownAll(pages(call as List, request));
  throw new Error(`there is no step ${verb}`);
}

/** The watches of the library, by their steps. */
export const WATCHES: Record<string, (client: Client, request: JsonObject) => Watch> = {
  watch_run: (client, given) => {
    const request = fromJson(WatchRunRequestSchema, given);
    return new Watch((signal) =>
      shown(watchRun(client, request, { signal }), (event) => toJson(EventSchema, event)),
    );
  },
  watch_runs: (client, given) => {
    const { filter } = fromJson(WatchRunsRequestSchema, given);
    return new Watch((signal) =>
      shown(watchRuns(client, filter, { signal }), (change) => changeOf(RunSchema, change)),
    );
  },
  watch_asks: (client, given) => {
    const { filter } = fromJson(WatchAsksRequestSchema, given);
    return new Watch((signal) =>
      shown(watchAsks(client, filter, { signal }), (change) => changeOf(AskSchema, change)),
    );
  },
};

function below(file: DescFile): DescFile[] {
  return file.dependencies.flatMap((each) => [each, ...below(each)]);
}

/** A method of the client by its name in the contract. */
function methodNamed(client: Client, name: string): { call: unknown; method: DescMethod } {
  for (const property of Object.keys(SERVICES) as (keyof typeof SERVICES)[]) {
    const service = SERVICES[property];
    const method = service.methods.find((each) => `${service.name}/${each.name}` === name);
    if (method) return { call: Reflect.get(client[property], method.localName), method };
  }
  throw new Error(`there is no method ${name}`);
}

function requestOf({ input }: DescMethod, { request = {}, unknown_field }: Step): Message {
  const known = fromJson(input, request);
  if (!unknown_field) return known;
  return fromBinary(input, Buffer.concat([toBinary(input, known), UNKNOWN_FIELD]));
}

async function shownAll(messages: AsyncIterable<Message>): Promise<JsonObject[]> {
  const all: JsonObject[] = [];
  for await (const each of messages) all.push(toJson(schemaOf(each), each));
  return all;
}

function schemaOf(message: Message): DescMessage {
  return messageNamed(message.$typeName.replace("crewd.v1.", ""));
}

async function* shown<T>(items: AsyncIterable<T>, show: (item: T) => JsonObject) {
  for await (const item of items) yield show(item);
}

function changeOf(schema: DescMessage, change: Change<Message>): JsonObject {
  const items = change.items.map((item) => toJson(schema, item));
  return { items, removed_ids: change.removedIds, complete: change.complete };
}
