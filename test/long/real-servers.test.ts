import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import packed from "@sparticuz/chromium";
import { describe, expect, test, vi } from "vitest";
import type { UpstreamConfig } from "../../src/project/upstream-config.ts";
import { essence } from "../helpers/allowed-differences.ts";
import { connectCommand, wrapHere } from "../helpers/gateway-here.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { connectGeneration } from "../helpers/matrix-clients.ts";
import { asker, portray, type Sitter } from "../helpers/portrait.ts";
import type { Fields } from "../helpers/wire.ts";

/**
 * Servers as their authors publish them, unchanged: the same behind `wrap` as without it, and a call that takes longer
 * than its client waits for.
 */

interface RealServer {
  readonly config: UpstreamConfig;
  /** What it speaks; 2025-11-25 by default. */
  readonly revision?: string;
  readonly calls?: Sitter["calls"];
  readonly reads?: Sitter["reads"];
  readonly slow: readonly [name: string, args: Fields];
  /** Has the slow call begin to take its time, and says what lets it end. */
  hold?(pid: number): () => void;
  readonly says: string;
}

const modules = path.resolve("node_modules");
const official = (name: string) => path.join(modules, `@modelcontextprotocol/server-${name}/dist/index.js`);
const node = (...args: string[]): UpstreamConfig => ({ command: process.execPath, args });

/** A server with nothing slow about it is slow on a machine that has no time for it. */
function pause(pid: number): () => void {
  process.kill(pid, "SIGSTOP");
  return () => process.kill(pid, "SIGCONT");
}

/** A file that is read only when somebody writes it. */
function makeFifo(folder: string, text: string) {
  const file = path.join(folder, "fifo");
  execFileSync("mkfifo", [file]);
  return { file, write: () => writeFileSync(file, text) };
}

