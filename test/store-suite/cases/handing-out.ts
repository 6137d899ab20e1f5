import assert from "node:assert/strict";
import type { Claim } from "../../../src/task/store.ts";
import type { TaskOutcome } from "../../../src/task/task.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import type { StoreCase } from "../store-suite.ts";
import {
  accepted,
  assertTask,
  assertUnchanged,
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
import { answered, assertRefused, findEqual, listed, terms, timesHeard, unsafe, verbs } from "./call-bench.ts";

/** What becomes of a call: it is handed out, forgotten, cancelled, interrupted or settled. */
export const handOutCases: readonly StoreCase[] = [
  onStore("handOut: makes an ordinary task of it, by new terms, and its worker goes on", async (bench) => {
    const call = await bench.journal({ rules: unsafe, questions: [answered], progressToken: 7 });
    await bench.store.keepStep(call, "fetch", "1");
    const before = await bench.read(call.taskId);
    bench.clock.advance(70);
    assert.equal(await timesHeard(bench, call.taskId, () => bench.store.handOut(call, terms)), 1);
    const after = await bench.read(call.taskId);
    assert.deepEqual(plain(after), plain({ ...before, ...terms, isCall: false, version: 2, updatedAt: bench.now }));
    assert.deepEqual(await listed(bench), [call.taskId]);
    assert.deepEqual([...(await bench.store.steps(call.taskId))], [["fetch", "1"]]);
    assert.equal(await bench.claim(), undefined);
    await assertRefused(bench, call);
    assert.equal(await bench.store.report(call, { statusMessage: "Page 3." }), true);
    assert.equal(await bench.store.settle(call, done), true);
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
    await bench.store.handOut(call, { ...terms, rules });
    rules.maxAttempts = 99;
    assertTask(await bench.read(call.taskId), { rules: terms.rules });
  }),

  onStore("handOut: also while a question is open, which stays so", async (bench) => {
    const call = await bench.journal();
    const asked = await bench.store.ask(call, question);
    assert.equal(await bench.store.handOut(call, terms), true);
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
    for (const call of [crashed, given, later]) assert.equal(await bench.store.handOut(call, terms), true);
    await bench.store.interrupt("w1");
    assert.equal(await bench.store.giveBack(given), true);
    assert.equal(await bench.store.retryLater(later, 0, "Again."), true);
    for (const call of [crashed, given, later]) {
      assertTask(await bench.read(call.taskId), { status: "queued", isCall: false, lease: undefined });
      assert.equal((await bench.take(call.taskId, "w3")).fence, 2);
    }
    const safe = await bench.journal({}, "w4");
    await bench.store.handOut(safe, { ...terms, rules: unsafe });
    await bench.store.interrupt("w4");
    const task = await bench.read(safe.taskId);
    assertTask(task, { status: "failed", isCall: false });
    assert.match(task.statusMessage ?? "", /might do its work twice/);
  }),

  onStore("forget: the call is as if it had never been", async (bench) => {
    const call = await bench.journal({ idempotencyKey: "once" });
    await bench.store.keepStep(call, "fetch", "1");
    await bench.store.ask(call, question);
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
    assert.equal(await bench.store.handOut(call, terms), false);
    assert.equal(await bench.store.settle(call, done), false);
    assert.equal(await bench.store.cancel(bench.scope(), call.taskId, "Late."), false);
    assert.deepEqual(await bench.store.interrupt("w1"), []);
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
      assert.equal(await act(bench.store, { taskId: "never-was", fence: 1 }), false);
    assert.equal(await bench.store.forget(call), true);
  }),

  onStore(
    "handOut, forget, settle and cancel at once: one of them, or the end of what was just handed out",
    async (bench) => {
      const acts: Record<string, (call: Claim) => Promise<boolean>> = {
        handOut: (call) => bench.store.handOut(call, terms),
        forget: (call) => bench.store.forget(call),
        settle: (call) => bench.store.settle(call, done),
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
    assert.equal(await bench.store.settle(call, done), false);
    assert.equal(await bench.store.report(call, { statusMessage: "Late." }), false);
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
        await bench.store.ask(asking, question);
        bench.clock.advance(leaseMs + 1);
        assert.deepEqual([...(await bench.store.interrupt())].sort(), [call.taskId, asking.taskId, task.taskId].sort());
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
    await bench.store.ask(asking, question);
    for (const refused of [call, asking]) {
      await assertUnchanged(bench, refused.taskId, async () => {
        assert.equal(await bench.store.giveBack(refused), false);
        assert.equal(await bench.store.retryLater(refused, 0, "Again."), false);
      });
    }
    assert.equal(await bench.claim(), undefined);
    assert.equal(await bench.store.forget(call), true);
  }),

  onStore("sweep and prune: a call that is still being answered stays", async (bench) => {
    const call = await bench.journal({ ttlMs: 1 });
    await assertUnchanged(bench, call.taskId, async () => {
      bench.clock.advance(1_000 * ttlMs);
      assert.equal(await bench.store.sweep(), 0);
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
    assert.equal(await bench.store.settle(call, outcome), true);
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
        assert.deepEqual(await bench.store.interrupt("w1"), ["task-1"]);
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
    await one.store.handOut(kept, terms);
    assert.equal(await findEqual(other), "kept");
    assert.equal((await other.create({ taskId: "joins", digest: "same" }, { joinsEqual: true })).kind, "joined");
    let count = 0;
    const stop = other.store.onChange(() => {
      count += 1;
    });
    await one.store.forget(forgotten);
    assert.equal(await other.store.get(other.scope(), "forgotten"), undefined);
    assert.equal(await other.store.handOut(forgotten, terms), false);
    await eventually(other.clock, () => count > 0, "a call forgotten in another store");
    stop();
  }),

  onStore(
    "mayHaveLive: true while a handed-out task of the command is live, and false before, after and of any other; always true of a store that cannot know",
    async (bench) => {
      const may = (command = "text_count", project = "home") => bench.store.mayHaveLive(project, command);
      const otherwise = may();
      const call = await bench.journal();
      assert.equal(may(), otherwise);
      await bench.store.handOut(call, terms);
      assert.deepEqual([may(), may("other"), may("text_count", "away")], [true, otherwise, otherwise]);
      await bench.store.settle(call, done);
      assert.equal(may(), otherwise);
      const task = await bench.make();
      assert.equal(may(), true);
      await bench.store.cancel(bench.scope(), task.taskId, "No longer needed.");
      assert.equal(may(), otherwise);
    },
  ),

  onTwoStores(
    "two stores: each knows at once of which commands the other has made and ended tasks, or says that it cannot know",
    async (one, other) => {
      const otherwise = other.store.mayHaveLive("home", "text_count");
      const task = await one.make();
      assert.equal(other.store.mayHaveLive("home", "text_count"), true);
      await one.store.cancel(one.scope(), task.taskId, "No longer needed.");
      assert.equal(other.store.mayHaveLive("home", "text_count"), otherwise);
    },
  ),
];
