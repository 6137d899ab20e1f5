import assert from "node:assert/strict";
import type { Claim, TaskStore } from "../../task/store.ts";
import type { NewTask, TaskOutcome } from "../../task/task.ts";
import { FakeClock } from "../fake-clock.ts";
import type { StoreCase } from "../store-suite.ts";
import {
  accepted,
  assertTask,
  assertUnchanged,
  type Bench,
  done,
  eventually,
  leaseMs,
  onStore,
  onTwoStores,
  plain,
  question,
  ttlMs,
  withStore,
} from "./bench.ts";

const terms = { reason: "it took too long", ttlMs: 3 * ttlMs, rules: { isSafe: true, maxAttempts: 5, backoffMs: 7 } };
const unsafe = { isSafe: false, maxAttempts: 1, backoffMs: 0 };
const claim = { worker: "w1", leaseMs };

/** A question that was settled before there was a record. */
const answered = {
  message: "Sure?",
  schema: { type: "object" },
  isConfirmation: true,
  key: "q1",
  askedAt: 5,
  answer: { action: "accept" as const, content: { confirm: true } },
};

/** What a journalled call can end as on record. */
const endings: Record<string, (bench: Bench, call: Claim) => Promise<unknown>> = {
  settled: (bench, call) => bench.store.settle(call, done, bench.now),
  cancelled: (bench, call) => bench.store.cancel(bench.scope(), call.taskId, "No longer needed."),
  interrupted: (bench) => bench.store.interrupt({ worker: "w1" }, bench.now),
};

/** What only a call's own worker may do, and only once. */
const verbs: Record<string, (store: TaskStore, call: Claim, now: number) => Promise<boolean>> = {
  handOut: (store, call, now) => store.handOut(call, terms, now),
  forget: (store, call) => store.forget(call),
};

async function listed(bench: Bench, withCalls?: boolean): Promise<string[]> {
  const { tasks } = await bench.store.list(bench.scope(), {
    limit: 100,
    ...(withCalls !== undefined && { withCalls }),
  });
  return tasks.map(({ taskId }) => taskId);
}

async function findEqual(bench: Bench, facts: Partial<NewTask> = {}): Promise<string | undefined> {
  const { caller = "ada", project = "home", digest = "same" } = facts;
  return (await bench.store.findEqual(bench.scope(caller), project, digest))?.taskId;
}

/** How often listeners hear of this task while `act` runs. */
async function timesHeard(bench: Bench, taskId: string, act: () => Promise<unknown>): Promise<number> {
  let count = 0;
  const stop = bench.store.onChange((changed) => {
    if (changed === taskId) count += 1;
  });
  await act();
  stop();
  return count;
}

/** Fails unless handOut and forget are refused, leave the record as it is, and are no news. */
async function assertRefused(bench: Bench, refused: Claim): Promise<void> {
  for (const [name, act] of Object.entries(verbs)) {
    await assertUnchanged(bench, refused.taskId, async () => {
      const count = await timesHeard(bench, refused.taskId, async () =>
        assert.equal(await act(bench.store, refused, bench.now), false, name),
      );
      assert.equal(count, 0, name);
    });
  }
}

