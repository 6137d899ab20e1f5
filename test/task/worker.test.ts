import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { type Clock, systemClock } from "../../src/clock.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import type { Outcome } from "../../src/command/outcome.ts";
import { StoreDispatcher } from "../../src/task/dispatcher.ts";
import type { ClaimRequest } from "../../src/task/store.ts";
import { Worker, type WorkerOptions } from "../../src/task/worker.ts";
import { openEngine } from "../helpers/engine.ts";
import { FakeClock, pass } from "../helpers/fake-clock.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** A worker for one command, its store in memory. */
function setUp(command: Command, clock: Clock = systemClock) {
  const entry = { command, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
  const { store, history, engine, facts } = openEngine(clock);
  const createWorker = (more: Partial<WorkerOptions> = {}) => new Worker({ ...facts, find: () => entry, ...more });
  const create = async () => (await engine.create({ entry, input: {}, caller: "local:ada", reason: "test" })).task;
  onTestFinished(async () => {
    await history.flush();
    await store.close();
  });
  return { store, engine, createWorker, create };
}

const nothing = defineCommand({ summary: "x", run: () => ({}) });
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("an ending that the store cannot take is written as soon as it can; meanwhile nobody else would ever end the task", async () => {
  const clock = new FakeClock();
  const { store, engine, createWorker, create } = setUp(nothing, clock);
  const settle = vi
    .spyOn(store, "settle")
    .mockRejectedValueOnce(new Error("disk full"))
    .mockRejectedValueOnce(new Error("disk full"));
  const { taskId } = await create();
  const worker = createWorker();
  worker.start();
  await vi.waitFor(() => expect(settle).toHaveBeenCalledTimes(1), { timeout: 50_000 });
  await turn();
  expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "working" });
  for (let second = 0; second < 3; second++) {
    clock.advance(1_000);
    await turn();
  }
  expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "completed", attempts: 1 });
  await worker.stop();
});

test("a worker that stops while its store fails tries once more and leaves", async () => {
  const { store, engine, createWorker, create } = setUp(nothing);
  const settle = vi.spyOn(store, "settle").mockRejectedValue(new Error("disk full"));
  const { taskId } = await create();
  const worker = createWorker();
  worker.start();
  await vi.waitFor(() => expect(settle).toHaveBeenCalledTimes(1), { timeout: 50_000 });
  await worker.stop(0);
  expect(settle).toHaveBeenCalledTimes(2);
  expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "working" });
});

test("stopping waits for a claim that is just being made", async () => {
  const { store, engine, createWorker, create } = setUp(nothing);
  const { taskId } = await create();
  const gate = Promise.withResolvers<void>();
  class Slow extends StoreDispatcher {
    override next(wish: ClaimRequest) {
      return gate.promise.then(() => super.next(wish));
    }
  }
  const worker = createWorker({ dispatcher: new Slow(store) });
  worker.start();
  const stopped = worker.stop();
  gate.resolve();
  await stopped;
  expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "completed" });
});

test("an attempt that comes too late for its steps, which went with the end of its task, does nothing again", async () => {
  let runs = 0;
  const kept = Promise.withResolvers<void>();
  const command = defineCommand({
    summary: "x",
    idempotent: true,
    async run(_input, task) {
      await task.step("once", () => ++runs);
      kept.resolve();
      if (runs === 1) await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
    },
  });
  const { store, engine, createWorker, create } = setUp(command);
  const { taskId } = await create();
  const first = createWorker();
  first.start();
  await kept.promise;
  // What another process does is heard of later.
  vi.spyOn(store, "onChange").mockReturnValue(() => undefined);
  const settle = vi.spyOn(store, "settle");
  vi.spyOn(store, "steps").mockImplementation(async () => {
    await engine.cancel("local:ada", taskId);
    return new Map();
  });
  await store.interrupt("w");
  const second = createWorker({ worker: "w2" });
  second.start();
  await vi.waitFor(() => expect(settle.mock.calls.map(([{ fence }]) => fence)).toContain(2), {
    timeout: 50_000,
  });
  await Promise.all([first.stop(0), second.stop(0)]);
  expect(runs).toBe(1);
  expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "cancelled" });
});

