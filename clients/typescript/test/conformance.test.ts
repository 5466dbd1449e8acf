import { after, test } from "node:test";
import { play } from "./support/player.js";
import { allScenarios, Stage } from "./support/scenarios.js";

const stage = new Stage();

after(() => stage.close());

for (const scenario of allScenarios()) test(scenario.name, () => play(scenario, stage));