export const callCases: readonly StoreCase[] = [
  onStore(
    "call: it begins as working, under its maker's claim, and its caller reads back every fact of it",
    async (bench) => {
      const fresh = bench.fresh({
        isCall: true,
        questions: [answered],
        progressToken: "follow",
        rules: unsafe,
        estimateMs: 12.5,
      });
      let created: unknown;
      assert.equal(
        await timesHeard(bench, fresh.taskId, async () => {
          created = await bench.store.create(fresh, {
            joinsEqual: false,
            maxLive: 1,
            claim: { worker: "w7", leaseMs: 1_234 },
          });
        }),
        1,
      );
      const expected = {
        ...fresh,
        status: "working",
        version: 1,
        fence: 1,
        attempts: 1,
        crashes: 0,
        notBefore: fresh.createdAt,
        lease: { worker: "w7", until: fresh.createdAt + 1_234 },
        statusMessage: undefined,
        progress: undefined,
        updatedAt: fresh.createdAt,
        startedAt: fresh.createdAt,
      };
      const task = await bench.read(fresh.taskId);
      assertTask(task, expected);
      assert.deepEqual(plain(created as never), plain({ kind: "created", task } as never));
      assert.equal(await bench.store.get(bench.scope("bob"), fresh.taskId), undefined);
      assert.deepEqual(await bench.store.workers(), ["w7"]);
      assert.equal(await bench.claim(), undefined);
      assert.equal(await bench.claim({ taskId: fresh.taskId }), undefined);
    },
  ),

  onStore("call: without a claim there is nobody to answer it, so it is refused", async (bench) => {
    const fresh = bench.fresh({ isCall: true });
    await assert.rejects(bench.store.create(fresh, { joinsEqual: false, maxLive: 1 }), /claim/);
    assert.equal(await bench.store.get(bench.scope(), fresh.taskId), undefined);
  }),

  onStore("call: its worker works on it as on any task", async (bench) => {
    const call = await bench.journal();
    bench.clock.advance(5);
    assert.equal(await bench.store.report(call, { progress: { value: 3 }, statusMessage: "Page 3." }, bench.now), true);
    assert.equal(await bench.store.keepStep(call, "fetch", "1"), true);
    assert.equal((await bench.store.ask(call, question, bench.now))?.key, "q1");
    assertTask(await bench.read(call.taskId), {
      status: "input_required",
      isCall: true,
      progress: { value: 3 },
      version: 3,
    });
    assert.equal(await bench.store.answer(bench.scope("bob"), call.taskId, "q1", accepted), false);
    assert.equal(await bench.store.answer(bench.scope(), call.taskId, "q1", accepted), true);
    assertTask(await bench.read(call.taskId), {
      status: "working",
      fence: 1,
      attempts: 1,
      lease: { worker: "w1", until: bench.now - 5 + leaseMs },
    });
    assert.equal(await bench.store.settle(call, done, bench.now), true);
    assertTask(await bench.read(call.taskId), { status: "completed", isCall: true, outcome: done });
  }),

  onStore("create with a claim: an ordinary task begins as working, and is one in every other way", async (bench) => {
    const created = await bench.create({ digest: "same" }, { claim });
    assert.equal(created.kind, "created");
    const { taskId } = created.task;
    const lease = { worker: "w1", until: bench.now + leaseMs };
    const begun = { status: "working", version: 1, fence: 1, attempts: 1, startedAt: bench.now, lease, isCall: false };
    assertTask(created.task, begun);
    assertTask(await bench.read(taskId), begun);
    assert.equal(await bench.claim(), undefined);
    assert.deepEqual(await listed(bench), [taskId]);
    assert.equal((await bench.create({}, { maxLive: 1, claim })).kind, "full");
    assert.equal((await bench.create({ digest: "same" }, { joinsEqual: true, claim })).kind, "joined");
    await assertRefused(bench, { taskId, fence: 1 });
    assert.equal(await bench.store.giveBack({ taskId, fence: 1 }, bench.now), true);
    assert.equal((await bench.take(taskId, "w2")).fence, 2);
  }),

  onStore("create with a claim: an idempotency key remembers what was answered inline", async (bench) => {
    const first = await bench.create({ idempotencyKey: "once" }, { claim });
    assert.equal(first.kind, "created");
    const { taskId } = first.task;
    for (const end of [async () => false, () => bench.store.settle({ taskId, fence: 1 }, done, bench.now)]) {
      await end();
      const again = await bench.create({ idempotencyKey: "once" }, { claim: { worker: "w2", leaseMs }, maxLive: 0 });
      assert.equal(again.kind, "repeated");
      assert.deepEqual(plain(again.task), plain(await bench.read(taskId)));
    }
    assert.deepEqual(await listed(bench), [taskId]);
  }),

  onStore(
    "dropToken: a live task of its caller has none any more, and nothing else about it has changed",
    async (bench) => {
      const { taskId } = await bench.make({ progressToken: 7 });
      const before = await bench.read(taskId);
      assert.equal(await bench.store.dropToken({ ...bench.scope(), caller: "bob" }, taskId), false, "somebody else's");
      assert.equal(
        await timesHeard(bench, taskId, async () =>
          assert.equal(await bench.store.dropToken(bench.scope(), taskId), true),
        ),
        0,
      );
      assert.deepEqual(plain(await bench.read(taskId)), plain({ ...before, progressToken: undefined }));
      for (const id of [taskId, "never-was", "__proto__"])
        assert.equal(await bench.store.dropToken(bench.scope(), id), false, id);
      const ended = await bench.begin({ progressToken: "kept" });
      await bench.store.settle(ended, done, bench.now);
      assert.equal(await bench.store.dropToken(bench.scope(), ended.taskId), false, "what has ended");
    },
  ),

  onStore(
    "create: a token comes back as it went in, a number as a number; so does what was asked ahead",
    async (bench) => {
      const tokens = [7, "7", 0, "", "null", -1.5, Number.MAX_SAFE_INTEGER, "O'Neil 🙂 \u2028 \"", undefined];
      for (const [n, progressToken] of tokens.entries()) {
        const questions = n % 2 === 0 ? [answered] : [];
        const { taskId } = await bench.make({ progressToken, questions });
        assertTask(await bench.read(taskId), { progressToken, questions, isCall: false });
        assertTask((await bench.claim({ taskId })) ?? assert.fail(), { progressToken, questions });
      }
      const { tasks } = await bench.store.list(bench.scope(), { limit: 100 });
      assert.deepEqual(tasks.map(({ progressToken }) => progressToken).reverse(), tokens);
      const questions = tasks.map((task) => task.questions.length).reverse();
      assert.deepEqual(
        questions,
        tokens.map((_, n) => (n % 2 === 0 ? 1 : 0)),
      );
    },
  ),

  onStore("call: not listed while it is being answered, unless calls are asked for", async (bench) => {
    const [task, call, asking, later] = [
      await bench.make(),
      await bench.journal(),
      await bench.journal(),
      await bench.make(),
    ];
    await bench.store.ask(asking, question, bench.now);
    await bench.journal({ caller: "bob" });
    assert.deepEqual(await listed(bench), [later.taskId, task.taskId]);
    assert.deepEqual(await listed(bench, false), [later.taskId, task.taskId]);
    assert.deepEqual(await listed(bench, true), [later.taskId, asking.taskId, call.taskId, task.taskId]);
    const page = await bench.store.list(bench.scope(), {
      limit: 100,
      withCalls: true,
      statuses: ["working"],
      project: "home",
    });
    assert.equal(page.tasks.length, 1);
    assertTask(page.tasks[0] ?? assert.fail(), { ...(await bench.read(call.taskId)), input: undefined });
  }),

  onStore("call: pages are full although calls lie between", async (bench) => {
    const made: string[] = [];
    for (let n = 0; n < 4; n++) {
      made.unshift((await bench.make()).taskId);
      await bench.journal();
    }
    const first = await bench.store.list(bench.scope(), { limit: 2 });
    assert.ok(first.nextCursor);
    const second = await bench.store.list(bench.scope(), { limit: 2, cursor: first.nextCursor });
    assert.equal(second.nextCursor, undefined);
    const seen = [...first.tasks, ...second.tasks].map(({ taskId }) => taskId);
    assert.deepEqual(seen, made);
  }),

  ...Object.entries(endings).map(([how, end]) =>
    onStore(
      `call: one that was ${how} is listed, kept for its time, and no longer a call to anybody`,
      async (bench) => {
        const call = await bench.journal({ digest: "same" });
        await bench.store.keepStep(call, "fetch", "1");
        await end(bench, call);
        assert.deepEqual(await listed(bench), [call.taskId]);
        assert.deepEqual(await listed(bench, true), [call.taskId]);
        assert.equal(await findEqual(bench), undefined);
        assert.equal((await bench.store.steps(call.taskId)).size, 0);
        assert.deepEqual(await bench.store.workers(), []);
        await assertRefused(bench, call);
        assert.equal(await bench.store.sweep(bench.now + ttlMs - 1), 0);
        assert.equal(await bench.store.sweep(bench.now + ttlMs), 1);
        assert.equal(await bench.store.get(bench.scope(), call.taskId), undefined);
      },
    ),
  ),

  onStore("call: not counted, and made however many tasks there are", async (bench) => {
    for (let n = 0; n < 3; n++) await bench.journal();
    assert.equal((await bench.create({}, { maxLive: 1 })).kind, "created");
    assert.deepEqual(await bench.create({}, { maxLive: 1 }), { kind: "full", live: 1 });
    const call = await bench.create({ isCall: true }, { maxLive: 0, claim });
    assert.equal(call.kind, "created");
    assert.equal(await bench.store.handOut({ taskId: call.task.taskId, fence: 1 }, terms, bench.now), true);
    assert.deepEqual(await bench.create({}, { maxLive: 1 }), { kind: "full", live: 1 });
    assert.deepEqual(await bench.create({}, { maxLive: 2 }), { kind: "full", live: 2 });
    assert.equal((await bench.create({}, { maxLive: 3 })).kind, "created");
  }),

  onStore("call: joins nothing, and is not joined before it is handed out", async (bench) => {
    const call = await bench.journal({ digest: "same" });
    const task = await bench.create({ digest: "same" }, { joinsEqual: true });
    assert.equal(task.kind, "created");
    const other = await bench.create({ digest: "same", isCall: true }, { joinsEqual: true, claim });
    assert.equal(other.kind, "created");
    await bench.store.cancel(bench.scope(), task.task.taskId, "No longer needed.");
    assert.equal(await bench.store.handOut(call, terms, bench.now), true);
    const joined = await bench.create({ digest: "same" }, { joinsEqual: true });
    assert.equal(joined.kind, "joined");
    assert.deepEqual(plain(joined.task), plain(await bench.read(call.taskId)));
  }),

  onStore(
    "findEqual: the live, handed-out task of the same caller, project and digest, the oldest first",
    async (bench) => {
      const call = await bench.journal({ digest: "same" });
      assert.equal(await findEqual(bench), undefined);
      const [first, second] = [await bench.make({ digest: "same" }), await bench.make({ digest: "same" })];
      await bench.make({ digest: "same", caller: "bob", taskId: "bobs" });
      await bench.make({ digest: "same", project: "away", taskId: "far" });
      assert.equal(await findEqual(bench), first.taskId);
      assert.equal(await findEqual(bench, { caller: "bob" }), "bobs");
      assert.equal(await findEqual(bench, { project: "away" }), "far");
      for (const none of [{ caller: "eve" }, { project: "nowhere" }, { digest: "other" }])
        assert.equal(await findEqual(bench, none), undefined);
      const taken = await bench.take(first.taskId);
      assert.equal(await findEqual(bench), first.taskId);
      await bench.store.ask(taken, question, bench.now);
      assert.deepEqual(
        plain(await bench.store.findEqual(bench.scope(), "home", "same")),
        plain(await bench.read(first.taskId)),
      );
      await bench.store.settle(taken, done, bench.now);
      assert.equal(await findEqual(bench), second.taskId);
      await bench.store.handOut(call, terms, bench.now);
      assert.equal(await findEqual(bench), call.taskId);
    },
  ),

  onStore(
    "findEqual: what was asked ahead, or came out, can be changed without changing what is stored",
    async (bench) => {
      const questions = [structuredClone(answered)];
      const { taskId } = await bench.make({ digest: "same", questions });
      questions.pop();
      const found = await bench.store.findEqual(bench.scope(), "home", "same");
      assert.ok(found);
      (found.questions as unknown[]).push("changed after findEqual");
      assertTask(await bench.read(taskId), { questions: [answered] });
    },
  ),

  onStore("handOut: makes an ordinary task of it, by new terms, and its worker goes on", async (bench) => {
    const call = await bench.journal({ rules: unsafe, questions: [answered], progressToken: 7 });
    await bench.store.keepStep(call, "fetch", "1");
    const before = await bench.read(call.taskId);
    bench.clock.advance(70);
    assert.equal(await timesHeard(bench, call.taskId, () => bench.store.handOut(call, terms, bench.now)), 1);
    const after = await bench.read(call.taskId);
    assert.deepEqual(plain(after), plain({ ...before, ...terms, isCall: false, version: 2, updatedAt: bench.now }));
    assert.deepEqual(await listed(bench), [call.taskId]);
    assert.deepEqual([...(await bench.store.steps(call.taskId))], [["fetch", "1"]]);
    assert.equal(await bench.claim(), undefined);
    await assertRefused(bench, call);
    assert.equal(await bench.store.report(call, { statusMessage: "Page 3." }, bench.now), true);
    assert.equal(await bench.store.settle(call, done, bench.now), true);
    assertTask(await bench.read(call.taskId), {
      status: "completed",
      outcome: done,
      expiresAt: bench.now + terms.ttlMs,
      reason: terms.reason,
    });
  }),

  onStore("handOut: what was given can be changed without changing what is stored", async (bench) => {
    const call = await bench.journal();
    const rules = { ...terms.rules };
    await bench.store.handOut(call, { ...terms, rules }, bench.now);
    rules.maxAttempts = 99;
    assertTask(await bench.read(call.taskId), { rules: terms.rules });
  }),

  onStore("handOut: also while a question is open, which stays so", async (bench) => {
    const call = await bench.journal();
    const asked = await bench.store.ask(call, question, bench.now);
    assert.equal(await bench.store.handOut(call, terms, bench.now), true);
    assertTask(await bench.read(call.taskId), {
      status: "input_required",
      questions: [asked],
      isCall: false,
      version: 3,
    });
    assert.equal(await bench.store.answer(bench.scope(), call.taskId, "q1", accepted), true);
    assertTask(await bench.read(call.taskId), { status: "working", fence: 1 });
  }),

  onStore("handOut: from then on it may run again, when its new rules say so", async (bench) => {
    const [crashed, given, later] = [
      await bench.journal({ rules: unsafe }),
      await bench.journal({}, "w2"),
      await bench.journal({}, "w2"),
    ];
    for (const call of [crashed, given, later]) assert.equal(await bench.store.handOut(call, terms, bench.now), true);
    await bench.store.interrupt({ worker: "w1" }, bench.now);
    assert.equal(await bench.store.giveBack(given, bench.now), true);
    assert.equal(await bench.store.retryLater(later, bench.now, "Again.", bench.now), true);
    for (const call of [crashed, given, later]) {
      assertTask(await bench.read(call.taskId), { status: "queued", isCall: false, lease: undefined });
      assert.equal((await bench.take(call.taskId, "w3")).fence, 2);
    }
    const safe = await bench.journal({}, "w4");
    await bench.store.handOut(safe, { ...terms, rules: unsafe }, bench.now);
    await bench.store.interrupt({ worker: "w4" }, bench.now);
    const task = await bench.read(safe.taskId);
    assertTask(task, { status: "failed", isCall: false });
    assert.match(task.statusMessage ?? "", /might do its work twice/);
  }),

  onStore("forget: the call is as if it had never been", async (bench) => {
    const call = await bench.journal({ idempotencyKey: "once" });
    await bench.store.keepStep(call, "fetch", "1");
    await bench.store.ask(call, question, bench.now);
    const other = await bench.journal({}, "w2");
    await bench.store.keepStep(other, "fetch", "2");
    assert.equal(
      await timesHeard(bench, call.taskId, async () => assert.equal(await bench.store.forget(call), true)),
      1,
    );
    assert.equal(await bench.store.get(bench.scope(), call.taskId), undefined);
    assert.deepEqual(await listed(bench, true), [other.taskId]);
    assert.equal((await bench.store.steps(call.taskId)).size, 0);
    assert.equal((await bench.store.steps(other.taskId)).size, 1);
    assert.deepEqual(await bench.store.workers(), ["w2"]);
    assert.equal(await bench.store.forget(call), false);
    assert.equal(await bench.store.handOut(call, terms, bench.now), false);
    assert.equal(await bench.store.settle(call, done, bench.now), false);
    assert.equal(await bench.store.cancel(bench.scope(), call.taskId, "Late."), false);
    assert.deepEqual(await bench.store.interrupt({ worker: "w1" }, bench.now), []);
    const again = await bench.create({ taskId: call.taskId, idempotencyKey: "once" });
    assert.equal(again.kind, "created");
  }),

  onStore("handOut and forget: refused to whoever does not hold the call, and for what is none", async (bench) => {
    const call = await bench.journal();
    for (const fence of [0, 2, -1, Number.MAX_SAFE_INTEGER]) await assertRefused(bench, { taskId: call.taskId, fence });
    await assertRefused(bench, await bench.begin());
    const { taskId } = await bench.make();
    await assertRefused(bench, { taskId, fence: 0 });
    for (const act of Object.values(verbs))
      assert.equal(await act(bench.store, { taskId: "never-was", fence: 1 }, bench.now), false);
    assert.equal(await bench.store.forget(call), true);
  }),

  onStore(
    "handOut, forget, settle and cancel at once: one of them, or the end of what was just handed out",
    async (bench) => {
      const acts: Record<string, (call: Claim) => Promise<boolean>> = {
        handOut: (call) => bench.store.handOut(call, terms, bench.now),
        forget: (call) => bench.store.forget(call),
        settle: (call) => bench.store.settle(call, done, bench.now),
        cancel: (call) => bench.store.cancel(bench.scope(), call.taskId, "No longer needed."),
      };
      for (const [first, doFirst] of Object.entries(acts)) {
        for (const [second, doSecond] of Object.entries(acts)) {
          const call = await bench.journal();
          const taken = await Promise.all([doFirst(call), doSecond(call)]);
          const isBoth = taken.every(Boolean);
          assert.ok(taken.includes(true), `neither ${first} nor ${second}`);
          assert.ok(!isBoth || (first === "handOut") !== (second === "handOut"), `${first} and ${second}`);
          const isForgotten = (await bench.store.get(bench.scope(), call.taskId)) === undefined;
          assert.equal(
            isForgotten,
            (first === "forget" && taken[0]) || (second === "forget" && taken[1]),
            `${first}, ${second}`,
          );
          assert.ok(!isBoth || !isForgotten, `${first} and ${second}`);
        }
      }
    },
  ),

  onStore("cancel: a call's caller may, as with any task; nobody else", async (bench) => {
    const call = await bench.journal();
    await assertUnchanged(bench, call.taskId, async () =>
      assert.equal(await bench.store.cancel(bench.scope("bob"), call.taskId, "No."), false),
    );
    bench.clock.advance(5);
    assert.equal(await bench.store.cancel(bench.scope(), call.taskId, "No longer needed."), true);
    assertTask(await bench.read(call.taskId), {
      status: "cancelled",
      statusMessage: "No longer needed.",
      finishedAt: bench.now,
      lease: undefined,
      isCall: true,
    });
    assert.equal(await bench.store.settle(call, done, bench.now), false);
    assert.equal(await bench.store.report(call, { statusMessage: "Late." }, bench.now), false);
  }),

  ...[true, false].map((isSafe) =>
    onStore(
      `interrupt: a call has failed, although running it again would be ${isSafe ? "safe" : "unsafe"}`,
      async (bench) => {
        const rules = { isSafe, maxAttempts: 5, backoffMs: 0 };
        const [call, asking, task] = [
          await bench.journal({ rules }),
          await bench.journal({ rules }),
          await bench.begin(),
        ];
        await bench.store.ask(asking, question, bench.now);
        bench.clock.advance(leaseMs + 1);
        assert.deepEqual(
          [...(await bench.store.interrupt({ before: bench.now }, bench.now))].sort(),
          [call.taskId, asking.taskId, task.taskId].sort(),
        );
        for (const { taskId } of [call, asking]) {
          const ended = await bench.read(taskId);
          assertTask(ended, {
            status: "failed",
            isCall: true,
            crashes: 1,
            attempts: 0,
            finishedAt: bench.now,
            expiresAt: bench.now + ttlMs,
            lease: undefined,
          });
          assert.match(
            ended.statusMessage ?? "",
            /^Interrupted; outcome unknown\. The worker ended before the call was answered/,
          );
          const outcome = {
            ending: "failed",
            cause: "interrupted",
            message: ended.statusMessage,
            messages: [],
            log: [],
            durationMs: 0,
          };
          assertTask(ended, { outcome });
        }
        assert.equal(await bench.store.answer(bench.scope(), asking.taskId, "q1", accepted), false);
        assertTask(await bench.read(task.taskId), { status: "queued", crashes: 1 });
        assert.equal((await bench.claim())?.taskId, task.taskId);
        assert.equal(await bench.claim(), undefined);
      },
    ),
  ),

  onStore("retryLater and giveBack: a call is not run again, so neither is for it", async (bench) => {
    const [call, asking] = [await bench.journal(), await bench.journal()];
    await bench.store.ask(asking, question, bench.now);
    for (const refused of [call, asking]) {
      await assertUnchanged(bench, refused.taskId, async () => {
        assert.equal(await bench.store.giveBack(refused, bench.now), false);
        assert.equal(await bench.store.retryLater(refused, bench.now, "Again.", bench.now), false);
      });
    }
    assert.equal(await bench.claim(), undefined);
    assert.equal(await bench.store.forget(call), true);
  }),

  onStore("sweep and prune: a call that is still being answered stays", async (bench) => {
    const call = await bench.journal({ ttlMs: 1 });
    await assertUnchanged(bench, call.taskId, async () => {
      bench.clock.advance(1_000 * ttlMs);
      assert.equal(await bench.store.sweep(bench.now), 0);
      assert.equal(await bench.store.prune(bench.scope()), 0);
    });
  }),

  onStore("settle: an outcome keeps the JSON-RPC error it ended in", async (bench) => {
    const rpc = { code: -32_042, message: "First log in.", data: { elicitations: [{ url: "https://example.com/" }] } };
    const outcome: TaskOutcome = {
      ending: "failed",
      cause: "protocol",
      message: "First log in.",
      rpc,
      messages: [],
      log: [],
      durationMs: 40,
    };
    const call = await bench.journal();
    assert.equal(await bench.store.settle(call, outcome, bench.now), true);
    assertTask(await bench.read(call.taskId), { status: "failed", statusMessage: "First log in.", outcome });
  }),

  {
    title: "place: a call is there after closing and opening again, to be found interrupted",
    needsPlaces: true,
    async run(open) {
      const clock = new FakeClock();
      let before: unknown;
      await withStore(open, { place: "kept", clock }, async (bench) => {
        const call = await bench.journal({ progressToken: 7, questions: [answered] });
        before = plain(await bench.read(call.taskId));
      });
      await withStore(open, { place: "kept", clock }, async (bench) => {
        assert.deepEqual(plain(await bench.read("task-1")), before);
        assert.deepEqual(await bench.store.workers(), ["w1"]);
        assert.deepEqual(await bench.store.interrupt({ worker: "w1" }, bench.now), ["task-1"]);
        assertTask(await bench.read("task-1"), { status: "failed", isCall: true });
      });
    },
  },

  onTwoStores("two stores: each knows at once of calls that the other hands out or forgets", async (one, other) => {
    const [kept, forgotten] = [
      await one.journal({ taskId: "kept", digest: "same" }),
      await one.journal({ taskId: "forgotten" }),
    ];
    assertTask(await other.read("kept"), { isCall: true, status: "working" });
    assert.deepEqual(await listed(other), []);
    await one.store.handOut(kept, terms, one.now);
    assert.equal(await findEqual(other), "kept");
    assert.equal((await other.create({ taskId: "joins", digest: "same" }, { joinsEqual: true })).kind, "joined");
    let count = 0;
    const stop = other.store.onChange(() => {
      count += 1;
    });
    await one.store.forget(forgotten);
    assert.equal(await other.store.get(other.scope(), "forgotten"), undefined);
    assert.equal(await other.store.handOut(forgotten, terms, other.now), false);
    await eventually(other.clock, () => count > 0, "a call forgotten in another store");
    stop();
  }),

  onStore(
    "mayHaveLive: true while a handed-out task of the command is live, and false before, after and of any other",
    async (bench) => {
      const may = (command = "text_count", project = "home") => bench.store.mayHaveLive(project, command);
      assert.equal(may(), false);
      const call = await bench.journal();
      assert.equal(may(), false);
      await bench.store.handOut(call, terms, bench.now);
      assert.deepEqual([may(), may("other"), may("text_count", "away")], [true, false, false]);
      await bench.store.settle(call, done, bench.now);
      assert.equal(may(), false);
      const task = await bench.make();
      assert.equal(may(), true);
      await bench.store.cancel(bench.scope(), task.taskId, "No longer needed.");
      assert.equal(may(), false);
    },
  ),

  onTwoStores(
    "two stores: each knows at once of which commands the other has made and ended tasks",
    async (one, other) => {
      assert.equal(other.store.mayHaveLive("home", "text_count"), false);
      const task = await one.make();
      assert.equal(other.store.mayHaveLive("home", "text_count"), true);
      await one.store.cancel(one.scope(), task.taskId, "No longer needed.");
      assert.equal(other.store.mayHaveLive("home", "text_count"), false);
    },
  ),
];
