import assert from "node:assert/strict";
import { after, test } from "node:test";
import { play } from "./support/player.js";
import { allScenarios } from "./support/scenarios.js";
import { ENDED_WELL, Stage } from "./support/stage.js";

const stage = new Stage();

after(async () => assert.equal(await stage.close(), ENDED_WELL));

for (const scenario of allScenarios()) test(scenario.name, () => play(scenario, stage));
