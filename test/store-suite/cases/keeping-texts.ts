import assert from "node:assert/strict";
import type { TaskOutcome } from "../../../src/task/task.ts";
import type { StoreCase } from "../store-suite.ts";
import { assertTask, type Bench, broken, done, onStore, question } from "./bench.ts";

/** What databases refuse, replace, or take for an end, in the middle of what they would keep. */
const awkwardTexts: Readonly<Record<string, string>> = {
  "a NUL": "a\u0000b",
  "half a surrogate pair": "a\ud83db\ude42",
  "a substitute and a replacement": "\u001a0000 \u001a \ufffd",
  "signs of every kind": "Ünïcödé 🙂 \u2028 \\ ' \" % _ $1 :x {}",
};

async function comesBack(bench: Bench, text: string): Promise<void> {
  const facts = {
    taskId: `id ${text}`,
    caller: `caller ${text}`,
    project: `project ${text}`,
    command: `command ${text}`,
    digest: `digest ${text}`,
    idempotencyKey: `key ${text}`,
    reason: text,
    progressToken: text,
    environment: { [`name ${text}`]: text },
  };
  const origin = { door: "mcp", folder: text } as const;
  const made = await bench.create({ ...facts, origin, input: { [text]: text } });
  assert.equal(made.kind, "created");
  const scope = bench.scope(facts.caller);
  assertTask(await bench.read(facts.taskId, facts.caller), { ...facts, origin, input: { [text]: text } });
  assert.equal((await bench.create({ ...facts, taskId: "other" })).kind, "repeated");
  const joining = { ...facts, taskId: "other", idempotencyKey: undefined };
  assert.equal((await bench.create(joining, { joinsEqual: true })).kind, "joined");
  assert.equal((await bench.store.list(scope, { limit: 9, project: facts.project })).tasks.length, 1);
  const differs = { [`name ${text}`]: "another" };
  assert.equal(await bench.claim({ project: facts.project, environment: differs }), undefined);
  const shares = { full: [], fullOfEndless: [], turns: [[facts.caller, 1]] } as const;
  const claimed = await bench.claim({ project: facts.project, worker: `worker ${text}`, shares });
  assert.equal(claimed?.taskId, facts.taskId);
  assert.deepEqual(await bench.store.workers(), [`worker ${text}`]);
  const claim = { taskId: facts.taskId, fence: 1 };
  await bench.store.report(claim, { statusMessage: text, progress: { value: 1, message: text } });
  assertTask(await bench.read(facts.taskId, facts.caller), {
    statusMessage: text,
    progress: { value: 1, message: text },
  });
  await bench.store.keepStep(claim, `step ${text}`, JSON.stringify(text));
  assert.deepEqual([...(await bench.store.steps(facts.taskId))], [[`step ${text}`, JSON.stringify(text)]]);
  const asked = await bench.store.ask(claim, { ...question, key: text, message: text });
  assert.deepEqual([asked?.key, asked?.message], [text, text]);
  assert.equal((await bench.store.ask(claim, { ...question, key: text }))?.key, `r2/${text}`);
  const answer = { action: "accept", content: { [text]: text } } as const;
  assert.equal(await bench.store.answer(scope, facts.taskId, text, answer), true);
  const [first, second] = (await bench.read(facts.taskId, facts.caller)).questions;
  assert.deepEqual([first?.answer, second?.answer], [answer, undefined]);
  const outcome = { ...done, data: { [text]: text }, foreign: JSON.stringify({ text }) } as TaskOutcome;
  assert.equal(await bench.store.settle(claim, outcome), true);
  assertTask(await bench.read(facts.taskId, facts.caller), { outcome });
}

export const textCases: readonly StoreCase[] = [
  ...Object.entries(awkwardTexts).map(([what, text]) =>
    onStore(`text: ${what} comes back as it went in, and is told apart, wherever there is text`, (bench) =>
      comesBack(bench, text),
    ),
  ),

  ...Object.entries(awkwardTexts).map(([what, text]) =>
    onStore(`text: ${what} comes back in the words of who cancels, fails or is asked in vain`, async (bench) => {
      const cancelled = await bench.begin();
      await bench.store.cancel(bench.scope(), cancelled.taskId, text);
      const failed = await bench.begin();
      await bench.store.settle(failed, { ...broken, message: text } as TaskOutcome);
      const lapsed = await bench.begin();
      await bench.store.ask(lapsed, { ...question, message: text, limitMs: 1_000 });
      bench.clock.advance(1_000);
      assert.deepEqual(await bench.store.lapse(), [lapsed.taskId]);
      for (const { taskId } of [cancelled, failed, lapsed]) {
        const task = await bench.read(taskId);
        assert.ok(task.statusMessage?.includes(text), JSON.stringify(task.statusMessage));
        assert.equal((task as { outcome?: { message?: string } }).outcome?.message, task.statusMessage);
      }
    }),
  ),

  onStore("settle: ten million characters come back as they went in", async (bench) => {
    const data = { text: "0123456789abcde\u0000".repeat(640 * 1024), half: "\ud83d".repeat(1_000) };
    const claim = await bench.begin({ input: data });
    assert.equal(await bench.store.settle(claim, { ...done, data } as TaskOutcome), true);
    const task = await bench.read(claim.taskId);
    // Compared without words: what differs would be printed.
    assert.ok(JSON.stringify(task.input) === JSON.stringify(data), "the input differs");
    const { outcome } = task as { outcome?: TaskOutcome };
    assert.ok(JSON.stringify(outcome) === JSON.stringify({ ...done, data }), "the outcome differs");
  }),
];
