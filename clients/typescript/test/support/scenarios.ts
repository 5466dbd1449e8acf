import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export type Json = any;
export type Step = Record<string, Json>;
export type Scenario = { name: string; steps: Step[] };

const ROOT = fileURLToPath(new URL("../../../../../", import.meta.url));
const FOLDER = new URL("../../../../conformance/scenarios/", import.meta.url);

export function allScenarios(): Scenario[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json")).sort();
  return files.flatMap((name) => {
    const { area, scenarios } = JSON.parse(readFileSync(new URL(name, FOLDER), "utf8"));
    return scenarios.map((each: Scenario) => ({ name: `${area}/${each.name}`, steps: each.steps }));
  });
}

/** Puts the variables in; a text that is nothing else becomes the variable's value. */
export function filled(value: Json, variables: Step): Json {
  if (typeof value === "string") {
    const whole = /^\$\{(\w+)\}$/.exec(value);
    if (whole) return variables[whole[1]!];
    return value.replace(/\$\{(\w+)\}/g, (_, name) => variables[name]);
  }
  if (Array.isArray(value)) return value.map((item) => filled(item, variables));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [filled(key, variables), filled(item, variables)]));
}

/** The program that has the daemons and files of the scenarios. */
export class Stage {
  private readonly command = process.env.CREWD_STAGE || ".venv/bin/python -m tests.conformance.stage";
  private readonly process = spawn(this.command, { cwd: ROOT, shell: true, stdio: ["pipe", "pipe", "inherit"] });
  private readonly lines = createInterface(this.process.stdout)[Symbol.asyncIterator]();

  async do(step: Step): Promise<Step> {
    this.process.stdin.write(`${JSON.stringify(step)}\n`);
    const { value, done } = await this.lines.next();
    if (done) throw new Error("the stage has ended");
    const reply = JSON.parse(value);
    if (reply.error) throw new Error(`the stage: ${reply.error}`);
    return reply;
  }

  async close(): Promise<void> {
    const ended = this.process.exitCode === null ? once(this.process, "exit") : undefined;
    this.process.stdin.end();
    await ended;
  }
}
