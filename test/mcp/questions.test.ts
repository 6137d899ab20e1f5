import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { local, openPiped, type Piped } from "../helpers/in-memory.ts";
import { type Result, takesTasks } from "../helpers/wire.ts";

const minute = 60_000;
const accept = (content: object) => ({ action: "accept", content });
const nameSchema = z.object({ name: z.string().min(1) });

/** Asks for two names, one after the other; what its runs were given is remembered. */
function asking(more: { long?: boolean } = {}) {
  const runs: CommandContext[] = [];
  const command = defineCommand({
    summary: "Ask for two names",
    ...more,
    output: z.object({ names: z.string() }),
    async run(_input, task) {
      runs.push(task);
      const first = await task.ask("The first name?", nameSchema);
      const second = await task.ask("The second name?", nameSchema);
      return { names: `${first.name} and ${second.name}` };
    },
  });
  return { command, runs };
}

function erasing() {
  const erased: string[] = [];
  const command = defineCommand({
    summary: "Erase a file",
    long: true,
    effects: "destroy",
    confirm: ({ file }) => `Erase ${file}?`,
    input: z.object({ file: z.string() }),
    run: ({ file }) => void erased.push(file),
  });
  return { command, erased };
}

describe("2026-07-28, a call that was sent back with a question", () => {
  const elicits = { revision: "2026-07-28", capabilities: { elicitation: {} } };
  const comeBack = async (piped: Piped, { requestState }: Result, inputResponses: object) =>
    await piped.request("tools/call", { name: "ask_names", arguments: {}, requestState, inputResponses });

  test("is not cancelled by the server that it waits on, when its client has come back to another", async () => {
    const { command, runs } = asking();
    const clock = new FakeClock();
    const both = { commands: { ask_names: command }, clock, store: new MemoryStore(clock), ...elicits };
    const [here, there] = [await openPiped(both), await openPiped(both)];
    const first = await here.call("ask_names");
    await here.pass(30 * minute);
    const second = (await comeBack(there, first, { q1: accept({ name: "Ada" }) })).result as Result;
    expect(second).toMatchObject({ inputRequests: { q2: { params: { message: "The second name?" } } } });
    await here.pass(45 * minute);
    const { result } = await comeBack(there, second, { q2: accept({ name: "Eve" }) });
    expect(result).toMatchObject({ structuredContent: { data: { names: "Ada and Eve" } } });
    expect(runs).toHaveLength(1);
  });

  test("is cancelled when nobody has come back to it for an hour: its state is void then", async () => {
    const { command, runs } = asking();
    const piped = await openPiped({ commands: { ask_names: command }, ...elicits });
    const first = await piped.call("ask_names");
    expect(first).toMatchObject({
      resultType: "input_required",
      inputRequests: { q1: { params: { message: "The first name?" } } },
    });
    await piped.pass(59 * minute);
    expect(runs[0]?.signal.aborted).toBe(false);
    await piped.pass(minute);
    expect(runs[0]?.signal.aborted).toBe(true);
    const { tasks } = await piped.engine.list(local, { withCalls: true });
    expect(tasks).toMatchObject([
      { status: "cancelled", statusMessage: "Nobody answered its question within an hour." },
    ]);
    expect((await comeBack(piped, first, { q1: accept({ name: "Ada" }) })).error).toMatchObject({ code: -32602 });
    expect(runs).toHaveLength(1);
  });

  test("has an hour again with every question, and ends like any other when its client comes back in time", async () => {
    const { command, runs } = asking();
    const piped = await openPiped({ commands: { ask_names: command }, ...elicits });
    const first = await piped.call("ask_names");
    await piped.pass(50 * minute);
    const refused = await comeBack(piped, first, { q1: accept({ name: "" }) });
    expect(refused.result, "an answer that does not fit is asked for again").toMatchObject({
      resultType: "input_required",
    });
    await piped.pass(50 * minute);
    const second = await comeBack(piped, refused.result as Result, { q1: accept({ name: "Ada" }) });
    expect(second.result).toMatchObject({
      resultType: "input_required",
      inputRequests: { q2: { params: { message: "The second name?" } } },
    });
    await piped.pass(50 * minute);
    const done = await comeBack(piped, second.result as Result, { q2: accept({ name: "Bob" }) });
    expect(done.result?.structuredContent).toMatchObject({ success: true, data: { names: "Ada and Bob" } });
    await piped.pass(2 * 60 * minute);
    const { tasks } = await piped.engine.list(local, { withCalls: true });
    expect(tasks.filter(({ status }) => status !== "completed")).toEqual([]);
    expect(runs).toHaveLength(1);
  });
});

