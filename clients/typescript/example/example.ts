/**
 * A run of two tasks, the first of which asks a question: `node dist-test/example/example.js [ANSWER]`.
 * The daemon must run: `crewd ensure` starts it.
 */
import { Client, CrewdError, pages, watchRun } from "@crewd/client";
import type { Ask } from "@crewd/client/v1/ask";

// What a `jsonl` worker is: it reads its task, writes a question, reads the answer, hands in a result.
const WORKER = `
  read task
  echo '{"type": "ask", "id": "1", "question": "Release?", "options": ["yes", "no"]}'
  read answer
  echo '{"type": "result", "outcome": "completed", "text": "asked and answered"}'
`;

async function main(answer: string | undefined): Promise<void> {
  const client = await Client.connect({ clientName: "example/1" });
  try {
    const { run } = await client.runs.createRun({
      spec: {
        goal: "ask, then report",
        workspace: { cwd: process.cwd() },
        tasks: [
          { id: "ask", adapter: "jsonl", command: ["sh", "-c", WORKER] },
          { id: "report", command: ["sh", "-c", "echo released"], dependsOn: ["ask"] },
        ],
      },
      env: { path: process.env.PATH ?? "" },
    });
    await follow(client, run!.id, answer);
    for await (const task of pages(client.runs.listTasks, { runId: run!.id }))
      console.log(`${task.id}: ${task.result?.text || "done"}`);
  } finally {
    client.close();
  }
}

/** Prints what happens until the run is over, also if the daemon is restarted meanwhile. */
async function follow(client: Client, runId: string, answer: string | undefined): Promise<void> {
  for await (const { kind, taskId, payload } of watchRun(client, { runId })) {
    console.log(kind, taskId);
    if (payload.case === "askOpened" && payload.value.ask) await settle(client, payload.value.ask, answer);
  }
}

/** Answers with what was given, else with the first option. Somebody else may have been quicker. */
async function settle(client: Client, { id, question, options }: Ask, answer: string | undefined): Promise<void> {
  const option = options.find((each) => each.id === answer) ?? (answer ? undefined : options[0]);
  console.log(`? ${question} ${option?.id ?? answer}`);
  try {
    await client.asks.answerAsk({ askId: id, ...(option ? { optionIds: [option.id] } : { text: answer ?? "" }) });
  } catch (error) {
    if (!(error instanceof CrewdError) || error.reason !== "ASK_SETTLED") throw error;
    console.log(`answered before: ${error.ask?.answer?.optionIds.join(", ")}`);
  }
}

await main(process.argv[2]);
