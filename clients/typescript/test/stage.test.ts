import assert from "node:assert/strict";
import { test } from "node:test";
import { ENDED_WELL, Stage } from "./support/stage.js";

const ENDED = {
  "exit 3": /the stage is gone: it has ended: 3/,
  "kill -9 $$": /the stage is gone: .*(9|SIGKILL)/,
};

for (const [command, message] of Object.entries(ENDED)) {
  test(`a step of a stage that ends by ${command} fails, and so does the next`, async () => {
    const stage = new Stage(command);
    await assert.rejects(stage.do({ stage: "begin" }), message);
    await assert.rejects(stage.do({ stage: "end" }), message);
    assert.match(`the stage is gone: ${await stage.close()}`, message);
  });
}

test("a stage that ends while another holds its output is gone", async () => {
  // It ends with the input, as it should, though later than its parent.
  const stage = new Stage("exec 3<&0; cat <&3 >/dev/null & kill -9 $$");
  await assert.rejects(stage.do({ stage: "begin" }), /the stage is gone/);
  await stage.close();
});

test("a step that is not answered fails, and lets the stage end", async () => {
  const stage = new Stage("cat >/dev/null", 20);
  await assert.rejects(stage.do({ stage: "wait_file" }), /the stage's "wait_file" takes more than/);
  await assert.rejects(stage.do({ stage: "end" }), /the stage is gone: it has ended: 0/);
  assert.equal(await stage.close(), ENDED_WELL);
});
