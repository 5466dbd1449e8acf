import assert from "node:assert/strict";
import { once } from "node:events";
import { afterEach, beforeEach, test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type ServerWritableStream, status } from "@grpc/grpc-js";
import { CrewdError, watchAsks, watchRun, watchRuns } from "@crewd/client";
import { WatchAsksResponseSchema } from "@crewd/client/v1/ask_service";
import {
  type WatchRunRequest,
  type WatchRunResponse,
  WatchRunResponseSchema,
  WatchRunsResponseSchema,
} from "@crewd/client/v1/run_stream";
import { Place } from "./support/daemon.js";
import { because, detail, refusal, RetryInfoSchema } from "./support/refusals.js";

type Call = ServerWritableStream<WatchRunRequest, WatchRunResponse>;
type Told = MessageInitShape<typeof WatchRunResponseSchema>;

let place: Place;

beforeEach(() => (place = new Place()));
afterEach(() => place.close());

const event = (runSequence: number) => ({
  runId: "a",
  sequence: BigInt(runSequence * 10),
  runSequence: BigInt(runSequence),
});

/** Serves one script after the other to the calls that come, the last one again and again. */
async function serveRun(
  ...scripts: ((tell: (told: Told) => void, call: Call) => void)[]
): Promise<WatchRunRequest[]> {
  const requests: WatchRunRequest[] = [];
  const watchRun = (call: Call) => {
    requests.push(call.request);
    const script = scripts.length > 1 ? scripts.shift()! : scripts[0]!;
    script((told) => call.write(create(WatchRunResponseSchema, told)), call);
  };
  await place.serve({ watchRun, getServerInfo: () => place.info(20) });
  return requests;
}

async function sequences(events: AsyncIterable<{ runSequence: bigint }>): Promise<number[]> {
  const found: number[] = [];
  for await (const { runSequence } of events) found.push(Number(runSequence));
  return found;
}

test("a watch goes on after the last event when the stream breaks, with the store it is from", async () => {
  const requests = await serveRun(
    (tell, call) => {
      tell({ storeId: "s", events: [event(1), event(2)] });
      call.emit("error", refusal(status.UNAVAILABLE, "", because("DRAINING")));
    },
    (tell, call) => {
      tell({ events: [event(3)] });
      call.end();
    },
  );
  assert.deepEqual(await sequences(watchRun(await place.connect(), { runId: "a" })), [1, 2, 3]);
  assert.deepEqual(
    requests.map(({ afterSequence, storeId }) => [afterSequence, storeId]),
    [
      [0n, ""],
      [20n, "s"],
    ],
  );
});

test("a cursor that was kept goes with its store", async () => {
  const requests = await serveRun((_, call) => call.end());
  const cursor = { runId: "a", afterSequence: 20n, storeId: "s" };
  assert.deepEqual(await sequences(watchRun(await place.connect(), cursor)), []);
  assert.deepEqual([requests[0]?.afterSequence, requests[0]?.storeId], [20n, "s"]);
});

test("a daemon that goes away in mid-watch is waited for", async () => {
  await serveRun((tell) => tell({ events: [event(1)] }));
  const events = watchRun(await place.connect(), { runId: "a" });
  assert.equal((await events.next()).value?.runSequence, 1n);
  const rest = sequences(events);
  place.kill();
  await serveRun((tell, call) => {
    tell({ events: [event(2)] });
    call.end();
  });
  assert.deepEqual(await rest, [2]);
});

test("draining is not the end of a run", async () => {
  await serveRun(
    (tell, call) => {
      tell({ events: [event(1)], draining: {} });
      call.end();
    },
    (tell, call) => {
      tell({ events: [event(2)] });
      call.end();
    },
  );
  assert.deepEqual(await sequences(watchRun(await place.connect(), { runId: "a" })), [1, 2]);
});

test("a heartbeat moves the cursor, and is not given out", async () => {
  const requests = await serveRun(
    (tell, call) => {
      tell({ heartbeat: { sequence: 70n } });
      tell({ draining: {} });
      call.end();
    },
    (_, call) => call.end(),
  );
  assert.deepEqual(
    await sequences(watchRun(await place.connect(), { runId: "a", kinds: ["x"] })),
    [],
  );
  assert.equal(requests[1]?.afterSequence, 70n);
});

