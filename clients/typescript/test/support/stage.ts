import { type ChildProcessByStdio, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "@bufbuild/protobuf";
import { within } from "./within.js";

const ROOT = fileURLToPath(new URL("../../../../../", import.meta.url));
const DEFAULT_COMMAND = process.env.CREWD_STAGE || ".venv/bin/python -m tests.conformance.stage";
// More than a scenario has for its own steps: what comes later than that does not come.
const REPLY_LIMIT_MS = 90_000;
const END_LIMIT_MS = 30_000;

/** How a stage ends that has cleared all away. */
export const ENDED_WELL = "it has ended: 0";

/** What the stage gives for a step. */
type Reply = { vars?: JsonObject; env?: Record<string, string>; error?: string };

/** The program that has the daemons and files of the scenarios. */
export class Stage {
  private readonly process: ChildProcessByStdio<Writable, Readable, null>;
  private readonly lines: AsyncIterator<string>;
  // Settles when the process is gone. Its output may stay open in what it has left behind.
  private readonly gone: Promise<string>;

  constructor(
    command = DEFAULT_COMMAND,
    private readonly replyLimitMs = REPLY_LIMIT_MS,
  ) {
    this.process = spawn(command, { cwd: ROOT, shell: true, stdio: ["pipe", "pipe", "inherit"] });
    this.lines = createInterface(this.process.stdout)[Symbol.asyncIterator]();
    this.gone = new Promise((resolve) => {
      this.process.once("error", (error) => resolve(`it cannot be run: ${error.message}`));
      this.process.once("exit", (code, signal) => resolve(`it has ended: ${signal ?? code}`));
    });
    // To write to one that is gone is no error of its own: `gone` tells what happened.
    this.process.stdin.on("error", () => {});
  }

  /** Has a step done. After one that takes too long the stage ends, so that no later one waits. */
  async do(step: JsonObject): Promise<Reply> {
    this.process.stdin.write(`${JSON.stringify(step)}\n`);
    const what = `the stage's ${JSON.stringify(step.stage)}`;
    const line = await within(this.replyLimitMs, what, this.nextLine()).catch((error: unknown) => {
      this.process.stdin.end();
      throw error;
    });
    const reply = JSON.parse(line) as Reply;
    if (reply.error !== undefined) throw new Error(`the stage: ${reply.error}`);
    return reply;
  }

  /** Lets the stage clear up and end; gives how it ended: well is `ENDED_WELL`. */
  async close(): Promise<string> {
    this.process.stdin.end();
    try {
      return await within(END_LIMIT_MS, "the stage's end", this.gone);
    } catch (error) {
      this.process.kill("SIGKILL");
      throw error;
    }
  }

  private async nextLine(): Promise<string> {
    const gone = this.gone.then((how) => ({ done: true as const, value: how }));
    const { done, value } = await Promise.race([this.lines.next(), gone]);
    if (done) throw new Error(`the stage is gone: ${value ?? (await this.gone)}`);
    return value;
  }
}
