import { create, type MessageInitShape as Init } from "@bufbuild/protobuf";
import type { Client } from "./client.js";
import type { CallOptions, Open, StreamOptions } from "./connection.js";
import type { AskFilterSchema, WatchAsksResponse } from "./crewd/v1/ask_service_pb.js";
import type { Event } from "./crewd/v1/event_pb.js";
import type { RunFilterSchema } from "./crewd/v1/run_pb.js";
import {
  type WatchRunRequest,
  WatchRunRequestSchema,
  type WatchRunsResponse,
} from "./crewd/v1/run_stream_pb.js";
import { CrewdError } from "./errors.js";

/** `signal`: ends the watch, with an error of code CANCELLED. To leave the loop ends it without. */
export type WatchOptions = Pick<CallOptions, "signal">;

/**
 * Which events of a run are wanted: those after `afterSequence`, the `sequence` of the last event
 * handled, by default all. `storeId`: the store that number is of, as `Client.server` has it; by
 * default it is not checked. `stopWhenFinished`: the watch ends with the run; default: true.
 * `kinds`: of these kinds only; by default of all.
 */
export type RunCursor = Init<typeof WatchRunRequestSchema> & { runId: string };

/**
 * What is new about the things watched: each of `items` whole, as it is now; `removedIds` are
 * deleted, or do not match any more. `complete`: the items are all there are; so at first, and after
 * each reconnect.
 */
export type Change<T> = { items: T[]; removedIds: string[]; complete: boolean };

/**
 * Gives every event of a run after the cursor, each once, over any restart of the daemon. Without
 * `kinds` it is proven that none is missing or comes twice, else `CrewdError` with reason
 * SEQUENCE_BROKEN. CURSOR_EXPIRED: the cursor is of another store, read the state and begin there.
 */
export async function* watchRun(client: Client, run: RunCursor, { signal }: WatchOptions = {}) {
  const mayEnd = run.stopWhenFinished ?? true;
  const cursor = create(WatchRunRequestSchema, { ...run, stopWhenFinished: mayEnd });
  // The number that the next event has in its run, where that is known.
  let due = cursor.afterSequence === 0n ? 1n : undefined;
  const open = (options: StreamOptions) => client.runs.watchRun(cursor, options);
  for await (const response of client.connection.follow(open, { mayEnd, signal })) {
    cursor.storeId = response.storeId || cursor.storeId;
    for (const event of response.events) {
      const isHole = cursor.kinds.length === 0 && due !== undefined && event.runSequence !== due;
      if (isHole || event.sequence <= cursor.afterSequence) throw broken(event, cursor);
      // Set before the event is handed out: what was handed out must not come again.
      cursor.afterSequence = event.sequence;
      due = event.runSequence + 1n;
      yield event;
    }
    const heartbeat = response.heartbeat?.sequence ?? 0n;
    if (heartbeat > cursor.afterSequence) cursor.afterSequence = heartbeat;
  }
}

/** Gives the runs that match, then every change of them, over any restart of the daemon. */
export function watchRuns(client: Client, filter?: RunFilter, options?: WatchOptions) {
  const open = (stream: StreamOptions) => client.runs.watchRuns({ filter }, stream);
  const parts = (told: WatchRunsResponse) => ({ items: told.runs, removedIds: told.removedRunIds });
  return changes(client, open, parts, options);
}

/** Gives the asks that match, then every change of them, over any restart of the daemon. */
export function watchAsks(client: Client, filter?: AskFilter, options?: WatchOptions) {
  const open = (stream: StreamOptions) => client.asks.watchAsks({ filter }, stream);
  const parts = (told: WatchAsksResponse) => ({ items: told.asks, removedIds: told.removedAskIds });
  return changes(client, open, parts, options);
}

type RunFilter = Init<typeof RunFilterSchema>;
type AskFilter = Init<typeof AskFilterSchema>;
type Told = { synced: boolean; draining?: unknown };

async function* changes<R extends Told, T extends { id: string }>(
  client: Client,
  open: Open<R>,
  parts: (response: R) => { items: T[]; removedIds: string[] },
  { signal }: WatchOptions = {},
): AsyncGenerator<Change<T>> {
  let known = new Map<string, T>();
  // After a (re)connect what comes is collected anew, until all has come.
  let current = known;
  const openAnew = (options: StreamOptions) => {
    current = new Map();
    return open(options);
  };
  for await (const response of client.connection.follow(openAnew, { mayEnd: false, signal })) {
    const { items, removedIds } = parts(response);
    for (const item of items) current.set(item.id, item);
    for (const id of removedIds) current.delete(id);
    if (current === known && items.length + removedIds.length > 0) {
      yield { items, removedIds, complete: false };
    } else if (current !== known && response.synced) {
      const gone = [...known.keys()].filter((id) => !current.has(id)).sort();
      known = current;
      yield { items: [...known.values()], removedIds: gone, complete: true };
    }
  }
}

function broken(event: Event, { afterSequence: last }: WatchRunRequest): CrewdError {
  const { runId, sequence, runSequence } = event;
  const problem = `${runId}: event ${sequence} (${runSequence} of the run) came after ${last}`;
  return new CrewdError("DATA_LOSS", problem, { reason: "SEQUENCE_BROKEN" });
}
