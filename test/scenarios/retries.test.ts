/** `retry` of a command: inline calls, calls that become tasks, tasks from the start. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Command, type CommandDefinition, defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import type { Schema } from "../../src/command/schema.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openPiped, type Piped, type PipedOptions } from "../helpers/in-memory.ts";
import { progressOf } from "../helpers/rules.ts";
import { handleOf, type Result } from "../helpers/wire.ts";

type Definition = Partial<CommandDefinition<Schema<Record<string, never>>, Schema<unknown>>>;

interface Flaky {
  readonly command: Command;
  readonly clock: FakeClock;
  /** `task.attempt` of each run. */
  readonly seen: number[];
}

/** A command whose first attempts fail, each after `runMs`. */
function flaky(failures: number, runMs = 0, more: Definition = {}): Flaky {
  const clock = new FakeClock();
  const seen: number[] = [];
  const command = defineCommand({
    summary: "Fails at first",
    retry: { attempts: 3, backoff: 2 },
    ...more,
    async run(_input: unknown, task: CommandContext) {
      seen.push(task.attempt);
      if (runMs > 0) await new Promise<void>((resolve) => clock.after(runMs, resolve));
      await more.run?.({}, task);
      if (seen.length <= failures) throw new Error("no luck");
      return { attempt: task.attempt };
    },
  } as CommandDefinition<Schema<Record<string, never>>, Schema<unknown>>);
  return { command, clock, seen };
}

const open = ({ command, clock }: Flaky, more: Partial<PipedOptions> = {}) =>
  openPiped({ commands: { do_it: command }, clock, revision: "2025-11-25", ...more });

/** Lets time pass in steps in which every timer fires when it is due. */
async function passExactly(pipe: Piped, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 100) await pipe.pass(100);
}

const aboutCall = (result: Result) => result._meta?.["meanwhile/call"] as Record<string, unknown>;
const textsOf = (result: Result) => result.structuredContent?.messages.map(({ text }) => text);
const failed = (attempt: number, seconds: number) =>
  `Attempt ${attempt} failed (no luck); trying again in ${seconds} s.`;

describe.each(["2025-06-18", "2025-11-25", "2026-07-28"])("an inline call (%s)", (revision) => {
  test("is tried again, after the pauses of its rule, and says so", async () => {
    const about = flaky(2);
    const pipe = await open(about, { revision });
    const startedAt = about.clock.now();
    const result = await pipe.call("do_it");
    expect(result.structuredContent).toMatchObject({ success: true, data: { attempt: 3 } });
    expect(textsOf(result)?.slice(0, 2)).toEqual([failed(1, 2), failed(2, 4)]);
    expect(aboutCall(result)).toMatchObject({ attempts: 3 });
    expect(about.clock.now() - startedAt).toBeGreaterThanOrEqual(6_000);
    expect(about.seen).toEqual([1, 2, 3]);
  });

  test("fails with its last error and the number of attempts", async () => {
    const about = flaky(9);
    const result = await (await open(about, { revision })).call("do_it");
    expect(result).toMatchObject({ isError: true });
    expect(textsOf(result)).toEqual([failed(1, 2), failed(2, 4), "no luck"]);
    expect(aboutCall(result)).toMatchObject({ attempts: 3 });
  });
});

test("an inline call without `retry` runs once, and its result has no number of attempts", async () => {
  const about = flaky(1, 0, { retry: undefined as never });
  const pipe = await open(about);
  const result = await pipe.call("do_it");
  expect([result.isError, aboutCall(result).attempts, about.seen]).toEqual([true, undefined, [1]]);
});

test("the last progress of a command that returns at once is sent, and before its result", async () => {
  const clock = new FakeClock();
  const command = defineCommand({
    summary: "Two reports in one turn",
    retry: { attempts: 2 },
    run(_input, task) {
      for (const done of [1, 2]) task.progress({ done, total: 2 });
      return {};
    },
  });
  const pipe = await open({ command, clock, seen: [] });
  const _meta = { progressToken: "p" };
  await pipe.settled(pipe.client.request("tools/call", { name: "do_it", arguments: {}, _meta }));
  expect(progressOf(pipe.client.received, "p").map(({ progress }) => progress)).toEqual([1, 2]);
  expect(pipe.client.received.at(-1)).toHaveProperty("result");
});

test("the duration of an inline call is the sum of its attempts", async () => {
  const about = flaky(2, 500);
  const result = await (await open(about)).call("do_it");
  expect(aboutCall(result).durationMs).toBe(1_500);
  expect(textsOf(result)?.at(-1)).toBe("do_it finished in 1.5 s");
});

test("a step that an earlier attempt finished is not run again", async () => {
  const steps: number[] = [];
  const about = flaky(1, 0, { run: (_input, task) => task.step("once", () => steps.push(task.attempt)) });
  await (await open(about)).call("do_it");
  expect([about.seen, steps]).toEqual([[1, 2], [1]]);
});

test("a person is asked once, and the time of the answer does not count", async () => {
  const ask = (task: CommandContext) => task.ask("Really?", z.object({ yes: z.boolean() }));
  const about = flaky(1, 500, { run: (_input, task) => ask(task) });
  const pipe = await open(about, { capabilities: { elicitation: {} } });
  const called = pipe.client.call("do_it");
  const [asked] = await pipe.comes("elicitation/create");
  await pipe.pass(7_000);
  await pipe.respond(asked, { action: "accept", content: { yes: true } });
  const result = await pipe.settled(called);
  expect(result.structuredContent?.data).toEqual({ attempt: 2 });
  expect(pipe.of("elicitation/create")).toHaveLength(1);
  expect(aboutCall(result).durationMs).toBe(1_000);
});

