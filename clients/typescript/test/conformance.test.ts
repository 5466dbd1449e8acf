import { after, test } from "node:test";
import { play } from "./support/player.js";
import { allScenarios } from "./support/scenarios.js";
import { Stage } from "./support/stage.js";

const stage = new Stage();

after(() => stage.close());

for (const scenario of allScenarios()) test(scenario.name, () => play(scenario, stage));
