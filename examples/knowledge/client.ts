// A folder of notes becomes something to ask: synced, indexed and searched, once from a terminal and once by an MCP
// client.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

type Data = Record<string, unknown>;

const meanwhile = path.resolve(import.meta.dirname, "../../bin/meanwhile.cjs");
// A copy, so that a note can be changed, and a home of its own.
const folder = mkdtempSync(path.join(tmpdir(), "knowledge-"));
cpSync(path.join(import.meta.dirname, "notes"), path.join(folder, "notes"), { recursive: true });
const env = { ...(process.env as Record<string, string>), MEANWHILE_HOME: path.join(folder, "home") };

try {
  fromTheTerminal();
  writeFileSync(path.join(folder, "notes/shed.md"), "# Shed\n\nThe pumpkins of the last harvest are stored here.\n");
  await fromAnMcpClient();
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** `meanwhile <words>`, and what it prints. */
function run(...words: string[]): Data {
  return runTo(0, ...words);
}

/** The same for one that ends with another exit code: 1 where it found something to complain about. */
function runTo(code: number, ...words: string[]): Data {
  const { status, stdout, stderr } = spawnSync(process.execPath, [meanwhile, ...words, "--json"], {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  assert.equal(status, code, stderr);
  console.log(`$ meanwhile ${words.join(" ")}\n${stderr.trim()}`);
  return JSON.parse(stdout) as Data;
}

function fromTheTerminal(): void {
  assert.equal(run("monitor", "sync", "notes", "--recursive").files_processed, 5);
  const { notes, links, broken_links } = run("vault", "index", "notes");
  assert.deepEqual({ notes, links, broken_links }, { notes: 4, links: 7, broken_links: 1 });
  assert.deepEqual((runTo(1, "vault", "check").issues as Data[])[0], {
    note: "index.md",
    line: 11,
    link: "shed",
    reason: "there is no such note or file",
  });
  assert.equal(run("vault", "links", "compost", "--direction", "to").count, 3);
  assert.equal(run("ingest", "sources", "notes").files_ingested, 5);
  const [best] = run("ingest", "search", "irregular watering").results as Data[];
  assert.equal(best?.title, "Tomatoes");
  console.log("  ", best?.snippet);
}

async function fromAnMcpClient(): Promise<void> {
  const client = new Client({ name: "example", version: "1.0.0" });
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [meanwhile, "serve", "--in-process"],
      cwd: folder,
      env,
      stderr: "ignore",
    }),
  );
  const call = async (name: string, input: Data = {}): Promise<Data> => {
    const { structuredContent } = await client.callTool({ name, arguments: input });
    const { success, data, messages } = structuredContent as {
      success: boolean;
      data: Data;
      messages: { text: string }[];
    };
    assert.ok(success, messages.at(-1)?.text);
    console.log(`${name}: ${messages.at(-1)?.text}`);
    return data;
  };
  // One note is new: only that one is read.
  assert.equal((await call("monitor_sync", { path: "notes", recursive: true })).files_updated, 1);
  assert.equal((await call("vault_index", { path: "notes" })).notes_parsed, 1);
  assert.equal((await call("vault_check")).is_valid, true);
  assert.equal((await call("ingest_sources", { paths: ["notes"] })).files_ingested, 1);
  const { results } = await call("ingest_search", { query: "pumpkins" });
  assert.deepEqual(new Set((results as Data[]).map(({ title }) => title)), new Set(["Shed", "harvest.csv"]));
  await client.close();
}
