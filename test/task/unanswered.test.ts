import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { silentLog } from "../../src/log.ts";
import { defaultLimits } from "../../src/task/limits.ts";
import { statusLine } from "../../src/task/status-line.ts";
import { Sweeper } from "../../src/task/sweeper.ts";
import { Worker, type WorkerOptions } from "../../src/task/worker.ts";
import { openEngine } from "../helpers/engine.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, turns } from "../helpers/in-memory.ts";

const hourMs = 60 * 60 * 1000;
const asking = defineCommand({
  summary: "Ask",
  idempotent: true,
  dedupe: false,
  async run(_input, task) {
    const { name } = await task.ask("Who are you?", z.object({ name: z.string() }));
    return { name };
  },
});
const quick = defineCommand({ summary: "End at once", run: () => ({}) });
/** Asks five questions at once, and ends when two of them were refused. */
const curious = defineCommand({
  summary: "Ask much",
  idempotent: true,
  async run(_input, task) {
    let refused = 0;
    await new Promise<void>((resolve) => {
      for (const number of [1, 2, 3, 4, 5])
        task.ask(`Question ${number}?`, z.object({ name: z.string() })).catch(() => {
          refused += 1;
          if (refused === 2) resolve();
        });
    });
    await new Promise(setImmediate);
    return { refused };
  },
});
const entryOf = (command: typeof asking, toolName: string) => ({
  command,
  toolName,
  path: [toolName],
  file: "",
});
const entries = [entryOf(asking, "ask"), entryOf(quick, "end"), entryOf(curious, "curious")] as const;

describe("questions that nobody answers", () => {
  function setUp() {
    const clock = new FakeClock();
    const { store, history, engine, facts } = openEngine(clock);
    const start = (worker: string, more: Partial<WorkerOptions> = {}) => {
      const started = new Worker({
        ...facts,
        worker,
        find: (name) => entries.find(({ toolName }) => toolName === name),
        ...more,
      });
      started.start();
      return started;
    };
    const sweeper = new Sweeper({ store, clock, log: silentLog, isDead: () => false, leaseMs: 30_000 });
    const create = async (entry: (typeof entries)[number], more: { caller?: string; ttlMs?: number } = {}) => {
      const { task } = await engine.create({
        entry,
        input: {},
        caller: "local:ada",
        reason: "test",
        isNew: true,
        ...more,
      });
      return task.taskId;
    };
    onTestFinished(async () => {
      await history.flush();
      await store.close();
    });
    const stop = (worker: Worker) => moving(clock, worker.stop(0));
    return {
      clock,
      store,
      engine,
      start,
      stop,
      sweeper,
      create,
      get: (taskId: string, caller = "local:ada") => engine.get(caller, taskId),
    };
  }

  test("one that nobody answers for 24 h ends its task, with one sentence; until then it says by when", async () => {
    const { clock, start, stop, sweeper, create, get } = setUp();
    const worker = start("w");
    const taskId = await create(entries[0]);
    await turns();
    const task = await get(taskId);
    expect(task).toMatchObject({
      status: "input_required",
      questions: [{ askedAt: clock.now(), until: clock.now() + 24 * hourMs }],
    });
    expect(statusLine(task, clock.now())).toBe("asks: Who are you? (to be answered by 2026-07-29 00:00 UTC)");
    clock.advance(24 * hourMs - 1);
    await sweeper.check();
    expect(await get(taskId)).toMatchObject({ status: "input_required" });
    clock.advance(60_000);
    await sweeper.check();
    const sentence = "Nobody answered «Who are you?» within 24 h; run it again to be asked again.";
    expect(await get(taskId)).toMatchObject({
      status: "cancelled",
      statusMessage: sentence,
      outcome: { ending: "cancelled", message: sentence },
    });
    await turns();
    expect(worker.running.tasks, "its run has ended too").toBe(0);
    await stop(worker);
  });

  test("an answer that comes after its time is refused, though nobody has looked yet", async () => {
    const { clock, start, stop, engine, create, get } = setUp();
    const worker = start("w");
    const taskId = await create(entries[0]);
    await turns();
    clock.advance(24 * hourMs + 1);
    await expect(
      engine.answer("local:ada", taskId, { q1: { action: "accept", content: { name: "Ada" } } }),
    ).rejects.toThrow("The time to answer is over");
    expect(await get(taskId)).toMatchObject({ status: "cancelled" });
    await stop(worker);
  });

  test("the limit is a setting; a ttl that the client asked for counts if it is longer; a restart changes neither", async () => {
    const { clock, start, stop, sweeper, create, get } = setUp();
    const first = start("w", { questionMs: hourMs });
    const [plain, patient] = [await create(entries[0]), await create(entries[0], { ttlMs: 3 * hourMs })];
    await turns();
    await stop(first);
    expect(await get(plain), "nobody holds it").toMatchObject({ status: "input_required", lease: undefined });
    const second = start("w2", { questionMs: 100 * hourMs });
    clock.advance(hourMs);
    await sweeper.check();
    expect(await get(plain)).toMatchObject({
      status: "cancelled",
      statusMessage: expect.stringContaining("within 1 h;"),
    });
    expect(await get(patient)).toMatchObject({ status: "input_required" });
    clock.advance(2 * hourMs);
    await sweeper.check();
    expect(await get(patient)).toMatchObject({
      status: "cancelled",
      statusMessage: expect.stringContaining("within 3 h;"),
    });
    await stop(second);
  });

  test("at the limit of open questions `ask` fails with a sentence that names it, and nothing that waits is ended", async () => {
    const { engine, start, stop, create, get } = setUp();
    const worker = start("w", { limits: { ...defaultLimits, openQuestions: 3 } });
    const waiting = await Promise.all([1, 2, 3].map(() => create(entries[0])));
    await turns(100);
    const refused = await create(entries[0]);
    const other = await create(entries[1]);
    await turns(100);
    expect(await get(refused)).toMatchObject({
      status: "failed",
      outcome: {
        message:
          "There are 3 open questions of yours already, the most there may be (setting `limits.openQuestions`), so this one was not asked; answer one of them, or cancel its task.",
      },
    });
    expect(await get(other)).toMatchObject({ status: "completed" });
    for (const taskId of waiting) expect(await get(taskId)).toMatchObject({ status: "input_required" });
    const ofBob = await create(entries[0], { caller: "local:bob" });
    await engine.cancel("local:ada", waiting[0] ?? "");
    const next = await create(entries[0]);
    await turns(100);
    expect(await engine.get("local:bob", ofBob)).toMatchObject({ status: "input_required" });
    expect(await get(next)).toMatchObject({ status: "input_required" });
    await stop(worker);
  });

  test("the limit holds for one task that asks many questions side by side", async () => {
    const { start, stop, create, get } = setUp();
    const worker = start("w", { limits: { ...defaultLimits, openQuestions: 3 } });
    const task = await create(entries[2]);
    await turns(100);
    expect(await get(task)).toMatchObject({ status: "completed", outcome: { data: { refused: 2 } } });
    await stop(worker);
  });

  test("150 that wait refuse no new task", async () => {
    const { start, stop, create, get } = setUp();
    const worker = start("w");
    for (let made = 0; made < 150; made++) await create(entries[0]);
    await turns(1_500);
    const ended = await create(entries[1]);
    await turns(50);
    expect(await get(ended)).toMatchObject({ status: "completed" });
    await stop(worker);
  });
});
