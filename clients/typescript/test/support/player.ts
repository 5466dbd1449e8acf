import { Client, CrewdError, fromJson, locate, toJson } from "@crewd/client";
import { AskSchema } from "@crewd/client/v1/ask";
import { ask, messageNamed, WATCHES } from "./calls.js";
import { difference } from "./matching.js";
import { filled, type Json, type Scenario, type Stage, type Step } from "./scenarios.js";
import type { Watch } from "./watching.js";

const LIMIT_MS = 60_000;

/** Carries a scenario out with this client, used as its users use it. */
export async function play({ steps }: Scenario, stage: Stage): Promise<void> {
  const player = new Player(stage);
  let timer: NodeJS.Timeout | undefined;
  const timeUp = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, LIMIT_MS, new Error(`it takes more than ${LIMIT_MS / 1000} s`));
  });
  try {
    await player.act({ stage: "begin" });
    for (const [number, step] of steps.entries()) {
      await Promise.race([player.act(step), timeUp]).catch((error) => {
        const [verb] = Object.keys(step);
        throw new Error(`step ${number}, ${verb} ${JSON.stringify(step[verb!])}: ${error.message}`, { cause: error });
      });
    }
  } finally {
    clearTimeout(timer);
    await player.leave();
    await player.act({ stage: "end" });
  }
}

/** What one scenario has: variables, an environment, clients and watches. */
class Player {
  private variables: Step = {};
  private env: Record<string, string> = {};
  private readonly clients = new Map<string, Client>();
  private readonly watches = new Map<string, Watch<unknown>>();

  constructor(private readonly stage: Stage) {}

  /** Does one step, and compares what comes of it with what is expected. */
  async act({ save = {}, ...written }: Step): Promise<void> {
    const step = filled(written, this.variables);
    if ("stage" in step) {
      const { vars = {}, env = this.env } = await this.stage.do(step);
      Object.assign(this.variables, vars);
      this.env = env;
      return;
    }
    const got = await this.outcome(step);
    if ("expect" in step && !("await" in step)) compare(step.expect, got);
    for (const [name, path] of Object.entries<string>(save)) this.variables[name] = at(got, path);
  }

  async leave(): Promise<void> {
    for (const watch of this.watches.values()) await watch.close();
    for (const client of this.clients.values()) client.close();
  }

  private async outcome(step: Step): Promise<Json> {
    try {
      const got = await this.do(step);
      if (!("error" in step)) return got;
      throw new Error(`it should have failed, but gave ${JSON.stringify(got)}`);
    } catch (error) {
      if (!(error instanceof CrewdError)) throw error;
      if (!("error" in step)) throw new Error(`it failed: ${JSON.stringify(told(error))}`);
      compare(step.error, told(error));
    }
  }

  private async do(step: Step): Promise<Json> {
    const [verb = ""] = Object.keys(step);
    const value = step[verb];
    if (verb === "value") return value;
    if (verb === "json") return toJson(messageNamed(value), fromJson(messageNamed(value), step.input));
    if (verb === "locate") return located(locate(this.changedEnv(step), placeOf(value)));
    if (verb === "connect") {
      const client = await Client.connect({ ...placeOf(value), env: this.changedEnv(step) });
      return void this.clients.set(step.as ?? "client", client);
    }
    if (verb === "await") return this.watch(value).until((item) => !difference(step.expect ?? {}, item));
    if (verb === "ended") return this.watch(value).end();
    if (verb === "close") return this.watches.get(value)?.close() ?? this.clients.get(value)?.close();
    const client = this.clients.get(step.client ?? "client");
    if (!client) throw new Error("no client is connected");
    const watch = WATCHES[verb];
    return watch ? void this.watches.set(value, watch(client, step.request ?? {})) : ask(client, verb, step);
  }

  private watch(name: string): Watch<unknown> {
    const watch = this.watches.get(name);
    if (!watch) throw new Error(`there is no watch ${name}`);
    return watch;
  }

  private changedEnv({ env = {}, unset = [] }: Step): Record<string, string> {
    const kept = Object.entries<string>({ ...this.env, ...env }).filter(([name]) => !unset.includes(name));
    return Object.fromEntries(kept);
  }
}

function compare(expected: Json, got: Json): void {
  const found = difference(expected, got);
  if (found) throw new Error(found);
}

function placeOf({ state_dir: stateDir, socket }: Step) {
  return { ...(stateDir && { stateDir }), ...(socket && { socket }) };
}

function located({ stateDir, socket, token = null, taskToken }: Json): Json {
  return { state_dir: stateDir, socket, token, task_token: taskToken };
}

/** Gives an error as scenarios describe it. */
function told({ code, reason, message, metadata, violations, retryAfter, ask }: CrewdError): Json {
  return {
    code, reason, message, metadata, violations,
    ...(retryAfter !== undefined && { retry_after: `${retryAfter / 1000}s` }),
    ...(ask && { ask: toJson(AskSchema, ask) }),
  };
}

function at(got: Json, path: string): Json {
  return path.split(".").filter(Boolean).reduce((value, part) => value[part], got);
}
