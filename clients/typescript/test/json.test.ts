import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CrewdError } from "@crewd/client";
import { fromJson, toJson } from "@crewd/client/json";
import { AskSchema, AskStatus } from "@crewd/client/v1/ask";
import { EventSchema } from "@crewd/client/v1/event";
import { RunFilterSchema, RunStatus } from "@crewd/client/v1/run";
import { RunSpecSchema } from "@crewd/client/v1/spec";

const spec = (json: Parameters<typeof fromJson>[1]) => fromJson(RunSpecSchema, json);

test("names are those of the contract, and defaults are printed", () => {
  const shown = toJson(
    AskSchema,
    create(AskSchema, { status: AskStatus.TIMED_OUT, lastSequence: 7n }),
  );
  assert.equal(shown.status, "timed_out");
  assert.equal(shown.last_sequence, 7);
  assert.deepEqual([shown.run_id, shown.options, shown.allow_text], ["", [], false]);
  assert.ok(!("answer" in shown));
});

test("an event's payload is under data, both ways", () => {
  const given = { kind: "attempt_ended", sequence: 3, data: { exit_code: 2, outcome: "failed" } };
  const event = fromJson(EventSchema, given);
  assert.equal(event.payload.case, "attemptEnded");
  const { data, ...rest } = toJson(EventSchema, event);
  assert.deepEqual(
    [rest.kind, rest.sequence, "attempt_ended" in rest],
    ["attempt_ended", 3, false],
  );
  assert.deepEqual(
    [(data as typeof given.data).exit_code, (data as typeof given.data).outcome],
    [2, "failed"],
  );
});

test("an event of an unknown kind has no data", () => {
  assert.deepEqual(toJson(EventSchema, create(EventSchema, { kind: "later" })).data, {});
});

test("enum values are read in any case, with - for _, by their full name or number", () => {
  for (const word of ["fail_fast", "Fail-Fast", "FAILURE_MODE_FAIL_FAST", 1])
    assert.equal(
      toJson(RunSpecSchema, spec({ failure_mode: word })).failure_mode,
      "fail_fast",
      String(word),
    );
  const filter = fromJson(RunFilterSchema, { statuses: ["running", 99] });
  assert.deepEqual(filter.statuses, [RunStatus.RUNNING, 99]);
  assert.deepEqual(toJson(RunFilterSchema, filter).statuses, ["running", 99]);
});

test("spans are read in every unit, and printed in seconds", () => {
  const spans = {
    "1.50s": "1.5s",
    "2m": "120s",
    "1h30m": "5400s",
    "250ms": "0.25s",
    "90": "90s",
    "100s": "100s",
  };
  for (const [given, shown] of Object.entries(spans)) {
    const { limits } = toJson(RunSpecSchema, spec({ limits: { max_duration: given } }));
    assert.equal((limits as { max_duration: string }).max_duration, shown);
  }
});

test("data of its author's own shape stays as it is", () => {
  const schema = { required: ["a"], properties: { a: { type: "string", default: null } } };
  const given = spec({ tasks: [{ id: "a", output: { schema } }] });
  const shown = toJson(RunSpecSchema, given) as { tasks: [{ output: { schema: object } }] };
  assert.deepEqual(shown.tasks[0].output.schema, schema);
});

test("all that does not fit is told at once, with where it is", () => {
  const wrong = {
    gaol: "x",
    keep: 1,
    labels: { a: 2 },
    tasks: [{ id: "a", timeout: "soon" }],
    workspace: [],
  };
  const paths = ["gaol: unknown key", "keep", "labels.a", "tasks[0].timeout", "workspace"];
  assert.throws(
    () => spec(wrong),
    (error) => {
      assert.ok(error instanceof CrewdError && error.code === "INVALID_ARGUMENT");
      const found = error.message.split("; ");
      assert.deepEqual(
        paths.filter((path) => !found.some((problem) => problem.startsWith(path))),
        [],
      );
      return true;
    },
  );
});
