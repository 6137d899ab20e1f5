import { mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { discover } from "../../../src/command/discover.ts";
import { loadEntry } from "../../../src/command/load-entry.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { startGuardedHttp, startMeanwhile } from "../../helpers/meanwhile.ts";
import { kindOf } from "../../helpers/project.ts";
import { casesOf } from "../../helpers/rounds.ts";
import { handleOf, overHttp, overPipes, type Result, resultOf, WireClient } from "../../helpers/wire.ts";

/** All but diagnose_server, which needs a server to look at: test/scenarios/diagnose.test.ts. */
const found = discover(path.resolve(import.meta.dirname, "../../../commands")).filter(
  ({ toolName }) => toolName !== "diagnose_server",
);

/** So many files are estimated at more than a host of sixty seconds will wait. */
const many = 4_600;

/** Those that say in seconds how long they will take, before there is any history. */
const estimated = new Set([
  "monitor_sync",
  "monitor_watch",
  "database_prune",
  "vault_index",
  "transform_batch",
  "ingest_discover",
  "ingest_sources",
]);

/** A user's home with something for every long command. No variable but the homes is set: these are the defaults. */
function createPlace(config: object) {
  expect(Object.keys(process.env).filter((name) => name.startsWith("MEANWHILE_"))).toEqual([]);
  const folder = writeFiles(realpathSync(temporaryFolder()), {
    ".codex/history.jsonl": JSON.stringify({ session_id: "1", text: "typed words" }),
    "notes/a.md": "some words [[b]]",
    "notes/b.md": "more words [[a]]",
  });
  // Over HTTP a session has no folder of its own, and a dot file is open only by its name.
  writeFiles(folder, {
    "meanwhile.config.json": JSON.stringify({ ...config, pack: { roots: [folder, path.join(folder, ".codex")] } }),
  });
  const home = path.join(folder, ".meanwhile");
  return { folder, home, started: { cwd: folder, env: { HOME: folder, MEANWHILE_HOME: home } } };
}

/**
 * For each long command an input, and what comes of it, the first time and any other; in an order in which each finds
 * what it needs.
 */
function longCalls(
  folder: string,
): readonly (readonly [tool: string, input: Readonly<Record<string, unknown>>, data: object])[] {
  const notes = path.join(folder, "notes");
  return [
    ["monitor_sync", { path: path.join(folder, "many"), recursive: true }, { files_processed: many, errors_total: 0 }],
    ["monitor_watch", { path: notes, seconds: 0.1 }, { ended: "time", errors_total: 0 }],
    ["database_prune", { domain: "monitor" }, { checked_count: many + 2, deleted_count: 0 }],
    ["vault_index", { path: notes }, { notes: 2, resolved_links: 2, errors_total: 0 }],
    ["transform_batch", { glob: `${notes}/*.md` }, { files_matched: 2, errors_total: 0 }],
    ["ingest_discover", {}, { sources: [{ id: "codex-prompts" }], errors_total: 0 }],
    ["ingest_sources", { paths: [notes] }, { files_seen: 2, errors_total: 0 }],
    ["ingest_legacy", { ids: ["codex-prompts"] }, { sources: ["codex-prompts"], files_seen: 1, errors_total: 0 }],
  ];
}

test("every long command gives its result to a plain client, to a client of 2025 and to a client of 2026", {
  timeout: 180_000,
}, async () => {
  // A host that is not known is taken to wait sixty seconds; one without any patience gets a handle wherever the time
  // is known beforehand.
  const { folder, home, started } = createPlace({ hosts: { hasty: { limitSeconds: 0.001 } } });
  for (let at = 0; at < 16; at++) mkdirSync(path.join(folder, `many/${at}`), { recursive: true });
  for (let at = 0; at < many; at++) writeFileSync(path.join(folder, `many/${at % 16}/${at}.txt`), "");
  const long = (await Promise.all(found.map(loadEntry))).flatMap((entry) =>
    "command" in entry && entry.command.long ? [entry.toolName] : [],
  );
  const calls = longCalls(folder);
  expect(calls.map(([tool]) => tool).sort()).toEqual(long.sort());

  const { url } = await startGuardedHttp([], started);
  const token = readFileSync(path.join(home, "token"), "utf8").trim();
  const open = async (revision: string): Promise<Call> => {
    const client = await connect({ url, headers: { authorization: `Bearer ${token}` } }, { revision });
    onTestFinished(() => client.close());
    return async (tool, input) => {
      let isLater = false;
      const { isError = false, structuredContent } = await client.callTool(tool, input, {
        asTask: true,
        timeoutMs: 60_000,
        onTask: () => (isLater = true),
      });
      return { isLater, isError, envelope: structuredContent };
    };
  };
  const openPlain = async (name: string): Promise<Call> => {
    const client = await new WireClient(overHttp(url, { token }), { revision: "2025-06-18", name }).begin();
    onTestFinished(() => client.close());
    return async (tool, input) => followed(client, await client.call(tool, input));
  };
  const kinds: readonly { readonly title: string; readonly call: Call; readonly isLater: (tool: string) => unknown }[] =
    [
      { title: "plain", call: await openPlain("somebody"), isLater: (tool) => tool === "monitor_sync" },
      {
        title: "plain, without patience",
        call: await openPlain("hasty"),
        isLater: (tool) => estimated.has(tool) || expect.any(Boolean),
      },
      { title: "plain, but ours", call: await open("2025-06-18"), isLater: () => true },
      { title: "2025", call: await open("2025-11-25"), isLater: () => true },
      { title: "2026", call: await open("2026-07-28"), isLater: () => true },
    ];
  // Every day one of each generation; none of the others is told anything that these are not.
  for (const { title, call, isLater } of casesOf(kinds, 0, 3, 4))
    for (const [tool, input, data] of calls)
      expect(await call(tool, input), `${title}: ${tool}`).toEqual({ isLater: isLater(tool), ...resultLike(data) });
});

/** A call's result, and whether there was a task, a job or a handle on the way. */
type Call = (
  tool: string,
  input: Readonly<Record<string, unknown>>,
) => Promise<{ isLater: boolean; isError: boolean; envelope: unknown }>;

/** Does what a handle says to do next, until there is a result. */
async function followed(client: WireClient, first: Result): ReturnType<Call> {
  let answer = first;
  while (kindOf(answer) === "handle") {
    const { tool, arguments: input } = handleOf(answer).next_action;
    answer = await client.call(tool, input);
  }
  return { isLater: answer !== first, isError: answer.isError ?? false, envelope: answer.structuredContent };
}

function resultLike(data: object = {}) {
  return {
    isError: false,
    envelope: expect.objectContaining({ success: true, data: expect.objectContaining(like(data)) }),
  };
}

/** Objects and lists in which more may stand than is said. */
function like(data: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(data).map(([field, value]) => [
      field,
      Array.isArray(value)
        ? value.map((item) => (typeof item === "object" ? expect.objectContaining(item) : item))
        : value,
    ]),
  );
}