describe("2026-07-28, tasks/update", () => {
  test("from a client that cannot show questions confirms nothing: no person has seen it", async () => {
    const { command, erased } = erasing();
    const piped = await openPiped({
      commands: { files_erase: command },
      revision: "2026-07-28",
      capabilities: takesTasks,
    });
    const { taskId } = await piped.call("files_erase", { file: "a" });
    await piped.pass(100);
    expect(await piped.engine.get(local, taskId)).toMatchObject({
      status: "input_required",
      questions: [{ key: "q1", message: "Erase a?" }],
    });
    for (const answer of [accept({ confirm: true }), accept({}), { action: "decline" }, { action: "cancel" }]) {
      await piped.request("tasks/update", { taskId, inputResponses: { q1: answer } });
      await piped.pass(1_000);
      const { status, questions } = await piped.engine.get(local, taskId);
      expect({ status, answer: questions[0]?.answer }, JSON.stringify(answer)).toEqual({
        status: "input_required",
        answer: undefined,
      });
    }
    expect(erased).toEqual([]);
    expect(
      await piped.engine.answer(local, taskId as string, { q1: { action: "accept", content: { confirm: true } } }),
    ).toBe(true);
    await piped.pass(100);
    expect(erased, "a person can, elsewhere").toEqual(["a"]);
  });

  test.each([
    ["without one", {}],
    ["of another word", { action: "yes", content: { name: "Ada" } }],
    ["that is no word", { action: true, content: { name: "Ada" } }],
    ["in other letters", { action: "Accept", content: { name: "Ada" } }],
  ])("with an action %s is refused with -32602, and the question stays open", async (_title, response) => {
    const { command, runs } = asking({ long: true });
    const piped = await openPiped({
      commands: { ask_names: command },
      revision: "2026-07-28",
      capabilities: { ...takesTasks, elicitation: {} },
    });
    const { taskId } = await piped.call("ask_names");
    await piped.pass(100);
    expect(await piped.request("tasks/update", { taskId, inputResponses: { q1: response } })).toMatchObject({
      error: { code: -32602 },
    });
    await piped.pass(1_000);
    expect((await piped.request("tasks/get", { taskId })).result).toMatchObject({
      status: "input_required",
      inputRequests: { q1: { params: { message: "The first name?" } } },
    });
    await piped.request("tasks/update", { taskId, inputResponses: { q1: accept({ name: "Ada" }) } });
    await piped.request("tasks/update", { taskId, inputResponses: { q2: accept({ name: "Bob" }) } });
    await piped.pass(100);
    const { result } = await piped.request("tasks/get", { taskId });
    expect(result).toMatchObject({
      status: "completed",
      result: { structuredContent: { data: { names: "Ada and Bob" } } },
    });
    expect(runs).toHaveLength(1);
  });
});

describe("2025-11-25, a question that a client shows is taken back", () => {
  /** A task that asks, and the request for an answer that its client has got. */
  async function shown() {
    const { command } = asking();
    const piped = await openPiped({
      commands: { ask_names: command },
      revision: "2025-11-25",
      capabilities: { elicitation: {} },
    });
    const { task } = await piped.call("ask_names", {}, { task: {} });
    const [asked] = await piped.comes("elicitation/create");
    expect(asked?.params).toMatchObject({ message: "The first name?" });
    return { ...piped, taskId: task?.taskId ?? "", asked };
  }

  test("when its task is cancelled", async () => {
    const { request, comes, of, pass, taskId, asked } = await shown();
    await request("tasks/cancel", { taskId });
    expect((await comes("notifications/cancelled")).map(({ params }) => params?.requestId)).toEqual([asked?.id]);
    await pass(minute);
    expect(of("elicitation/create")).toHaveLength(1);
  });

  test("when it is answered elsewhere; the next question is shown, and the task goes on to its end", async () => {
    const { call, request, comes, respond, taskId, asked } = await shown();
    await call("task_answer", { job_id: taskId, answers: { q1: { name: "Ada" } } });
    expect((await comes("notifications/cancelled")).map(({ params }) => params?.requestId)).toEqual([asked?.id]);
    const [, next] = await comes("elicitation/create", 2);
    await respond(next, accept({ name: "Bob" }));
    const { result } = await request("tasks/result", { taskId });
    expect(result?.structuredContent).toMatchObject({ success: true, data: { names: "Ada and Bob" } });
    expect((await comes("notifications/cancelled")).map(({ params }) => params?.requestId)).toEqual([asked?.id]);
  });

  test("also while the client waits in tasks/result, where it was shown only once", async () => {
    const { client, request, comes, of, pass, taskId, asked } = await shown();
    const waiting = client.request("tasks/result", { taskId });
    await pass(100);
    expect(of("elicitation/create")).toHaveLength(1);
    await request("tasks/cancel", { taskId });
    expect((await comes("notifications/cancelled")).map(({ params }) => params?.requestId)).toEqual([asked?.id]);
    expect((await waiting).result).toMatchObject({ isError: true });
  });
});
