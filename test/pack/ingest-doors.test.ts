import { mkdirSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { discover } from "../../src/command/discover.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile } from "../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

const commands = path.resolve(import.meta.dirname, "../../commands");
const domains = new Set(["vault", "transform", "ingest"]);

/** What to type after each command's name, and the same over MCP; in an order in which each finds what it needs. */
const calls: Readonly<Record<string, readonly [words: string, input: object]>> = {
  vault_index: ["notes", { path: "notes" }],
  vault_status: ["", {}],
  vault_links: ["a --direction to", { note: "a", direction: "to" }],
  vault_check: ["", {}],
  transform: ["notes/a.md", { file: "notes/a.md" }],
  transform_batch: ["notes/*.md", { glob: "notes/*.md" }],
  transform_list: ["", {}],
  transform_info: ["markdown", { engine: "markdown" }],
  transform_cache: ["--limit-mb 100", { limit_mb: 100 }],
  ingest_discover: ["", {}],
  ingest_legacy: ["codex-prompts", { ids: ["codex-prompts"] }],
  ingest_sources: ["notes", { paths: ["notes"] }],
  ingest_search: ["apples", { query: "apples" }],
};

test("every command says the same in the terminal and over MCP, as text and as data", { timeout: 60_000 }, async () => {
  const folder = temporaryFolder();
  mkdirSync(path.join(folder, "home"));
  writeFiles(folder, {
    "notes/a.md": "# A\n[[b]] apples",
    "notes/b.md": "[[a]] [[none]]",
    ".codex/history.jsonl": JSON.stringify({ session_id: "1", text: "apples" }),
  });
  const env = { HOME: folder, MEANWHILE_HOME: path.join(folder, "home") };
  const { child } = startMeanwhile(["serve", "--in-process"], { cwd: folder, env });
  const client = await new WireClient(overPipes(child), { revision: "2025-11-25" }).begin();
  onTestFinished(() => client.close());

  const found = discover(commands).filter(({ path: [domain = ""] }) => domains.has(domain));
  expect(found.map(({ toolName }) => toolName).sort()).toEqual(Object.keys(calls).sort());
  // Once for what only a first run has to do.
  for (const [tool, [, input]] of Object.entries(calls)) expect((await client.call(tool, input)).structuredContent?.success, tool).toBe(true);
  for (const [tool, [words, input]] of Object.entries(calls)) {
    const line = found.find(({ toolName }) => toolName === tool)?.path ?? [];
    const { content, structuredContent, isError } = await client.call(tool, input);
    const { code, stdout, stderr } = await runMeanwhile([...line, ...words.split(" ").filter(Boolean), "--json"], { cwd: folder, env });
    expect({ code, isError }, `${tool}: ${stderr}`).toEqual({ code: 0, isError: undefined });
    expect(JSON.parse(content?.[0]?.text ?? ""), tool).toEqual(structuredContent);
    expect(steady(JSON.parse(stdout)), tool).toEqual(steady(structuredContent?.data));
    const said = structuredContent?.messages.at(-1);
    expect(stderr, tool).toContain(`✓ ${said?.text}`);
  }
});

/** Without what is another every time. */
function steady(data: unknown): unknown {
  const { duration_seconds: _took, indexed_at: _when, ...rest } = data as Record<string, unknown>;
  return rest;
}
