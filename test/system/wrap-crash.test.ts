import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { CallToolResultSchema, CreateTaskResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test, vi } from "vitest";
import { isRunning } from "../helpers/daemon.ts";
import { fixture, Gate, WrapHome } from "../helpers/gated.ts";
import { cleanUp } from "../helpers/home.ts";
import { executable, killNine, waitFor } from "../helpers/meanwhile.ts";
import { casesOf } from "../helpers/rounds.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { ModernClient, type Result, takesAll, takesTasks, type WireClient } from "../helpers/wire.ts";

const waiting = { timeout: 50_000 };
const tools = ["safe", "idempotent", "unsafe", "contradictory", "told-safe"];
const long = [...tools, "ask"].flatMap((tool) => ["--long", tool]);
const rerun = ["--rerun", "told-safe"];
const command = ["--name", "gated", ...rerun, ...long, "--", process.execPath, fixture, "gated"];

/** What a client of 2026-07-28 is told of its task in the end. */
async function ending(client: WireClient, taskId: string): Promise<Result> {
  return await waitFor(async () => {
    const { result, error } = await client.request("tasks/get", { taskId });
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result?.status !== "working" && result?.status !== "input_required" && (result as Result);
  });
}

const wordsOf = (result: unknown) => JSON.stringify(result);

describe("1.4: the daemon is killed in the middle of calls", () => {
  test("rule R over stdio, a client of the SDK v1: what may run again does, what may not is ended, and no child outlives it", async () => {
    const gate = new Gate();
    const home = new WrapHome(gate.env);
    const client = new Client({ name: "scenario", version: "1" });
    cleanUp(() => client.close());
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [executable, "wrap", ...command],
        cwd: home.cwd,
        env: { ...(process.env as Record<string, string>), ...home.env },
        stderr: "ignore",
      }),
    );
    const begun = await Promise.all(
      tools.map(async (name) => {
        const params = { name, arguments: {}, task: { ttl: 600_000 } };
        return (await client.request({ method: "tools/call", params }, CreateTaskResultSchema)).task.taskId;
      }),
    );
    await gate.began(tools.length);
    const before = gate.pids();
    await home.endDaemon();
    await gate.began(tools.length + 3);
    // They work on without their pipes until they are ended.
    for (const pid of before) await vi.waitFor(() => expect(isRunning(pid)).toBe(false), waiting);
    gate.open();
    const results = await Promise.all(
      begun.map((taskId) =>
        client.request({ method: "tasks/result", params: { taskId } }, CallToolResultSchema).then(wordsOf, wordsOf),
      ),
    );
    expect(gate.runs()).toEqual({ safe: 2, idempotent: 2, unsafe: 1, contradictory: 1, "told-safe": 2 });
    for (const [at, name] of tools.entries())
      expect(results[at]).toMatch(
        name === "unsafe" || name === "contradictory" ? /Interrupted; outcome unknown/ : new RegExp(`${name} is done`),
      );
  });

  test("13: a client of 2026-07-28: the same, and a question that was open is answered by the next daemon's client", async () => {
    const gate = new Gate();
    const home = new WrapHome({ ...gate.env, ERA: "2026" });
    const client = await home.connect(command, { revision: "2026-07-28", capabilities: takesAll });
    const ask = await client.call("ask");
    expect(ask).toMatchObject({ resultType: "input_required" });
    // Whoever cannot be asked gets a task at once.
    const begin = async (name: string) =>
      (await client.request("tools/call", { name, arguments: {} }, { capabilities: takesTasks })).result?.taskId;
    const [safe, unsafe] = [await begin("safe"), await begin("unsafe")];
    await gate.began(2);
    await home.endDaemon();
    await gate.began(3);
    gate.open();
    expect(await ending(client, safe)).toMatchObject({ status: "completed" });
    expect(wordsOf(await ending(client, unsafe))).toContain("Interrupted; outcome unknown");
    const answers = { name: { action: "accept", content: { name: "Ada" } } };
    const asked = ask as { inputRequests: Record<string, unknown>; requestState: string };
    const [key] = Object.keys(asked.inputRequests);
    const more = { inputResponses: { [key as string]: answers.name }, requestState: asked.requestState };
    const answered = await client.request("tools/call", { name: "ask", arguments: {}, ...more });
    const last =
      answered.result?.resultType === "task" ? await ending(client, answered.result.taskId) : answered.result;
    expect(wordsOf(last)).toContain("Hello Ada");
    expect(gate.runs()).toEqual({ safe: 2, unsafe: 1, ask: 1 });
  });

  test("2: what the next daemon starts for a session that is no more ends with its call", async () => {
    const gate = new Gate();
    const home = new WrapHome(gate.env);
    const client = await home.connect(command);
    const { task } = await client.call("safe", {}, { task: {} });
    await gate.began(1);
    await home.endDaemon();
    await gate.began(2);
    gate.open();
    expect(wordsOf((await client.request("tasks/result", { taskId: task?.taskId })).result)).toContain("safe is done");
    await client.close();
    for (const pid of gate.pids()) await vi.waitFor(() => expect(isRunning(pid)).toBe(false), waiting);
  });

  test("13: a question of a task that was open survives it, and its tool runs once", async () => {
    const gate = new Gate();
    const home = new WrapHome({ ...gate.env, ERA: "2026" });
    const client = await home.connect(command, { capabilities: { elicitation: {} } });
    const { task } = await client.call("ask", {}, { task: {} });
    const status = async () => (await client.request("tasks/get", { taskId: task?.taskId })).result?.status;
    await vi.waitFor(async () => expect(await status()).toBe("input_required"), waiting);
    const before = client.of("elicitation/create").map(({ id }) => id);
    await home.endDaemon();
    await vi.waitFor(async () => expect(await status()).toBe("input_required"), waiting);
    expect(gate.runs()).toEqual({});
    const asking = client.request("tasks/result", { taskId: task?.taskId });
    const { id } = await client.comes("elicitation/create", (asked) => !before.includes(asked.id));
    await client.respond(id, { action: "accept", content: { name: "Ada" } });
    const { result } = await asking;
    expect(wordsOf(result)).toContain("Hello Ada");
    expect(gate.runs()).toEqual({ ask: 1 });
  });

  test("a call that was never sent is sent by the next, once, whatever it does", async () => {
    const gate = new Gate();
    const home = new WrapHome(gate.env);
    const client = await home.connect(command);
    await client.request("tools/list");
    await home.endDaemon();
    gate.hold();
    const before = gate.pids().length;
    const { task } = await client.call("unsafe", {}, { task: {} });
    await vi.waitFor(() => expect(gate.pids().length).toBeGreaterThan(before), waiting);
    await home.endDaemon();
    gate.letGo();
    gate.open();
    const { result } = await client.request("tasks/result", { taskId: task?.taskId });
    expect(wordsOf(result)).toContain("unsafe is done");
    expect(gate.runs()).toEqual({ unsafe: 1 });
  });

  test.each(
    casesOf(
      [
        ["2026", "gated-tasks", "SIGKILL"],
        ["2025", "gated-tasks", "SIGKILL"],
        ["2025", "gated-resumable", "SIGKILL"],
        ["2026", "gated-tasks", "SIGTERM"],
        ["2025", "gated-tasks", "SIGTERM"],
        ["2025", "gated-resumable", "SIGTERM"],
      ] as const,
      0,
      2,
      4,
    ),
  )(
    "over HTTP, an upstream of %s (%s) that works on while we end by %s is found again: one run, and its result",
    async (era, mode, signal) => {
      const gate = new Gate();
      const { url, seen } = await httpUpstream(mode, { ...gate.env, ERA: era });
      const home = new WrapHome();
      const client = await home.connect(["--name", "far", ...long, "--url", url]);
      const { task } = await client.call("unsafe", {}, { task: {} });
      await gate.began(1);
      const follows = /^tasks.(get|result)$/;
      await waitFor(() =>
        mode === "gated-resumable" ? home.hasLeft("stream") : seen.some(({ message }) => follows.test(message.method)),
      );
      await home.endDaemon(signal);
      gate.open();
      const { result } = await client.request("tasks/result", { taskId: task?.taskId });
      expect(wordsOf(result)).toContain("unsafe is done");
      expect(gate.runs()).toEqual({ unsafe: 1 });
      const sent = (method: RegExp) => seen.filter(({ message }) => method.test(message.method ?? ""));
      expect(sent(/^tools.call$/)).toHaveLength(1);
      expect(sent(/^tasks.cancel$/)).toEqual([]);
    },
  );
});

