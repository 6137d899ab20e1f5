import { writeFileSync } from "node:fs";
import path from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { codeCache, executable, runProcess, startGuardedHttp } from "../helpers/meanwhile.ts";
import { waitFor } from "../helpers/wait-for.ts";

/**
 * No answer comes later than the limit of its host, whatever the call waits for. The client is that of the SDK, and
 * gives up at the limit. A handle is due 1.5 s before that: a busy machine may need a second to answer.
 */
const limitMs = 6_000;
const computeMs = 1_600;
const hosts = { "my-host": { limitSeconds: limitMs / 1_000 }, impatient: { limitSeconds: 1 } };

const command = (summary: string, body: string, before = "") => `import { existsSync } from "node:fs";
import { defineCommand } from "meanwhile";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => { for (const end = Date.now() + ms; Date.now() < end; ); };
${before}
export default defineCommand({ summary: "${summary}", effects: "read", run: async () => { ${body} return {}; } });
`;

/** What is slow from its second start on: a file tells it. */
const ifSlow = `if (existsSync(new URL("../../slow", import.meta.url))) await pause(5_000);`;

/** An MCP server that waits, computes, and starts slowly once a file tells it to. */
const upstream = `import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
if (existsSync(new URL("slow", import.meta.url))) await pause(5_000);
const tools = ["wait", "compute", "start"].map((name) => ({ name, inputSchema: { type: "object" } }));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize")
    send({ id, result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "slow", version: "1" } } });
  else if (method === "tools/list") send({ id, result: { tools } });
  else if (method === "tools/call") {
    if (params.name === "compute") for (const end = Date.now() + ${computeMs}; Date.now() < end; );
    void pause(30_000).then(() => send({ id, result: { content: [] } }));
  } else if (id !== undefined) send({ id, result: {} });
}
`;

const projectFiles = {
  "commands/work/wait.ts": command("Wait for half a minute", "await pause(30_000);"),
  "commands/work/compute.ts": command("Compute, then wait", `block(${computeMs}); await pause(30_000);`),
  "commands/work/block.ts": command("Compute", `block(${computeMs});`),
  "commands/work/load.ts": command("Load for five seconds, then wait", "await pause(30_000);", ifSlow),
  "upstream.mjs": upstream,
};

interface Way {
  readonly title: string;
  readonly words: readonly string[];
  readonly isHttp?: boolean;
  /** What each tool is answered with. */
  readonly expected: Readonly<Record<string, string>>;
}

const handle = "a handle";
const own = { work_wait: handle, work_compute: handle, work_load: handle };
const foreign = { theirs_wait: handle, theirs_compute: handle, theirs_start: handle };
const ways: readonly Way[] = [
  { title: "stdio", words: ["serve", "--in-process", "--no-bundled"], expected: { ...own, ...foreign } },
  { title: "HTTP", words: ["--no-bundled"], isHttp: true, expected: { ...own, ...foreign } },
  { title: "the stdio proxy", words: ["serve", "--no-bundled"], expected: { ...own, ...foreign } },
  {
    title: "wrap",
    words: ["wrap", "--", process.execPath, "upstream.mjs"],
    expected: { wait: handle, compute: handle, start: handle },
  },
];

test("tools that wait, compute, load for 5 s, and whose server starts for 5 s: an answer in time, by every way", async () => {
  const answers = await Promise.all(ways.map(async (way) => [way.title, await callAll(way)] as const));
  expect(Object.fromEntries(answers)).toEqual(Object.fromEntries(ways.map(({ title, expected }) => [title, expected])));
});

/** What every tool is answered with, called at once after a start in which loading and starting take 5 s. */
async function callAll(way: Way): Promise<Readonly<Record<string, string>>> {
  const project = openProject(way);
  const names = Object.keys(way.expected);
  const first = await project.connect();
  let known: readonly string[] = [];
  await waitFor(
    async () => {
      known = await toolsOf(first.client);
      return names.every((name) => known.includes(name));
    },
    () => `over ${way.title} there are ${known.join(", ")}: ${first.said()}`,
  );
  await first.close();
  await project.stop();
  writeFileSync(path.join(project.cwd, "slow"), "");
  const { client } = await project.connect();
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await answerOf(client, name)] as const)),
  );
}

