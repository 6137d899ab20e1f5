import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import fc from "fast-check";
import { onTestFinished, test } from "vitest";
import { MemoryStore } from "../../../src/store/memory-store.ts";
import { openStore } from "../../../src/store/open.ts";
import { retryDelay } from "../../../src/task/retry.ts";
import type { Claim, TaskStore } from "../../../src/task/store.ts";
import {
  isExpired,
  isTerminal,
  maxCrashes,
  type NewTask,
  openQuestions,
  type Task,
  type TaskOutcome,
  type TaskStatus,
} from "../../../src/task/task.ts";
import { apply, begin, type TaskEvent } from "../../../src/task/transitions.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { postgresStores } from "../../helpers/postgres.ts";
import { rounds } from "../../helpers/rounds.ts";

/**
 * Random operations of eight callers and three workers, some of them late, on the memory store, the SQLite store, the
 * PostgreSQL store and on a model that knows nothing but `apply()`. After every operation all of them answer alike and
 * show the same tasks, and the invariants of the promises hold; I9 and I10 are for whole processes.
 */
const seed = 20_260_728;
const callers = 8;
const everyone = Array.from({ length: callers }, (_, n) => `c${n}`);
const workers = 3;
const leaseMs = 120;
const ttlMs = 400;
const maxLive = 3;

const caller = fc.nat(callers - 1);
const worker = fc.nat(workers - 1);
const project = fc.constantFrom("home", "home", "home", "away");
/** Which one of those there are; those that can still change come first. */
const which = fc.oneof(fc.constant(0), fc.constant(0), fc.nat(2), fc.nat(40));
/** Mostly the journalled calls that are held, sometimes any claim there ever was. */
const whichCall = fc.record({ isCall: fc.constantFrom(true, true, true, false), at: which });
/** Mostly the owner, sometimes anybody. */
const asker = fc.oneof(fc.constant(undefined), fc.constant(undefined), fc.constant(undefined), caller);

const operation = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      type: fc.constant("create"),
      caller,
      project,
      digest: fc.nat(2),
      key: fc.constantFrom(undefined, undefined, 0, 1),
      isSafe: fc.boolean(),
      joins: fc.boolean(),
      // Whoever runs it already.
      begunBy: fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary: worker }),
      isCall: fc.boolean(),
      progressToken: fc.constantFrom(undefined, 7, "7"),
    }),
  },
  {
    weight: 9,
    arbitrary: fc.record({
      type: fc.constant("claim"),
      worker,
      project,
      which: fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, which),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("report"),
      which,
      value: fc.nat(9),
      message: fc.option(fc.constantFrom("a", "b"), { nil: undefined }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant("ask"), which }) },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("answer"),
      which,
      asker,
      key: fc.oneof(fc.nat(2), fc.nat(2), fc.constantFrom("q1", "q9", "constructor")),
      isAccepted: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("complete"), which }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("fail"), which }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("giveBack"), which }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("handOut"), which: whichCall, isSafe: fc.boolean() }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("forget"), which: whichCall }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("findEqual"),
      which,
      project,
      digest: fc.constantFrom(undefined, undefined, undefined, 0),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant("keepStep"),
      which,
      name: fc.constantFrom("s1", "s2"),
      value: fc.nat(9),
      isSafe: fc.constantFrom(undefined, true, false),
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("cancel"), which, asker }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("interruptWorker"), worker }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant("interruptLate") }) },
  { weight: 3, arbitrary: fc.record({ type: fc.constant("wait"), ms: fc.nat(250) }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("sweep") }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant("prune"), caller }) },
);
type Operation = typeof operation extends fc.Arbitrary<infer Value> ? Value : never;

const question = { message: "How many?", schema: { type: "object" }, isConfirmation: false } as const;
const ending = (facts: object) => ({ messages: [], log: [], durationMs: 1, ...facts }) as unknown as TaskOutcome;
const completed = ending({ ending: "completed", data: { pages: 1 } });
const failed = ending({ ending: "failed", cause: "command", message: "No such page." });

interface Held extends Claim {
  readonly worker: string;
  readonly task: Task;
}

