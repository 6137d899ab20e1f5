import { describe, expect, test, vi } from "vitest";
import { Gate } from "../helpers/gated.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { type Fields, resultOf, takesTasks, type WireClient } from "../helpers/wire.ts";

const wait = { timeout: 50_000, interval: 20 };

test.each(["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"])(
  "14: a tool that can be called as a task alone is called by a client of %s as any other",
  async (revision) => {
    const gate = new Gate();
    gate.open();
    const { url, seen } = await httpUpstream("gated-required", gate.env);
    const gateway = await wrapHere({ url });
    const client = await gateway.connect("stdio", { revision });
    const { tools } = resultOf(await client.request("tools/list")) as { tools?: Fields[] };
    const listed = tools?.find(({ name }) => name === "unsafe");
    if (revision === "2025-11-25") expect(listed?.execution).toEqual({ taskSupport: "optional" });
    const ended = await resultIn(client, resultOf(await client.startCall("unsafe").answer));
    expect(JSON.stringify(ended)).toContain("unsafe is done");
    const calls = seen.filter(({ message }) => message.method === "tools/call");
    expect(calls.map(({ message }) => message.params.task)).toEqual([{}]);
  },
);

/** What a call has come to, by whichever way it is followed. */
async function resultIn(client: WireClient, result: Fields): Promise<Fields> {
  const { job_id: job } = result.structuredContent?.data ?? {};
  return job === undefined ? result : await client.call("task_result", { job_id: job });
}

describe.each(["2025", "2026"])("14: a task of an upstream of %s", (era) => {
  const begin = async (mode: "gated-tasks" | "short-ttl", env: Record<string, string>) => {
    const upstream = await httpUpstream(mode, { ...env, ERA: era });
    const tool = mode === "short-ttl" ? "slow" : "unsafe";
    const gateway = await wrapHere({ url: upstream.url, long: [tool] });
    const client = await gateway.connect("http", { revision: "2026-07-28", capabilities: takesTasks });
    const { taskId } = await client.call(tool, { seconds: 0 });
    const named = () => {
      const asked = upstream.seen.findLast(({ message }) => /^tasks\//.test(message.method ?? ""));
      return asked && { taskId: asked.message.params.taskId as string, headers: asked.headers, message: asked.message };
    };
    const theirs = await vi.waitUntil(named, wait);
    return { ...upstream, gateway, client, taskId, theirs };
  };
  const ending = async (client: WireClient, taskId: unknown) =>
    await vi.waitUntil(async () => {
      const { result } = await client.request("tasks/get", { taskId });
      return result?.status === "working" ? undefined : result;
    }, wait);

  test("14: is followed, not wrapped again: one call, one task of ours, and its result without a trace of theirs", async () => {
    const gate = new Gate();
    const { client, taskId, theirs, seen } = await begin("gated-tasks", gate.env);
    expect(taskId).not.toBe(theirs.taskId);
    gate.open();
    const state = await ending(client, taskId);
    expect(state).toMatchObject({ status: "completed", result: { content: [{ text: "unsafe is done" }] } });
    expect(JSON.stringify(state)).not.toContain(theirs.taskId);
    expect(gate.runs()).toEqual({ unsafe: 1 });
    expect(seen.filter(({ message }) => message.method === "tools/call")).toHaveLength(1);
    const about = new Set(
      seen.filter(({ message }) => /^tasks\//.test(message.method ?? "")).map(({ message }) => message.params.taskId),
    );
    expect([...about]).toEqual([theirs.taskId]);
  });

  test("14: that keeps its result for 400 ms is fetched at once, and ours is kept", async () => {
    const { client, taskId, theirs, url } = await begin("short-ttl", {});
    const { method: _asked, ...message } = theirs.message;
    const headers = { ...(theirs.headers as Record<string, string>), "mcp-method": "tasks/get" };
    delete (headers as Fields)["content-length"];
    const ask = { method: "POST", headers, body: JSON.stringify({ ...message, jsonrpc: "2.0", method: "tasks/get" }) };
    // Nobody has asked us until theirs is gone.
    await vi.waitFor(async () => expect(await (await fetch(url, ask)).text()).toContain("is not known here"), wait);
    const { result } = await client.request("tasks/get", { taskId });
    expect(result).toMatchObject({ status: "completed", result: { content: [{ text: "took 0 s" }] } });
  });
});