test("a store that is away: an error in time, by every way", async () => {
  const answers = await Promise.all(
    ways.map(async (way) => {
      const project = openProject(way);
      const { client } = await project.connect();
      const [tool = ""] = Object.keys(way.expected);
      // The first look into the store opens it.
      await client.callTool({ name: "task_list", arguments: {} });
      const release = lockStore(project.home);
      const answer = await answerOf(client, tool);
      release();
      return [way.title, answer] as const;
    }),
  );
  expect(answers).toEqual(ways.map(({ title }) => [title, "was started, but"]));
});

test("a command that blocks the event loop beyond the limit is the exception, and is named with a warning", async () => {
  const { client, said } = await openProject(ways[0] as Way).connect("impatient");
  await expect(client.callTool({ name: "work_block", arguments: {} }, undefined, { timeout: 1_000 })).rejects.toThrow(
    "Request timed out",
  );
  await waitFor(() => /work_block blocked the event loop for [12]\.\d s, so its answer came too late/.test(said()));
});

/** The names of all tools, page by page. */
async function toolsOf(client: Client, cursor?: string): Promise<string[]> {
  const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor });
  const names = tools.map(({ name }) => name);
  return nextCursor === undefined ? names : [...names, ...(await toolsOf(client, nextCursor))];
}

/** What a call is answered with, or why there was no answer before the client gave up. */
async function answerOf(client: Client, name: string): Promise<string> {
  const called = client.callTool({ name, arguments: {} }, undefined, { timeout: limitMs });
  const result = await called.catch((error: unknown) => ({ structuredContent: {}, content: String(error) }));
  const { data } = (result.structuredContent ?? {}) as { data?: { next_action?: unknown } };
  if (data?.next_action !== undefined) return "a handle";
  const text = JSON.stringify(result.content);
  const known = ["was not started", "was started, but"].find((words) => text.includes(words));
  return known ?? text;
}

/** Keeps every other process from writing to the store of a home. */
function lockStore(home: string): () => void {
  const db = new Database(path.join(home, "tasks.db"));
  db.exec("begin exclusive");
  return () => db.close();
}

function openProject(way: Way) {
  const home = temporaryFolder();
  const isWrap = way.words[0] === "wrap";
  const cwd = writeFiles(temporaryFolder(), projectFiles);
  const upstreams = { theirs: { command: process.execPath, args: [path.join(cwd, "upstream.mjs")] } };
  const config = { hosts, ...(!isWrap && { upstreams, upstreamPrefix: "always" }) };
  writeFiles(cwd, { "meanwhile.config.json": JSON.stringify(config) });
  writeFiles(home, { "config.json": JSON.stringify({ hosts }) });
  const env = {
    ...(process.env as Record<string, string>),
    NODE_COMPILE_CACHE: codeCache,
    MEANWHILE_HOME: home,
  };
  cleanUp(() => killDaemons(home));
  return {
    home,
    cwd,
    async connect(name = "my-host") {
      const { transport, said, end } = await reach(way, { cwd, env });
      const client = new Client({ name, version: "1.0.0" });
      cleanUp(() => client.close());
      await client.connect(transport);
      const close = async () => {
        await client.close();
        await end();
      };
      return { client, said, close };
    },
    /** Ends the daemon, where there is one. */
    stop: () => runProcess(["daemon", "stop", "--now"], { cwd, env }),
  };
}

interface Place {
  readonly cwd: string;
  readonly env: Record<string, string>;
}

async function reach({ words, isHttp }: Way, { cwd, env }: Place) {
  if (isHttp === true) {
    const started = await startGuardedHttp(words, { cwd, env });
    const requestInit = { headers: { authorization: `Bearer ${started.token()}` } };
    const transport = new StreamableHTTPClientTransport(new URL(started.url), { requestInit });
    const end = async () => {
      started.child.kill("SIGTERM");
      await started.exited;
    };
    return { transport: transport as Transport, said: started.stderr, end };
  }
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [executable, ...words],
    cwd,
    env,
    stderr: "pipe",
  });
  let text = "";
  transport.stderr?.on("data", (part: Buffer) => (text += part.toString()));
  return { transport: transport as Transport, said: () => text, end: async () => undefined };
}