test("a prefix gives all of the pack its older names, and under these, too, no model can confirm a reset for its user", {
  timeout: 180_000,
}, async () => {
  const { folder, started } = createPlace({ toolPrefix: "wksm" });
  const { child } = startMeanwhile(["serve", "--in-process"], started);
  const client = await new WireClient(overPipes(child), { revision: "2025-06-18" }).begin();
  onTestFinished(() => client.close());
  const { tools } = resultOf(await client.request("tools/list")) as unknown as {
    tools: { name: string; _meta?: { "meanwhile/tool"?: { async?: boolean } } }[];
  };
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(["wksm_config", "wksm_monitor_sync", ...found.map(({ toolName }) => `wksm_${toolName}`)]),
  );
  expect(names.filter((name) => !name.startsWith("wksm_"))).toEqual([]);
  for (const [tool] of longCalls(folder))
    expect(tools.find(({ name }) => name === `wksm_${tool}`)?._meta?.["meanwhile/tool"], tool).toMatchObject({
      async: true,
    });

  expect((await client.call("wksm_config", { section: "toolPrefix" })).structuredContent).toMatchObject({
    success: true,
    data: { toolPrefix: "wksm" },
  });
  expect((await client.call("wksm_monitor_sync", { path: "notes" })).structuredContent).toMatchObject({
    success: true,
    data: { files_updated: 2 },
  });
  const asked = await client.call("wksm_database_reset", { domain: "monitor" });
  expect(kindOf(asked)).not.toBe("answer");
  expect(JSON.stringify(asked)).toContain("Delete everything that monitor has recorded?");
  expect((await client.call("wksm_monitor_status")).structuredContent?.data).toMatchObject({ tracked_files: 2 });
});
