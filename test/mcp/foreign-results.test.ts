import path from "node:path";
import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.ts";
import type { Command } from "../../src/command/command.ts";
import type { JsonObject } from "../../src/command/foreign.ts";
import { ProtocolError } from "../../src/errors.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { foreign, serveForeign } from "../helpers/foreign.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { localKey } from "../helpers/server.ts";
import { type Fields, handleOf, takesTasks } from "../helpers/wire.ts";

const modern = "2026-07-28";
const legacy = "2025-11-25";
const plain = "2025-06-18";
const related = "io.modelcontextprotocol/related-task";

/** Everything that a result may have, and something that none has yet. */
const answer: JsonObject = {
  zeta: [1, null, { deep: "é\u2028" }],
  content: [
    { type: "text", text: "two\nlines", annotations: { priority: 1 } },
    { type: "image", data: "aGk=", mimeType: "image/png" },
    { type: "hologram", depth: 3 },
  ],
  structuredContent: { success: "theirs", data: [1] },
  _meta: { "their/key": { a: 1 }, other: null },
};
const refusal: JsonObject = { ...answer, isError: true, content: [{ type: "text", text: "No such page." }] };

const answers: Readonly<Record<string, JsonObject>> = { answer, refusal };

/** Tools that answer at once, and after 40 s, with each of them. */
function commandsOn(clock: FakeClock): Record<string, Command> {
  const slow = async (result: JsonObject, signal: AbortSignal) => {
    await sleep(clock, 40_000, signal);
    return result;
  };
  return {
    their_answer: foreign(async () => answer),
    their_refusal: foreign(async () => refusal),
    slow_answer: foreign((_input, { signal }) => slow(answer, signal), {}, { long: true }),
    slow_refusal: foreign((_input, { signal }) => slow(refusal, signal), {}, { long: true }),
    their_error: foreign(async () => {
      throw new ProtocolError(-32_042, "Needs a link", { url: "https://example.com", list: [1] });
    }),
  };
}

async function serve(file?: string, clock = new FakeClock()) {
  return await serveForeign(commandsOn(clock), { clock, ...(file !== undefined && { file }) });
}

/** The very bytes; `_meta` has ours beside theirs. */
function expectBytes(result: unknown, expected: JsonObject, own: JsonObject): void {
  const { resultType: _type, ...given } = result as Fields;
  const { _meta } = expected;
  // Since 2026-07-28 every answer says who gives it.
  if (given._meta !== undefined) delete given._meta["io.modelcontextprotocol/serverInfo"];
  expect(JSON.stringify({ ...given, _meta: undefined })).toBe(JSON.stringify({ ...expected, _meta: undefined }));
  expect(given._meta).toEqual({ ...(_meta as object), ...own });
  const theirs = Object.fromEntries(Object.entries(given._meta as object).filter(([key]) => !Object.hasOwn(own, key)));
  expect(JSON.stringify(theirs)).toBe(JSON.stringify(_meta));
}

