import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { systemClock } from "../../src/clock.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { defaultLimits } from "../../src/task/limits.ts";
import { isTerminal, openQuestions, type Task } from "../../src/task/task.ts";
import { Worker, type WorkerOptions } from "../../src/task/worker.ts";
import { workerFacts } from "../helpers/engine.ts";
import { FakeClock, pass, settled, turns } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";

describe.each([
  ["memory", async (): Promise<Store> => new MemoryStore(systemClock)],
  ["sqlite", async (): Promise<Store> => await openStore(`${temporaryFolder()}/tasks.db`)],
])("the engine on %s", (_name, open) => {
  let store: Store;
  let engine: Engine;
  let history: History;

  beforeEach(async () => {
    store = await open();
    history = new History(store, systemClock);
    engine = new Engine({ store, history, clock: systemClock, log: silentLog, project: "p" });
    onTestFinished(async () => {
      await history.flush();
      await store.close();
    });
  });

  const entryOf = (command: Command) => ({ command, toolName: "do_it", path: ["do", "it"], file: "x.ts" });
  const create = (command: Command, input: unknown = {}, more: object = {}) =>
    engine.create({ entry: entryOf(command), input, caller: "local:ada", reason: "test", ...more });
  const workerFor = (command: Command | undefined, more: Partial<WorkerOptions> = {}) =>
    new Worker({
      ...workerFacts(store, systemClock),
      history,
      find: () => (command === undefined ? undefined : entryOf(command)),
      worker: `w${Math.random()}`,
      ...more,
    });
  const get = (task: Task) => engine.get("local:ada", task.taskId);
  const add = defineCommand({
    summary: "x",
    input: z.object({ a: z.number(), b: z.number().default(1) }),
    run: ({ a, b }) => ({ sum: a + b }),
  });

  test("a task is queued, run once and keeps its result", async () => {
    const { task } = await create(add, { a: 2 });
    expect(task).toMatchObject({ status: "queued", command: "do_it", reason: "test", attempts: 0 });
    await workerFor(add).runUntilIdle();
    expect(await get(task)).toMatchObject({
      status: "completed",
      attempts: 1,
      outcome: { ending: "completed", data: { sum: 3 } },
    });
  });

  test("wrong arguments make no task and name the field", async () => {
    await expect(create(add, { a: "x" })).rejects.toThrow("Invalid argument for do_it: `a`");
    expect((await engine.list("local:ada")).tasks).toEqual([]);
  });

  test.each([[0], [-1], [1.5], [2 ** 53], [Number.POSITIVE_INFINITY], ["5"], [null]])(
    "ttl %s is refused by name and changes nothing",
    async (ttlMs) => {
      await expect(create(add, { a: 1 }, { ttlMs })).rejects.toThrow(
        "`ttl` must be a positive whole number of milliseconds.",
      );
      expect((await engine.list("local:ada")).tasks).toEqual([]);
    },
  );

  test("a ttl above the cap is capped, and the truth is told", async () => {
    expect((await create(add, { a: 1 }, { ttlMs: 2 ** 31 })).task.ttlMs).toBe(7 * 24 * 60 * 60 * 1000);
    expect((await create(add, { a: 2 }, { ttlMs: 5_000 })).task.ttlMs).toBe(5_000);
  });

  test.each([["unknown"], ["__proto__"], [""], ["x".repeat(10_000)], [7], [undefined]])(
    "the id %s is unknown, in the same words as a foreign one",
    async (taskId) => {
      const { task } = await create(add, { a: 1 });
      const foreign = await engine.get("local:bob", task.taskId).catch((error: Error) => error.message);
      await expect(engine.get("local:ada", taskId)).rejects.toThrow(foreign as string);
    },
  );

  test("equal live calls of one caller are one task; --new, other callers and readers are not joined", async () => {
    const { task } = await create(add, { a: 1, b: 2 });
    expect(await create(add, { b: 2, a: 1 })).toMatchObject({ isJoined: true, task: { taskId: task.taskId } });
    expect((await create(add, { a: 1, b: 2 }, { isNew: true })).isJoined).toBe(false);
    expect((await create(add, { a: 1, b: 2 }, { caller: "local:bob" })).isJoined).toBe(false);
    const anonymous = await create(add, { a: 9 }, { caller: "anonymous" });
    expect((await create(add, { a: 9 }, { caller: "anonymous" })).task.taskId).not.toBe(anonymous.task.taskId);
    const read = defineCommand({ summary: "x", effects: "read", run: () => ({}) });
    expect([(await create(read)).isJoined, (await create(read)).isJoined]).toEqual([false, false]);
    await workerFor(add).runUntilIdle();
    expect((await create(add, { a: 1, b: 2 })).isJoined).toBe(false);
  });

  test("an idempotency key gives the same task back, also after its end", async () => {
    const { task } = await create(add, { a: 1 }, { idempotencyKey: "k" });
    await workerFor(add).runUntilIdle();
    expect(await create(add, { a: 1 }, { idempotencyKey: "k" })).toMatchObject({
      isJoined: true,
      task: { taskId: task.taskId, status: "completed" },
    });
  });

  test("one live task more than allowed is refused with the cure, others are not affected", async () => {
    const clock = new FakeClock();
    const limits = { ...defaultLimits, localTasks: 2 };
    const small = new Engine({ store, history, clock, log: silentLog, project: "p", limits });
    const make = (caller: string, a: number) =>
      small.create({ entry: entryOf(add), input: { a }, caller, reason: "test" });
    await make("local:ada", 1);
    await make("local:ada", 2);
    const begin = clock.now();
    await expect(settled(clock, make("local:ada", 3), 100)).rejects.toThrow(
      "There are 2 live tasks of yours already, the most there may be (setting `limits.localTasks`); wait for one to end, or cancel one.",
    );
    expect(clock.now() - begin).toBe(5_000);
    await expect(make("local:bob", 3)).resolves.toBeDefined();
  });

  test("a create at the limit waits for a task to end; of many, one at a time asks the store again", async () => {
    const clock = new FakeClock();
    const limits = { ...defaultLimits, localTasks: 2 };
    const small = new Engine({ store, history, clock, log: silentLog, project: "p", limits });
    const make = (a: number) =>
      small.create({ entry: entryOf(add), input: { a }, caller: "local:ada", reason: "test" });
    const first = await make(1);
    const second = await make(2);
    const waiting = Array.from({ length: 20 }, (_, n) => make(10 + n));
    const results = Promise.allSettled(waiting);
    await turns();
    const creates = vi.spyOn(store, "create");
    await pass(clock, 1_000);
    expect(creates.mock.calls.length).toBeLessThan(15);
    for (const { task } of [first, second]) await small.cancel("local:ada", task.taskId);
    await pass(clock, 6_000);
    const kinds = (await results).map(({ status }) => status);
    expect(kinds.filter((kind) => kind === "fulfilled")).toHaveLength(2);
    expect(creates.mock.calls.length).toBeLessThan(100);
    creates.mockRestore();
  });

  test("callers who cannot be told apart fill no disk: their input, their results' time and what is kept of them have bounds", async () => {
    const made = vi.spyOn(store, "create");
    const stranger = { caller: "anonymous" };
    await expect(create(add, { a: 1, more: "x".repeat(256 * 1024) }, stranger)).rejects.toThrow(
      "The arguments are 262161 bytes of JSON, and without a credential 262144 are the most; send less, or a token.",
    );
    expect(made).not.toHaveBeenCalled();
    expect((await create(add, { a: 1 }, { ...stranger, ttlMs: 2 ** 31 })).task.ttlMs).toBe(3_600_000);
    expect((await create(add, { a: 1 }, stranger)).task.ttlMs).toBe(3_600_000);
    expect(made.mock.lastCall?.[1].keeps).toEqual({ count: 1_000, bytes: 64 * 1024 * 1024 });
    expect((await create(add, { a: 1, more: "x".repeat(256 * 1024) })).task.ttlMs).toBe(86_400_000);
    expect(made.mock.lastCall?.[1].keeps).toBeUndefined();
  });

  test("callers who cannot be told apart do not read that others' tasks are theirs", async () => {
    const clock = new FakeClock();
    const limits = { ...defaultLimits, anonymousTasks: 0 };
    const small = new Engine({ store, history, clock, log: silentLog, project: "p", limits });
    const created = small.create({ entry: entryOf(add), input: { a: 1 }, caller: "anonymous", reason: "test" });
    await expect(settled(clock, created, 100)).rejects.toThrow(
      "There are 0 live tasks of callers without a credential already, the most there may be (setting `limits.anonymousTasks`)",
    );
  });

  test("cancel is final: the worker is told, its late result is refused", async () => {
    const started = Promise.withResolvers<void>();
    let heard: unknown;
    const slow = defineCommand({
      summary: "x",
      async run(_input, context) {
        started.resolve();
        await new Promise((resolve) => context.signal.addEventListener("abort", resolve));
        heard = context.signal.reason;
        return { late: true };
      },
    });
    const { task } = await create(slow);
    const worker = workerFor(slow);
    worker.start();
    await started.promise;
    expect(await engine.cancel("local:ada", task.taskId, "enough")).toBe(true);
    expect(await get(task)).toMatchObject({ status: "cancelled", statusMessage: "enough" });
    await worker.stop();
    expect(heard).toMatchObject({ name: "Cancelled", message: "enough" });
    expect(await get(task)).toMatchObject({ status: "cancelled", outcome: { ending: "cancelled" } });
    expect(await engine.cancel("local:ada", task.taskId)).toBe(false);
  });

  test("what run() throws fails the task; with a retry rule it is tried again", async () => {
    const fails = defineCommand({ summary: "x", run: () => Promise.reject(new Error("no luck")) });
    const { task } = await create(fails);
    await workerFor(fails).runUntilIdle();
    expect(await get(task)).toMatchObject({
      status: "failed",
      attempts: 1,
      statusMessage: "no luck",
      outcome: { cause: "command" },
    });

    const seen: number[] = [];
    const flaky = defineCommand({
      summary: "x",
      retry: { attempts: 3, backoff: 0 },
      run(_input, context) {
        seen.push(context.attempt);
        if (context.attempt < 3) throw new Error("not yet");
        return { attempt: context.attempt };
      },
    });
    const again = (await create(flaky, {}, { isNew: true })).task;
    await workerFor(flaky).runUntilIdle();
    expect(await get(again)).toMatchObject({ status: "completed", outcome: { data: { attempt: 3 } } });
    expect(seen).toEqual([1, 2, 3]);
  });

  test("steps that are finished are not done again", async () => {
    let downloads = 0;
    const steps = defineCommand({
      summary: "x",
      retry: { attempts: 2, backoff: 0 },
      async run(_input, context) {
        const size = await context.step("download", () => ++downloads * 10);
        if (context.attempt === 1) throw new Error("after the download");
        return { size };
      },
    });
    const { task } = await create(steps);
    await workerFor(steps).runUntilIdle();
    expect(await get(task)).toMatchObject({ status: "completed", outcome: { data: { size: 10 } } });
    expect(downloads).toBe(1);
  });

  test("a question is on record until it is answered, by key, once", async () => {
    const asks = defineCommand({
      summary: "x",
      run: async (_input, context) => await context.ask("Publish it?", z.object({ publish: z.boolean() })),
    });
    const { task } = await create(asks);
    const worker = workerFor(asks);
    worker.start();
    const waiting = await engine.wait("local:ada", task.taskId, {
      until: (current) => current.status === "input_required",
    });
    expect(openQuestions(waiting)).toMatchObject([{ key: "q1", message: "Publish it?", schema: { type: "object" } }]);
    for (const key of ["q2", "constructor", "__proto__"])
      expect(await engine.answer("local:ada", task.taskId, { [key]: { action: "decline" } })).toBe(false);
    await expect(engine.answer("local:bob", task.taskId, { q1: { action: "decline" } })).rejects.toThrow(
      "There is no such task",
    );
    expect(
      await engine.answer("local:ada", task.taskId, { q1: { action: "accept", content: { publish: true } } }),
    ).toBe(true);
    expect(await engine.answer("local:ada", task.taskId, { q1: { action: "decline" } })).toBe(false);
    expect(await engine.wait("local:ada", task.taskId)).toMatchObject({
      status: "completed",
      outcome: { data: { publish: true } },
    });
    await worker.stop();
  });

  test("F31: a question outlives its worker; when it is answered the command runs again with the answer replayed", async () => {
    const runs: number[] = [];
    const asks = defineCommand({
      summary: "x",
      idempotent: true,
      async run(_input, context) {
        runs.push(context.attempt);
        const { first } = await context.ask("First?", z.object({ first: z.string() }));
        const { second } = await context.ask("Second?", z.object({ second: z.string() }));
        return { first, second };
      },
    });
    const { task } = await create(asks);
    const claimed = await store.claim({ project: "p", worker: "dead", leaseMs: 30_000 });
    const claim = { taskId: task.taskId, fence: (claimed as Task).fence };
    await store.ask(claim, { message: "First?", schema: {}, isConfirmation: false });
    await store.ask(claim, { message: "Second?", schema: {}, isConfirmation: false });
    await engine.answer("local:ada", task.taskId, { q1: { action: "accept", content: { first: "one" } } });
    await store.interrupt("dead");
    expect(await get(task)).toMatchObject({ status: "input_required", crashes: 1 });
    expect(openQuestions(await get(task)).map(({ key }) => key)).toEqual(["q2"]);
    await engine.answer("local:ada", task.taskId, { q2: { action: "accept", content: { second: "two" } } });
    await workerFor(asks).runUntilIdle();
    expect(await get(task)).toMatchObject({ status: "completed", outcome: { data: { first: "one", second: "two" } } });
    expect(runs).toEqual([2]);
    expect((await get(task)).questions).toHaveLength(2);
  });

  test("F07: a worker that stops gives safe work back uncounted, and ends unsafe work as interrupted", async () => {
    for (const [idempotent, expected] of [
      [true, { status: "queued", attempts: 0 }],
      [false, { status: "failed", outcome: { cause: "interrupted" } }],
    ] as const) {
      const started = Promise.withResolvers<void>();
      const endless = defineCommand({
        summary: "x",
        idempotent,
        run: (_input, context) => {
          started.resolve();
          return new Promise((_, reject) =>
            context.signal.addEventListener("abort", () => reject(new Error("stopping"))),
          );
        },
      });
      const { task } = await create(endless, {}, { isNew: true });
      const worker = workerFor(endless);
      worker.start();
      await started.promise;
      await worker.stop(0);
      expect(await get(task)).toMatchObject(expected);
      await engine.cancel("local:ada", task.taskId);
    }
  });

  test("progress is on record while it runs, rate-limited, the last value kept", async () => {
    const reports = defineCommand({
      summary: "x",
      run(_input, context) {
        for (let done = 1; done <= 1000; done++) context.progress({ done, total: 1000, message: `Row ${done}` });
        return {};
      },
    });
    const { task } = await create(reports);
    await workerFor(reports).runUntilIdle();
    const ended = await get(task);
    expect(ended.progress).toMatchObject({ value: 1000, percentage: 100, message: "Row 1000" });
    expect(ended.version).toBeLessThan(10);
  });

  test.each([
    ["a NUL character", () => ({ text: "a\u0000b" }), "text with a NUL character"],
    ["half a character", () => ({ text: "\ud800" }), "half a character"],
    ["100 levels", () => JSON.parse(`${"[".repeat(100)}${"]".repeat(100)}`), "nested more than 64 levels deep"],
    ["a backslash before u0000", () => ({ text: "\\u0000" }), undefined],
  ])("a result with %s", async (_what, make, refusal) => {
    const command = defineCommand({ summary: "x", run: () => make() });
    const { task } = await create(command);
    await workerFor(command).runUntilIdle();
    const ended = await get(task);
    if (refusal === undefined) expect(ended.status).toBe("completed");
    else expect(ended).toMatchObject({ status: "failed", statusMessage: expect.stringContaining(refusal) });
  });

  test("a task whose command is not there waits in the queue, its attempt not counted, and another worker that has it runs it", async () => {
    const { task } = await create(add, { a: 1 });
    await workerFor(undefined).runUntilIdle();
    expect(await get(task)).toMatchObject({
      status: "queued",
      attempts: 0,
      statusMessage: expect.stringMatching(/^Waiting for the command do_it, /),
    });
    await workerFor(add).runUntilIdle();
    expect(await get(task)).toMatchObject({ status: "completed", attempts: 1, statusMessage: undefined });
  });

  test("sixteen run at a time, and all of fifty end", async () => {
    let now = 0;
    let most = 0;
    const sixteen = Promise.withResolvers<void>();
    const busy = defineCommand({
      summary: "x",
      effects: "read",
      async run() {
        most = Math.max(most, ++now);
        if (now === 16) setImmediate(sixteen.resolve);
        await sixteen.promise;
        now--;
        return {};
      },
    });
    const made = await Promise.all(Array.from({ length: 50 }, () => create(busy)));
    await workerFor(busy).runUntilIdle();
    expect(most).toBe(16);
    for (const { task } of made) expect(isTerminal(await get(task))).toBe(true);
  });

  test("history takes over from the author, scaled by size", async () => {
    const sized = defineCommand({
      summary: "x",
      input: z.object({ files: z.number() }),
      estimate: ({ files }) => ({ work: files }),
      run: () => ({}),
    });
    expect(await history.estimateMs("do_it", sized, { files: 10 })).toBeUndefined();
    for (let run = 0; run < 5; run++) history.add("do_it", 1_000, { work: 100 });
    expect(await history.estimateMs("do_it", sized, { files: 200 })).toBeCloseTo(2_000, -2);
    const said = defineCommand({ summary: "x", estimate: () => 45, run: () => ({}) });
    expect(await history.estimateMs("other", said, {})).toBe(45_000);
    expect((await history.stats())[0]).toMatchObject({ command: "do_it", runs: 5 });
  });
});