/** What the stores should hold, by the pure rules alone; and what has been seen of it, for the invariants. */
class Model {
  readonly clock = new FakeClock(1_000);
  readonly tasks = new Map<string, Task>();
  readonly steps = new Map<string, Map<string, string>>();
  /** Every claim ever given out, newest first: workers that come late are among them. */
  readonly claims: Held[] = [];
  readonly executions = new Map<string, number>();
  readonly givenBack = new Map<string, number>();
  readonly outcomes = new Map<string, string>();
  readonly everMade: string[] = [];

  get now(): number {
    return this.clock.now();
  }

  /** Newest first. */
  get ids(): string[] {
    return [...this.tasks.keys()].reverse();
  }

  /** Tasks that wait for an answer, then the other live ones, then the rest. */
  get likely(): string[] {
    const order = ["input_required", "working", "queued", "completed", "failed", "cancelled"];
    const rank = (taskId: string) => order.indexOf(this.tasks.get(taskId)?.status ?? "cancelled");
    return this.ids.sort((a, b) => rank(a) - rank(b));
  }

  /** Claims that hold, then those that were lost. */
  get holders(): Held[] {
    return [...this.claims].sort((a, b) => Number(this.isHeld(b)) - Number(this.isHeld(a)));
  }

  /** Claims of calls that are still being answered. */
  get callHolders(): Held[] {
    return this.holders.filter((held) => this.isHeld(held) && this.tasks.get(held.taskId)?.isCall === true);
  }

  isHeld({ taskId, fence }: Claim): boolean {
    const task = this.tasks.get(taskId);
    return task !== undefined && !isTerminal(task) && task.lease !== undefined && task.fence === fence;
  }

  visible(taskId: string, asker: string): Task | undefined {
    const task = this.tasks.get(taskId);
    return task === undefined || task.caller !== asker || isExpired(task, this.now) ? undefined : task;
  }

  apply(taskId: string, event: TaskEvent): boolean {
    const before = this.tasks.get(taskId);
    const task = before === undefined ? undefined : apply(before, event, this.now);
    if (before === undefined || task === undefined) return false;
    this.tasks.set(taskId, task);
    if (isTerminal(task)) this.steps.delete(taskId);
    // I3: a fence never falls, and only a claim raises it, by one.
    assert.equal(task.fence, before.fence + (event.type === "claim" ? 1 : 0));
    // What is a task never becomes a call, and a call never waits to be run.
    assert.ok(before.isCall || !task.isCall, `${taskId} became a call`);
    assert.ok(!task.isCall || task.status !== "queued", `${taskId} is a call, and queued`);
    // I4: only the moves of the diagram.
    assert.ok(allowed[before.status].includes(task.status), `${before.status} ─ ${event.type} ─▶ ${task.status}`);
    return true;
  }

  /** Said with a step, so it is no change that anybody could see. */
  rule(taskId: string, { isSafe }: { readonly isSafe: boolean }): void {
    const task = this.tasks.get(taskId) as Task;
    this.tasks.set(taskId, { ...task, rules: { ...task.rules, isSafe } });
  }

  create(fresh: NewTask, joinsEqual: boolean, claim: { worker: string; leaseMs: number } | undefined): unknown {
    const own = [...this.tasks.values()].filter((task) => task.caller === fresh.caller && !isExpired(task, this.now));
    const near = own.filter((task) => task.project === fresh.project);
    const repeated =
      fresh.idempotencyKey === undefined
        ? undefined
        : near.find((task) => task.idempotencyKey === fresh.idempotencyKey);
    if (repeated !== undefined) return { kind: "repeated", task: repeated };
    const joined = joinsEqual && !fresh.isCall ? this.findEqual(fresh.caller, fresh.project, fresh.digest) : undefined;
    if (joined !== undefined) return { kind: "joined", task: joined };
    const isFull =
      own.filter((task) => !isTerminal(task) && !task.isCall && task.status !== "input_required").length >= maxLive;
    if (isFull && !fresh.isCall) return { kind: "full", live: maxLive };
    const task = begin(fresh, this.now, claim);
    this.tasks.set(fresh.taskId, task);
    this.everMade.push(fresh.taskId);
    if (claim !== undefined) this.hold(task, claim.worker);
    return { kind: "created", task };
  }