describe.each(["answer", "refusal"])("a foreign %s passes word for word", (kind) => {
  const expected = answers[kind] as JsonObject;

  test.each([modern, legacy, plain])("to a client of %s that waits", async (revision) => {
    const server = await serve();
    const client = await server.connect({ revision });
    expectBytes(await server.settled(client.call(`their_${kind}`)), expected, {});
  });

  test("as a task of 2025-11-25", async () => {
    const server = await serve();
    const client = await server.connect({ revision: legacy });
    const { task } = await server.settled(client.call(`slow_${kind}`, {}, { task: {} }));
    const taskId = task?.taskId ?? "";
    const { result } = await server.settled(client.request("tasks/result", { taskId }));
    expectBytes(result, expected, { "meanwhile/call": { taskId }, [related]: { taskId } });
    const { result: state } = await server.settled(client.request("tasks/get", { taskId }));
    expect(state?.status).toBe(kind === "answer" ? "completed" : "failed");
  });

  test("as a task of 2026-07-28", async () => {
    const server = await serve();
    const client = await server.connect({ revision: modern, capabilities: takesTasks });
    const { taskId } = await server.settled(client.call(`slow_${kind}`));
    await server.settled(server.engine.wait(localKey, taskId ?? ""));
    const { result } = await server.settled(client.request("tasks/get", { taskId }));
    expect(result?.status).toBe("completed");
    expectBytes(result?.result, expected, { "meanwhile/call": { taskId } });
  });

  test("as the result of a job that is followed up", async () => {
    const server = await serve();
    const client = await server.connect({ revision: plain });
    const jobId = handleOf(await server.settled(client.call(`slow_${kind}`))).job_id;
    const result = await server.settled(client.call("task_result", { job_id: jobId }));
    expectBytes(result, expected, { "meanwhile/call": { taskId: jobId } });
  });

  test("in the notification of a job, as its data", async () => {
    const server = await serve();
    const capabilities = { experimental: { "meanwhile/jobs": {} } };
    const client = await server.connect({ revision: legacy, capabilities });
    const jobId = handleOf(await server.settled(client.call(`slow_${kind}`))).job_id;
    await server.settled(server.engine.wait(localKey, jobId));
    const told = await server.settled(client.comes("notifications/tool_result"));
    expect(told.params).toMatchObject({ job_id: jobId, result: { success: kind === "answer", passedOn: true } });
    expect(JSON.stringify(told.params?.result.data)).toBe(JSON.stringify(expected));
  });

  test("after the store was closed and opened again", async () => {
    const file = path.join(temporaryFolder(), "tasks.db");
    const first = await serve(file);
    const client = await first.connect({ revision: legacy });
    const { task } = await first.settled(client.call(`their_${kind}`, {}, { task: {} }));
    const taskId = task?.taskId ?? "";
    await first.settled(first.engine.wait(localKey, taskId));
    await first.close();
    const second = await serve(file, first.clock);
    const [old, fresh] = [
      await second.connect({ revision: legacy }),
      await second.connect({ revision: modern, capabilities: takesTasks }),
    ];
    const { result } = await second.settled(old.request("tasks/result", { taskId }));
    expectBytes(result, expected, { "meanwhile/call": { taskId }, [related]: { taskId } });
    const { result: state } = await second.settled(fresh.request("tasks/get", { taskId }));
    expectBytes(state?.result, expected, { "meanwhile/call": { taskId } });
  });
});

test("a call that is joined to another keeps the bytes, and its note stands in _meta", async () => {
  const server = await serve();
  const client = await server.connect({ revision: legacy });
  const { task } = await server.settled(client.call("slow_answer", {}, { task: {} }));
  server.clock.advance(30_000);
  const joined = await server.settled(client.call("slow_answer"));
  const note = expect.stringMatching(/^Joined the run started 30 s ago/);
  expectBytes(joined, answer, { "meanwhile/call": { taskId: task?.taskId, note } });
});

test("an error of the protocol passes with code, message and data, by every road", async () => {
  const server = await serve();
  const error = { code: -32_042, message: "Needs a link", data: { url: "https://example.com", list: [1] } };
  const old = await server.connect({ revision: legacy });
  expect((await server.settled(old.request("tools/call", { name: "their_error" }))).error).toEqual(error);
  const { task } = await server.settled(old.call("their_error", {}, { task: {} }));
  const taskId = task?.taskId ?? "";
  expect((await server.settled(old.request("tasks/result", { taskId }))).error).toEqual(error);
  const followed = old.request("tools/call", { name: "task_result", arguments: { job_id: taskId } });
  expect((await server.settled(followed)).error).toEqual(error);
  const fresh = await server.connect({ revision: modern, capabilities: takesTasks });
  expect((await server.settled(fresh.request("tasks/get", { taskId }))).result).toMatchObject({
    status: "failed",
    error,
  });
});

test("what no database would take is kept word for word; what is too large fails with a sentence that names the tool", async () => {
  let deep: JsonObject = {};
  for (let depth = 0; depth < 80; depth++) deep = { deep };
  const odd: Readonly<Record<string, JsonObject>> = {
    deep: { content: [], structuredContent: deep },
    half: { content: [{ type: "text", text: "\ud800 \0" }] },
    refused_half: { content: [{ type: "text", text: "\ud800 \0" }], isError: true },
    large: { content: [{ type: "text", text: "x".repeat(11 * 1024 * 1024) }] },
  };
  const clock = new FakeClock();
  const commands = Object.fromEntries(Object.entries(odd).map(([name, result]) => [name, foreign(async () => result)]));
  const server = await serveForeign(commands, { clock });
  const client = await server.connect({ revision: legacy });
  for (const [name, theirs] of Object.entries(odd)) {
    const { task } = await server.settled(client.call(name, {}, { task: {} }));
    const { result } = await server.settled(client.request("tasks/result", { taskId: task?.taskId }));
    const { _meta, ...own } = result ?? {};
    if (name !== "large") expect(own).toEqual(theirs);
    else expect(own.structuredContent.messages.at(-1).text).toMatch(/^large returned more than 10 MiB/);
  }
});
