import assert from "node:assert/strict";
import { openQuestions } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import { accepted, assertTask, assertUnchanged, done, onStore, question } from "./bench.ts";

export const askingCases: readonly StoreCase[] = [
  onStore("ask: the task waits for its caller, who sees the question as it was asked", async (bench) => {
    const claim = await bench.begin();
    bench.clock.advance(5);
    const asked = await bench.store.ask(claim, question);
    assert.deepEqual(asked, { ...question, key: "q1", askedAt: bench.now });
    const lease = { worker: "w1", until: bench.now - 5 + 30_000 };
    assertTask(await bench.read(claim.taskId), {
      status: "input_required",
      questions: [asked],
      lease,
      fence: 1,
      version: 3,
      updatedAt: bench.now,
    });
  }),

  onStore(
    "ask: a question is called by its own name, numbered in front when it is not the first of that name",
    async (bench) => {
      const claim = await bench.begin();
      const keys: (string | undefined)[] = [];
      for (const key of ["name", undefined, "name", "a/name", "name", "é'\"", "é'\"", undefined]) {
        const asked = await bench.store.ask(claim, { ...question, ...(key !== undefined && { key }) });
        keys.push(asked?.key);
      }
      assert.deepEqual(keys, ["name", "q2", "r2/name", "a/name", "r3/name", "é'\"", "r2/é'\"", "q8"]);
      assert.deepEqual(
        (await bench.read(claim.taskId)).questions.map(({ key }) => key),
        keys,
      );
    },
  ),

  onStore(
    "ask: what somebody else's server asks is kept word for word, and so is an error in place of an answer",
    async (bench) => {
      const claim = await bench.begin();
      const request = { method: "sampling/createMessage", params: { z: 1, a: [null, "é"], _meta: {} } };
      await bench.store.ask(claim, { ...question, request });
      const answer = { action: "cancel", error: { code: -1, message: "No.", data: { a: 1 } } } as const;
      await bench.store.answer(bench.scope(), claim.taskId, "q1", answer);
      const [kept] = (await bench.read(claim.taskId)).questions;
      assert.equal(JSON.stringify(kept?.request), JSON.stringify(request));
      assert.deepEqual(kept?.answer, answer);
    },
  ),

  onStore(
    "lapse: a task ends when the time of an open question is over, whether somebody holds it or not, and not before",
    async (bench) => {
      const limitMs = 3_600_000;
      const [held, left, patient, answered] = [
        await bench.begin(),
        await bench.begin(),
        await bench.begin(),
        await bench.begin(),
      ];
      for (const claim of [held, left, answered]) await bench.store.ask(claim, { ...question, limitMs });
      await bench.store.ask(patient, question);
      await bench.store.giveBack(left);
      await bench.store.keepStep(held, "figures", "7");
      await bench.store.answer(bench.scope(), answered.taskId, "q1", accepted);
      bench.clock.advance(3_599_999);
      assert.deepEqual(await bench.store.lapse(), []);
      bench.clock.advance(1);
      assert.deepEqual([...(await bench.store.lapse())].sort(), [held.taskId, left.taskId].sort());
      assert.deepEqual(await bench.store.lapse(), []);
      const message = "Nobody answered «How many pages?» within 1 h; run it again to be asked again.";
      for (const { taskId } of [held, left]) {
        const task = await bench.read(taskId);
        const outcome = { ending: "cancelled", message, messages: [], log: [], durationMs: 3_600_000 };
        assertTask(task, {
          status: "cancelled",
          statusMessage: message,
          outcome,
          finishedAt: bench.now,
          lease: undefined,
        });
        assert.equal(await bench.store.answer(bench.scope(), taskId, "q1", accepted), false);
      }
      assert.equal(await bench.store.settle(held, done), false);
      assert.equal((await bench.store.steps(held.taskId)).size, 0);
      assertTask(await bench.read(patient.taskId), { status: "input_required" });
      assertTask(await bench.read(answered.taskId), { status: "working" });
    },
  ),

  onStore("create: what waits for an answer is not counted, and counts again with its answer", async (bench) => {
    const [first, second] = [await bench.begin(), await bench.begin()];
    const options = { joinsEqual: false, maxLive: 2 };
    const create = async () => (await bench.store.create(bench.fresh(), options)).kind;
    assert.equal(await create(), "full");
    const asked = await bench.store.ask(first, question);
    await bench.store.ask(second, question);
    assert.deepEqual([await create(), await create(), await create()], ["created", "created", "full"]);
    await bench.store.cancel(bench.scope(), (await bench.make({ caller: "bob" })).taskId, "Not Ada's.");
    assert.equal(await create(), "full");
    assert.equal(await bench.store.answer(bench.scope(), first.taskId, asked?.key ?? "", accepted), true);
    await bench.store.settle(first, done);
    assert.equal(await create(), "full");
  }),

  onStore(
    "countOpenQuestions: how many questions of a caller's tasks are open, up to the number asked for",
    async (bench) => {
      await bench.store.ask(await bench.begin(), question);
      const several = await bench.begin();
      for (const message of ["One?", "Two?"]) await bench.store.ask(several, { ...question, message });
      const answered = await bench.store.ask(several, { ...question, message: "Three?" });
      await bench.store.answer(bench.scope(), several.taskId, answered?.key ?? "", accepted);
      await bench.store.ask(await bench.begin({ caller: "bob" }), question);
      await bench.begin();
      const count = (caller: string, most: number) => bench.store.countOpenQuestions(bench.scope(caller), most);
      assert.deepEqual([await count("ada", 10), await count("ada", 2), await count("bob", 10)], [3, 2, 1]);
      assert.equal(await count("eve", 10), 0);
    },
  ),

  onStore("ask: a key is never used twice, also after answers, a retry and a crash", async (bench) => {
    const { taskId } = await bench.make();
    const keys: (string | undefined)[] = [];
    for (let n = 0; n < 12; n++) {
      const claim = await bench.take(taskId);
      const asked = await bench.store.ask(claim, question);
      keys.push(asked?.key);
      if (n % 3 === 0) await bench.store.giveBack(claim);
      if (n === 4) await bench.store.interrupt("w1");
      await bench.store.answer(bench.scope(), taskId, asked?.key ?? "", accepted);
      if (n % 3 !== 0 && n !== 4) await bench.store.retryLater(claim, 0, "Again.");
    }
    assert.equal(new Set(keys).size, 12);
    assert.deepEqual(
      (await bench.read(taskId)).questions.map(({ key }) => key),
      keys,
    );
  }),

  onStore("answer: with a worker waiting, the task goes on under the same claim", async (bench) => {
    const claim = await bench.begin();
    const asked = await bench.store.ask(claim, question);
    const { lease } = (await bench.read(claim.taskId)) as { lease?: unknown };
    bench.clock.advance(5);
    assert.equal(await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted), true);
    assertTask(await bench.read(claim.taskId), {
      status: "working",
      questions: [{ ...asked, answer: accepted, answeredAt: bench.now }],
      lease,
      fence: 1,
      attempts: 1,
      version: 4,
      updatedAt: bench.now,
    });
    assert.equal(await bench.store.report(claim, { statusMessage: "Thanks." }), true);
  }),

  onStore("answer: some of several leaves the others open", async (bench) => {
    const claim = await bench.begin();
    for (const message of ["First?", "Second?", "Third?"]) await bench.store.ask(claim, { ...question, message });
    assert.equal(await bench.store.answer(bench.scope(), claim.taskId, "q2", accepted), true);
    const partly = await bench.read(claim.taskId);
    assert.equal(partly.status, "input_required");
    assert.deepEqual(
      openQuestions(partly).map(({ key, message }) => [key, message]),
      [
        ["q1", "First?"],
        ["q3", "Third?"],
      ],
    );
    await bench.store.answer(bench.scope(), claim.taskId, "q1", { action: "decline" });
    assertTask(await bench.read(claim.taskId), { status: "input_required" });
    await bench.store.answer(bench.scope(), claim.taskId, "q3", { action: "cancel" });
    const whole = await bench.read(claim.taskId);
    assert.equal(whole.status, "working");
    assert.deepEqual(
      whole.questions.map(({ answer }) => answer),
      [{ action: "decline" }, accepted, { action: "cancel" }],
    );
  }),

  onStore("answer: after a crash the questions are still open, and the last answer queues the task", async (bench) => {
    const claim = await bench.begin();
    for (const message of ["First?", "Second?"]) await bench.store.ask(claim, { ...question, message });
    await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted);
    await bench.store.interrupt("w1");
    assertTask(await bench.read(claim.taskId), { status: "input_required", lease: undefined, crashes: 1 });
    assert.deepEqual(
      openQuestions(await bench.read(claim.taskId)).map(({ key }) => key),
      ["q2"],
    );
    assert.equal(await bench.claim(), undefined);
    bench.clock.advance(5);
    assert.equal(await bench.store.answer(bench.scope(), claim.taskId, "q2", accepted), true);
    assertTask(await bench.read(claim.taskId), { status: "queued", notBefore: bench.now });
    const again = await bench.claim({ worker: "w2" });
    assert.deepEqual(
      again?.questions.map(({ answer }) => answer),
      [accepted, accepted],
    );
  }),

  onStore("answer: a key that was never asked, or is answered, is refused", async (bench) => {
    const claim = await bench.begin();
    for (const message of ["First?", "Second?"]) await bench.store.ask(claim, { ...question, message });
    await bench.store.answer(bench.scope(), claim.taskId, "q1", accepted);
    await assertUnchanged(bench, claim.taskId, async () => {
      for (const key of [
        "q1",
        "q3",
        "q0",
        "q",
        "Q2",
        "q2 ",
        "",
        "0",
        "1",
        "constructor",
        "__proto__",
        "toString",
        "First?",
        "$[1]",
        "%",
      ]) {
        assert.equal(
          await bench.store.answer(bench.scope(), claim.taskId, key, { action: "decline" }),
          false,
          `key «${key}»`,
        );
      }
    });
  }),

  onStore("answer: a task that never asked, or has ended, takes none", async (bench) => {
    const silent = await bench.begin();
    const ended = await bench.begin();
    await bench.store.ask(ended, question);
    await bench.store.cancel(bench.scope(), ended.taskId, "No longer needed.");
    for (const { taskId } of [silent, ended]) {
      await assertUnchanged(bench, taskId, async () =>
        assert.equal(await bench.store.answer(bench.scope(), taskId, "q1", accepted), false),
      );
    }
  }),

  onStore("answer: of many at once, one is taken", async (bench) => {
    const claim = await bench.begin();
    await bench.store.ask(claim, question);
    const answers = Array.from({ length: 8 }, (_, pages) => ({ action: "accept", content: { pages } }) as const);
    const taken = await Promise.all(
      answers.map((answer) => bench.store.answer(bench.scope(), claim.taskId, "q1", answer)),
    );
    assert.equal(taken.filter(Boolean).length, 1);
    assert.deepEqual((await bench.read(claim.taskId)).questions[0]?.answer, answers[taken.indexOf(true)]);
  }),

  onStore("ask and answer: text and names come back as they went in", async (bench) => {
    const claim = await bench.begin();
    const awkward = JSON.parse(
      '{"__proto__":"p","constructor":"c","quote":"\\"\'\\\\","text":"🙂 \\u2028 é","n":1e-7,"none":null}',
    ) as Record<string, unknown>;
    const asked = await bench.store.ask(claim, {
      message: "Which “one”, O'Neil?\n",
      schema: { const: awkward },
      isConfirmation: true,
    });
    assert.equal(asked?.message, "Which “one”, O'Neil?\n");
    assert.equal(asked?.isConfirmation, true);
    await bench.store.answer(bench.scope(), claim.taskId, "q1", { action: "accept", content: awkward });
    const [read] = (await bench.read(claim.taskId)).questions;
    assert.equal(JSON.stringify(read?.schema), JSON.stringify({ const: awkward }));
    assert.equal(JSON.stringify(read?.answer), JSON.stringify({ action: "accept", content: awkward }));
  }),
];
