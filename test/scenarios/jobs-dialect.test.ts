/** What a client that declared `experimental["meanwhile/jobs"]` gets beside what every client gets. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { openPiped } from "../helpers/in-memory.ts";
import type { Fields, Json, WireOptions } from "../helpers/wire.ts";

const takesJobs: WireOptions = { revision: "2025-11-25", capabilities: { experimental: { "meanwhile/jobs": {} } } };
const plain: WireOptions = { revision: "2025-11-25" };

const deep = () => {
  const socket = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" });
  return new Error("no database", { cause: new TypeError("no connection", { cause: socket }) });
};

const commands: Readonly<Record<string, Command>> = {
  add: defineCommand({
    summary: "Add",
    input: z.object({ a: z.number() }),
    run: ({ a }) => ({ sum: a + 1 }),
  }),
  fail: defineCommand({ summary: "Fail", run: () => Promise.reject(deep()) }),
  slow: defineCommand({ summary: "Is a job", long: true, estimate: () => 1_000, run: () => Promise.reject(deep()) }),
  never: defineCommand({ summary: "Never a task", taskSupport: "forbidden", run: () => ({}) }),
};

const chain = "Error: no database\ncaused by TypeError: no connection\ncaused by Error: connect refused";
const place = /\nat test\/scenarios\/jobs-dialect\.test\.ts:\d+:\d+$/;

const envelopeOf = ({ structuredContent }: Json) => structuredContent as Fields;

describe("the result has success, data and messages at its top level", () => {
  test.each([
    ["a result", "add", { a: 1 }],
    ["a failure", "fail", {}],
    ["refused arguments", "add", { a: "one" }],
    ["the answer of a job", "slow", {}],
    ["a follow-up tool", "task_list", {}],
    ["a follow-up tool's no", "task_status", { job_id: "unknown" }],
  ])("of %s", async (_what, tool, input) => {
    const { call } = await openPiped({ commands, ...takesJobs });
    const result = await call(tool, input);
    const { success, data, messages } = envelopeOf(result);
    expect(result).toMatchObject({ success, data, messages });
    expect(result.success).toBe(result.isError !== true);
  });

  test("not for a client that did not declare the dialect, also with 2026-07-28", async () => {
    for (const options of [plain, { ...takesJobs, revision: "2026-07-28" }]) {
      const { call } = await openPiped({ commands, ...options });
      expect(Object.keys(await call("add", { a: 1 }))).not.toContain("success");
    }
  });
});

test("a tool that may become a task has async: true at its top level, for this dialect alone", async () => {
  const list = async (options: WireOptions) => {
    const { tools } = (await (await openPiped({ commands, ...options })).request("tools/list")).result as {
      tools: { name: string; async?: unknown }[];
    };
    return Object.fromEntries(tools.map((tool) => [tool.name, tool.async]));
  };
  expect(await list(takesJobs)).toMatchObject({ add: true, slow: true, never: undefined, task_result: undefined });
  expect(Object.values(await list(plain)).filter(Boolean)).toEqual([]);
});

describe("details of a failed run's message", () => {
  test("the chain of causes, and the place in the author's code for the local user; no stack", async () => {
    const { call, comes } = await openPiped({ commands, ...takesJobs });
    const { details } = envelopeOf(await call("fail")).messages.at(-1);
    expect(details.replace(place, "")).toBe(chain);
    expect(details).toMatch(place);
    await call("slow");
    const [told] = await comes("notifications/tool_result");
    expect(told?.params?.result.messages).toMatchObject([{ type: "error", text: "no database", details }]);
  });
});
