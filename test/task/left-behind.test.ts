import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import type { Command } from "../../src/command/command.ts";
import { type JsonObject, type Relay, ServerGone } from "../../src/command/foreign.ts";
import { ShuttingDown } from "../../src/errors.ts";
import { silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import type { Store } from "../../src/store/open.ts";
import type { CallEnding, CallRequest } from "../../src/task/call-request.ts";
import { Calls } from "../../src/task/calls.ts";
import { defaultDeferral } from "../../src/task/deferral.ts";
import { Engine } from "../../src/task/engine.ts";
import { isTerminal } from "../../src/task/task.ts";
import { Worker } from "../../src/task/worker.ts";
import { stores } from "../chaos/cast.ts";
import { workerFacts } from "../helpers/engine.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { foreign } from "../helpers/foreign.ts";
import { moving, turns } from "../helpers/in-memory.ts";

const caller = "local:ada";
const done = { content: [{ type: "text", text: "done" }] };
const interrupted = { status: "failed", outcome: { cause: "interrupted" } };
const safe = { isSafe: true };
const unsafe = { isSafe: false };

/** A tool whose every call is ours to answer, and which ends when it is told to. */
function tool(saysWhenSafe = true) {
  const runs: { relay: Relay; end: (result?: JsonObject) => void; fail: (error: Error) => void }[] = [];
  const call = async (_input: unknown, relay: Relay): Promise<JsonObject> => {
    const ended = Promise.withResolvers<JsonObject>();
    runs.push({ relay, end: (result = done) => ended.resolve(result), fail: ended.reject });
    relay.signal.addEventListener("abort", () => ended.reject(relay.signal.reason));
    return await ended.promise;
  };
  return {
    command: foreign(call, {}, {}, { saysWhenSafe }),
    runs,
    /** The attempt of that number, counted from 1, once it has begun. */
    begun: async (number: number) =>
      await vi.waitFor(
        () => {
          const run = runs[number - 1];
          if (run === undefined) throw new Error(`Attempt ${number} has not begun.`);
          return run;
        },
        { timeout: 50_000 },
      ),
  };
}

function setUp(command: Command, store: Store, clock: Clock = systemClock) {
  const entry = { command, toolName: "their_tool", path: ["their", "tool"], file: "" };
  const facts = workerFacts(store, clock);
  const { history, project, log } = facts;
  const engine = new Engine({ store, history, clock, log, project });
  onTestFinished(() => history.flush());
  const startWorker = (worker = "w1") => {
    const started = new Worker({ ...facts, worker, find: () => entry });
    started.start();
    onTestFinished(() => (clock instanceof FakeClock ? moving(clock, started.stop(0), 1_000) : started.stop(0)));
    return started;
  };
  const create = async () =>
    (await engine.create({ entry, input: {}, caller, reason: "test", isNew: true })).task.taskId;
  const get = (taskId: string) => engine.get(caller, taskId);
  const ended = (taskId: string) =>
    vi.waitFor(
      async () => {
        const task = await get(taskId);
        if (!isTerminal(task)) throw new Error(`It is ${task.status}.`);
        return task;
      },
      { timeout: 50_000 },
    );
  const crash = (worker = "w1") => store.interrupt(worker);
  return { entry, engine, facts, startWorker, create, get, ended, crash };
}

describe.each(stores)("after a crash of the worker, on %s", (_name, open) => {
  test("another attempt finds where the work stood, by the last word; what the lost one still says is refused", async () => {
    const odd = { at: "\0 \ud800 «é»", deep: JSON.parse(`${"[".repeat(3_000)}${"]".repeat(3_000)}`), ["__proto__"]: 1 };
    const work = tool();
    const store = await open();
    const { startWorker, create, get, ended, crash } = setUp(work.command, store);
    startWorker();
    const taskId = await create();
    const first = await work.begun(1);
    expect(first.relay.leftBehind).toBeUndefined();
    await first.relay.leave({ at: 1 }, unsafe);
    await first.relay.leave(odd, safe);
    await crash();
    const second = await work.begun(2);
    expect(second.relay).toMatchObject({ attempt: 2, leftBehind: odd });
    await expect(first.relay.leave({ at: "late" }, unsafe)).rejects.toThrow("The task is no longer ours.");
    expect(await get(taskId)).toMatchObject({ crashes: 1, attempts: 1, rules: safe });
    await second.relay.leave({ at: 2 }, unsafe);
    await crash();
    expect(await ended(taskId)).toMatchObject({
      ...interrupted,
      statusMessage: expect.stringMatching(/^Interrupted; outcome unknown\. The worker ended in the middle/),
    });
    expect(work.runs).toHaveLength(2);
  });

  test("what has said nothing yet is run again where it would say so, and only there", async () => {
    for (const saysWhenSafe of [true, false]) {
      const work = tool(saysWhenSafe);
      const { startWorker, create, ended, crash } = setUp(work.command, await open());
      startWorker();
      const taskId = await create();
      await work.begun(1);
      await crash();
      if (saysWhenSafe) (await work.begun(2)).end();
      expect(await ended(taskId)).toMatchObject(saysWhenSafe ? { status: "completed", crashes: 1 } : interrupted);
      expect(work.runs[1]?.relay.leftBehind).toBeUndefined();
    }
  });
});

describe("a worker that stops", () => {
  test("gives back what was safe by its last word, and lets the rest go on until that is so", async () => {
    const clock = new FakeClock();
    const work = tool();
    const { startWorker, create, get } = setUp(work.command, new MemoryStore(clock), clock);
    const worker = startWorker();
    const ids = [await create(), await create(), await create()];
    const [isSafe, becomesSafe, stays] = [await work.begun(1), await work.begun(2), await work.begun(3)];
    await isSafe.relay.leave({ at: 1 }, unsafe);
    await isSafe.relay.leave({ at: 2 }, safe);
    await becomesSafe.relay.leave({ at: 1 }, unsafe);
    await stays.relay.leave({ at: 1 }, unsafe);
    const stopped = worker.stop(25_000);
    await turns();
    expect(isSafe.relay.signal.reason).toBeInstanceOf(ShuttingDown);
    expect(becomesSafe.relay.signal.aborted).toBe(false);
    await becomesSafe.relay.leave({ at: 2 }, safe);
    expect(becomesSafe.relay.signal.reason).toBeInstanceOf(ShuttingDown);
    expect(stays.relay.signal.aborted).toBe(false);
    clock.advance(25_000);
    await stopped;
    const tasks = await Promise.all(ids.map(get));
    const givenBack = { status: "queued", attempts: 0, crashes: 0, lease: undefined };
    expect(tasks).toMatchObject([givenBack, givenBack, interrupted]);
    startWorker("w2");
    expect((await work.begun(4)).relay.leftBehind).toEqual({ at: 2 });
  });

  test("does not give back what says at the last moment that it is not safe any more", async () => {
    const work = tool();
    const store = new MemoryStore(systemClock);
    const { startWorker, create, ended } = setUp(work.command, store);
    const worker = startWorker();
    const taskId = await create();
    const { relay } = await work.begun(1);
    // It is stopped while its word is on its way to a slow disk.
    const [keepStep, isSlow] = [store.keepStep.bind(store), Promise.withResolvers<void>()];
    vi.spyOn(store, "keepStep").mockImplementationOnce(async (...given) => {
      await isSlow.promise;
      return await keepStep(...given);
    });
    const left = relay.leave({ at: 1 }, unsafe);
    const stopped = worker.stop(0);
    await turns();
    isSlow.resolve();
    await Promise.all([left, stopped]);
    expect(await ended(taskId)).toMatchObject(interrupted);
  });
});

describe("a server that is gone in the middle", () => {
  test("is called again three times where the last word was that it may be, and then given up", async () => {
    const work = tool();
    const { startWorker, create, ended } = setUp(work.command, new MemoryStore(systemClock));
    startWorker();
    const taskId = await create();
    for (const at of [1, 2, 3]) {
      const { relay, fail } = await work.begun(at);
      expect(relay.leftBehind).toEqual(at === 1 ? undefined : { at: at - 1 });
      await relay.leave({ at }, safe);
      fail(new ServerGone("everything", "everything ended with exit code 1."));
    }
    const statusMessage = "everything ended with exit code 1. Given up after 3 attempts.";
    expect(await ended(taskId)).toMatchObject({ ...interrupted, crashes: 0, attempts: 3, statusMessage });
  });

  test("is not called again where it was not", async () => {
    const work = tool();
    const { startWorker, create, ended } = setUp(work.command, new MemoryStore(systemClock));
    startWorker();
    const taskId = await create();
    const { relay, fail } = await work.begun(1);
    await relay.leave({ at: 1 }, unsafe);
    fail(new ServerGone("everything"));
    const statusMessage =
      "everything was closed in the middle of the call, so its outcome is unknown. Outcome unknown: running it again might do its work twice.";
    expect(await ended(taskId)).toMatchObject({ ...interrupted, statusMessage });
    expect(work.runs).toHaveLength(1);
  });
});

describe("a call that somebody waits for", () => {
  async function hold(saysWhenSafe = true) {
    const clock = new FakeClock();
    const store = new MemoryStore(clock);
    const keepStep = vi.spyOn(store, "keepStep");
    const work = tool(saysWhenSafe);
    const { entry, engine, facts, startWorker, get, ended, crash } = setUp(work.command, store, clock);
    const worker = startWorker();
    const calls = new Calls({ ...facts, engine, worker, log: silentLog, deferral: defaultDeferral });
    const request: CallRequest = {
      entry,
      input: {},
      caller,
      origin: { door: "mcp", folder: undefined },
      progressToken: undefined,
      isNew: false,
      idempotencyKey: undefined,
      answered: [],
      whenAsked: () => "handOut",
      whyNoAnswer: "nobody is there",
      watcher: { progress: () => {}, beat: () => {}, log: () => {}, questions: () => {} },
      gone: new AbortController().signal,
      isLost: () => false,
      dropped: undefined,
      client: {
        asked: undefined,
        canTakeTask: false,
        canTakeUnasked: false,
        declaresTasks: false,
        takesJobs: false,
        canFollowUp: true,
      },
      limit: { limitMs: 4_000, isExtended: false, host: "a-host" },
    };
    const ending = Promise.resolve(calls.call(request));
    const { relay, end } = await work.begun(1);
    const pass = async (ms: number) => {
      clock.advance(ms);
      await turns();
    };
    const rows = async () => (await store.list({ caller }, { limit: 9, withCalls: true })).tasks;
    const taskOf = (given: CallEnding) => (given as CallEnding & { kind: "deferred" }).task;
    return {
      clock,
      store,
      keepStep,
      work,
      worker,
      relay,
      end,
      ending,
      pass,
      rows,
      taskOf,
      get,
      ended,
      crash,
      startWorker,
    };
  }

  test.each([
    ["safe", safe],
    ["unsafe", unsafe],
  ])("has it written when it is handed out, not before; then a crash goes by it (%s)", async (_how, word) => {
    const { keepStep, work, relay, ending, pass, taskOf, ended, crash, startWorker } = await hold();
    await relay.leave({ at: 1 }, unsafe);
    await pass(100);
    // The other one has said all before there was a record.
    if (word.isSafe) await relay.leave({ at: 2 }, safe);
    await pass(1_000);
    expect(keepStep).not.toHaveBeenCalled();
    await pass(3_000);
    const { taskId, rules } = taskOf(await ending);
    expect(rules).toEqual({ ...word, maxAttempts: 1, backoffMs: 1_000 });
    startWorker("w2");
    await crash();
    if (word.isSafe) {
      const second = await work.begun(2);
      expect(second.relay.leftBehind).toEqual({ at: 2 });
      second.end();
    }
    expect(await ended(taskId)).toMatchObject(word.isSafe ? { status: "completed" } : interrupted);
  });

  test("is given back by a server that stops as soon as it says that it may be", async () => {
    const { worker, relay, ending, pass, taskOf, get } = await hold();
    await relay.leave({ at: 1 }, unsafe);
    await pass(100);
    const stopped = worker.stop(25_000);
    const { taskId } = taskOf(await ending);
    await turns();
    expect(relay.signal.aborted).toBe(false);
    await relay.leave({ at: 2 }, safe);
    await stopped;
    expect(await get(taskId)).toMatchObject({ status: "queued", attempts: 0, crashes: 0 });
  });

  test("has what it says while it is being handed out written after that", async () => {
    const { store, relay, ending, pass, taskOf, get } = await hold();
    const [handOut, isSlow] = [store.handOut.bind(store), Promise.withResolvers<void>()];
    vi.spyOn(store, "handOut").mockImplementationOnce(async (...given) => {
      await isSlow.promise;
      return await handOut(...given);
    });
    await pass(4_000);
    const left = relay.leave({ at: 1 }, unsafe);
    isSlow.resolve();
    await left;
    const { taskId } = taskOf(await ending);
    expect(await get(taskId)).toMatchObject({ status: "working", rules: unsafe });
    expect([...(await store.steps(taskId)).values()]).toEqual([JSON.stringify(JSON.stringify({ at: 1 }))]);
  });

  test("is a safe task, where nothing was left, exactly if the tool would say when it is not", async () => {
    for (const saysWhenSafe of [true, false]) {
      const { ending, pass, taskOf } = await hold(saysWhenSafe);
      await pass(4_000);
      expect(taskOf(await ending).rules.isSafe).toBe(saysWhenSafe);
    }
  });

  test("is not run again after a crash, whatever it has left, as long as it is no task", async () => {
    const { relay, work, ending, pass, rows, crash } = await hold();
    await relay.leave({ at: 1 }, safe);
    await pass(100);
    await crash();
    await turns();
    expect(await rows()).toMatchObject([{ status: "failed", isCall: true }]);
    ((await ending) as CallEnding & { kind: "ended" }).finish(true);
    expect(work.runs).toHaveLength(1);
  });

  test.each([
    ["nothing", undefined, true],
    ["a state that only another attempt could take up", safe, false],
    ["that it has begun", unsafe, false],
  ] as const)(
    "and cannot be kept when its server stops may be made again where it left %s: only then",
    async (_what, word, isSafe) => {
      const { store, worker, relay, end, ending, pass } = await hold();
      vi.spyOn(store, "handOut").mockRejectedValue(new Error("disk full"));
      if (word !== undefined) await relay.leave({ at: 1 }, word);
      await pass(100);
      const stopped = worker.stop(5_000);
      expect(await ending).toEqual({ kind: "left", taskId: undefined, isSafe });
      expect(relay.signal.aborted).toBe(isSafe);
      end();
      await stopped;
    },
  );
});
