// Meanwhile's engine on a SQLite file, with one trivial command; what every measure and child of tasks.mjs opens.
import { z } from "zod";
import { systemClock } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { openDispatcher } from "../../src/queue/open-dispatcher.ts";
import { openStore } from "../../src/store/open.ts";
import { createHere } from "../../src/task/create-here.ts";
import { EndedTasks } from "../../src/task/ended.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { Worker } from "../../src/task/worker.ts";

export const project = "bench";
/** The body of every row, job and result: 1 kB. */
export const text = "x".repeat(1024);

const textSchema = z.object({ text: z.string() });
const echo = defineCommand({
  summary: "Gives back its text",
  input: textSchema,
  output: textSchema,
  run: (input) => input,
});
/** Stays alive until it is cancelled or the worker stops. */
const wait = defineCommand({
  summary: "Waits",
  input: textSchema,
  effects: "read",
  run: (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true })),
});
const toEntry = (toolName, command) => ({ toolName, path: [toolName], file: "", command });
const entries = { echo: toEntry("echo", echo), wait: toEntry("wait", wait) };

/** A store, its engine and a worker that is not started yet; `onRun` hears of every task that begins. */
export async function openEngine(file, { concurrency = 16, maxLive, queue = "store", worksHere = true, onRun } = {}) {
  const store = await openStore(file);
  const dispatcher = await openDispatcher(store, { queue, project, clock: systemClock, log: silentLog });
  const history = new History(store, systemClock);
  const ended = new EndedTasks();
  const shared = { store, dispatcher, history, ended, clock: systemClock, log: silentLog, project };
  const engine = new Engine({ ...shared, ...(maxLive !== undefined && { maxLive }) });
  const find = (name) => {
    onRun?.();
    return entries[name];
  };
  const worker = new Worker({
    ...shared,
    find,
    worker: `bench ${process.pid}`,
    home: "",
    config: {},
    isDebug: false,
    concurrency,
    worksHere,
  });
  return {
    store,
    worker,
    // As a call does that becomes a task at once. A worker runs no task of a caller whose key is of no known kind.
    create: async (name, who, input) => {
      const caller = who === "anonymous" ? who : `local:${who}`;
      return (await createHere({ engine, worker }, { entry: entries[name], input, caller, reason: "bench" }, false))
        .task;
    },
    wait: (task) => engine.wait(task.caller, task.taskId),
    async close() {
      await worker.stop(0);
      await history.flush();
      await dispatcher.close();
      await store.close();
    },
  };
}

/** A task as the engine would make it, for asking the store alone. */
export function newTask(caller) {
  const taskId = crypto.randomUUID();
  const facts = {
    caller,
    project,
    command: "echo",
    digest: taskId,
    idempotencyKey: undefined,
    reason: "bench",
    ttlMs: 86_400_000,
    estimateMs: undefined,
    origin: { door: "mcp", folder: undefined },
    isEndless: false,
    isProven: false,
    isCall: false,
    questions: [],
    progressToken: undefined,
  };
  return {
    taskId,
    ...facts,
    input: { text },
    rules: { isSafe: true, maxAttempts: 1, backoffMs: 1_000 },
  };
}
