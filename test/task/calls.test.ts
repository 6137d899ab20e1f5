import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { type Command, defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import { Cancelled, ShuttingDown } from "../../src/errors.ts";
import type { HostLimit } from "../../src/host/profiles.ts";
import { silentLog } from "../../src/log.ts";
import { ProgressSender } from "../../src/mcp/progress-sender.ts";
import type { CallEnding, CallRequest } from "../../src/task/call-request.ts";
import { Calls } from "../../src/task/calls.ts";
import { type DeferralRules, defaultDeferral } from "../../src/task/deferral.ts";
import { maxCrashes, openQuestions, type Task, type TaskQuestion } from "../../src/task/task.ts";
import { Worker } from "../../src/task/worker.ts";
import { openEngine } from "../helpers/engine.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { moving, turns } from "../helpers/in-memory.ts";

const caller = "local:ada";
const hard = (seconds: number): HostLimit => ({ limitMs: seconds * 1000, isExtended: false });
const idle = (seconds: number): HostLimit => ({ limitMs: seconds * 1000, isExtended: true });
const waits: HostLimit = { limitMs: undefined, isExtended: false };

/** A command that goes on until it is told to end, and remembers how often it began and what became of it. */
function held(more: Partial<Parameters<typeof defineCommand>[0]> = {}) {
  const runs: { task: CommandContext; end: (data?: object) => void; fail: (error: Error) => void }[] = [];
  const command = defineCommand({
    summary: "x",
    ...more,
    async run(_input, task) {
      const ended = Promise.withResolvers<object>();
      runs.push({ task, end: (data = { done: true }) => ended.resolve(data), fail: ended.reject });
      task.signal.addEventListener("abort", () => ended.reject(task.signal.reason));
      return await ended.promise;
    },
  });
  return {
    command,
    runs,
    get run() {
      const run = runs.at(-1);
      if (run === undefined) throw new Error("It has not begun.");
      return run;
    },
  };
}

/** Somebody who waits for a call, and all they are told meanwhile. */
class Door {
  readonly heard: { readonly at: number; readonly progress: number; readonly message: string }[] = [];
  readonly asked: { readonly task: Task; readonly open: readonly TaskQuestion[] }[] = [];
  readonly logged: string[] = [];
  readonly gone = new AbortController();
  readonly dropped = new AbortController();
  isLost = false;
  readonly watcher: CallRequest["watcher"];

  constructor(clock: FakeClock, startedAt = clock.now()) {
    const send = (params: Record<string, unknown>) =>
      void this.heard.push({
        at: (clock.now() - startedAt) / 1000,
        progress: params.progress as number,
        message: params.message as string,
      });
    const sender = new ProgressSender({ token: "t", send, monotonic: () => clock.monotonic() });
    this.watcher = {
      progress: (update, timing) => sender.update(update, timing),
      beat: (timing) => sender.beat(timing),
      log: ({ text }) => void this.logged.push(text),
      questions: (task, open) => void this.asked.push({ task, open }),
    };
  }
}

/** An engine that answers calls of one command, its store in memory and its time ours. */
function setUp(command: Command, rules: Partial<DeferralRules> = {}) {
  const clock = new FakeClock();
  const log = { ...silentLog, warn: vi.fn() };
  const { store, history, engine, facts } = openEngine(clock, { log });
  const entry = { command, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
  const worker = new Worker({ ...facts, find: () => entry });
  const calls = new Calls({ engine, worker, history, clock, log, deferral: { ...defaultDeferral, ...rules } });
  onTestFinished(async () => {
    await moving(clock, worker.stop(0), 1_000);
    await history.flush();
    await store.close();
    expect(clock.pendingTimers, "no timer is left").toBe(0);
  });
  const start = async (
    door: Door,
    more: Partial<Omit<CallRequest, "limit" | "client">> & {
      limit?: HostLimit;
      wish?: Partial<CallRequest["client"]>;
    } = {},
  ) => {
    const { limit = waits, wish, ...others } = more;
    const request: CallRequest = {
      entry,
      input: {},
      caller,
      origin: { door: "mcp", folder: undefined },
      progressToken: "t",
      isNew: false,
      idempotencyKey: undefined,
      answered: [],
      whenAsked: () => "handOut",
      whyNoAnswer: "nobody is there",
      watcher: door.watcher,
      gone: door.gone.signal,
      isLost: () => door.isLost,
      dropped: door.dropped.signal,
      ...others,
      client: {
        asked: undefined,
        canTakeTask: false,
        canTakeUnasked: false,
        declaresTasks: false,
        takesJobs: false,
        canFollowUp: true,
        ...wish,
      },
      limit: { ...limit, host: "a-host" },
    };
    const waiting = new Waiting((async () => await calls.call(request))());
    await turns();
    return waiting;
  };
  const pass = async (ms: number) => {
    clock.advance(ms);
    await turns();
  };
  /** Every row there is, calls that are still being answered included. */
  const rows = async () => (await store.list({ caller }, { limit: 100, withCalls: true })).tasks;
  return { clock, store, engine, calls, worker, history, log, start, pass, rows, door: () => new Door(clock) };
}

/** A call under way. */
class Waiting {
  ending: CallEnding | undefined;
  error: unknown;

  constructor(call: Promise<CallEnding>) {
    call.then(
      (ending) => (this.ending = ending),
      (error: unknown) => (this.error = error),
    );
  }

  get ended() {
    if (this.ending?.kind !== "ended") throw new Error(`It has not ended, but ${this.ending?.kind ?? "waits"}.`);
    return this.ending;
  }

  get deferred() {
    if (this.ending?.kind !== "deferred") throw new Error(`It was not deferred, but ${this.ending?.kind ?? "waits"}.`);
    return this.ending;
  }
}

describe("a call that ends at once", () => {
  test.each([
    ["answers in the turn that it came in", () => ({})],
    ["is awaited for a moment", async () => await Promise.resolve({})],
    [
      "is awaited for a turn of the event loop",
      () => Promise.resolve().then(() => new Promise<object>((resolve) => setImmediate(resolve, {}))),
    ],
  ])("and %s has no timer, no listener and no record", async (_title, run) => {
    const { clock, store, start, door } = setUp(defineCommand({ summary: "x", effects: "write", run }));
    const after = vi.spyOn(clock, "after");
    const create = vi.spyOn(store, "create");
    const waiting = door();
    const listens = vi.spyOn(waiting.gone.signal, "addEventListener");
    const call = await start(waiting, { limit: hard(60) });
    expect(call.ended).toMatchObject({ outcome: { ending: "completed" }, isOnRecord: false });
    // How long it took is written in ten seconds.
    expect(after.mock.calls.map(([ms]) => ms)).toEqual([10_000]);
    expect(listens).not.toHaveBeenCalled();
    expect(create).not.toHaveBeenCalled();
  });
});

describe("the record of a call", () => {
  test.each([0, 1, 49])("one that ends after %i ms never has any", async (ms) => {
    const work = held();
    const { store, start, pass, rows, door } = setUp(work.command);
    const create = vi.spyOn(store, "create");
    const call = await start(door());
    await pass(ms);
    work.run.end();
    await turns();
    expect(call.ended).toMatchObject({
      outcome: { ending: "completed", data: { done: true }, durationMs: ms },
      isOnRecord: false,
      taskId: undefined,
    });
    call.ended.finish(true);
    await pass(1_000);
    expect(create).not.toHaveBeenCalled();
    expect(await rows()).toEqual([]);
  });

  test("one that ends within a turn of the event loop costs no timer, either", async () => {
    const { clock, start, rows, door } = setUp(
      defineCommand({ summary: "x", effects: "read", run: () => ({ done: true }) }),
    );
    const after = vi.spyOn(clock, "after");
    const call = await start(door(), { limit: idle(60) });
    expect(call.ended).toMatchObject({ outcome: { data: { done: true } }, isOnRecord: false });
    call.ended.finish(true);
    expect(
      after.mock.calls.map(([ms]) => ms),
      "but for the one that flushes durations",
    ).toEqual([10_000]);
    expect(await rows()).toEqual([]);
  });

  test("a longer one has one, as a call that its worker holds, until its answer was delivered", async () => {
    const work = held({ idempotent: true });
    const { clock, store, engine, start, pass, rows, door } = setUp(work.command);
    const startedAt = clock.now();
    const call = await start(door());
    await pass(50);
    const [row] = await rows();
    expect(row).toMatchObject({
      isCall: true,
      status: "working",
      command: "do_it",
      createdAt: startedAt,
      startedAt,
      progressToken: "t",
      lease: { worker: "w" },
    });
    expect(row?.rules.isSafe, "a call is never run again, however safe").toBe(false);
    expect((await engine.list(caller)).tasks, "nobody is shown it").toEqual([]);
    work.run.end();
    await turns();
    expect(call.ended.isOnRecord).toBe(true);
    expect(await rows()).toHaveLength(1);
    call.ended.finish(true);
    await turns();
    expect(await rows()).toEqual([]);
    expect(await store.workers(), "and no lease is left").toEqual([]);
  });

  test.each([
    [20, "had none yet"],
    [2_000, "was on record"],
  ])("a result that could not be delivered is kept as a completed task: after %i ms, when the call %s", async (ms) => {
    const work = held();
    const { engine, start, pass, door } = setUp(work.command);
    const call = await start(door());
    await pass(ms);
    work.run.end({ answer: 42 });
    await turns();
    call.ended.finish(false);
    await turns();
    const [task] = (await engine.list(caller)).tasks;
    expect(await engine.get(caller, task?.taskId)).toMatchObject({
      status: "completed",
      isCall: false,
      reason: "its client went away before the answer",
      outcome: { data: { answer: 42 } },
    });
  });

  test("an error that could not be delivered is not kept: there is nothing to fetch", async () => {
    const work = held();
    const { start, pass, rows, door } = setUp(work.command);
    const call = await start(door());
    await pass(100);
    work.run.fail(new Error("no"));
    await turns();
    expect(call.ended.outcome).toMatchObject({ ending: "failed", message: "no" });
    call.ended.finish(false);
    await turns();
    expect(await rows()).toEqual([]);
  });

  test("what it takes counts for the next estimate, once, however it is answered", async () => {
    for (const end of ["delivered", "lost", "handed out"] as const) {
      const work = held();
      const { history, start, pass, door } = setUp(work.command);
      const call = await start(door(), { limit: end === "handed out" ? hard(4) : waits });
      await pass(4_000);
      work.run.end();
      await turns();
      if (end !== "handed out") call.ended.finish(end === "delivered");
      await turns();
      expect(await history.stats(), end).toMatchObject([{ command: "do_it", runs: 1 }]);
    }
  });
});

describe("handing out", () => {
  test("just before its host would cut it, the call goes on as a task: the same run", async () => {
    const work = held({ idempotent: true });
    const { engine, start, pass, door } = setUp(work.command);
    const call = await start(door(), { limit: hard(4) });
    await pass(2_999);
    expect(call.ending).toBeUndefined();
    await pass(1);
    const { as, task, note } = call.deferred;
    expect({ as, note }).toEqual({ as: "handle", note: undefined });
    expect(task).toMatchObject({
      isCall: false,
      status: "working",
      reason: "a-host cuts calls after 4 s",
      rules: { isSafe: true },
      ttlMs: 86_400_000,
    });
    expect(work.run.task.signal.aborted).toBe(false);
    await pass(60_000);
    work.run.end({ answer: 42 });
    await turns();
    expect(await engine.get(caller, task.taskId)).toMatchObject({
      status: "completed",
      attempts: 1,
      crashes: 0,
      fence: 1,
      outcome: { data: { answer: 42 } },
    });
    expect(work.runs).toHaveLength(1);
  });

  test("a client that takes tasks gets one after ten seconds", async () => {
    const work = held();
    const { start, pass, door } = setUp(work.command);
    const call = await start(door(), { limit: idle(60), wish: { canTakeTask: true } });
    await pass(9_999);
    expect(call.ending).toBeUndefined();
    await pass(1);
    expect(call.deferred).toMatchObject({ as: "task", task: { reason: "no answer after 10 s" } });
  });

  test("is not done where nobody could follow it up", async () => {
    const work = held();
    const { start, pass, door } = setUp(work.command);
    const call = await start(door(), { limit: hard(4), wish: { canFollowUp: false } });
    await pass(3_600_000);
    expect(call.ending).toBeUndefined();
    work.run.end();
    await turns();
    expect(call.ended.outcome).toMatchObject({ ending: "completed" });
    call.ended.finish(true);
  });

  test("a run that ends while it is being handed out has its result in the task", async () => {
    const work = held();
    const { store, engine, start, pass, door } = setUp(work.command);
    const gate = Promise.withResolvers<void>();
    const handOut = store.handOut.bind(store);
    vi.spyOn(store, "handOut").mockImplementationOnce(async (...words) => {
      await gate.promise;
      return await handOut(...words);
    });
    const call = await start(door(), { limit: hard(4) });
    await pass(3_000);
    work.run.end({ answer: 42 });
    await turns();
    expect(call.ending).toBeUndefined();
    gate.resolve();
    await turns();
    expect(await engine.get(caller, call.deferred.task.taskId)).toMatchObject({
      status: "completed",
      outcome: { data: { answer: 42 } },
    });
  });

  test.each(["create", "handOut"] as const)(
    "a store whose %s fails then leaves the client waiting, and the call ends as any other",
    async (verb) => {
      const work = held();
      const { store, log, start, pass, rows, door } = setUp(work.command);
      vi.spyOn(store, verb).mockRejectedValue(new Error("disk full"));
      const call = await start(door(), { limit: hard(4) });
      await pass(3_000);
      expect(log.warn).toHaveBeenCalledWith(
        "a running call could not be made a task; its client waits on",
        expect.objectContaining({ tool: "do_it" }),
      );
      expect(call.ending).toBeUndefined();
      expect(work.run.task.signal.aborted).toBe(false);
      work.run.end();
      await turns();
      expect(call.ended.outcome).toMatchObject({ ending: "completed", data: { done: true } });
      call.ended.finish(true);
      await turns();
      expect(await rows()).toEqual([]);
      expect(work.runs).toHaveLength(1);
    },
  );

  test("a record that could not be written at first is written when it is needed", async () => {
    const work = held();
    const { store, start, pass, rows, door } = setUp(work.command);
    vi.spyOn(store, "create").mockRejectedValueOnce(new Error("busy"));
    const call = await start(door(), { limit: hard(4) });
    await pass(50);
    expect(await rows()).toEqual([]);
    await pass(2_950);
    expect(call.deferred.task).toMatchObject({ isCall: false, status: "working" });
  });
});

describe("a client that does not want it any more", () => {
  test("stops a call that was not handed out", async () => {
    const work = held();
    const { start, pass, rows, door } = setUp(work.command);
    const client = door();
    const call = await start(client, { limit: hard(4) });
    await pass(1_000);
    client.gone.abort();
    await turns();
    expect(work.run.task.signal.reason).toBeInstanceOf(Cancelled);
    expect(call.ended.outcome).toMatchObject({ ending: "cancelled" });
    call.ended.finish(true);
    await turns();
    expect(await rows()).toEqual([]);
  });

  test("stops one that is just being handed out: it has no handle yet, and will never get one", async () => {
    const work = held();
    const { store, engine, start, pass, door } = setUp(work.command);
    const gate = Promise.withResolvers<void>();
    const handOut = store.handOut.bind(store);
    vi.spyOn(store, "handOut").mockImplementationOnce(async (...words) => {
      await gate.promise;
      return await handOut(...words);
    });
    const client = door();
    const call = await start(client, { limit: hard(4) });
    await pass(3_000);
    client.gone.abort();
    await turns();
    gate.resolve();
    await turns();
    if (call.ending?.kind === "ended") call.ending.finish(true);
    await turns();
    expect(work.run.task.signal.reason).toBeInstanceOf(Cancelled);
    expect((await engine.list(caller, { statuses: ["queued", "working"] })).tasks).toEqual([]);
  });

  test("does not touch a job that was handed out", async () => {
    const work = held();
    const { engine, start, pass, door } = setUp(work.command);
    const client = door();
    const call = await start(client, { limit: hard(4) });
    await pass(3_000);
    const { taskId } = call.deferred.task;
    await pass(70);
    client.gone.abort();
    client.dropped.abort();
    await pass(10_000);
    expect(work.run.task.signal.aborted).toBe(false);
    expect(await engine.get(caller, taskId)).toMatchObject({ status: "working" });
    work.run.end();
    await turns();
    expect(await engine.get(caller, taskId)).toMatchObject({ status: "completed" });
  });

  test("stops one that it cancelled before it began", async () => {
    const work = held();
    const { start, rows, door } = setUp(work.command);
    const client = door();
    client.gone.abort();
    const call = await start(client);
    expect(call.ended.outcome).toMatchObject({ ending: "cancelled" });
    call.ended.finish(true);
    expect(await rows()).toEqual([]);
  });
});

describe("a client that is lost", () => {
  test.each(["its connection is closed", "the stream of this request breaks"])(
    "leaves a task behind, and the run goes on: %s",
    async (how) => {
      const work = held();
      const { engine, start, pass, door } = setUp(work.command);
      const client = door();
      const call = await start(client, { limit: hard(4) });
      await pass(10);
      if (how === "its connection is closed") {
        client.isLost = true;
        client.gone.abort();
      } else client.dropped.abort();
      await turns();
      const { taskId } = call.deferred.task;
      expect(call.deferred.task).toMatchObject({ isCall: false, reason: "its client went away" });
      expect(work.run.task.signal.aborted).toBe(false);
      await pass(60_000);
      work.run.end({ answer: 42 });
      await turns();
      expect(await engine.get(caller, taskId)).toMatchObject({
        status: "completed",
        outcome: { data: { answer: 42 } },
      });
      expect(work.runs).toHaveLength(1);
    },
  );
});

describe("what the client hears meanwhile", () => {
  test("a heartbeat every third of a limit that progress extends, with rising values", async () => {
    const work = held({ estimate: () => 90 });
    const { start, pass, door } = setUp(work.command);
    const client = door();
    const call = await start(client, { limit: idle(60) });
    for (let second = 0; second < 70; second++) await pass(1_000);
    expect(client.heard.map(({ at }) => at)).toEqual([20, 40, 60]);
    expect(client.heard.map(({ message }) => message)).toEqual([
      "Still running after 20 s",
      "Still running after 40 s",
      "Still running after 1 min 0 s",
    ]);
    expectRising(client);
    work.run.end();
    await turns();
    call.ended.finish(true);
    for (let second = 0; second < 70; second++) await pass(1_000);
    expect(client.heard, "silence after the end").toHaveLength(3);
  });

  test("its own progress and heartbeats are one rising row", async () => {
    const work = held();
    const { start, pass, door } = setUp(work.command);
    const client = door();
    const call = await start(client, { limit: idle(60) });
    await pass(5_000);
    work.run.task.progress({ done: 3, total: 10, message: "three" });
    for (let second = 0; second < 40; second++) await pass(1_000);
    work.run.task.progress({ done: 4, total: 10, message: "four" });
    await turns();
    expect(client.heard.map(({ at, message }) => [at, message])).toEqual([
      [5, "three"],
      [20, "Still running after 20 s"],
      [40, "Still running after 40 s"],
      [45, "four"],
    ]);
    expectRising(client);
    expect(client.heard.at(-1)?.progress).toBe(4);
    work.run.end();
    await turns();
    call.ended.finish(true);
  });

  test("no heartbeat where progress changes nothing, or there is no token", async () => {
    for (const how of [{ limit: hard(300) }, { limit: waits }, { limit: idle(300), progressToken: undefined }]) {
      const work = held();
      const { start, pass, door } = setUp(work.command);
      const client = door();
      const call = await start(client, how);
      for (let second = 0; second < 250; second++) await pass(1_000);
      expect(client.heard).toEqual([]);
      work.run.end();
      await turns();
      call.ended.finish(true);
    }
  });

  test("nothing after the hand-out; the task knows it", async () => {
    const work = held();
    const { engine, start, pass, door } = setUp(work.command);
    const client = door();
    const call = await start(client, { limit: hard(4) });
    work.run.task.progress({ percentage: 10, message: "before" });
    work.run.task.log.info("a line before");
    await pass(3_000);
    const { taskId } = call.deferred.task;
    work.run.task.progress({ percentage: 60, message: "after" });
    work.run.task.announce("Going on");
    work.run.task.log.info("a line after");
    await pass(60_000);
    expect(client.heard).toMatchObject([{ progress: 10, message: "before" }]);
    expect(client.logged).toEqual(["a line before"]);
    expect(await engine.get(caller, taskId)).toMatchObject({
      progress: { percentage: 60, message: "after" },
      statusMessage: "Going on",
    });
  });

  test("what was reported before there was a record is in it", async () => {
    const work = held();
    const { start, pass, rows, door } = setUp(work.command);
    await start(door(), { limit: hard(4) });
    work.run.task.announce("Building");
    work.run.task.progress({ done: 1, total: 4, message: "One" });
    await pass(50);
    expect(await rows()).toMatchObject([
      { statusMessage: "Building", progress: { value: 1, total: 4, percentage: 25, message: "One" } },
    ]);
    await pass(2_950);
  });
});

function expectRising({ heard }: Door): void {
  const values = heard.map(({ progress }) => progress);
  expect(values).toEqual([...new Set(values)].sort((a, b) => a - b));
}

describe("a question", () => {
  /** Asks once, and gives the answer back. */
  function asking() {
    let starts = 0;
    const command = defineCommand({
      summary: "x",
      async run(_input, task) {
        starts += 1;
        return await task.ask("Publish it?", z.object({ publish: z.boolean() }));
      },
    });
    return { command, starts: () => starts };
  }
  const yes = { q1: { action: "accept", content: { publish: true } } } as const;

  test("elicit: is on record, put to the person while the call waits, and its answer goes to the same run", async () => {
    const { command, starts } = asking();
    const { engine, start, rows, door } = setUp(command);
    const client = door();
    const call = await start(client, { whenAsked: () => "elicit", limit: hard(4) });
    expect(await rows()).toMatchObject([{ isCall: true, status: "input_required" }]);
    expect(client.asked).toMatchObject([{ open: [{ key: "q1", message: "Publish it?" }] }]);
    expect(call.ending).toBeUndefined();
    await engine.answer(caller, client.asked[0]?.task.taskId as string, yes);
    await turns();
    expect(call.ended.outcome).toMatchObject({ data: { publish: true } });
    call.ended.finish(true);
    await turns();
    expect(await rows()).toEqual([]);
    expect(starts()).toBe(1);
  });

  test("elicit: while nobody answers, the host's limit still holds", async () => {
    const { command } = asking();
    const { engine, start, pass, door } = setUp(command);
    const call = await start(door(), { whenAsked: () => "elicit", limit: hard(4) });
    await pass(3_000);
    expect(call.deferred).toMatchObject({
      as: "handle",
      task: { status: "input_required", isCall: false, reason: "a-host cuts calls after 4 s" },
    });
    await engine.answer(caller, call.deferred.task.taskId, yes);
    await turns();
    expect(await engine.get(caller, call.deferred.task.taskId)).toMatchObject({
      status: "completed",
      outcome: { data: { publish: true } },
    });
  });

  test("park: sends the call back with it, and the second leg gets the result of the same run", async () => {
    const { command, starts } = asking();
    const { engine, calls, start, door } = setUp(command);
    const client = door();
    const call = await start(client, { whenAsked: () => "park" });
    if (call.ending?.kind !== "asked") throw new Error(`It was to be sent back, but ${call.ending?.kind}`);
    const { task } = call.ending;
    expect(openQuestions(task)).toMatchObject([{ key: "q1", message: "Publish it?" }]);
    expect(task).toMatchObject({ isCall: false, reason: "it asked a question" });
    await engine.answer(caller, task.taskId, yes);
    const again = new Waiting(
      calls.rejoin(task.taskId, {
        entry: { command, toolName: "do_it", path: ["do", "it"], file: "x.ts" },
        input: {},
        caller,
        origin: { door: "mcp", folder: undefined },
        client: {
          asked: undefined,
          canTakeTask: false,
          canTakeUnasked: false,
          declaresTasks: false,
          takesJobs: false,
          canFollowUp: true,
        },
        limit: { ...waits, host: "a-host" },
        progressToken: undefined,
        isNew: false,
        idempotencyKey: undefined,
        answered: [],
        whenAsked: () => "park",
        whyNoAnswer: "",
        watcher: client.watcher,
        gone: new AbortController().signal,
        isLost: () => false,
        dropped: undefined,
      }),
    );
    await turns();
    expect(again.ended).toMatchObject({ outcome: { data: { publish: true } }, taskId: task.taskId });
    expect(starts()).toBe(1);
  });

  test.each([
    [true, "task"],
    [false, "handle"],
  ] as const)("handOut: makes a task of the call (the client takes tasks: %s)", async (canTakeTask, as) => {
    const { command, starts } = asking();
    const { engine, start, door } = setUp(command);
    const call = await start(door(), { wish: { canTakeTask } });
    expect(call.deferred).toMatchObject({ as, task: { status: "input_required", reason: "it asked a question" } });
    await engine.answer(caller, call.deferred.task.taskId, yes);
    await turns();
    expect(await engine.get(caller, call.deferred.task.taskId)).toMatchObject({
      status: "completed",
      outcome: { data: { publish: true } },
    });
    expect(starts()).toBe(1);
  });

  test("finds nobody where calls are never deferred: the command is told so, and nothing is left", async () => {
    const { command } = asking();
    const { start, rows, door } = setUp(command, { isAuto: false });
    const call = await start(door());
    expect(call.ended.outcome).toMatchObject({
      ending: "failed",
      message: "do_it asks «Publish it?», and nobody is there.",
    });
    call.ended.finish(true);
    await turns();
    expect(await rows()).toEqual([]);
  });
});

describe("never twice", () => {
  test("an equal call joins the job, waits for it as its own host waits, and says so", async () => {
    const work = held();
    const { engine, start, pass, door } = setUp(work.command);
    const first = await start(door(), { limit: hard(4) });
    await pass(3_000);
    const { taskId } = first.deferred.task;
    await pass(37_000);
    const note = 'Joined the run started 40 s ago; _meta["meanwhile/new"]: true starts another.';
    const second = await start(door(), { limit: hard(4) });
    await pass(3_000);
    expect(second.deferred).toMatchObject({ as: "handle", task: { taskId }, note });
    const [third, fourth] = [door(), door()];
    const [joined, cancelled] = [await start(third, { limit: hard(4) }), await start(fourth, { limit: hard(4) })];
    work.run.task.progress({ percentage: 50, message: "half" });
    fourth.gone.abort();
    await pass(300);
    expect(third.heard).toMatchObject([{ progress: 50, message: "half" }]);
    expect(cancelled.deferred.task.taskId).toBe(taskId);
    expect(work.run.task.signal.aborted, "who joined cannot stop what another started").toBe(false);
    work.run.end({ answer: 42 });
    await turns();
    expect(joined.ended).toMatchObject({
      outcome: { data: { answer: 42 } },
      taskId,
      note: expect.stringContaining("Joined the run started 43 s ago"),
    });
    joined.ended.finish(true);
    await turns();
    expect(await engine.get(caller, taskId)).toMatchObject({ status: "completed" });
    expect(work.runs).toHaveLength(1);
  });

  test("where nothing of its kind runs, no call asks for an equal one", async () => {
    const work = held({ effects: "write" });
    const { store, start, pass, door } = setUp(work.command);
    const findEqual = vi.spyOn(store, "findEqual");
    const first = await start(door(), { limit: hard(4) });
    expect(findEqual).not.toHaveBeenCalled();
    await pass(3_000);
    expect(first.deferred.as).toBe("handle");
    await start(door(), { limit: hard(4) });
    expect(findEqual).toHaveBeenCalledTimes(1);
    work.run.end();
  });

  test("isNew, other input, other callers and readers do not join", async () => {
    for (const [command, more] of [
      [held(), { isNew: true }],
      [held({ input: z.object({ a: z.number().optional() }) }), { input: { a: 1 } }],
      [held(), { caller: "local:bob" }],
      [held({ effects: "read" }), {}],
      [held({ dedupe: false }), {}],
    ] as const) {
      const { start, pass, door } = setUp(command.command);
      await start(door(), { limit: hard(4) });
      await pass(3_000);
      const second = await start(door(), { limit: hard(4), ...more });
      expect(command.runs).toHaveLength(2);
      await pass(3_000);
      expect(second.deferred.note).toBeUndefined();
    }
  });

  test("an idempotency key gives the first result again, during the run and after it", async () => {
    const work = held({ effects: "read" });
    const { start, pass, door } = setUp(work.command);
    const keyed = { idempotencyKey: "k" };
    const first = await start(door(), keyed);
    const second = await start(door(), keyed);
    await pass(1_000);
    work.run.end({ answer: 42 });
    await turns();
    const third = await start(door(), keyed);
    for (const call of [first, second, third]) expect(call.ended.outcome).toMatchObject({ data: { answer: 42 } });
    expect([first, second, third].map((call) => call.ended.note)).toEqual([
      undefined,
      expect.stringContaining("This idempotency key started"),
      expect.stringContaining("This idempotency key started"),
    ]);
    expect(work.runs).toHaveLength(1);
    const other = await start(door(), { idempotencyKey: "another" });
    work.run.end({ answer: 43 });
    await turns();
    expect(other.ended).toMatchObject({ outcome: { data: { answer: 43 } }, note: undefined });
    expect(work.runs).toHaveLength(2);
  });

  test("a keyed call that its client cancels is stopped", async () => {
    const work = held();
    const { start, pass, door } = setUp(work.command);
    const client = door();
    const call = await start(client, { idempotencyKey: "k" });
    await pass(1_000);
    client.gone.abort();
    await turns();
    expect(work.run.task.signal.reason).toBeInstanceOf(Cancelled);
    expect(call.ending).toMatchObject({ task: { status: "cancelled" } });
  });
});

describe("a call equal to one whose worker was killed", () => {
  const note = (taskId: string) =>
    expect.stringMatching(
      new RegExp(`^This is a new run: an equal call, started \\d+ s ago as the task ${taskId}, was interrupted,`),
    );

  /** A command that runs as a task, whose worker is killed. */
  async function setUpKilled(more: Parameters<typeof held>[0] = {}, key?: { idempotencyKey: string }) {
    const work = held(more);
    const set = setUp(work.command);
    const first = await set.start(set.door(), { limit: hard(4), ...key });
    await set.pass(3_000);
    const { taskId } = first.deferred.task;
    const call = (terms: Parameters<typeof set.start>[1] = {}) => set.start(set.door(), { ...key, ...terms });
    return { ...set, work, taskId, call, kill: () => set.store.interrupt("w") };
  }

  test("runs again and names the interrupted one, once", async () => {
    const { kill, call, work, taskId } = await setUpKilled();
    await kill();
    const second = await call();
    expect(work.runs).toHaveLength(2);
    work.run.end({ answer: 2 });
    await turns();
    expect(second.ended).toMatchObject({ outcome: { ending: "completed", data: { answer: 2 } }, note: note(taskId) });
    second.ended.finish(true);
    const third = await call();
    work.run.end();
    await turns();
    expect(third.ended.note).toBeUndefined();
    third.ended.finish(true);
  });

  test("that becomes a task says so with its handle, also where it is a task from the start", async () => {
    const { kill, call, pass, taskId } = await setUpKilled();
    await kill();
    const second = await call({ limit: hard(4) });
    await pass(3_000);
    expect(second.deferred.note).toEqual(note(taskId));
    await kill();
    const third = await call({ wish: { canTakeTask: true, declaresTasks: true, asked: { ttlMs: undefined } } });
    expect(third.deferred).toMatchObject({ as: "task", note: note(second.deferred.task.taskId) });
  });

  test("that took it for alive when it began names it in its answer, and the call after it does not", async () => {
    const work = held();
    const { start, pass, door, store, rows } = setUp(work.command);
    await start(door());
    await pass(100);
    const [{ taskId }] = (await rows()) as [Task];
    const second = await start(door());
    await pass(2_000);
    // Its lease has expired.
    vi.spyOn(store, "list").mockImplementationOnce(async () => {
      const record = await store.get({ caller }, taskId);
      const statusMessage = "Interrupted; outcome unknown.";
      return { tasks: [{ ...record, status: "failed", crashes: 1, statusMessage } as Task], nextCursor: undefined };
    });
    work.run.end({ answer: 2 });
    await turns();
    second.ended.finish(true);
    expect(second.ended).toMatchObject({ outcome: { data: { answer: 2 } }, note: note(taskId) });
    const third = await start(door());
    await pass(2_000);
    work.run.end();
    await turns();
    third.ended.finish(true);
    expect(third.ended.note).toBeUndefined();
  });

  test("and that has joined it runs when that is noticed", async () => {
    const { kill, call, work, taskId } = await setUpKilled();
    const second = await call();
    expect(work.runs).toHaveLength(1);
    await kill();
    await turns();
    expect(work.runs).toHaveLength(2);
    work.run.end({ answer: 2 });
    await turns();
    expect(second.ended).toMatchObject({ outcome: { ending: "completed", data: { answer: 2 } }, note: note(taskId) });
    second.ended.finish(true);
  });

  test("runs at once where the worker's process is known to be gone", async () => {
    const clock = new FakeClock();
    const dead = new Set<string>();
    const { store, engine } = openEngine(clock, { isDead: (worker) => dead.has(worker) });
    const entry = { command: held().command, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
    const asked = { entry, input: {}, caller, reason: "test" };
    const { task } = await engine.create(asked, { worker: "gone", leaseMs: 30_000 });
    dead.add("gone");
    const found = await engine.findEqual(asked);
    expect(found).toMatchObject({ live: undefined, interrupted: { taskId: task.taskId, status: "failed" } });
    const again = await engine.create(asked, { worker: "gone", leaseMs: 30_000 });
    const third = await engine.create(asked);
    expect(third).toMatchObject({ isJoined: false, interrupted: { taskId: again.task.taskId } });
    await store.close();
  });

  test("under the same key gets the stored outcome, and the advice to use a new key, if it may not run twice", async () => {
    const { kill, call, work, taskId } = await setUpKilled({}, { idempotencyKey: "k" });
    await kill();
    const second = await call();
    expect(work.runs).toHaveLength(1);
    expect(second.ended).toMatchObject({
      taskId,
      outcome: { ending: "failed", message: expect.stringMatching(/^Interrupted; outcome unknown\./) },
      note: expect.stringMatching(
        /^This idempotency key started the run \d+ s ago, which was interrupted, .* a new key runs it/,
      ),
    });
  });

  test.each([
    ["read", { effects: "read" }],
    ["idempotent", { idempotent: true }],
    ["with a retry rule", { retry: { attempts: 2 } }],
  ] as const)("under the same key runs again if its command is %s; the earlier record stays", async (_title, more) => {
    const { kill, call, work, taskId, engine, store } = await setUpKilled(more, { idempotencyKey: "k" });
    // A task that may run again is given up after twenty crashes.
    for (let crash = 1; crash < maxCrashes; crash++) {
      await kill();
      await store.claim({ project: "p", worker: "w", leaseMs: 30_000, taskId });
    }
    await kill();
    expect(await engine.get(caller, taskId)).toMatchObject({ status: "failed", crashes: maxCrashes });
    const runs = work.runs.length;
    const second = await call();
    expect(work.runs).toHaveLength(runs + 1);
    work.run.end({ answer: 2 });
    await turns();
    expect(second.ended).toMatchObject({ outcome: { data: { answer: 2 } }, note: note(taskId) });
    expect(second.ended.taskId).not.toBe(taskId);
    expect(await engine.get(caller, taskId)).toMatchObject({ status: "failed", idempotencyKey: undefined });
    expect((await call()).ended.taskId, "the key is the new task's").toBe(second.ended.taskId);
  });
});

describe("a worker that stops", () => {
  test.each([
    ["handle", {}],
    ["task", { canTakeTask: true }],
  ] as const)(
    "hands a call out at once, as a %s, and lets what must not be run twice go on in its time",
    async (as, wish) => {
      const work = held();
      const { engine, worker, start, pass, door } = setUp(work.command);
      const calls = [await start(door(), { limit: hard(300), wish }), await start(door(), { limit: hard(300), wish })];
      await pass(1_000);
      let isStopped = false;
      const stopped = worker.stop(5_000).then(() => (isStopped = true));
      await turns();
      for (const { deferred } of calls)
        expect(deferred).toMatchObject({ as, task: { status: "working", reason: "its server was told to stop" } });
      const ids = calls.map(({ deferred }) => deferred.task.taskId);
      work.runs[0]?.end();
      await pass(4_999);
      expect(work.runs[1]?.task.signal.aborted).toBe(false);
      expect(isStopped).toBe(false);
      await pass(1);
      await stopped;
      expect(work.runs[1]?.task.signal.reason).toBeInstanceOf(ShuttingDown);
      expect(await engine.get(caller, ids[0])).toMatchObject({ status: "completed" });
      expect(await engine.get(caller, ids[1])).toMatchObject({
        status: "failed",
        statusMessage: expect.stringMatching(/^Interrupted; outcome unknown\./),
      });
    },
  );

  test("gives back at once what is safe to run again, a call that waits as well as a task", async () => {
    const work = held({ effects: "read" });
    const { engine, worker, start, pass, door } = setUp(work.command);
    const [early, late] = [await start(door(), { limit: hard(4) }), await start(door(), { limit: hard(300) })];
    await pass(3_100);
    expect(early.deferred.task.status).toBe("working");
    await worker.stop(25_000);
    for (const { deferred } of [early, late])
      expect(await engine.get(caller, deferred.task.taskId)).toMatchObject({
        status: "queued",
        attempts: 0,
        crashes: 0,
        lease: undefined,
      });
    expect(work.runs).toHaveLength(2);
  });

  test("gives it back also where the store takes its time to hand it out", async () => {
    const work = held({ effects: "read" });
    const { engine, store, worker, start, pass, door } = setUp(work.command);
    const call = await start(door(), { limit: hard(300) });
    await pass(100);
    const [handOut, isSlow] = [store.handOut.bind(store), Promise.withResolvers<void>()];
    vi.spyOn(store, "handOut").mockImplementation(async (...given) => {
      await isSlow.promise;
      return await handOut(...given);
    });
    const stopped = worker.stop(25_000);
    await turns();
    expect(work.run.task.signal.aborted, "nobody could take it up yet").toBe(false);
    isSlow.resolve();
    await stopped;
    expect(await engine.get(caller, call.deferred.task.taskId)).toMatchObject({ status: "queued", attempts: 0 });
  });

  test("keeps the result of a safe run that ends all the same: nothing is done twice", async () => {
    const ended = Promise.withResolvers<object>();
    const { engine, worker, start, pass, door } = setUp(
      defineCommand({ summary: "x", idempotent: true, run: () => ended.promise }),
    );
    const call = await start(door(), { limit: hard(300) });
    await pass(100);
    const stopped = worker.stop(25_000);
    await turns();
    ended.resolve({ done: true });
    await stopped;
    expect(await engine.get(caller, call.deferred.task.taskId)).toMatchObject({
      status: "completed",
      outcome: { data: { done: true } },
    });
  });

  test.each([
    ["whose client takes neither tasks nor handles is told which task it is", false, { canFollowUp: false }],
    ["that is joined by a key is told so too", true, { canFollowUp: false }],
  ] as const)("a call %s", async (_what, isKeyed, wish) => {
    const work = held();
    const { engine, worker, start, pass, door } = setUp(work.command);
    const call = await start(door(), { wish, ...(isKeyed && { idempotencyKey: "k" }) });
    await pass(100);
    const stopped = worker.stop(5_000);
    await turns();
    const { taskId } = call.ending as CallEnding & { kind: "left" };
    expect(call.ending).toEqual({ kind: "left", taskId: expect.any(String), isSafe: false });
    work.run.end();
    await stopped;
    expect(await engine.get(caller, taskId)).toMatchObject({ status: "completed" });
  });

  test.each([true, false])(
    "a call that cannot be put on record is told so, and stopped only where that is safe (%s)",
    async (idempotent) => {
      const work = held({ idempotent });
      const { store, worker, start, pass, rows, door } = setUp(work.command);
      vi.spyOn(store, "handOut").mockRejectedValue(new Error("disk full"));
      const call = await start(door());
      await pass(100);
      const stopped = worker.stop(5_000);
      await turns();
      expect(call.ending).toEqual({ kind: "left", taskId: undefined, isSafe: idempotent });
      expect(work.run.task.signal.aborted).toBe(idempotent);
      work.run.end();
      await stopped;
      expect(await rows()).toEqual([]);
    },
  );

  test.each([
    [true, { status: "queued", attempts: 0 }],
    [false, { status: "failed", outcome: { cause: "interrupted" } }],
  ] as const)(
    "a call that was handed out is a task like any other (safe to run again: %s)",
    async (idempotent, expected) => {
      const work = held({ idempotent });
      const { clock, engine, worker, start, pass, door } = setUp(work.command);
      const call = await start(door(), { limit: hard(4) });
      await pass(3_000);
      await moving(clock, worker.stop(0));
      expect(await engine.get(caller, call.deferred.task.taskId)).toMatchObject(expected);
    },
  );

  test("a call whose worker died is not run again: its record says that it was interrupted", async () => {
    const work = held({ idempotent: true });
    const { store, start, pass, rows, door } = setUp(work.command);
    const call = await start(door());
    await pass(100);
    await store.interrupt("w");
    await turns();
    expect(await rows()).toMatchObject([
      { status: "failed", isCall: true, statusMessage: expect.stringContaining("only tasks are run again") },
    ]);
    expect(work.run.task.signal.aborted, "and a worker that only seemed dead is told").toBe(true);
    expect(call.ended.outcome.ending).toBe("cancelled");
    call.ended.finish(true);
    expect(work.runs).toHaveLength(1);
  });
});

describe("a caller has a bounded number of calls running", () => {
  const most = 100;
  // All strangers share as many; whoever is known may have a thousand.
  const caller = "anonymous";
  const tooMany =
    "There are 100 running calls of callers without a credential already, the most there may be; wait for one to end, or cancel one.";

  test("callers who cannot be told apart do not read that they are theirs, and what is left of theirs has a bound", async () => {
    const { command, runs } = held();
    const { start, store, pass, door } = setUp(command);
    const create = vi.spyOn(store, "create");
    const stranger = { caller: "anonymous", limit: hard(4) };
    const large = await start(door(), { ...stranger, input: { x: "x".repeat(256 * 1024) } });
    expect(large.error).toMatchObject({ message: expect.stringContaining("without a credential 262144 are the most") });
    expect(runs).toEqual([]);
    const calls = [];
    for (let n = 0; n < most; n++) calls.push(await start(door(), stranger));
    expect((await start(door(), stranger)).error).toMatchObject({
      message: tooMany.replace("yours", "callers without a credential"),
    });
    await pass(100);
    expect(create.mock.lastCall).toMatchObject([{ isCall: true, ttlMs: 3_600_000 }, { keeps: { count: 1_000 } }]);
    // One of them becomes a task in each turn.
    await pass(4_000);
    await turns(4 * most);
    expect(calls[0]?.deferred.task.ttlMs).toBe(3_600_000);
    for (const run of runs) run.end();
    await turns();
  });

  test("the next one is refused with the cure, another caller is served, and there is room again when one ends", async () => {
    const { command, runs } = held();
    const { start, door, rows } = setUp(command);
    const calls = [];
    for (let n = 0; n < most; n++) calls.push(await start(door(), { caller, isNew: true }));
    expect((await start(door(), { caller, isNew: true })).error).toMatchObject({ message: tooMany });
    expect((await start(door(), { caller, isNew: true, idempotencyKey: "once" })).error).toMatchObject({
      message: tooMany,
    });
    expect(await rows()).toEqual([]);
    const others = await start(door(), { isNew: true, caller: "local:bob" });
    expect(runs).toHaveLength(most + 1);
    for (const run of runs) run.end();
    await turns();
    calls[0]?.ended.finish(true);
    others.ended.finish(true);
    await turns();
    calls.push(await start(door(), { caller, isNew: true }));
    expect(runs).toHaveLength(most + 2);
    runs.at(-1)?.end();
    await turns();
    for (const call of calls) call.ended.finish(true);
  });

  test("what is handed out late is not lost, though there are as many tasks as there may be, and counts until it has ended", async () => {
    const { command, runs } = held();
    const { clock, engine, start, pass, door } = setUp(command);
    const calls: Waiting[] = [];
    for (let n = 0; n < most; n++) calls.push(await start(door(), { caller, isNew: true, limit: hard(5) }));
    const entry = { command, toolName: "do_it", path: ["do", "it"], file: "x.ts" };
    const create = () => engine.create({ entry, input: {}, caller, reason: "test", isNew: true });
    for (let n = 0; n < most; n++) await create();
    await pass(5_000);
    await vi.waitFor(
      () => {
        for (const call of calls) expect(call.deferred.task.status).toBe("working");
      },
      { timeout: 50_000 },
    );
    expect((await start(door(), { caller, isNew: true })).error).toMatchObject({ message: tooMany });
    await expect(settled(clock, create(), 100)).rejects.toThrow("the most there may be");
    for (let ended = 0; ended < runs.length; ended++) {
      runs[ended]?.end();
      await turns();
    }
    const last = await start(door(), { caller, isNew: true });
    runs.at(-1)?.end();
    await turns();
    last.ended.finish(true);
  });
});
