import { createRegistry, type DescFile, type DescMessage, type DescMethod, fromBinary, type Message, toBinary } from "@bufbuild/protobuf";
import { type Change, type Client, fromJson, pages, toJson, watchAsks, watchRun, watchRuns } from "@crewd/client";
import { AskSchema } from "@crewd/client/v1/ask";
import { AskService, WatchAsksRequestSchema } from "@crewd/client/v1/ask_service";
import { CatalogService } from "@crewd/client/v1/catalog_service";
import { DaemonService } from "@crewd/client/v1/daemon_service";
import { EventSchema } from "@crewd/client/v1/event";
import { RunSchema } from "@crewd/client/v1/run";
import { RunService } from "@crewd/client/v1/run_service";
import { WatchRunRequestSchema, WatchRunsRequestSchema } from "@crewd/client/v1/run_stream";
import { WorkerService } from "@crewd/client/v1/worker_service";
import type { Json, Step } from "./scenarios.js";
import { Watch } from "./watching.js";

const SERVICES = { runs: RunService, asks: AskService, worker: WorkerService, catalog: CatalogService, daemon: DaemonService };
const CONTRACT = createRegistry(...new Set(Object.values(SERVICES).flatMap(({ file }) => [file, ...below(file)])));
// A field that no version knows: number 999, a varint, 1.
const UNKNOWN_FIELD = Uint8Array.of(0xb8, 0x3e, 0x01);

function below(file: DescFile): DescFile[] {
  return file.dependencies.flatMap((each) => [each, ...below(each)]);
}

export function messageNamed(name: string): DescMessage {
  const found = CONTRACT.getMessage(`crewd.v1.${name}`);
  if (!found) throw new Error(`there is no message ${name}`);
  return found;
}

/** A method of the client by its name in the contract, with the messages it takes and gives. */
export function methodNamed(client: Client, name: string): { call: any; method: DescMethod } {
  for (const [property, service] of Object.entries(SERVICES)) {
    const method = service.methods.find((each) => `${service.name}/${each.name}` === name);
    if (method) return { call: (client as any)[property][method.localName], method };
  }
  throw new Error(`there is no method ${name}`);
}

/** What a step that talks to the daemon gives. */
export async function ask(client: Client, verb: string, { [verb]: name, request: given = {}, ...step }: Step): Promise<Json> {
  const { call, method } = methodNamed(client, name);
  const request = withUnknown(method.input, fromJson(method.input, given), step.unknown_field);
  if (verb === "call") return toJson(method.output, await call(request));
  const gotten: Json[] = [];
  if (verb === "stream") for await (const each of call(request)) gotten.push(toJson(method.output, each));
  if (verb === "pages")
    for await (const each of pages(call, request) as AsyncIterable<Message>)
      gotten.push(toJson(CONTRACT.getMessage(each.$typeName)!, each));
  return gotten;
}

export const WATCHES: Record<string, (client: Client, request: Json) => Watch<any>> = {
  watch_run: (client, request) =>
    new Watch((signal) => watchRun(client, fromJson(WatchRunRequestSchema, request), { signal }), (event) => toJson(EventSchema, event)),
  watch_runs: (client, request) =>
    new Watch((signal) => watchRuns(client, fromJson(WatchRunsRequestSchema, request).filter, { signal }), changeOf(RunSchema)),
  watch_asks: (client, request) =>
    new Watch((signal) => watchAsks(client, fromJson(WatchAsksRequestSchema, request).filter, { signal }), changeOf(AskSchema)),
};

function changeOf(schema: DescMessage): (change: Change<any>) => Json {
  return ({ items, removedIds, complete }) =>
    ({ items: items.map((item) => toJson(schema, item)), removed_ids: removedIds, complete });
}

function withUnknown(schema: DescMessage, request: Message, unknown: boolean): Message {
  return unknown ? fromBinary(schema, Buffer.concat([toBinary(schema, request), UNKNOWN_FIELD])) : request;
}