  findEqual(caller: string, project: string, digest: string): Task | undefined {
    const isEqual = (task: Task) => task.caller === caller && task.project === project && task.digest === digest;
    return [...this.tasks.values()].find((task) => isEqual(task) && !isTerminal(task) && !task.isCall);
  }

  claim(project: string, worker: string, taskId: string | undefined): Task | undefined {
    const ready = [...this.tasks.values()]
      .filter(
        (task) =>
          task.status === "queued" &&
          task.project === project &&
          task.notBefore <= this.now &&
          (taskId === undefined || task.taskId === taskId),
      )
      .sort((a, b) => a.notBefore - b.notBefore)[0];
    if (ready === undefined || !this.apply(ready.taskId, { type: "claim", worker, leaseMs })) return undefined;
    const task = this.tasks.get(ready.taskId) as Task;
    this.hold(task, worker);
    return task;
  }

  /** Somebody runs this task now. */
  hold(task: Task, worker: string): void {
    // I3: no two claims of a task share a fence.
    assert.ok(!this.claims.some((held) => held.taskId === task.taskId && held.fence === task.fence));
    // A call is run once.
    assert.ok(!task.isCall || !this.executions.has(task.taskId));
    this.claims.unshift({ taskId: task.taskId, fence: task.fence, worker, task });
    this.executions.set(task.taskId, (this.executions.get(task.taskId) ?? 0) + 1);
  }

  /** A write by whoever holds this claim, or once held it. */
  write(held: Held, event: TaskEvent): boolean {
    const isTaken = this.apply(held.taskId, event);
    // I3: an accepted write comes from the owner of the task's latest fence.
    if (isTaken)
      assert.equal(
        this.claims.find(({ taskId }) => taskId === held.taskId),
        held,
      );
    return isTaken;
  }

  interrupt(isLost: (worker: string, until: number) => boolean): string[] {
    const lost = [...this.tasks.values()].filter(
      (task) => !isTerminal(task) && task.lease !== undefined && isLost(task.lease.worker, task.lease.until),
    );
    return lost.map(({ taskId }) => taskId).filter((taskId) => this.apply(taskId, { type: "interrupt" }));
  }

  remove(isOver: (task: Task) => boolean): number {
    const over = [...this.tasks.values()].filter(isOver);
    for (const { taskId } of over) {
      this.tasks.delete(taskId);
      this.steps.delete(taskId);
    }
    return over.length;
  }
}

/** I4, written down apart from `apply()`. A live status may also stay as it is. */
const allowed: Record<TaskStatus, readonly TaskStatus[]> = {
  queued: ["working", "cancelled"],
  working: ["working", "queued", "input_required", "completed", "failed", "cancelled"],
  input_required: ["input_required", "working", "queued", "completed", "failed", "cancelled"],
  completed: [],
  failed: [],
  cancelled: [],
};

/** Does one operation in the model and in a store, and gives both answers. */
type Step = { readonly expected: unknown; readonly act: (store: TaskStore) => Promise<unknown> };