test("a run whose task was taken from its worker is told so, also before anybody else has claimed it", async () => {
  const started = Promise.withResolvers<void>();
  const reasons: unknown[] = [];
  const slow = defineCommand({
    summary: "x",
    idempotent: true,
    async run(_input, { signal, attempt }) {
      started.resolve();
      if (attempt === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      reasons.push(signal.reason);
      return { attempt };
    },
  });
  const { store, engine, createWorker, create } = setUp(slow);
  const { taskId } = await create();
  const worker = createWorker({ concurrency: 1 });
  worker.start();
  await started.promise;
  await store.interrupt("w");
  await engine.wait("local:ada", taskId);
  await worker.stop();
  expect(reasons).toEqual([
    expect.objectContaining({ name: "Cancelled", message: "The task was taken from this worker." }),
    undefined,
  ]);
  expect(await engine.get("local:ada", taskId)).toMatchObject({
    status: "completed",
    fence: 2,
    outcome: { data: { attempt: 2 } },
  });
});

test("a run whose task another worker has claimed is stopped, and writes nothing", async () => {
  const [started, stopped] = [Promise.withResolvers<void>(), Promise.withResolvers<unknown>()];
  const slow = defineCommand({
    summary: "x",
    idempotent: true,
    async run(_input, { signal }) {
      signal.addEventListener("abort", () => stopped.resolve(signal.reason));
      started.resolve();
      await stopped.promise;
      return {};
    },
  });
  const { store, engine, createWorker, create } = setUp(slow);
  const { taskId } = await create();
  const worker = createWorker({ concurrency: 1 });
  worker.start();
  await started.promise;
  // The worker reads the task when another one has claimed it, and not before.
  const claimed = Promise.withResolvers<void>();
  const get = store.get.bind(store);
  const read = vi.spyOn(store, "get").mockImplementation(async (...given) => {
    await claimed.promise;
    return await get(...given);
  });
  await store.interrupt("w");
  await store.claim({ project: "p", worker: "another", leaseMs: 60_000, taskId });
  claimed.resolve();
  expect(await stopped.promise).toMatchObject({ name: "Cancelled", message: "The task was taken from this worker." });
  await worker.stop();
  read.mockRestore();
  expect(await engine.get("local:ada", taskId)).toMatchObject({
    status: "working",
    fence: 2,
    lease: { worker: "another" },
  });
});

test("a task that lost its worker 5 times runs on apart and completes; only ends of its own process are counted, and 3 are the end", async () => {
  const { store, engine, createWorker, create } = setUp(
    defineCommand({ summary: "x", idempotent: true, run: () => ({}) }),
  );
  const loseWorker = async (taskId: string) => {
    await store.claim({ project: "p", worker: "dead", leaseMs: 1, taskId });
    await store.interrupt("dead");
  };
  const facts = { messages: [], log: [], durationMs: 1 };
  const endings: Outcome[] = [{ ending: "completed", data: { here: "apart" }, json: "{}", ...facts }];
  const runApart = () =>
    Promise.resolve(
      endings.shift() ?? ({ ending: "failed", cause: "crash", message: "Its process ended.", ...facts } as const),
    );
  const innocent = await create();
  for (let times = 0; times < 5; times++) await loseWorker(innocent.taskId);
  await createWorker({ runApart }).runUntilIdle();
  expect(await engine.get("local:ada", innocent.taskId)).toMatchObject({
    status: "completed",
    crashes: 5,
    attempts: 1,
    outcome: { data: { here: "apart" } },
  });
  const poison = await create();
  await loseWorker(poison.taskId);
  await createWorker({ runApart }).runUntilIdle();
  const given = {
    status: "failed",
    crashes: 1,
    attempts: 3,
    statusMessage: "Its process ended. Given up after 3 attempts.",
  };
  expect(await engine.get("local:ada", poison.taskId)).toMatchObject(given);
});

test("a run that fails outside its command counts as a crash: tried again where that is safe, ended where it is not", async () => {
  const broken = () => Promise.reject(new Error("no process left"));
  for (const [idempotent, fence, words] of [
    [true, 3, "Given up after 3 attempts."],
    [false, 1, "Outcome unknown"],
  ] as const) {
    const { engine, createWorker, create } = setUp(
      defineCommand({ summary: "x", isolation: "process", idempotent, run: () => ({}) }),
    );
    const { taskId } = await create();
    await createWorker({ runIsolated: broken }).runUntilIdle();
    const task = await engine.get("local:ada", taskId);
    expect(task).toMatchObject({ status: "failed", fence, outcome: { cause: "interrupted" } });
    expect(task.statusMessage).toContain(words);
  }
});

describe("a worker that stops and keeps questions", () => {
  const asking = (then: () => Promise<unknown>) =>
    defineCommand({
      summary: "x",
      async run(_, task) {
        await task.ask("Go on?", z.object({ yes: z.boolean() }));
        await then();
        return {};
      },
    });

  async function openAsking(then: () => Promise<unknown>) {
    const clock = new FakeClock();
    const { engine, createWorker, create } = setUp(asking(then), clock);
    const { taskId } = await create();
    const worker = createWorker();
    worker.start();
    const status = async () => (await engine.get("local:ada", taskId)).status;
    await waitFor(async () => (await status()) === "input_required");
    const until = expect.any(Number);
    expect(worker.questionsAtRisk).toEqual([{ taskId, tool: "do_it", message: "Go on?", until }]);
    const key = (await engine.get("local:ada", taskId)).questions[0]?.key ?? "";
    const answer = () => engine.answer("local:ada", taskId, { [key]: { action: "accept", content: { yes: true } } });
    return { clock, worker, status, answer };
  }

  test("leaves a run that waits for an answer, and ends when it has ended", async () => {
    const { clock, worker, status, answer } = await openAsking(async () => undefined);
    const stopped = worker.stop(25_000, new AbortController().signal);
    await pass(clock, 3_600_000);
    expect(await status()).toBe("input_required");
    await answer();
    await stopped;
    expect(await status()).toBe("completed");
  });

  test("gives a run the grace period again after its answer, and no more", async () => {
    const { clock, worker, status, answer } = await openAsking(() => new Promise(() => undefined));
    const stopped = worker.stop(25_000, new AbortController().signal);
    await pass(clock, 100_000);
    await answer();
    await pass(clock, 24_000);
    expect(await status()).toBe("working");
    await pass(clock, 60_000);
    await stopped;
    expect(await status()).toBe("failed");
  });

  test.each([101_000, 117_000, 124_000])(
    "gives such a run the whole grace period and no more when it gives questions up after %d ms",
    async (ms) => {
      const { clock, worker, status } = await openAsking(async () => undefined);
      const giveUp = new AbortController();
      const stopped = worker.stop(25_000, giveUp.signal);
      await pass(clock, ms);
      giveUp.abort();
      await pass(clock, 24_000);
      expect(await status()).toBe("input_required");
      await pass(clock, 2_000);
      await stopped;
      expect(await status()).toBe("failed");
    },
  );
});

test("a task whose caller only a later version knows is left to that version, and the others run", async () => {
  const run = vi.fn((_input: unknown, _task: unknown) => ({}));
  const { store, engine, createWorker, create } = setUp(defineCommand({ summary: "x", run }), new FakeClock());
  const warnings: string[] = [];
  const log = { debug() {}, info() {}, warn: (text: string) => void warnings.push(text), error() {} };
  const entry = { command: nothing, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
  const later = { entry, input: { of: "later" }, caller: "robot:of-a-later-version", reason: "test" };
  const { task } = await engine.create(later);
  const own = await create();
  const worker = createWorker({ log });
  await worker.runUntilIdle();
  await worker.stop();
  expect(await engine.get("local:ada", own.taskId)).toMatchObject({ status: "completed" });
  expect(await engine.get(later.caller, task.taskId)).toMatchObject({
    status: "queued",
    attempts: 0,
    statusMessage: "Waits for a worker whose version of Meanwhile knows its caller.",
  });
  expect(run).toHaveBeenCalledTimes(1);
  expect(warnings).toEqual([
    expect.stringContaining(`The task ${task.taskId} is of a kind of caller that only a later`),
  ]);
  // A worker of that version may claim it.
  expect(await store.claim({ project: "p", worker: "later", leaseMs: 1_000 })).toMatchObject({ taskId: task.taskId });
});
