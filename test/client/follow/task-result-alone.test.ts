import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { answer, modern, type Received, serveLoopback, text } from "../loopback.ts";

/** A server that lists `task_result` alone, as one of ours does to some clients, and has the other tools all the same. */
async function open(call: (name: string, args: Record<string, unknown>) => object) {
  const calls: (readonly [string, unknown])[] = [];
  const properties = { job_id: { type: "string" }, answer: { type: "object" } };
  const tools = [
    { name: "ask", inputSchema: { type: "object" } },
    { name: "task_result", inputSchema: { type: "object", properties } },
  ];
  const { url } = await serveLoopback(
    modern({
      "tools/list": (received) => answer(received, { tools }),
      "tools/call": (received: Received) => {
        const { name, arguments: args } = received.message.params as {
          name: string;
          arguments: Record<string, unknown>;
        };
        calls.push([name, args]);
        answer(received, call(name, args) as never);
      },
    }),
  );
  const client = await connect({ url });
  onTestFinished(() => client.close());
  return { client, calls };
}

const handle = (status: string, more: object = {}) => ({
  ...text("a handle"),
  structuredContent: { success: true, data: { job_id: "j1", status, ...more }, messages: [] },
});

test("the answer that a handle leaves to be filled in is never sent as it is", async () => {
  let isAnswered = false;
  const asked = {
    questions: [{ key: "q1", message: "Who?", schema: { type: "object", properties: { name: { type: "string" } } } }],
    next_action: { tool: "task_result", arguments: { job_id: "j1", answer: { q1: { name: "…" } } } },
  };
  const { client, calls } = await open((name) => {
    if (name === "task_answer") isAnswered = true;
    return isAnswered && name === "task_result" ? text("Hello Ada") : handle("input_required", asked);
  });
  const onInput = () => ({ action: "accept" as const, content: { name: "Ada" } });
  expect(await client.callTool("ask", {}, { onInput })).toMatchObject({ content: [{ text: "Hello Ada" }] });
  expect(JSON.stringify(calls)).not.toContain("…");
  expect(calls).toContainEqual(["task_answer", { job_id: "j1", answers: { q1: { name: "Ada" } } }]);
});

test("its tasks are listed", async () => {
  const job = { job_id: "j1", tool: "ask", status: "working", message: "", created_at: "2026-11-19T00:00:00.000Z" };
  const { client, calls } = await open(() => ({
    ...text("1 job"),
    structuredContent: { success: true, data: { jobs: [job] }, messages: [] },
  }));
  expect((await client.listTasks()).tasks).toMatchObject([{ taskId: "j1", status: "working" }]);
  expect(calls).toEqual([["task_list", {}]]);
});
