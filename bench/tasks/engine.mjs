// Meanwhile's engine on a SQLite file, with one trivial command; what every measure and child of tasks.mjs opens.
import { z } from "zod";
import { systemClock } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { openStore } from "../../src/store/open.ts";
import { StoreDispatcher } from "../../src/task/dispatcher.ts";
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

/** A store, its engine and a worker that is not started yet. */
export async function openEngine(file, { concurrency = 16, maxLive } = {}) {
  const store = await openStore(file);
  const history = new History(store, systemClock);
  const shared = {
    store,
    dispatcher: new StoreDispatcher(store),
    history,
    clock: systemClock,
    log: silentLog,
    project,
  };
  const engine = new Engine({ ...shared, ...(maxLive !== undefined && { maxLive }) });
  const find = (name) => entries[name];
  const worker = new Worker({
    ...shared,
    find,
    worker: `bench ${process.pid}`,
    home: "",
    config: {},
    isDebug: false,
    concurrency,
  });
  return {
    store,
    worker,
    create: async (name, caller, input) =>
      (await engine.create({ entry: find(name), input, caller, reason: "bench" })).task,
    wait: (task) => engine.wait(task.caller, task.taskId),
    async close() {
      await worker.stop(0);
      await history.flush();
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
