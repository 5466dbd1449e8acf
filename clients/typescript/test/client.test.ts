import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { afterEach, beforeEach, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Metadata, status } from "@grpc/grpc-js";
import { Client, CrewdError, pages } from "@crewd/client";
import {
  CancelRunRequestSchema,
  CancelRunResponseSchema,
  GetRunResponseSchema,
  ListRunsResponseSchema,
} from "@crewd/client/v1/run_service";
import { Place } from "./support/daemon.js";
import { because, detail, refusal, RetryInfoSchema } from "./support/refusals.js";

let place: Place;

beforeEach(() => (place = new Place()));
afterEach(() => place.close());

const run = (id: string) => create(GetRunResponseSchema, { run: { id } });
const failed = async (call: Promise<unknown>): Promise<CrewdError> => {
  const error = await call.then(
    () => assert.fail("it did not fail"),
    (found: unknown) => found,
  );
  assert.ok(error instanceof CrewdError, String(error));
  return error;
};

test("without a daemon the error names the socket", async () => {
  const error = await failed(Client.connect({ env: {}, stateDir: place.dir }));
  assert.equal(error.code, "UNAVAILABLE");
  assert.equal(error.message, `no daemon answers at ${place.socket}`);
});

test("a daemon of another state directory is refused, unless only the socket was named", async () => {
  await place.serve({});
  const error = await failed(
    Client.connect({ env: {}, stateDir: "/elsewhere", socket: place.socket }),
  );
  assert.match(error.message, /serves .*, not \/elsewhere/);
  const client = await Client.connect({ env: { HOME: "/elsewhere" }, socket: place.socket });
  assert.equal(client.server?.version, "9");
  client.close();
});

test("with a task's token nothing is checked when a client connects", async () => {
  const client = await Client.connect({ env: { CREWD_TASK_TOKEN: "t" }, stateDir: place.dir });
  client.close();
});

test("every call carries the token and the version of this package", async () => {
  const seen: Metadata[] = [];
  await place.serve({
    getRun: (_, metadata) => {
      seen.push(metadata);
      return run("a");
    },
  });
  const client = await Client.connect({ env: { CREWD_TOKEN: "secret" }, stateDir: place.dir });
  await client.runs.getRun({ runId: "a" });
  client.close();
  const { version } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  assert.deepEqual(seen[0]?.get("authorization"), ["Bearer secret"]);
  assert.deepEqual(seen[0]?.get("x-crewd-client"), [`crewd-client-typescript/${version}`]);
});

test("a call that the daemon has no time for is made again, with the same request id", async () => {
  const ids: string[] = [];
  const away = refusal(status.UNAVAILABLE, "wait", because("DRAINING"));
  await place.serve({
    cancelRun: ({ requestId }) => {
      ids.push(requestId);
      return ids.length < 3 ? away : create(CancelRunResponseSchema);
    },
  });
  const request = create(CancelRunRequestSchema, { runId: "a" });
  await (await place.connect()).runs.cancelRun(request);
  assert.equal(ids.length, 3);
  assert.equal(new Set(ids).size, 1);
  assert.match(ids[0]!, /.{16}/);
  assert.equal(request.requestId, "");
});

test("a call is made again when the daemon said, or not at all if that is too late", async () => {
  const waits = [after(1), after(11_000)];
  await place.serve({
    getRun: () => refusal(status.UNAVAILABLE, "wait", because("RECOVERING"), waits.shift()!),
  });
  const error = await failed((await place.connect()).runs.getRun({ runId: "a" }));
  assert.deepEqual([error.reason, error.retryAfter, waits.length], ["RECOVERING", 11_000, 0]);
});