describe("1.4: the upstream ends in the middle of a call", () => {
  test("what may run again does; what may not fails with its last words; the sentence names it, and the rest works on", async () => {
    const gate = new Gate();
    const home = new WrapHome(gate.env);
    const client = await home.connect(command);
    const die = async (tool: string) => {
      gate.arm();
      gate.open();
      return wordsOf((await client.startCall(tool).answer).result);
    };
    expect(await die("safe")).toContain("safe is done");
    const lost = await die("unsafe");
    expect(lost).toContain("upstream gated");
    expect(lost).toContain("It ran out of memory.");
    expect(await die("contradictory")).toContain("upstream gated");
    expect(await die("told-safe")).toContain("told-safe is done");
    expect(gate.runs()).toEqual({ safe: 2, unsafe: 1, contradictory: 1, "told-safe": 2 });
    expect(wordsOf(await client.call("idempotent"))).toContain("idempotent is done");
  });
});

test("1.4: `wrap --http` is killed in the middle: the next one on its port ends what was left, and rule R holds", async () => {
  const gate = new Gate();
  const home = new WrapHome(gate.env);
  const words = ["--http", "--port", "0", "--allow-anonymous", ...command];
  const open = async () => {
    const started = home.start(words);
    const url = await waitFor(() => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(started.stderr())?.[0], started.stderr);
    return { ...started, client: new ModernClient(url, { capabilities: takesTasks }) };
  };
  const first = await open();
  const ids = [];
  for (const tool of ["safe", "unsafe"]) ids.push((await first.client.call(tool)).taskId as string);
  await gate.began(2);
  const before = gate.pids();
  await killNine(first);
  const { client } = await open();
  for (const pid of before) await vi.waitFor(() => expect(isRunning(pid)).toBe(false), waiting);
  gate.open();
  const [safe, unsafe] = await Promise.all(ids.map((taskId) => ending(client, taskId)));
  expect(wordsOf(safe)).toContain("safe is done");
  expect(wordsOf(unsafe)).toContain("Interrupted; outcome unknown");
  expect(gate.runs()).toEqual({ safe: 2, unsafe: 1 });
});
