/**
 * A run of two tasks, the first of which asks a question: `npm run example -- [ANSWER]`.
 * The daemon must run: `crewd ensure` starts it.
 */
import { Client, CrewdError, pages, watchRun } from "@crewd/client";
import type { Ask } from "@crewd/client/v1/ask";

// What a `jsonl` worker is: it reads its task, asks, reads the answer, and hands in a result.
const WORKER = `
  read task
  echo '{"type": "ask", "id": "1", "question": "Release?", "options": ["yes", "no"]}'
  read answer
  echo '{"type": "result", "outcome": "completed", "text": "asked and answered"}'
`;
const SPEC = {
  goal: "ask, then report",
  workspace: { cwd: process.cwd() },
  tasks: [
    { id: "ask", adapter: "jsonl", command: ["sh", "-c", WORKER] },
    { id: "report", command: ["sh", "-c", "echo released"], dependsOn: ["ask"] },
  ],
};

async function main(answer: string | undefined): Promise<void> {
  const client = await Client.connect({ clientName: "example/1" });
  try {
    const env = { path: process.env.PATH ?? "" };
    const { run } = await client.runs.createRun({ spec: SPEC, env });
    if (!run) throw new Error("the daemon made no run");
    await follow(client, run.id, answer);
    for await (const task of pages(client.runs.listTasks, { runId: run.id })) {
      console.log(`${task.id}: ${task.result?.text || "done"}`);
    }
  } finally {
    client.close();
  }
}

/** Prints what happens until the run is over, also if the daemon is restarted meanwhile. */
async function follow(client: Client, runId: string, answer: string | undefined): Promise<void> {
  for await (const { kind, taskId, payload } of watchRun(client, { runId })) {
    console.log(kind, taskId);
    if (payload.case === "askOpened" && payload.value.ask) {
      await settle(client, payload.value.ask, answer);
    }
  }
}

/** Answers with what was given, else with the first option. Somebody else may be quicker. */
async function settle(client: Client, ask: Ask, answer = ask.options[0]?.id ?? ""): Promise<void> {
  console.log(`? ${ask.question} ${answer}`);
  const isOption = ask.options.some(({ id }) => id === answer);
  const given = isOption ? { optionIds: [answer] } : { text: answer };
  try {
    await client.asks.answerAsk({ askId: ask.id, ...given });
  } catch (error) {
    if (!(error instanceof CrewdError) || error.reason !== "ASK_SETTLED") throw error;
    console.log(`answered before: ${error.ask?.answer?.optionIds.join(", ")}`);
  }
}

await main(process.argv[2]);