test("a person's no is not asked for again", async () => {
  const ask = (task: CommandContext) => task.ask("Really?", z.object({ yes: z.boolean() }));
  const about = flaky(1, 0, { run: (_input, task) => ask(task) });
  const pipe = await open(about, { capabilities: { elicitation: {} } });
  const called = pipe.client.call("do_it");
  const [asked] = await pipe.comes("elicitation/create");
  await pipe.respond(asked, { action: "decline" });
  expect(await pipe.settled(called)).toMatchObject({ isError: true });
  expect(about.seen).toEqual([1]);
});

test("a cancel during the pause ends the call, and no other attempt begins", async () => {
  const about = flaky(9, 0, { retry: { attempts: 3, backoff: 5 } });
  const pipe = await open(about);
  const { id } = pipe.client.start("tools/call", { name: "do_it", arguments: {} });
  await pipe.pass(1_000);
  expect(about.seen).toEqual([1]);
  await pipe.client.notify("notifications/cancelled", { requestId: id });
  await pipe.pass(60_000);
  expect(about.seen).toEqual([1]);
});

test("a call that becomes a task during a pause goes on with its attempts", async () => {
  const about = flaky(2, 0, { retry: { attempts: 3, backoff: 100 } });
  const pipe = await open(about);
  const handle = handleOf(await pipe.call("do_it"));
  expect(handle.status).toBe("working");
  const status = await pipe.call("task_status", { job_id: handle.job_id });
  expect(JSON.stringify(status)).toContain(failed(1, 100));
  let result = await pipe.call("task_result", { job_id: handle.job_id, wait_seconds: 50 });
  while (result.structuredContent?.data.job_id !== undefined)
    result = await pipe.call("task_result", { job_id: handle.job_id, wait_seconds: 50 });
  expect(result.structuredContent).toMatchObject({ success: true, data: { attempt: 3 } });
  expect(textsOf(result)?.slice(0, 2)).toEqual([failed(1, 100), failed(2, 200)]);
  expect(aboutCall(result)).toMatchObject({ attempts: 3, taskId: handle.job_id });
  expect(about.seen).toEqual([1, 2, 3]);
});

test("a call that became a task and fails every time runs as often as its rule says", async () => {
  const about = flaky(9, 0, { retry: { attempts: 2, backoff: 100 } });
  const pipe = await open(about);
  const { job_id } = handleOf(await pipe.call("do_it"));
  await pipe.pass(600_000);
  const result = await pipe.call("task_result", { job_id });
  expect(textsOf(result)).toEqual([failed(1, 100), "no luck"]);
  expect(about.seen).toEqual([1, 2]);
});

describe("a task from the start", () => {
  const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} }, elicitation: {} };
  const start = async (about: Flaky) => {
    const pipe = await open(about, { revision: "2026-07-28", capabilities });
    const { taskId } = await pipe.call("do_it");
    const get = async () => (await pipe.request("tasks/get", { taskId: taskId ?? "" })).result as Result;
    return { pipe, taskId, get };
  };

  test("its duration is the sum of its attempts, and its result names them", async () => {
    const about = flaky(2, 500, { long: true });
    const { pipe, get } = await start(about);
    await passExactly(pipe, 15_000);
    const { status, result } = (await get()) as unknown as { status: string; result: Result };
    expect(status).toBe("completed");
    expect(aboutCall(result)).toMatchObject({ durationMs: 1_500, attempts: 3 });
    expect(textsOf(result)).toEqual([failed(1, 2), failed(2, 4), "do_it finished in 1.5 s"]);
  });

  test("the time in which a person was asked does not count, also where the task is cancelled then", async () => {
    const ask = (task: CommandContext) => task.ask("Really?", z.object({ yes: z.boolean() }));
    const about = flaky(0, 500, { long: true, run: (_input, task) => ask(task) });
    const { pipe, taskId, get } = await start(about);
    await passExactly(pipe, 10_000);
    const asked = (await get()) as unknown as { status: string; inputRequests: Record<string, unknown> };
    expect(asked.status).toBe("input_required");
    const responses = Object.fromEntries(
      Object.keys(asked.inputRequests).map((key) => [key, { action: "accept", content: { yes: true } }]),
    );
    await pipe.request("tasks/update", { taskId: taskId ?? "", inputResponses: responses });
    await passExactly(pipe, 1_000);
    const { result } = (await get()) as unknown as { result: Result };
    expect(aboutCall(result).durationMs).toBe(500);

    const second = await pipe.call("do_it", {}, { meta: { "meanwhile/new": true } });
    await passExactly(pipe, 10_000);
    await pipe.request("tasks/cancel", { taskId: second.taskId ?? "" });
    const { structuredContent, _meta } = await pipe.call("task_result", { job_id: second.taskId ?? "" });
    expect(structuredContent).toMatchObject({ success: false });
    expect(aboutCall({ _meta: _meta ?? {} }).durationMs).toBe(500);
  });
});
