import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { killDaemons, recordsOf } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { LoadClient, peakMbOf } from "../helpers/load.ts";
import { cases, rounds } from "../helpers/long.ts";
import { codeCache, executable, startGuardedHttp, waitFor } from "../helpers/meanwhile.ts";

/** What one connection may cost a server, in the memory of all its processes. */

const commands = ["--no-bundled", "--commands", path.resolve(import.meta.dirname, "../fixtures/load/commands")];

/**
 * A server on pipes as a host starts it, without the room that other tests give a start: memory is what is measured
 * here.
 */
function start(
  words: readonly string[],
  { home = temporaryFolder(), heapMb }: { home?: string; heapMb?: number } = {},
) {
  const heap = heapMb === undefined ? {} : { NODE_OPTIONS: `--max-old-space-size=${heapMb}` };
  // On a slow machine a result may wait longer for its turn than a host waits: it would be a handle then.
  const env = {
    ...process.env,
    NODE_COMPILE_CACHE: codeCache,
    MEANWHILE_HOME: home,
    MEANWHILE_AUTO_TASK: "0",
    ...heap,
  };
  const child = spawn(process.execPath, [executable, "serve", ...words, ...commands], { cwd: temporaryFolder(), env });
  child.stderr.resume();
  child.stdin.on("error", () => undefined);
  cleanUp(() => killDaemons(home));
  cleanUp(async () => {
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.stdout.resume();
    if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await ended;
  });
  return { child, home, client: new LoadClient(child.stdin, child.stdout) };
}

async function startWithDaemon(options: { home?: string; heapMb?: number } = {}) {
  const started = start([], options);
  await started.client.begin();
  const { pid } = await waitFor(() => recordsOf(started.home)[0]);
  return { ...started, pids: [pid, started.child.pid ?? 0] };
}

async function startInProcess() {
  const started = start(["--in-process"]);
  await started.client.begin();
  return { ...started, pids: [started.child.pid ?? 0] };
}

test.each(
  cases<readonly [string, typeof startInProcess]>(
    [
      ["in one process", () => startInProcess()],
      ["by way of the daemon", () => startWithDaemon()],
    ],
    1,
  ),
)("many parallel results of 10 MB all arrive on one connection %s, within bounds of memory", async (_title, open) => {
  const { client, pids } = await open();
  const gate = path.join(temporaryFolder(), "gate");
  const ids = Array.from({ length: rounds(16, 40) }, (_, at) => client.call("load_big", { mib: 9.5, gate, at }));
  await client.request("ping");
  writeFileSync(gate, "");
  const { peakMb } = await peakMbOf(
    pids,
    client.until(() => ids.every((id) => client.answers.has(id))),
  );
  expect(ids.filter((id) => !client.answers.has(id))).toEqual([]);
  expect(Math.min(...ids.map((id) => client.answers.get(id) ?? 0))).toBeGreaterThan(9.5 * 1024 * 1024);
  expect(peakMb, "megabytes of all processes").toBeLessThan(rounds(800, 1_000));
  await client.request("ping");
});

test("a client that does not read keeps no more than 700 MB, whatever it has asked for; its results are tasks, and others are answered meanwhile", async () => {
  const calls = rounds(14, 24);
  const { client, home, pids } = await startWithDaemon({ heapMb: 512 });
  const other = await startWithDaemon({ home });
  const gate = path.join(temporaryFolder(), "gate");
  for (let at = 0; at < calls; at++) client.call("load_big", { mib: 9.5, gate, at });
  await client.request("ping");
  client.stopReading();
  writeFileSync(gate, "");
  // What the front and the system had taken before it stopped reading has left.
  const isKept = async () => (await endedOf(other.client)) >= calls - 3;
  const pinged = async () => {
    do {
      for (let n = 0; n < 50; n++) {
        await other.client.request("ping");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    } while (!(await isKept()));
  };
  const { peakMb } = await peakMbOf([...pids, ...other.pids.slice(1)], pinged());
  expect(peakMb, "megabytes of all processes").toBeLessThan(700);
});

test("16 sessions of 2025-11-25 over HTTP that nobody ends, each with a result of 10 MB, stay within 550 MB", async () => {
  const { url, token, child } = await startGuardedHttp(commands, { env: { NODE_OPTIONS: "--max-old-space-size=256" } });
  const headers = {
    authorization: `Bearer ${token()}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = async (session: string | undefined, message: object) => {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        ...headers,
        ...(session !== undefined && { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }),
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    });
    let bytes = 0;
    for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) bytes += part.length;
    return { session: response.headers.get("mcp-session-id") ?? "", status: response.status, bytes };
  };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "load", version: "1" } };
  const call = { id: 2, method: "tools/call", params: { name: "load_big", arguments: { mib: 9.5 } } };
  const begun = async () => {
    const sizes: number[] = [];
    for (let n = 0; n < 16; n++) {
      const { session } = await post(undefined, { id: 1, method: "initialize", params });
      sizes.push((await post(session, call)).bytes);
    }
    return sizes;
  };
  const { result, peakMb } = await peakMbOf([child.pid ?? 0], begun());
  expect(Math.min(...result)).toBeGreaterThan(9.5 * 1024 * 1024);
  expect(peakMb, "megabytes of the server").toBeLessThan(550);
});

/** How many results there are to ask for. */
async function endedOf(client: LoadClient): Promise<number> {
  const { structuredContent } = await client.result("tools/call", { name: "task_list", arguments: { limit: 100 } });
  return (structuredContent as { data: { jobs: { status: string }[] } }).data.jobs.filter(
    ({ status }) => status === "completed",
  ).length;
}