function stepOf(model: Model, op: Operation): Step | undefined {
  const { now } = model;
  switch (op.type) {
    case "create": {
      const made = model.everMade.length + 1;
      const fresh: NewTask = {
        taskId: `t${made}`,
        caller: `c${op.caller}`,
        project: op.project,
        command: "text_count",
        input: { made },
        origin: { door: "mcp", folder: undefined },
        digest: `d${op.digest}`,
        idempotencyKey: op.key === undefined ? undefined : `k${op.key}`,
        reason: "asked for",
        ttlMs,
        estimateMs: undefined,
        isEndless: false,
        isProven: false,
        rules: { isSafe: op.isSafe, maxAttempts: 2, backoffMs: 50 },
        isCall: op.isCall && op.begunBy !== undefined,
        questions: op.isSafe ? [{ ...question, key: "q1", askedAt: now, answer: { action: "decline" } }] : [],
        progressToken: op.progressToken,
      };
      const claim = op.begunBy === undefined ? undefined : { worker: `w${op.begunBy}`, leaseMs };
      // The stores drop an expired task with this key at once; to everybody but them it was gone already.
      if (fresh.idempotencyKey !== undefined)
        model.remove(
          (task) =>
            isExpired(task, now) &&
            task.caller === fresh.caller &&
            task.project === fresh.project &&
            task.idempotencyKey === fresh.idempotencyKey,
        );
      const expected = model.create(fresh, op.joins, claim);
      return {
        expected,
        act: (store) => store.create(fresh, { joinsEqual: op.joins, maxLive, ...(claim !== undefined && { claim }) }),
      };
    }
    case "findEqual": {
      const like = model.tasks.get(pick(model.likely, op.which) ?? "none");
      const scope = { caller: like?.caller ?? "c0", now };
      const digest = op.digest === undefined ? (like?.digest ?? "none") : `d${op.digest}`;
      return {
        expected: model.findEqual(scope.caller, op.project, digest),
        act: (store) => store.findEqual(scope, op.project, digest),
      };
    }
    case "handOut":
    case "forget": {
      const held =
        (op.which.isCall ? pick(model.callHolders, op.which.at) : undefined) ?? pick(model.holders, op.which.at);
      return held === undefined ? undefined : callOf(model, op, held);
    }
    case "claim": {
      const taskId = op.which === undefined ? undefined : (pick(model.ids, op.which) ?? "none");
      const wish = {
        project: op.project,
        worker: `w${op.worker}`,
        leaseMs,
        now,
        ...(taskId !== undefined && { taskId }),
      };
      return { expected: model.claim(op.project, wish.worker, taskId), act: (store) => store.claim(wish) };
    }
    case "answer": {
      const taskId = pick(model.likely, op.which) ?? "none";
      const scope = {
        caller: op.asker === undefined ? (model.tasks.get(taskId)?.caller ?? "c0") : `c${op.asker}`,
        now,
      };
      const answer = op.isAccepted
        ? ({ action: "accept", content: { pages: 3 } } as const)
        : ({ action: "decline" } as const);
      const key =
        typeof op.key === "string" ? op.key : (pick(model.tasks.get(taskId)?.questions ?? [], op.key)?.key ?? "q1");
      const isTaken =
        model.visible(taskId, scope.caller) !== undefined && model.apply(taskId, { type: "answer", key, answer });
      return { expected: isTaken, act: (store) => store.answer(scope, taskId, key, answer) };
    }
    case "cancel": {
      const taskId = pick(model.likely, op.which) ?? "none";
      const scope = {
        caller: op.asker === undefined ? (model.tasks.get(taskId)?.caller ?? "c0") : `c${op.asker}`,
        now,
      };
      const isTaken =
        model.visible(taskId, scope.caller) !== undefined && model.apply(taskId, { type: "cancel", message: "No." });
      return { expected: isTaken, act: (store) => store.cancel(scope, taskId, "No.") };
    }
    case "interruptWorker": {
      const lost = `w${op.worker}`;
      const expected = model.interrupt((name) => name === lost).sort();
      return { expected, act: async (store) => [...(await store.interrupt(lost))].sort() };
    }
    case "interruptLate": {
      const expected = model.interrupt((_, until) => until < now).sort();
      // I6: afterwards nobody works under a lease that has run out.
      for (const task of model.tasks.values())
        if (!isTerminal(task) && task.lease !== undefined) assert.ok(task.lease.until >= now);
      return { expected, act: async (store) => [...(await store.interrupt())].sort() };
    }
    case "wait":
      model.clock.advance(op.ms);
      return undefined;
    case "sweep":
      return { expected: model.remove((task) => isExpired(task, now)), act: (store) => store.sweep() };
    case "prune": {
      const scope = { caller: `c${op.caller}`, now };
      return {
        expected: model.remove((task) => task.caller === scope.caller && isTerminal(task)),
        act: (store) => store.prune(scope),
      };
    }
    default: {
      const held = pick(model.holders, op.which);
      return held === undefined ? undefined : writeOf(model, op, held);
    }
  }
}

