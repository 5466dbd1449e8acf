import type { MessageInitShape as Init } from "@bufbuild/protobuf";
import type { CallOptions, Client, Open, Told } from "./client.js";
import type { AskFilterSchema } from "./crewd/v1/ask_service_pb.js";
import type { RunFilterSchema } from "./crewd/v1/run_pb.js";
import { CrewdError } from "./errors.js";

export type WatchOptions = Pick<CallOptions, "signal">; // It ends the watch, with an error of code CANCELLED.
/** By default from the first event, until the run is over, and of all kinds. */
export type RunCursor = { runId: string; afterSequence?: bigint; stopWhenFinished?: boolean; kinds?: string[] };
/** Each item whole, and the ids that are out. `complete`: there are no others; so at first and after a reconnect. */
export type Change<T> = { items: T[]; removedIds: string[]; complete: boolean };

/** Gives each event of a run once, over any restart; SEQUENCE_BROKEN if, with all `kinds`, one is missing or twice. */
export async function* watchRun(client: Client, run: RunCursor, options?: WatchOptions) {
  const cursor = { afterSequence: 0n, storeId: "", stopWhenFinished: true, kinds: [], ...run };
  let next = cursor.afterSequence === 0n ? 1n : undefined;
  const open = (call: CallOptions) => client.runs.watchRun(cursor, call);
  for await (const response of client.resumed(open, cursor.stopWhenFinished, options?.signal)) {
    cursor.storeId = response.storeId || cursor.storeId;
    for (const event of response.events) {
      const hole = cursor.kinds.length === 0 && next !== undefined && event.runSequence !== next;
      if (hole || event.sequence <= cursor.afterSequence) throw new CrewdError("DATA_LOSS",
        `${run.runId}: event ${event.sequence} does not follow ${cursor.afterSequence}`, { reason: "SEQUENCE_BROKEN" });
      [cursor.afterSequence, next] = [event.sequence, event.runSequence + 1n];
      yield event;
    }
    const { sequence = 0n } = response.heartbeat ?? {};
    if (sequence > cursor.afterSequence) cursor.afterSequence = sequence;
  }
}

/** `watchRuns` and `watchAsks` give what matches, then every change of it; after a reconnect all anew. */
export const watchRuns = (client: Client, filter?: Init<typeof RunFilterSchema>, options?: WatchOptions) =>
  changes(client, (call) => client.runs.watchRuns({ filter }, call), (r) => [r.runs, r.removedRunIds], options);
export const watchAsks = (client: Client, filter?: Init<typeof AskFilterSchema>, options?: WatchOptions) =>
  changes(client, (call) => client.asks.watchAsks({ filter }, call), (r) => [r.asks, r.removedAskIds], options);

async function* changes<T extends { id: string }, R extends Told & { synced: boolean }>(client: Client, open: Open<R>,
  parts: (response: R) => [T[], string[]], options?: WatchOptions): AsyncGenerator<Change<T>> {
  let [told, now] = [new Map<string, T>(), new Map<string, T>()]; // The same once all that there is has come.
  const anew = (call: CallOptions) => ((now = new Map()), open(call));
  for await (const response of client.resumed(anew, false, options?.signal)) {
    const [items, removedIds] = parts(response);
    for (const item of items) now.set(item.id, item);
    for (const id of removedIds) now.delete(id);
    if (now === told && items.length + removedIds.length > 0) yield { items, removedIds, complete: false };
    if (now === told || !response.synced) continue;
    const lost = [...told.keys()].filter((id) => !now.has(id)).sort();
    told = now;
    yield { items: [...now.values()], removedIds: lost, complete: true };
  }
}
