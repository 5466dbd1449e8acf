import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Client, CrewdError, locate, type Location, type Place } from "@crewd/client";
import { fromJson, toJson } from "@crewd/client/json";
import { AskSchema } from "@crewd/client/v1/ask";
import { ask, messageNamed, WATCHES } from "./calls.js";
import { difference } from "./matching.js";
import { filled, type Scenario, type Step } from "./scenarios.js";
import type { Stage } from "./stage.js";
import type { Watch } from "./watching.js";
import { within } from "./within.js";

const SCENARIO_LIMIT_MS = 60_000;

/** Carries a scenario out with this client, used as its users use it. */
export async function play({ name, steps }: Scenario, stage: Stage): Promise<void> {
  const player = new Player(stage);
  await player.act({ stage: "begin" });
  const end = Date.now() + SCENARIO_LIMIT_MS;
  try {
    for (const [number, step] of steps.entries()) {
      await within(end - Date.now(), name, player.act(step)).catch((error: Error) => {
        throw new Error(`step ${number}, ${titleOf(step)}: ${error.message}`, { cause: error });
      });
    }
  } finally {
    await player.leave().finally(() => player.act({ stage: "end" }));
  }
}

/** What one scenario has: variables, an environment, clients and watches. */
class Player {
  private variables: JsonObject = {};
  private env: Record<string, string> = {};
  private readonly clients = new Map<string, Client>();
  private readonly watches = new Map<string, Watch>();

  constructor(private readonly stage: Stage) {}

  /** Does one step, and compares what comes of it with what is expected. */
  async act({ save = {}, ...written }: Step): Promise<void> {
    const step = filled(written as JsonObject, this.variables) as JsonObject & Step;
    if ("stage" in step) {
      const { vars = {}, env = this.env } = await this.stage.do(step);
      Object.assign(this.variables, vars);
      this.env = env;
      return;
    }
    const got = await this.outcome(step);
    if (step.expect !== undefined && !("await" in step)) compare(step.expect, got);
    for (const [name, path] of Object.entries(save)) this.variables[name] = at(got, path);
  }

  /** Closes all that is open. */
  async leave(): Promise<void> {
    const closing = [...this.watches.values()].map((watch) => watch.close());
    for (const client of this.clients.values()) client.close();
    await Promise.all(closing);
  }

  private async outcome(step: Step): Promise<JsonValue> {
    try {
      const got = await this.do(step);
      if (step.error === undefined) return got;
      throw new Error(`it should have failed, but gave ${JSON.stringify(got)}`);
    } catch (error) {
      if (!(error instanceof CrewdError)) throw error;
      if (step.error === undefined) throw new Error(`it failed: ${JSON.stringify(told(error))}`);
      compare(step.error, told(error));
      return null;
    }
  }

  private async do(step: Step): Promise<JsonValue> {
    const [verb = ""] = Object.keys(step);
    const value = step[verb] ?? null;
    switch (verb) {
      case "value":
        return value;
      case "json":
        return toJson(
          messageNamed(String(value)),
          fromJson(messageNamed(String(value)), step.input ?? null),
        );
      case "locate":
        return located(locate(this.changedEnv(step), placeOf(value)));
      case "connect":
        return this.connect(step, placeOf(value));
      case "await":
        return this.watch(String(value)).until((item) => !difference(step.expect ?? {}, item));
      case "ended":
        return this.watch(String(value)).end();
      case "close":
        return this.close(String(value));
      default:
        return this.call(verb, step);
    }
  }

  private async connect(step: Step, place: Place): Promise<null> {
    const client = await Client.connect({ ...place, env: this.changedEnv(step) });
    this.clients.set(step.as ?? "client", client);
    return null;
  }

  private async close(name: string): Promise<null> {
    await this.watches.get(name)?.close();
    this.clients.get(name)?.close();
    return null;
  }

  private async call(verb: string, step: Step): Promise<JsonValue> {
    const client = this.clients.get(step.client ?? "client");
    if (!client) throw new Error("no client is connected");
    const watch = WATCHES[verb];
    if (!watch) return ask(client, verb, step);
    this.watches.set(String(step[verb]), watch(client, step.request ?? {}));
    return null;
  }

  private watch(name: string): Watch {
    const watch = this.watches.get(name);
    if (!watch) throw new Error(`there is no watch ${name}`);
    return watch;
  }

  private changedEnv({ env = {}, unset = [] }: Step): Record<string, string> {
    const changed = Object.entries({ ...this.env, ...env });
    return Object.fromEntries(changed.filter(([name]) => !unset.includes(name)));
  }
}

function titleOf(step: Step): string {
  const [verb = ""] = Object.keys(step);
  return `${verb} ${JSON.stringify(step[verb])}`;
}

function compare(expected: JsonValue, got: JsonValue): void {
  const found = difference(expected, got);
  if (found) throw new Error(found);
}

function placeOf(value: JsonValue): Place {
  const { state_dir: stateDir, socket } = value as { state_dir?: string; socket?: string };
  return { ...(stateDir && { stateDir }), ...(socket && { socket }) };
}

function located({ stateDir, socket, token = "", taskToken }: Location): JsonObject {
  return { state_dir: stateDir, socket, token: token || null, task_token: taskToken };
}

/** Gives an error as scenarios describe it. */
function told(error: CrewdError): JsonObject {
  const { code, reason, message, retryAfter, ask: settled } = error;
  return {
    code,
    reason,
    message,
    metadata: { ...error.metadata },
    violations: error.violations.map((each) => ({ ...each })),
    ...(retryAfter !== undefined && { retry_after: `${retryAfter / 1000}s` }),
    ...(settled && { ask: toJson(AskSchema, settled) }),
  };
}

function at(got: JsonValue, path: string): JsonValue {
  let found: JsonValue | undefined = got;
  for (const part of path.split(".").filter(Boolean)) {
    if (typeof found !== "object" || found === null) break;
    found = (found as JsonObject)[part];
  }
  if (found === undefined) throw new Error(`there is no ${path} in ${JSON.stringify(got)}`);
  return found;
}