/** An address that answers when it may. */
async function openSlowSite(body: string, type: string) {
  const gate = Promise.withResolvers<void>();
  const server = createServer(async (_request, response) => {
    await gate.promise;
    response.writeHead(200, { "content-type": type }).end(body);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, open: () => gate.resolve() };
}

function filesystem(): RealServer {
  const folder = writeFiles(temporaryFolder(), { "a.txt": "one\ntwo\n", "b/c.txt": "three" });
  const { file, write } = makeFifo(folder, "late words");
  return {
    config: node(official("filesystem"), folder),
    calls: [
      ["list_allowed_directories", {}],
      ["read_text_file", { path: path.join(folder, "a.txt"), head: 1 }],
      ["directory_tree", { path: path.join(folder, "b") }],
      ["read_text_file", { path: "/etc/passwd" }],
      ["read_text_file", {}],
    ],
    slow: ["read_text_file", { path: file }],
    hold: () => write,
    says: "late words",
  };
}

function memory(): RealServer {
  const kept = { MEMORY_FILE_PATH: path.join(temporaryFolder(), "memory.jsonl") };
  const entities = [{ name: "Ada", entityType: "person", observations: ["counts"] }];
  return {
    config: { ...node(official("memory")), env: kept },
    calls: [
      ["create_entities", { entities }],
      ["create_entities", { entities }],
      ["search_nodes", { query: "counts" }],
      ["delete_entities", { entityNames: ["Ada"] }],
      ["read_graph", {}],
    ],
    slow: ["read_graph", {}],
    hold: pause,
    says: "entities",
  };
}

function thinking(): RealServer {
  const thought = { thought: "Hm.", nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 };
  return {
    config: node(official("sequential-thinking")),
    calls: [["sequentialthinking", thought]],
    slow: ["sequentialthinking", { ...thought, thoughtNumber: 2 }],
    hold: pause,
    says: "thoughtHistoryLength",
  };
}

function commands(): RealServer {
  const folder = temporaryFolder();
  const wait = `while [ ! -e ${folder}/go ]; do sleep 0.05; done; echo late words`;
  return {
    config: node(path.join(modules, "mcp-server-commands/build/index.js")),
    revision: "2024-11-05",
    calls: [
      ["run_command", { command: "echo hello; exit 3" }],
      ["run_command", {}],
    ],
    slow: ["run_command", { command: wait }],
    hold: () => () => writeFileSync(path.join(folder, "go"), ""),
    says: "late words",
  };
}

async function playwright(): Promise<RealServer> {
  const browser = await packed.executablePath();
  const { url, open } = await openSlowSite("<title>Late</title><h1>late words</h1>", "text/html");
  const words = ["--headless", "--isolated", "--no-sandbox", "--executable-path", browser];
  return {
    config: { ...node(path.join(modules, "@playwright/mcp/cli.js"), ...words), cwd: temporaryFolder() },
    calls: [
      ["browser_navigate", { url: "data:text/html,<h1>hello</h1>" }],
      ["browser_snapshot", {}],
      ["browser_navigate", {}],
    ],
    slow: ["browser_navigate", { url }],
    hold: () => open,
    says: "Late",
  };
}

const everything = (): RealServer => ({
  config: node(official("everything"), "stdio"),
  calls: [["get-sum", { a: 1, b: 2 }]],
  reads: ["demo://resource/static/document/features.md"],
  slow: ["trigger-long-running-operation", { duration: 2, steps: 2 }],
  says: "completed",
});

const servers = [
  ["server-everything", everything],
  ["server-filesystem", filesystem],
  ["server-memory", memory],
  ["server-sequential-thinking", thinking],
  ["mcp-server-commands", commands],
  ["@playwright/mcp", playwright],
] as const;

/** Hosts like the SDK's client, but with less than a minute to wait. */
const hasty = { hosts: { matrix: { limitSeconds: 1.5, isExtended: false } } };
const wait = { timeout: 50_000, interval: 50 };

describe.each(servers)("8: %s, unchanged", (_name, make) => {
  const shared = shareAmongTests(async () => {
    const server: RealServer = await make();
    return { server, gateway: await wrapHere(server.config, hasty) };
  });

  test.each(["2025-11-25", "2026-07-28"])("8: is the same to a client of %s as it is directly", async (revision) => {
    const { server, gateway } = await shared();
    const sitter = { calls: server.calls ?? [], reads: server.reads ?? [], prompts: [], completions: [] };
    const spoken = server.revision ?? "2025-11-25";
    const options = { revision: spoken, capabilities: asker };
    const direct = await connectCommand(server.config, options);
    const expected = masked(essence(await portray(direct, sitter)));
    const client = await gateway.connect("stdio", { ...options, revision });
    expect(masked(essence(await portray(client, sitter)))).toEqual(expected);
    await client.close();
  });

  test("8: gives the SDK's client a handle for a slow call, and then its result", async () => {
    const { server, gateway } = await shared();
    const others = gateway.pids();
    const client = await connectGeneration("2025-11-25", { pipes: gateway.openPipes() }, () => ({
      action: "cancel",
    }));
    await client.listTools();
    const pid = await vi.waitUntil(() => gateway.pids().find((one) => !others.includes(one)), wait);
    const letGo = server.hold?.(pid);
    const [name, args] = server.slow;
    const handle = JSON.stringify(await client.call(name, args));
    expect(handle).toContain("task_result");
    const [, job] = /job_id\W+([0-9a-f-]{36})/.exec(handle) ?? [];
    letGo?.();
    const result = await vi.waitUntil(async () => {
      const answered = await client.call("task_result", { job_id: job, wait_seconds: 1 });
      return JSON.stringify(answered).includes("task_result") ? undefined : answered;
    }, wait);
    expect(result.isError ?? false).toBe(false);
    expect(JSON.stringify(result)).toContain(server.says);
    await client.close();
  });
});

/** Times and places that are another each time. */
const masked = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.-]+Z/g, "<time>")
      .replaceAll(/page-<time>/g, "<page>"),
  );
