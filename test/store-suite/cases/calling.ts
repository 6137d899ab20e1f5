import assert from "node:assert/strict";
import type { Claim } from "../../../src/task/store.ts";
import type { StoreCase } from "../store-suite.ts";
import { accepted, assertTask, type Bench, done, leaseMs, onStore, plain, question, ttlMs } from "./bench.ts";
import { answered, assertRefused, claim, findEqual, listed, terms, timesHeard, unsafe } from "./call-bench.ts";

/** What a journalled call can end as on record. */
const endings: Record<string, (bench: Bench, call: Claim) => Promise<unknown>> = {
  settled: (bench, call) => bench.store.settle(call, done),
  cancelled: (bench, call) => bench.store.cancel(bench.scope(), call.taskId, "No longer needed."),
  interrupted: (bench) => bench.store.interrupt("w1"),
};

/** A call that is still being answered: what is on record of it, and who sees that. */
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
        createdAt: bench.now,
        notBefore: bench.now,
        lease: { worker: "w7", until: bench.now + 1_234 },
        statusMessage: undefined,
        progress: undefined,
        updatedAt: bench.now,
        startedAt: bench.now,
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
    assert.equal(await bench.store.report(call, { progress: { value: 3 }, statusMessage: "Page 3." }), true);
    assert.equal(await bench.store.keepStep(call, "fetch", "1"), true);
    assert.equal((await bench.store.ask(call, question))?.key, "q1");
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
    assert.equal(await bench.store.settle(call, done), true);
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
    assert.equal(await bench.store.giveBack({ taskId, fence: 1 }), true);
    assert.equal((await bench.take(taskId, "w2")).fence, 2);
  }),

  onStore("create with a claim: an idempotency key remembers what was answered inline", async (bench) => {
    const first = await bench.create({ idempotencyKey: "once" }, { claim });
    assert.equal(first.kind, "created");
    const { taskId } = first.task;
    for (const end of [async () => false, () => bench.store.settle({ taskId, fence: 1 }, done)]) {
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
      await bench.store.settle(ended, done);
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
    await bench.store.ask(asking, question);
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
        bench.clock.advance(ttlMs - 1);
        assert.equal(await bench.store.sweep(), 0);
        bench.clock.advance(1);
        assert.equal(await bench.store.sweep(), 1);
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
    assert.equal(await bench.store.handOut({ taskId: call.task.taskId, fence: 1 }, terms), true);
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
    assert.equal(await bench.store.handOut(call, terms), true);
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
      await bench.store.ask(taken, question);
      assert.deepEqual(
        plain(await bench.store.findEqual(bench.scope(), "home", "same")),
        plain(await bench.read(first.taskId)),
      );
      await bench.store.settle(taken, done);
      assert.equal(await findEqual(bench), second.taskId);
      await bench.store.handOut(call, terms);
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
];
