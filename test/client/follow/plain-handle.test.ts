import { describe, expect, test } from "vitest";
import type { Tool } from "../../../src/client/client.ts";
import { followUpPrefix, isFollowable, readHandle, toSnapshot } from "../../../src/client/follow/plain-handle.ts";

const next_action = { tool: "task_result", arguments: { job_id: "j1", wait_seconds: 30, seen: 4 } };
const handle = {
  job_id: "j1",
  status: "working",
  estimated_runtime_seconds: 60,
  progress: { percentage: 20, message: "Page 2" },
  next_action,
};
const tool = (name: string, more: object = {}): Tool => ({
  name,
  inputSchema: { properties: { job_id: {} } },
  ...more,
});

describe("a handle is found", () => {
  test.each([
    ["in an envelope", { structuredContent: { success: true, data: handle, messages: [] } }],
    ["at the top level", { structuredContent: handle }],
    [
      "in the text, when there is nothing else",
      { content: [{ type: "text", text: JSON.stringify({ data: handle }) }] },
    ],
    [
      "in the text, behind a sentence",
      { content: [{ type: "text", text: `It goes on.\n${JSON.stringify({ data: handle })}` }] },
    ],
  ])("%s", (_, result) => {
    expect(readHandle(result)).toMatchObject({ jobId: "j1", status: "working", next: next_action });
  });

  test("as a job, when it says no next action but an estimate", () => {
    const data = { job_id: "j1", estimated_runtime_seconds: null, status: "queued" };
    expect(readHandle({ structuredContent: { data } })).toMatchObject({ jobId: "j1", next: undefined });
  });
});

test("an answer is a job's without an estimate, if the server says that its call is that task", () => {
  const structuredContent = { data: { job_id: "j1", status: "queued" } };
  const found = readHandle({ structuredContent, _meta: { "meanwhile/call": { taskId: "j1" } } });
  expect(found).toMatchObject({ jobId: "j1", next: undefined });
  expect(readHandle({ structuredContent, _meta: { "meanwhile/call": { taskId: "j2" } } })).toBeUndefined();
});

describe("a result is a result", () => {
  test.each([
    ["that says no", { isError: true, structuredContent: { data: handle } }],
    ["that is only text", { content: [{ type: "text", text: "job_id: j1" }] }],
    ["whose text is broken JSON", { content: [{ type: "text", text: '{"job_id":' }] }],
    [
      "whose structure counts although its text looks like a handle",
      { structuredContent: {}, content: [{ type: "text", text: JSON.stringify(handle) }] },
    ],
    ["without a status", { structuredContent: { job_id: "j1", next_action } }],
    ["with an empty id", { structuredContent: { ...handle, job_id: "" } }],
    ["about a job of its own, which is running", { structuredContent: { data: { job_id: 7, status: "running" } } }],
    ["about some job that is running", { structuredContent: { job_id: "nightly", status: "running" } }],
    ["of nothing", {}],
  ])("%s", (_, result) => {
    expect(readHandle(result)).toBeUndefined();
  });
});

describe("a next action is done only when it follows up the job", () => {
  const read = (action: object) => {
    const found = readHandle({ structuredContent: { ...handle, next_action: action } });
    if (found === undefined) throw new Error("no handle");
    return found;
  };

  test.each([
    ["by its known name", "task_result", tool("task_result")],
    ["by its known name, with a prefix", "acme_task_result", tool("acme_task_result")],
    ["by declaring that it changes nothing", "poll", tool("poll", { annotations: { readOnlyHint: true } })],
  ])("%s", (_, name, listed) => {
    expect(isFollowable(read({ tool: name, arguments: { job_id: "j1" } }), [listed])).toBe(true);
  });

  test.each([
    ["a tool that may change things", { tool: "erase", arguments: { job_id: "j1" } }, tool("erase")],
    ["a tool that is not listed", { tool: "task_result", arguments: { job_id: "j1" } }, tool("other")],
    ["another job", { tool: "task_result", arguments: { job_id: "j2" } }, tool("task_result")],
    [
      "a tool that knows no jobs",
      { tool: "task_result", arguments: { job_id: "j1" } },
      tool("task_result", { inputSchema: {} }),
    ],
  ])("not %s", (_, action, listed) => {
    expect(isFollowable(read(action), [listed])).toBe(false);
  });
});

test.each([
  [["task_result", "echo"], ""],
  [["acme_task_result"], "acme_"],
  [["multitask_result_set", "mytask_result"], undefined],
  [[], undefined],
])("among the tools %j the follow-up tools begin with %j", (names, prefix) => {
  expect(followUpPrefix(names.map((name) => tool(name)))).toBe(prefix);
});

test("a handle's questions are the task's", () => {
  const questions = [
    { key: "q1", message: "Erase?", schema: { type: "object" }, only_a_person_may_answer: true },
    { message: "no key" },
  ];
  const found = readHandle({ structuredContent: { ...handle, questions } });
  expect(found && toSnapshot(found).state).toMatchObject({
    taskId: "j1",
    status: "input_required",
    statusMessage: "asks: Erase?",
    questions: [{ key: "q1", message: "Erase?", taskId: "j1" }],
  });
});