test("a stream that is silent for three heartbeats is opened anew", async () => {
  const requests = await serveRun(
    (tell) => tell({ events: [event(1)] }),
    (_, call) => call.end(),
  );
  assert.deepEqual(await sequences(watchRun(await place.connect(), { runId: "a" })), [1]);
  assert.equal(requests.length, 2);
});

test("a hole is an error, and so is an event that comes again", async () => {
  for (const events of [[event(1), event(3)], [event(2)], [event(1), event(1)]]) {
    place.kill();
    await serveRun((tell) => tell({ events }));
    const watch = sequences(watchRun(await place.connect(), { runId: "a" }));
    await assert.rejects(watch, { code: "DATA_LOSS", reason: "SEQUENCE_BROKEN" });
  }
});

test("a watch of some kinds has gaps", async () => {
  await serveRun((tell, call) => {
    tell({ events: [event(1), event(5)] });
    call.end();
  });
  assert.deepEqual(
    await sequences(watchRun(await place.connect(), { runId: "a", kinds: ["x"] })),
    [1, 5],
  );
});

test("what is refused for good ends a watch", async () => {
  await serveRun((_, call) =>
    call.emit("error", refusal(status.OUT_OF_RANGE, "", because("CURSOR_EXPIRED"))),
  );
  await assert.rejects(sequences(watchRun(await place.connect(), { runId: "a" })), {
    reason: "CURSOR_EXPIRED",
  });
});

test("to leave the loop cancels the call", async () => {
  const calls: Call[] = [];
  await serveRun((tell, call) => {
    calls.push(call);
    tell({ events: [event(1)] });
  });
  for await (const { runSequence } of watchRun(await place.connect(), { runId: "a" })) {
    assert.equal(runSequence, 1n);
    break;
  }
  if (!calls[0]!.cancelled) await once(calls[0]!, "cancelled");
});

test("a signal ends a watch that waits", async () => {
  const control = new AbortController();
  await serveRun(() => control.abort());
  const watch = sequences(
    watchRun(await place.connect(), { runId: "a" }, { signal: control.signal }),
  );
  await assert.rejects(watch, (error) => error instanceof CrewdError && error.code === "CANCELLED");
});

test("a closed client ends its watches", async () => {
  await serveRun(() => client.close());
  const client = await place.connect();
  await assert.rejects(sequences(watchRun(client, { runId: "a" })), { code: "CANCELLED" });
});

test("a client that is closed while its daemon is away waits no longer", async () => {
  const wait = detail(RetryInfoSchema, { retryDelay: durationFromMs(3_600_000) });
  await serveRun((_, call) => {
    call.emit("error", refusal(status.UNAVAILABLE, "", because("RECOVERING"), wait));
    setImmediate(() => client.close());
  });
  const client = await place.connect();
  await assert.rejects(sequences(watchRun(client, { runId: "a" })), { code: "CANCELLED" });
});

test("runs come whole, then as they change, and anew after a reconnect with what is gone", async () => {
  const scripts = [
    [
      { runs: [{ id: "a" }] },
      { runs: [{ id: "b" }], synced: true },
      { runs: [{ id: "c" }], removedRunIds: ["b"] },
      { draining: {} },
    ],
    [{ runs: [{ id: "c" }], synced: true }],
  ];
  await place.serve({
    watchRuns: (call) => {
      for (const told of scripts.shift() ?? []) call.write(create(WatchRunsResponseSchema, told));
      if (scripts.length > 0) call.end();
    },
  });
  const changes: unknown[] = [];
  for await (const { items, removedIds, complete } of watchRuns(await place.connect())) {
    changes.push([items.map(({ id }) => id), removedIds, complete]);
    if (changes.length === 3) break;
  }
  assert.deepEqual(changes, [
    [["a", "b"], [], true],
    [["c"], ["b"], false],
    [["c"], ["a"], true],
  ]);
});

test("asks are watched with their filter", async () => {
  const filters: unknown[] = [];
  await place.serve({
    watchAsks: (call) => {
      filters.push(call.request.filter?.runId);
      call.write(create(WatchAsksResponseSchema, { asks: [{ id: "ask_1" }], synced: true }));
    },
  });
  const { value } = await watchAsks(await place.connect(), { runId: "a" }).next();
  assert.deepEqual([filters, value?.items[0]?.id, value?.complete], [["a"], "ask_1", true]);
});
