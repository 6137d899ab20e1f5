import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { listProgress, progressOf } from "../../src/index.ts";
import { callTool } from "../../src/testing/index.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startGuardedHttp, waitFor } from "../helpers/meanwhile.ts";
import { isTitled, titlesIn } from "../helpers/titles.ts";
import { type Json, overHttp, type Result, resultOf, WireClient } from "../helpers/wire.ts";
import { type CheckName, checkNames, type DocumentRow, documentRows } from "./documents.ts";

const root = path.resolve(import.meta.dirname, "../..");
const documents = [...new Set(documentRows.map(({ document }) => document))];

/** A server of the bundled commands, and a client of it that is the local user. */
async function open(config: object) {
  const user = writeFiles(temporaryFolder(), { "notes/one.md": "# One\n", "notes/more/two.md": "# Two\n" });
  const cwd = writeFiles(path.join(user, "project"), {
    "meanwhile.config.json": JSON.stringify({ bundled: true, pack: { roots: [path.join(user, "notes")] }, ...config }),
  });
  const env = { HOME: user, MEANWHILE_HOME: path.join(user, "home") };
  const { url, token } = await startGuardedHttp([], { cwd, env });
  const client = await new WireClient(overHttp(url, { token: token() }), { revision: "2025-11-25" }).begin();
  const terminal = async (...words: string[]) =>
    JSON.parse((await runMeanwhile([...words, "--json", "--quiet"], { cwd, env })).stdout) as unknown;
  const tools = async () =>
    resultOf(await client.request("tools/list")).tools as readonly (Json & { readonly name: string })[];
  return { user, cwd, env, client, terminal, tools };
}

const wksm = shareAmongTests(() => open({ toolPrefix: "wksm" }));
const plain = shareAmongTests(() => open({}));

function envelopeOf(result: Result) {
  const envelope = result.structuredContent;
  expect(envelope, JSON.stringify(result)).toMatchObject({ success: true });
  expect(JSON.parse(result.content?.[0]?.text ?? "")).toEqual(envelope);
  return envelope as NonNullable<typeof envelope>;
}

