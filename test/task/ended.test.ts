import { expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { RuntimeError } from "../../src/errors.ts";
import { silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { EndedTasks } from "../../src/task/ended.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import type { EndedTask } from "../../src/task/task.ts";
import { begin } from "../../src/task/transitions.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { Bench, done } from "../store-suite/cases/bench.ts";

const scope = { caller: "ada" };

function ended(taskId: string, text = ""): EndedTask {
  const bench = new Bench(new MemoryStore(new FakeClock(0)), new FakeClock(0));
  const task = begin(bench.fresh({ taskId }), 0, { worker: "w", leaseMs: 1 });
  return {
    ...task,
    status: "completed",
    outcome: { ...done, data: { text } },
    finishedAt: 0,
    expiresAt: 60_000,
  } as EndedTask;
}

test("a process remembers the last 1,000 tasks that have ended, and 16 MiB of them", () => {
  const tasks = new EndedTasks();
  for (let n = 0; n < 1_001; n++) tasks.keep(ended(`t${n}`));
  expect(tasks.get(scope, "t0", 0)).toBeUndefined();
  expect(tasks.get(scope, "t1", 0)).toBeDefined();
  for (let n = 0; n < 5; n++) tasks.keep(ended(`large${n}`, "x".repeat(4 * 1024 * 1024)));
  expect(tasks.get(scope, "large1", 0)).toBeUndefined();
  expect(tasks.get(scope, "large2", 0)).toBeDefined();
  expect(tasks.get(scope, "t1000", 0)).toBeUndefined();
});

test("what is remembered is its caller's alone, and for its time", () => {
  const tasks = new EndedTasks();
  tasks.keep(ended("t1"));
  expect(tasks.get({ caller: "bob" }, "t1", 0)).toBeUndefined();
  expect(tasks.get(scope, "t1", 60_000)).toBeUndefined();
});

test("a task that has ended is told although its database can no longer be read; one that is not known is not made up", async () => {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const engine = new Engine({ store, history: new History(store, clock), clock, log: silentLog, project: "p" });
  const entry = { command: defineCommand({ summary: "x", run: () => ({}) }), toolName: "x", path: ["x"], file: "x.ts" };
  const make = async () => {
    const { task } = await engine.create({ entry, input: {}, caller: "ada", reason: "test", isNew: true });
    const claim = await store.claim({ project: "p", worker: "w", leaseMs: 1_000 });
    await store.settle({ taskId: task.taskId, fence: claim?.fence ?? 0 }, done);
    return task.taskId;
  };
  const [seen, unseen] = [await make(), await make()];
  await engine.get("ada", seen);
  const unreadable = new RuntimeError("STORE_UNAVAILABLE", "/home/ada/tasks.db cannot be used", {
    forClients: "The task database cannot be opened.",
  });
  store.get = () => Promise.reject(unreadable);
  expect(await engine.get("ada", seen)).toMatchObject({ status: "completed" });
  expect(await engine.wait("ada", seen)).toMatchObject({ status: "completed" });
  await expect(engine.get("bob", seen)).rejects.toBe(unreadable);
  await expect(engine.get("ada", unseen)).rejects.toBe(unreadable);
});