test("what the daemon refuses for good is not asked again", async () => {
  let calls = 0;
  const refused = refusal(status.RESOURCE_EXHAUSTED, "full", because("QUEUE_FULL", { limit: "1" }));
  await place.serve({
    getRun: () => {
      calls++;
      return refused;
    },
  });
  const error = await failed((await place.connect()).runs.getRun({ runId: "a" }));
  assert.deepEqual([calls, error.code, error.reason], [1, "RESOURCE_EXHAUSTED", "QUEUE_FULL"]);
  assert.deepEqual(error.metadata, { limit: "1" });
});

test("a call finds the daemon that was killed and came back elsewhere", async () => {
  await place.serve({ getRun: () => run("old") });
  const client = await place.connect();
  assert.equal((await client.runs.getRun({ runId: "a" })).run?.id, "old");
  place.kill();
  const call = client.runs.getRun({ runId: "a" });
  await place.serveElsewhere({ getRun: () => run("new") });
  assert.equal((await call).run?.id, "new");
});

test("a call has a deadline", async () => {
  await place.serve({ getRun: never });
  const error = await failed(
    (await place.connect()).runs.getRun({ runId: "a" }, { timeoutMs: 20 }),
  );
  assert.equal(error.code, "DEADLINE_EXCEEDED");
});

test("a call ends with its signal, and every call with its client", async () => {
  const control = new AbortController();
  let begun = 0;
  await place.serve({
    getRun: () => {
      begun++;
      if (begun === 1) control.abort();
      else client.close();
      return never();
    },
  });
  const client = await place.connect();
  const given = await failed(client.runs.getRun({ runId: "a" }, { signal: control.signal }));
  const closed = await failed(client.runs.getRun({ runId: "a" }));
  const later = await failed(client.runs.getRun({ runId: "a" }));
  assert.deepEqual([given.code, closed.code, later.code], ["CANCELLED", "CANCELLED", "CANCELLED"]);
  assert.equal(begun, 2);
});

test("a request that is too large for the daemon's gRPC has the reason of the contract", async () => {
  const told = "SERVER: Received message larger than max (5 vs. 4)";
  await place.serve({ getRun: () => refusal(status.RESOURCE_EXHAUSTED, told) });
  const error = await failed((await place.connect()).runs.getRun({ runId: "a" }));
  assert.equal(error.reason, "REQUEST_TOO_LARGE");
});

test("an answer that is too large for this side is no fault of the request", async () => {
  await place.serve({
    getRun: () => create(GetRunResponseSchema, { run: { goal: "x".repeat(5 << 20) } }),
  });
  const error = await failed((await place.connect()).runs.getRun({ runId: "a" }));
  assert.deepEqual([error.code, error.reason], ["RESOURCE_EXHAUSTED", ""]);
});

test("details that cannot be read do not hide the error", async () => {
  const refused = refusal(status.NOT_FOUND, "gone");
  refused.metadata.set("grpc-status-details-bin", Buffer.from("\xff\xff"));
  await place.serve({ getRun: () => refused });
  const error = await failed((await place.connect()).runs.getRun({ runId: "a" }));
  assert.deepEqual([error.code, error.reason, error.message], ["NOT_FOUND", "", "gone"]);
});

test("pages gives every item, and asks each page with the same request", async () => {
  const asked: object[] = [];
  await place.serve({
    listRuns: ({ pageSize, pageToken }) => {
      asked.push({ pageSize, pageToken });
      const [runs, nextPageToken] = pageToken ? [[{ id: "b" }], ""] : [[{ id: "a" }], "more"];
      return create(ListRunsResponseSchema, { runs, nextPageToken });
    },
  });
  const ids: string[] = [];
  for await (const { id } of pages((await place.connect()).runs.listRuns, { pageSize: 1 }))
    ids.push(id);
  assert.deepEqual(ids, ["a", "b"]);
  assert.deepEqual(asked, [
    { pageSize: 1, pageToken: "" },
    { pageSize: 1, pageToken: "more" },
  ]);
});

function after(ms: number) {
  return detail(RetryInfoSchema, { retryDelay: durationFromMs(ms) });
}

function never(): Promise<never> {
  return new Promise(() => {});
}