const checks: Readonly<Record<CheckName, () => Promise<void>>> = {
  async "tools of the prefix"() {
    const { client, tools } = await wksm();
    const names = (await tools()).map(({ name }) => name);
    const wanted = [
      "wksm_config",
      "wksm_database_list",
      "wksm_monitor_status",
      "wksm_monitor_sync",
      "wksm_transform",
      "wksm_transform_batch",
      "wksm_vault_index",
    ];
    expect(names).toEqual(expect.arrayContaining(wanted));
    expect(names.filter((name) => !name.startsWith("wksm_"))).toEqual([]);
    envelopeOf(await client.call("wksm_database_list"));
  },
  async "config tool"() {
    const { client } = await wksm();
    expect(envelopeOf(await client.call("wksm_config", { section: "" })).data).toMatchObject({ toolPrefix: "wksm" });
    expect(envelopeOf(await client.call("wksm_config", { section: "toolPrefix" })).data).toEqual({
      toolPrefix: "wksm",
    });
  },
  async "monitor tools"() {
    const { client, user } = await wksm();
    const message = await client.startCall("wksm_monitor_sync", { path: path.join(user, "notes"), recursive: true })
      .answer;
    expect(message).toMatchObject({ jsonrpc: "2.0", id: expect.any(Number) });
    const { data, messages } = envelopeOf(resultOf(message));
    expect(data).toMatchObject({
      files_processed: 2,
      files_skipped: 0,
      files_updated: 2,
      duration_seconds: expect.any(Number),
    });
    expect(messages.filter(({ type }) => type === "success")).toHaveLength(1);
    envelopeOf(await client.call("wksm_monitor_status"));
  },
  async "transform tool"() {
    const { client, user } = await wksm();
    const file = path.join(user, "notes/one.md");
    const [theirs, ours] = [
      await client.call("wksm_transform", { file_path: file, engine: "markdown" }),
      await client.call("wksm_transform", { file, engine: "markdown" }),
    ];
    expect(envelopeOf(theirs).data).toMatchObject({ source: file, engine: "markdown", cached: false });
    expect(envelopeOf(ours).data).toMatchObject({ source: file, cached: true });
  },
  async "terminal twins"() {
    const { client, terminal } = await wksm();
    for (const [tool, ...words] of [
      ["wksm_monitor_status", "monitor", "status"],
      ["wksm_database_list", "database", "list"],
    ] as const)
      expect(await terminal(...words), tool).toEqual(envelopeOf(await client.call(tool)).data);
    expect(await terminal("config", "--section", "toolPrefix")).toEqual(
      envelopeOf(await client.call("wksm_config", { section: "toolPrefix" })).data,
    );
  },
  async "in process"() {
    const { success, data } = await callTool(
      "wksm_config",
      {},
      { toolPrefix: "wksm", commands: temporaryFolder(), config: { name: "mine" } },
    );
    expect({ success, data }).toEqual({ success: true, data: { name: "mine" } });
  },
  async envelope() {
    const { client } = await wksm();
    const quiet = envelopeOf(await client.call("wksm_config_path"));
    expect(Object.keys(quiet)).toEqual(["success", "data", "messages"]);
    expect(quiet.messages).toEqual([
      { type: "success", text: expect.any(String), timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) },
    ]);
    resultOf(await client.request("logging/setLevel", { level: "debug" }));
    expect(envelopeOf(await client.call("wksm_config_path"))).toMatchObject({ log: [] });
  },
  async "async in the listing"() {
    const { tools } = await wksm();
    const all = await tools();
    expect(all.find(({ name }) => name === "wksm_monitor_sync")).toMatchObject({
      description: expect.any(String),
      inputSchema: {
        type: "object",
        properties: {
          path: { type: "string", description: expect.any(String) },
          recursive: { type: "boolean", description: expect.any(String) },
        },
        required: ["path"],
      },
      _meta: { "meanwhile/tool": { async: true } },
    });
    expect(all.find(({ name }) => name === "wksm_config")?._meta).toMatchObject({ "meanwhile/tool": { async: false } });
  },
  async "names without a prefix"() {
    const { client, user } = await plain();
    envelopeOf(await client.call("monitor_sync", { path: path.join(user, "notes") }));
    envelopeOf(await client.call("ingest_sources", { paths: [path.join(user, "notes")] }));
    envelopeOf(await client.call("discover_legacy_sources"));
    const refused = await client.call("ingest_legacy_sources", { selected_source_ids: ["nothing-of-that-name"] });
    expect(refused).toMatchObject({
      isError: true,
      structuredContent: {
        messages: expect.arrayContaining([
          { type: "error", text: expect.stringContaining("nothing-of-that-name"), timestamp: expect.any(String) },
        ]),
      },
    });
  },
  async "diagnosis as a task"() {
    const { client } = await plain();
    const call = client.startCall(
      "diagnose_mcp_server",
      { endpoint: "http://127.0.0.1:1/mcp", full: true },
      { task: { ttl: 300_000 } },
    );
    const { task } = resultOf(await call.answer) as { task?: Json & { taskId: string } };
    const facts = {
      taskId: expect.any(String),
      status: "working",
      createdAt: expect.any(String),
      ttl: expect.any(Number),
      pollInterval: expect.any(Number),
    };
    expect(task).toMatchObject(facts);
    const taskId = task?.taskId ?? "";
    expect((await client.request("tasks/get", { taskId })).result).toMatchObject({
      taskId,
      createdAt: task?.createdAt,
    });
    // This machine's own addresses are refused: what the tool says is the task's result.
    const result = resultOf(await client.request("tasks/result", { taskId }));
    expect(result).toMatchObject({
      isError: true,
      content: [{ type: "text", text: expect.stringContaining("allowPrivate") }],
    });
    expect(resultOf(await client.request("tasks/list", { limit: 50 })).tasks).toEqual(
      expect.arrayContaining([expect.objectContaining({ taskId, status: "failed" })]),
    );
  },
  async "flags of diagnose"() {
    const [{ stdout: diagnose }, { stdout: all }] = await Promise.all([
      runMeanwhile(["diagnose", "--help"]),
      runMeanwhile(["--help"]),
    ]);
    for (const flag of ["--async", "--task-ttl <ms>", "--poll-interval <ms>", "--full"])
      expect(diagnose).toContain(flag);
    expect(all).toContain("--no-color");
  },
  async "call's own facts"() {
    const { client } = await wksm();
    const { answer } = client.startCall("wksm_config_path", {}, { meta: { progressToken: "1706302400000-12345" } });
    expect((await answer).result).toMatchObject({
      content: [{ type: "text" }],
      _meta: { "meanwhile/call": { progressToken: "1706302400000-12345", durationMs: expect.any(Number) } },
    });
  },
  async "progress by token"() {
    const { client, env, cwd } = await wksm();
    const options = { home: env.MEANWHILE_HOME };
    const call = client.startCall(
      "wksm_monitor_watch",
      { path: path.join(cwd, "..", "notes") },
      { meta: { progressToken: "followed" } },
    );
    const active = await waitFor(async () => (await listProgress(options)).find(({ token }) => token === "followed"));
    expect(await progressOf("followed", options)).toMatchObject({
      ok: true,
      progress: { tool: "wksm_monitor_watch", taskId: active.taskId },
    });
    expect(await progressOf("another", options)).toMatchObject({ ok: false, error: "token_not_found" });
    await client.call("wksm_task_cancel", { job_id: active.taskId });
    await Promise.race([
      call.answer,
      waitFor(async () => ((await progressOf("followed", options)).ok ? undefined : true)),
    ]);
    expect(await progressOf("followed", options)).toMatchObject({ ok: false, error: "token_not_found" });
  },
};

describe.each(documents)("%s", (document) => {
  const rows = documentRows.filter((row) => row.document === document);
  const wanted = [...new Set(rows.flatMap(({ heldBy }) => (typeof heldBy === "string" ? [heldBy] : [])))];

  test.each(wanted)("works: %s", async (name) => await once(name));

  test("what is better says why, and no name has two rows", () => {
    expect(
      rows.filter(({ kind, reason = "" }) => (kind === "better") !== (reason !== "")).map(({ says }) => says),
    ).toEqual([]);
    const names = rows.flatMap(({ says }) => says);
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  test("the tests it names are there", () => {
    const missing = rows.filter((row) => !isThere(row));
    expect(missing.map(({ says, heldBy }) => ({ says, heldBy }))).toEqual([]);
  });
});

test("every check is used", () => {
  const used = new Set(documentRows.map(({ heldBy }) => heldBy));
  expect(checkNames.filter((name) => !used.has(name))).toEqual([]);
});

const done = new Map<CheckName, Promise<void>>();

/** Several documents may name the same thing. */
function once(name: CheckName): Promise<void> {
  const running = done.get(name) ?? checks[name]();
  done.set(name, running);
  return running;
}

function isThere({ heldBy }: DocumentRow): boolean {
  if (typeof heldBy === "string") return true;
  const file = path.join(root, heldBy.file);
  return existsSync(file) && titlesIn(readFileSync(file, "utf8")).some((found) => isTitled(found, heldBy.title));
}