/** What the worker of a claim does, whether it still holds the task or not. */
function writeOf(
  model: Model,
  op: Extract<Operation, { type: "report" | "ask" | "complete" | "fail" | "giveBack" | "keepStep" }>,
  held: Held,
): Step {
  const claim: Claim = { taskId: held.taskId, fence: held.fence };
  const { fence } = claim;
  switch (op.type) {
    case "report": {
      const news = {
        progress: { value: op.value, total: 9 },
        ...(op.message !== undefined && { statusMessage: op.message }),
      };
      const expected = model.write(held, { type: "report", fence, progress: news.progress, statusMessage: op.message });
      return { expected, act: (store) => store.report(claim, news) };
    }
    case "ask": {
      const isAsked = model.write(held, { type: "ask", fence, question });
      return {
        expected: isAsked ? model.tasks.get(held.taskId)?.questions.at(-1) : undefined,
        act: (store) => store.ask(claim, question),
      };
    }
    case "complete":
      return {
        expected: model.write(held, { type: "settle", fence, outcome: completed }),
        act: (store) => store.settle(claim, completed),
      };
    case "fail": {
      const again = retryDelay(held.task, failed);
      if (again === undefined)
        return {
          expected: model.write(held, { type: "settle", fence, outcome: failed }),
          act: (store) => store.settle(claim, failed),
        };
      return {
        expected: model.write(held, { type: "retry", fence, delayMs: again, why: "Again." }),
        act: (store) => store.retryLater(claim, again, "Again."),
      };
    }
    case "giveBack": {
      const expected = model.write(held, { type: "giveBack", fence });
      if (expected) model.givenBack.set(held.taskId, (model.givenBack.get(held.taskId) ?? 0) + 1);
      return { expected, act: (store) => store.giveBack(claim) };
    }
    case "keepStep": {
      const isHeld = model.isHeld(claim);
      const steps = model.steps.get(held.taskId) ?? new Map<string, string>();
      if (isHeld) model.steps.set(held.taskId, steps.set(op.name, String(op.value)));
      const rules = op.isSafe === undefined ? undefined : { isSafe: op.isSafe };
      if (isHeld && rules !== undefined) model.rule(held.taskId, rules);
      return { expected: isHeld, act: (store) => store.keepStep(claim, op.name, String(op.value), rules) };
    }
  }
}

/** What the worker of a call does with it, whether it still holds it, and whether it still is one, or not. */
function callOf(model: Model, op: Extract<Operation, { type: "handOut" | "forget" }>, held: Held): Step {
  const claim: Claim = { taskId: held.taskId, fence: held.fence };
  if (op.type === "handOut") {
    const terms = { reason: "slow", ttlMs: 2 * ttlMs, rules: { isSafe: op.isSafe, maxAttempts: 3, backoffMs: 20 } };
    return {
      expected: model.write(held, { type: "handOut", fence: held.fence, ...terms }),
      act: (store) => store.handOut(claim, terms),
    };
  }
  const isCall = model.isHeld(claim) && model.tasks.get(held.taskId)?.isCall === true;
  if (isCall) model.remove(({ taskId }) => taskId === held.taskId);
  return { expected: isCall, act: (store) => store.forget(claim) };
}

function pick<T>(items: readonly T[], at: number): T | undefined {
  return items[at % Math.max(items.length, 1)];
}

/** Facts that are undefined and facts that are missing are the same. */
function plain(value: unknown): unknown {
  return value === undefined ? undefined : JSON.parse(JSON.stringify(value));
}

function assertSame(actual: unknown, expected: unknown, what: string): void {
  const [found, wanted] = [plain(actual), plain(expected)];
  if (!isDeepStrictEqual(found, wanted))
    assert.fail(`${what}\nfound    ${JSON.stringify(found)}\nexpected ${JSON.stringify(wanted)}`);
}

interface Sight {
  readonly callers: Iterable<string>;
  readonly tasks: Iterable<string>;
}

