import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/index.ts";
import { createHarness } from "../../src/testing/harness.ts";

// How an author tests a command as a task; docs/tasks.md shows the first one.

function open(commands: Parameters<typeof createHarness>[0]) {
  const harness = createHarness(commands);
  onTestFinished(() => harness.close());
  return harness;
}

test("A command runs as a task, without a database and without waiting.", async () => {
  const harness = open({
    add: defineCommand({ summary: "Add", input: z.object({ a: z.number() }), run: ({ a }) => ({ sum: a + 1 }) }),
  });
  const task = await harness.create("add", { a: 1 });
  await harness.settle();
  expect(await harness.get(task)).toMatchObject({ status: "completed", outcome: { data: { sum: 2 } } });
});

test("A question is answered by its key.", async () => {
  const harness = open({
    publish: defineCommand({
      summary: "Publish",
      run: (_input, task) => task.ask("Really?", z.object({ yes: z.boolean() })),
    }),
  });
  const task = await harness.create("publish");
  await harness.settle();
  expect(await harness.get(task)).toMatchObject({ status: "input_required" });
  await harness.answer(task, { q1: { action: "accept", content: { yes: true } } });
  await harness.settle();
  expect(await harness.get(task)).toMatchObject({ status: "completed", outcome: { data: { yes: true } } });
});

test("A retry comes when its time has come, and time is moved by hand.", async () => {
  const flaky = defineCommand({
    summary: "Flaky",
    retry: { attempts: 2, backoff: 60 },
    run(_input, task) {
      if (task.attempt === 1) throw new Error("not yet");
      return { attempt: task.attempt };
    },
  });
  const harness = open({ flaky });
  const task = await harness.create("flaky");
  await harness.settle();
  expect(await harness.get(task)).toMatchObject({
    status: "queued",
    statusMessage: "Attempt 1 failed (not yet); trying again in 60 s.",
  });
  harness.clock.advance(60_000);
  await harness.settle();
  expect(await harness.get(task)).toMatchObject({ status: "completed", outcome: { data: { attempt: 2 } } });
});

test("After a crash safe work runs again, with its steps remembered; unsafe work ends as interrupted.", async () => {
  let downloads = 0;
  const bothHang = Promise.withResolvers<void>();
  const hang = () => {
    if (downloads === 2) bothHang.resolve();
    return new Promise(() => {});
  };
  const run = async (_input: unknown, task: { step<T>(name: string, work: () => T): Promise<T>; attempt: number }) => {
    await task.step("download", () => ++downloads);
    if (task.attempt === 1) await hang();
    return { downloads };
  };
  const harness = open({
    safe: defineCommand({ summary: "Safe", idempotent: true, run }),
    unsafe: defineCommand({ summary: "Unsafe", run }),
  });
  const safe = await harness.create("safe");
  const unsafe = await harness.create("unsafe");
  void harness.settle();
  await bothHang.promise;
  await harness.crash();
  await harness.settle();
  expect(await harness.get(safe)).toMatchObject({ status: "completed", crashes: 1 });
  expect(await harness.get(unsafe)).toMatchObject({ status: "failed", outcome: { cause: "interrupted" } });
  expect(downloads).toBe(2);
});

test("The client's folders are given, and known to a later attempt without being asked for again.", async () => {
  const seen: unknown[] = [];
  const harness = createHarness(
    {
      look: defineCommand({
        summary: "Look",
        effects: "read",
        retry: { attempts: 2, backoff: 1 },
        async run(_input, task) {
          seen.push(await task.roots());
          if (task.attempt === 1) throw new Error("once more");
        },
      }),
    },
    { roots: [{ uri: "file:///work", name: "work" }, { uri: "file:///more" }] },
  );
  onTestFinished(() => harness.close());
  const task = await harness.create("look");
  await harness.settle();
  harness.clock.advance(1_000);
  await harness.settle();
  const ended = await harness.get(task);
  expect(ended).toMatchObject({ status: "completed", questions: [{ key: "q1" }] });
  const roots = [{ uri: "file:///work", name: "work" }, { uri: "file:///more" }];
  expect(seen).toEqual([roots, roots]);
});

test("Without folders there are none, and nobody is asked.", async () => {
  const harness = open({ look: defineCommand({ summary: "Look", run: async (_input, task) => await task.roots() }) });
  const task = await harness.create("look");
  await harness.settle();
  expect(await harness.get(task)).toMatchObject({ status: "completed", questions: [], outcome: { data: [] } });
});
