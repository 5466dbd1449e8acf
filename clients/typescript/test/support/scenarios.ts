import { readdirSync, readFileSync } from "node:fs";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

/** A step as it is written: its verb, and what else it may say. */
export type Step = {
  [verb: string]: JsonValue | undefined;
  env?: Record<string, string>;
  unset?: string[];
  as?: string;
  client?: string;
  request?: JsonObject;
  input?: JsonValue;
  unknown_field?: boolean;
  timeout?: number;
  save?: Record<string, string>;
};
export type Scenario = { name: string; steps: Step[] };

const FOLDER = new URL("../../../../conformance/scenarios/", import.meta.url);

/** Gives all scenarios, named `area/name`. */
export function allScenarios(): Scenario[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));
  return files.sort().flatMap((name) => {
    const { area, scenarios } = JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));
    return scenarios.map((each: Scenario) => ({ name: `${area}/${each.name}`, steps: each.steps }));
  });
}

/** Puts the variables in; a text that is nothing else becomes the variable's value. */
export function filled(value: JsonValue | undefined, variables: JsonObject): JsonValue {
  if (typeof value === "string") {
    const whole = /^\$\{(\w+)\}$/.exec(value);
    if (whole?.[1]) return variableOf(variables, whole[1]);
    return value.replace(/\$\{(\w+)\}/g, (_, name) => String(variableOf(variables, name)));
  }
  if (Array.isArray(value)) return value.map((item) => filled(item, variables));
  if (typeof value !== "object" || value === null) return value ?? null;
  const entries = Object.entries(value).map(([key, item]) => [
    filled(key, variables),
    filled(item, variables),
  ]);
  return Object.fromEntries(entries);
}

function variableOf(variables: JsonObject, name: string): JsonValue {
  const found = variables[name];
  if (found === undefined) throw new Error(`there is no variable ${name}`);
  return found;
}