/** Compares what a store shows these callers in their lists, and of these tasks to everybody. */
async function checkStore(model: Model, store: TaskStore, name: string, sight: Sight): Promise<void> {
  for (const asker of sight.callers) {
    const own = model.ids.flatMap((taskId) => model.visible(taskId, asker) ?? []);
    for (const withCalls of [true, false]) {
      const { tasks } = await store.list({ caller: asker }, { limit: 100, withCalls });
      const shown = own.filter((task) => withCalls || !task.isCall || isTerminal(task));
      // I1: everything acknowledged is there, until its time is over. I8: and nothing of anybody else's.
      const bare = shown.map((task) => ({
        ...task,
        input: undefined,
        ...(isTerminal(task) && { outcome: undefined }),
      }));
      assertSame(tasks, bare, `${name}: the list of ${asker}`);
    }
  }
  for (const taskId of sight.tasks) {
    // I8: whoever asks, only the owner is shown the task; when it is gone, nobody is.
    for (const asker of everyone)
      assertSame(
        await store.get({ caller: asker }, taskId),
        model.visible(taskId, asker),
        `${name}: ${taskId} for ${asker}`,
      );
    assertSame(
      Object.fromEntries(await store.steps(taskId)),
      Object.fromEntries(model.steps.get(taskId) ?? []),
      `${name}: steps of ${taskId}`,
    );
  }
  const holders = [...model.tasks.values()].flatMap((task) =>
    isTerminal(task) || task.lease === undefined ? [] : [task.lease.worker],
  );
  assertSame([...(await store.workers())].sort(), [...new Set(holders)].sort(), `${name}: workers`);
}

function checkModel(model: Model): void {
  for (const task of model.tasks.values()) {
    const { taskId } = task;
    const executions = model.executions.get(taskId) ?? 0;
    if (isTerminal(task)) {
      // I2: one terminal record, and it never changes.
      const record = JSON.stringify(task);
      assert.equal(record, model.outcomes.get(taskId) ?? record, `${taskId} has ended`);
      model.outcomes.set(taskId, record);
      // I7: nothing is completed that never ran.
      assert.ok(task.status !== "completed" || executions > 0, `${taskId} was completed without a run`);
    } else {
      assert.equal(
        task.status === "input_required",
        openQuestions(task).length > 0,
        `${taskId} waits exactly while a question is open`,
      );
    }
    // I3: as many fences as claims.
    assert.equal(task.fence, executions, `fence of ${taskId}`);
    // I5: not more attempts than the rules allow, nor more crashes.
    assert.ok(task.attempts <= task.rules.maxAttempts, `attempts of ${taskId}`);
    assert.ok(task.crashes <= maxCrashes, `crashes of ${taskId}`);
    // I7: every execution is an attempt, a crash, or was given back.
    assert.equal(
      task.attempts + task.crashes + (model.givenBack.get(taskId) ?? 0),
      executions,
      `executions of ${taskId}`,
    );
    assert.equal(new Set(task.questions.map(({ key }) => key)).size, task.questions.length, `keys of ${taskId}`);
  }
}

const openPostgres = postgresStores();

test("whatever callers and workers do, all stores show what the rules say, and the promises hold", async () => {
  // In memory where there is such a disk: none of this is about disks, and thousands of writes wait for one.
  const folder = mkdtempSync(path.join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "meanwhile-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  let runs = 0;
  const property = fc.asyncProperty(
    fc.array(operation, { minLength: 1, maxLength: 160, size: "max" }),
    async (operations) => {
      const model = new Model();
      const stores = {
        memory: new MemoryStore(model.clock),
        sqlite: await openStore(path.join(folder, `${++runs}.db`), { clock: model.clock }),
        postgres: await openPostgres({ clock: model.clock, place: `run ${runs}` }),
      };
      try {
        for (const [at, op] of operations.entries()) {
          const before = new Map(model.tasks);
          const step = stepOf(model, op);
          checkModel(model);
          const changed = model.everMade.filter((taskId) => before.get(taskId) !== model.tasks.get(taskId));
          const owners = changed.map((taskId) => (model.tasks.get(taskId) ?? before.get(taskId))?.caller ?? "");
          const sight = { callers: new Set([...owners, everyone[at % callers] ?? ""]), tasks: changed };
          for (const [name, store] of Object.entries(stores)) {
            if (step !== undefined) assertSame(await step.act(store), step.expected, `${name}: ${JSON.stringify(op)}`);
            await checkStore(model, store, name, sight);
          }
        }
        for (const [name, store] of Object.entries(stores))
          await checkStore(model, store, name, { callers: everyone, tasks: model.everMade });
      } finally {
        for (const store of Object.values(stores)) await store.close();
      }
    },
  );
  // A failure prints its seed and path; making it smaller must not take for ever.
  await fc.assert(property, { seed, numRuns: rounds.modelRuns, interruptAfterTimeLimit: 90_000 });
});
