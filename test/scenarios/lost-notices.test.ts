import { describe, expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { modernRevision } from "../../src/wire/revisions.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { scriptedUpstream } from "../helpers/scripted-upstream.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Fields, type Result, takesTasks, type WireClient } from "../helpers/wire.ts";

/**
 * A host drops the notice that a task has ended, as Claude Code did with 31 of 188 (anthropics/claude-code#86200), or
 * forgets its tasks when it restarts (#75438). The model then has nothing but the tools that it is listed.
 */

/** Claude Code with tasks of 2026-07-28, and without: its extension for VS Code, and Desktop, declare none. */
const withTasks = { revision: modernRevision, name: "claude-code", capabilities: takesTasks };
const withoutTasks = { revision: "2025-11-25", name: "claude-code", capabilities: {} };
const hosts = [
  ["with tasks", withTasks],
  ["without tasks", withoutTasks],
] as const;

/** Long enough for a task, or a handle, at once. */
const report = defineCommand({
  summary: "Builds a report",
  long: true,
  estimate: () => 3_600,
  run: () => ({ report: "q3.pdf" }),
});

const dataOf = (result: Result) => result.structuredContent?.data as Fields;

/** The calls of a model that knows of no job, by the tools that its host lists it: the result, and how many there were. */
async function askForLostResult(client: WireClient): Promise<{ readonly result: Result; readonly calls: number }> {
  const { tools } = (await client.request("tools/list")).result as { tools: { name: string }[] };
  const isListed = tools.some(({ name }) => name === "task_list");
  const named = await client.call(isListed ? "task_list" : "task_result");
  const [newest] = dataOf(named).jobs as Fields[];
  return { result: await client.call("task_result", { job_id: newest?.job_id }), calls: 2 };
}

describe.each(hosts)("Claude Code %s", (_title, host) => {
  test("that has lost the notice gets the result in two calls", async () => {
    const server = await openServer({ in: "daemon", commands: { report_build: report } });
    const client = await server.client(host, host);
    await client.call("report_build");
    // The host gets no notice: it has subscribed to nothing, and fetches nothing.
    const { result, calls } = await askForLostResult(client);
    expect([dataOf(result), calls]).toEqual([{ report: "q3.pdf" }, 2]);
  });

  test("that has restarted gets the result in two calls", async () => {
    const server = await openServer({ in: "daemon", commands: { report_build: report } });
    const before = await server.client(host, host);
    await before.call("report_build");
    await before.close();
    const { result, calls } = await askForLostResult(await server.client(host, host));
    expect([dataOf(result), calls]).toEqual([{ report: "q3.pdf" }, 2]);
  });

  test("that has restarted after a crash of the daemon gets the result in two calls", async () => {
    const server = await openServer({ in: "daemon", commands: { report_build: report } });
    const before = await server.client(host, host);
    await before.call("report_build");
    await waitFor(async () => {
      const { stdout } = await server.daemons.run(["tasks", "list", "--json"]);
      return stdout.includes('"completed"');
    });
    await server.daemons.killAll();
    await before.close();
    const { result, calls } = await askForLostResult(await server.client(host, host));
    expect([dataOf(result), calls]).toEqual([{ report: "q3.pdf" }, 2]);
  });

  test("that has restarted gets the result of a wrapped server's tool in two calls", async () => {
    const gate = Promise.withResolvers<void>();
    const upstream = scriptedUpstream({
      answer: async ({ method }) => (method === "tools/call" ? await gate.promise.then(() => undefined) : undefined),
    });
    // A handle comes after 0.3 s.
    const hosts = { "claude-code": { limitSeconds: 0.4, isExtended: false } };
    const gateway = await wrapHere({ ...upstream, long: ["count"] }, { hosts });
    const before = await gateway.connect("stdio", host);
    await before.call("count");
    await before.close();
    gate.resolve();
    const observer = await gateway.connect("stdio", host);
    await waitFor(async () => JSON.stringify(await observer.call("task_list")).includes('"completed"'));
    const { result, calls } = await askForLostResult(await gateway.connect("stdio", host));
    expect([result.content, calls]).toEqual([[{ type: "text", text: "count is done" }], 2]);
  });
});

test("a job whose ID the model still knows is one call away", async () => {
  const server = await openServer({ in: "daemon", commands: { report_build: report } });
  const client = await server.client(withTasks, withTasks);
  const { taskId } = await client.call("report_build");
  const result = await client.call("task_result", { job_id: taskId });
  expect(dataOf(result)).toEqual({ report: "q3.pdf" });
});
