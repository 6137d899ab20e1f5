import { expect, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../../src/clock.ts";
import { defineCommand } from "../../../src/command/command.ts";
import { content, image } from "../../../src/command/content.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { openPiped } from "../../helpers/in-memory.ts";
import type { Message } from "../../helpers/wire.ts";

const revision = "2025-11-25";
const takesJobs = { experimental: { "meanwhile/jobs": {} } };
const greeting = { output: z.object({ greeting: z.string() }) };

const greet = defineCommand({
  summary: "Ask for a name in the middle",
  long: true,
  ...greeting,
  async run(_input, task) {
    task.progress({ percentage: 30, message: "Getting ready" });
    const { name } = await task.ask("What is your name?", z.object({ name: z.string().min(1) }));
    task.progress({ percentage: 60, message: "Greeting" });
    return { greeting: `Hello, ${name}!` };
  },
});

const valuesOf = (progress: readonly Message[]) => progress.map(({ params }) => params?.progress as number);
const rising = (values: readonly number[]) => [...new Set(values)].toSorted((a, b) => a - b);

test("a job's client that can show questions is asked by elicitation/create, and the job ends with the answer", async () => {
  const { call, comes, respond, of } = await openPiped({
    commands: { say_hello: greet },
    revision,
    capabilities: { ...takesJobs, elicitation: {} },
  });
  const { structuredContent } = await call("say_hello");
  const job_id = structuredContent?.data.job_id;
  const [asked] = await comes("elicitation/create");
  expect(asked?.params).toMatchObject({
    message: "What is your name?",
    requestedSchema: { properties: { name: { type: "string" } } },
  });
  await respond(asked, { action: "accept", content: { name: "Ada" } });
  const [told] = await comes("notifications/tool_result");
  expect(told?.params).toMatchObject({ job_id, result: { success: true, data: { greeting: "Hello, Ada!" } } });
  expect(of("elicitation/create")).toHaveLength(1);
  const values = valuesOf(of("notifications/progress"));
  expect(values).toEqual(rising(values));
});

test("so is one whose job asks for leave: what is confirmed is done, what is declined is not", async () => {
  const erased: string[] = [];
  const erase = defineCommand({
    summary: "Erase a file",
    long: true,
    effects: "destroy",
    confirm: ({ file }) => `Erase ${file}?`,
    input: z.object({ file: z.string() }),
    run: ({ file }) => void erased.push(file),
  });
  const { call, comes, respond } = await openPiped({
    commands: { files_erase: erase },
    revision,
    capabilities: { ...takesJobs, elicitation: {} },
  });
  await call("files_erase", { file: "a" });
  await respond((await comes("elicitation/create", 1))[0], { action: "accept", content: { confirm: true } });
  await comes("notifications/tool_result", 1);
  await call("files_erase", { file: "b" });
  await respond((await comes("elicitation/create", 2))[1], { action: "decline" });
  const told = await comes("notifications/tool_result", 2);
  expect(told.map(({ params }) => params?.result)).toMatchObject([
    { success: true, messages: [{ type: "success" }] },
    { success: false, messages: [{ type: "error" }] },
  ]);
  expect(erased).toEqual(["a"]);
});

test("a client that cannot show questions is told in a progress message how to answer", async () => {
  const { call, comes, of } = await openPiped({ commands: { say_hello: greet }, revision, capabilities: takesJobs });
  const job_id = (await call("say_hello")).structuredContent?.data.job_id;
  const progress = await comes("notifications/progress", 2);
  expect(progress.map(({ params }) => params?.message)).toContainEqual(
    expect.stringMatching(`What is your name\\?.*meanwhile tasks answer ${String(job_id)}`),
  );
  expect(of("elicitation/create")).toEqual([]);
  await call("task_answer", { job_id, answers: { q1: { name: "Bob" } } });
  const [told] = await comes("notifications/tool_result");
  expect(told?.params).toMatchObject({ job_id, result: { success: true, data: { greeting: "Hello, Bob!" } } });
  const all = of("notifications/progress");
  expect(valuesOf(all)).toEqual(rising(valuesOf(all)));
  expect(all.at(-1)?.params).toMatchObject({ progress: 0.6, message: "Greeting" });
});

test("the result of a command that gives content(…) carries it", async () => {
  const draw = defineCommand({
    summary: "Draw",
    long: true,
    effects: "read",
    run: () => content("a cat", image("R0lGODlhAQABAAAAACw=", "image/gif")),
  });
  const { call, comes } = await openPiped({ commands: { art_draw: draw }, revision, capabilities: takesJobs });
  const job_id = (await call("art_draw")).structuredContent?.data.job_id;
  const [told] = await comes("notifications/tool_result");
  const blocks = [
    { type: "text", text: "a cat" },
    { type: "image", data: "R0lGODlhAQABAAAAACw=", mimeType: "image/gif" },
  ];
  expect(told?.params).toMatchObject({ job_id, result: { success: true, content: blocks } });
});

test("two equal calls on one connection are one job, and told once: progress rises strictly, and there is one result", async () => {
  const clock = new FakeClock();
  const { call, comes, of, pass } = await openPiped({
    commands: { work_steps: stepping(clock) },
    clock,
    revision,
    capabilities: takesJobs,
  });
  const [first, second] = [await call("work_steps"), await call("work_steps")];
  expect(second.structuredContent?.data.job_id).toBe(first.structuredContent?.data.job_id);
  expect(second.structuredContent?.messages.map(({ text }) => text)).toContainEqual(
    expect.stringContaining("Joined the run"),
  );
  await comes("notifications/tool_result");
  await pass(5_000);
  expect(of("notifications/tool_result")).toHaveLength(1);
  const values = valuesOf(of("notifications/progress"));
  expect(values).toEqual(rising(values));
  expect(values).toEqual([0.25, 0.5, 0.75, 1]);
  const third = await call("work_steps");
  expect(third.structuredContent?.data.job_id, "once it has ended, it is a new job").not.toBe(
    first.structuredContent?.data.job_id,
  );
  expect(await comes("notifications/tool_result", 2)).toHaveLength(2);
});

function stepping(clock: FakeClock) {
  return defineCommand({
    summary: "Take four seconds",
    long: true,
    async run(_input, task) {
      for (let done = 1; done <= 4; done++) {
        await sleep(clock, 1_000, task.signal);
        task.progress({ done, total: 4 });
      }
      return {};
    },
  });
}
