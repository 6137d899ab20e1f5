import path from "node:path";
import Database from "better-sqlite3";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { kindOf, taskIdOf } from "../helpers/project.ts";
import { handleOf, overPipes, type Result, WireClient, type WireOptions } from "../helpers/wire.ts";

const longOnes = ["ingest_discover", "ingest_sources", "ingest_legacy"];
const takesTasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };

let folder: string;
let env: Record<string, string>;

/** A user's home with something to ingest. No variable but the homes is set: these are the defaults. */
beforeEach(() => {
  folder = writeFiles(temporaryFolder(), { ".codex/history.jsonl": JSON.stringify({ session_id: "1", text: "typed words" }), "notes/a.md": "some words" });
  env = { HOME: folder, MEANWHILE_HOME: path.join(folder, ".meanwhile") };
  expect(Object.keys(process.env).filter((name) => name.startsWith("MEANWHILE_"))).toEqual([]);
});

async function connect(options: WireOptions): Promise<WireClient> {
  const { child } = startMeanwhile(["serve", "--in-process"], { cwd: folder, env });
  const client = new WireClient(overPipes(child), options);
  onTestFinished(() => client.close());
  return await client.begin();
}

/** The inputs of the three, in an order in which each finds what it needs. */
const calls = () => [
  ["ingest_discover", {}] as const,
  ["ingest_sources", { paths: [path.join(folder, "notes")] }] as const,
  ["ingest_legacy", { ids: ["codex-prompts"] }] as const,
];
const expected = [{ sources: [{ id: "codex-prompts" }] }, { files_ingested: 1 }, { sources: ["codex-prompts"], files_ingested: 1 }];

async function ended(client: WireClient, taskId: string): Promise<Result> {
  for (;;) {
    const { result } = await client.request("tasks/get", { taskId });
    if (result?.status === "completed" || result?.status === "failed") return result;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Does what a handle says to do next, until there is a result. */
async function followed(client: WireClient, first: Result): Promise<unknown> {
  let answer = first;
  while (kindOf(answer) === "handle") {
    const { tool, arguments: input } = handleOf(answer).next_action;
    answer = await client.call(tool, input);
  }
  return answer.structuredContent;
}

describe("the long ingest commands, with no variable set", () => {
  test("are tasks at once for a client of 2026 that takes them", { timeout: 60_000 }, async () => {
    const client = await connect({ revision: "2026-07-28", capabilities: takesTasks });
    for (const [at, [tool, input]] of calls().entries()) {
      const answer = await client.call(tool, input);
      expect(kindOf(answer), tool).toBe("task of 2026");
      const { result } = (await ended(client, taskIdOf(answer))) as { result?: Result };
      expect(result?.structuredContent, tool).toMatchObject({ success: true, data: expected[at] });
    }
    expect(kindOf(await client.call("ingest_search", { query: "words" }))).toBe("answer");
  });

  test("are tasks for a client of 2025 that asks for them, and answers for one that does not", { timeout: 60_000 }, async () => {
    const client = await connect({ revision: "2025-11-25", capabilities: {} });
    for (const [at, [tool, input]] of calls().entries()) {
      const answer = await client.call(tool, input, { task: { ttl: 60_000 } });
      expect(kindOf(answer), tool).toBe("task of 2025");
      const { result } = await client.request("tasks/result", { taskId: taskIdOf(answer) });
      expect(result?.structuredContent, tool).toMatchObject({ success: true, data: expected[at] });
    }
    const plain = await client.call("ingest_search", { query: "words" });
    expect(plain.structuredContent?.data).toMatchObject({ count: 2 });
  });

  test("give a plain client its result, through a handle where its host would not wait", { timeout: 60_000 }, async () => {
    writeFiles(folder, { "meanwhile.config.json": JSON.stringify({ hosts: { hasty: { limitSeconds: 0.4 } } }) });
    writeFiles(
      folder,
      Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`many/d${at % 20}/f${at}.txt`, `number${at} ${"some words and more ".repeat(300)}`])),
    );
    const client = await connect({ revision: "2025-06-18", name: "hasty" });
    const answer = await client.call("ingest_sources", { paths: [path.join(folder, "many")] });
    expect(kindOf(answer)).toBe("handle");
    expect(await followed(client, answer)).toMatchObject({ success: true, data: { files_ingested: 1_000, errors_total: 0 } });
    for (const [at, [tool, input]] of calls().entries())
      expect(await followed(client, await client.call(tool, input)), tool).toMatchObject({ success: true, data: expected[at] });
  });

  test("say so in the list of tools, and a prefix gives all of the pack its older names", { timeout: 60_000 }, async () => {
    writeFiles(folder, { "meanwhile.config.json": JSON.stringify({ toolPrefix: "wksm" }) });
    const client = await connect({ revision: "2025-11-25" });
    const { result } = await client.request("tools/list");
    const tools = result?.tools as { name: string; _meta?: { "meanwhile/tool"?: { async?: boolean } } }[];
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining([
        "wksm_config",
        "wksm_monitor_sync",
        "wksm_vault_index",
        "wksm_vault_check",
        "wksm_transform",
        "wksm_transform_batch",
        "wksm_ingest_search",
      ]),
    );
    for (const name of longOnes) expect(tools.find((tool) => tool.name === `wksm_${name}`)?._meta?.["meanwhile/tool"], name).toMatchObject({ async: true });
  });
});

test("a run that is killed in the middle is taken up where it was: nothing is lost, nothing is doubled", { timeout: 60_000 }, async () => {
  const count = 1_500;
  writeFiles(
    folder,
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`many/d${at % 20}/f${at}.txt`, `number${at} ${"some words and more ".repeat(200)}`])),
  );
  const line = ["ingest", "sources", "many", "--json"];
  const first = startMeanwhile(line, { cwd: folder, env });
  await waitFor(
    () => storedFiles() > 0,
    () => `no file was stored: ${first.stderr()}`,
  );
  first.child.kill("SIGKILL");
  expect(await first.exited).toBe("SIGKILL");
  const second = JSON.parse((await runMeanwhile(line, { cwd: folder, env })).stdout) as { files_ingested: number; files_unchanged: number };
  expect(second.files_unchanged).toBeGreaterThan(0);
  expect(second.files_ingested + second.files_unchanged).toBe(count);
  const third = JSON.parse((await runMeanwhile(line, { cwd: folder, env })).stdout);
  expect(third).toMatchObject({ files_ingested: 0, files_unchanged: count });
  for (const at of [0, 700, count - 1]) {
    const { stdout } = await runMeanwhile(["ingest", "search", `number${at}`, "--json"], { cwd: folder, env });
    expect(JSON.parse(stdout)).toMatchObject({ count: 1, results: [{ path: path.join(folder, `many/d${at % 20}/f${at}.txt`) }] });
  }
});

/** How many files another process has stored so far. */
function storedFiles(): number {
  try {
    const db = new Database(path.join(env.MEANWHILE_HOME as string, "pack.db"), { readonly: true, fileMustExist: true });
    try {
      return db.prepare("select count(*) from ingest_files where stamp <> ''").pluck().get() as number;
    } finally {
      db.close();
    }
  } catch {
    return 0; // Neither the file nor its tables are there yet.
  }
}
