import { realpathSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startMeanwhile } from "../helpers/meanwhile.ts";
import { kindOf, taskIdOf } from "../helpers/project.ts";
import { takesTasks } from "../helpers/raw.ts";
import { handleOf, overPipes, type Result, resultOf, WireClient, type WireOptions } from "../helpers/wire.ts";

interface Place {
  readonly cwd: string;
  readonly home: string;
}

function createPlace(files: Readonly<Record<string, string>>): Place {
  return { cwd: writeFiles(realpathSync(temporaryFolder()), files), home: temporaryFolder() };
}

async function connect({ cwd, home }: Place, options: WireOptions): Promise<WireClient> {
  const { child } = startMeanwhile(["serve", "--in-process"], { cwd, env: { MEANWHILE_HOME: home } });
  const client = new WireClient(overPipes(child), options);
  onTestFinished(() => client.close());
  return await client.begin();
}

/** Whatever a call was answered with, its result in the end. */
async function follow(client: WireClient, result: Result): Promise<Result> {
  const kind = kindOf(result);
  if (kind === "task of 2025") return resultOf(await client.request("tasks/result", { taskId: taskIdOf(result) }));
  if (kind === "handle") {
    const { tool, arguments: input } = handleOf(result).next_action;
    return await follow(client, await client.call(tool, input));
  }
  if (kind !== "task of 2026") return result;
  for (;;) {
    const task = resultOf(await client.request("tasks/get", { taskId: taskIdOf(result) }));
    if (task.status === "completed") return task.result as Result;
    if (task.status !== "working") throw new Error(`The task ended as ${JSON.stringify(task)}`);
    await pause(50);
  }
}

/** So many files are estimated at more than a client of unknown patience will wait. */
const many = 4_800;
const treeOf = (files: number) => Object.fromEntries(Array.from({ length: files }, (_, at) => [`tree/d${at % 16}/${at}.txt`, String(at)]));

describe("a long command gives its result", () => {
  const roads = [
    { title: "a plain client, by a handle at once", options: { revision: "2025-06-18" }, call: {}, first: "handle", files: many },
    {
      title: "a 2025 client that asks for a task",
      options: { revision: "2025-11-25", capabilities: { tasks: {} } },
      call: { task: {} },
      first: "task of 2025",
      files: 100,
    },
    { title: "a 2026 client that takes tasks", options: { revision: "2026-07-28", capabilities: takesTasks }, call: {}, first: "task of 2026", files: 100 },
  ] as const;

  test.each(roads)("to $title", { timeout: 60_000 }, async ({ options, call, first, files }) => {
    const place = createPlace(treeOf(files));
    const client = await connect(place, options);
    const answer = await client.call("monitor_sync", { path: "tree", recursive: true }, call);
    expect(kindOf(answer)).toBe(first);
    expect((await follow(client, answer)).structuredContent).toMatchObject({ success: true, data: { files_updated: files, errors_total: 0 } });
    const watched = await follow(client, await client.call("monitor_watch", { path: "tree", seconds: 0.2 }, call));
    expect(watched.structuredContent).toMatchObject({ success: true, data: { ended: "time", files_updated: 0 } });
    const pruned = await follow(client, await client.call("database_prune", {}, call));
    expect(pruned.structuredContent).toMatchObject({ success: true, data: { checked_count: files, deleted_count: 0 } });
  });
});

test("terminal and client are told the same, and what the commands may do is listed", { timeout: 60_000 }, async () => {
  const place = createPlace({ "tree/a.txt": "one", "tree/sub/b.txt": "two", "tree/broken.tmp": "three" });
  const client = await connect(place, { revision: "2025-11-25" });
  const calls: readonly (readonly [words: string, input: object, typed?: readonly string[]])[] = [
    ["monitor sync", { path: "tree", recursive: true }, ["tree", "--recursive"]],
    ["monitor check", { path: "tree/broken.tmp" }, ["tree/broken.tmp"]],
    ["monitor status", {}],
    ["monitor filter show", {}],
    ["monitor priority add", { path: "tree", priority: 10 }, ["tree", "10"]],
    ["monitor sync", { path: "/etc" }, ["/etc"]],
    ["database show", { collection: "monitor_tracked", limit: 1 }, ["monitor_tracked", "--limit", "1"]],
    ["database prune", {}],
    ["config set", { key: "nmae", value: "x" }, ["nmae", "x"]],
  ];
  for (const [words, input, typed = []] of calls) {
    // Twice, so that both find what the first has left behind.
    await client.call(words.replaceAll(" ", "_"), input);
    const { structuredContent, content, isError = false } = await client.call(words.replaceAll(" ", "_"), input);
    const terminal = await runMeanwhile([...words.split(" "), ...typed, "--json"], { cwd: place.cwd, env: { MEANWHILE_HOME: place.home } });
    expect(JSON.parse(content?.[0]?.text ?? ""), words).toEqual(structuredContent);
    expect([structuredContent?.success, terminal.code], words).toEqual([!isError, isError ? 1 : 0]);
    const said = structuredContent?.messages.at(-1)?.text ?? "";
    expect(withoutTimes(terminal.stderr), words).toContain(withoutTimes(said));
    expect(JSON.parse(withoutTimes(terminal.stdout || "{}")), words).toEqual(JSON.parse(withoutTimes(JSON.stringify(structuredContent?.data))));
  }
  const { tools } = resultOf(await client.request("tools/list")) as unknown as {
    tools: { name: string; annotations: Record<string, unknown>; outputSchema?: object }[];
  };
  const listed = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations]));
  expect(listed).toMatchObject({
    monitor_sync: { readOnlyHint: false, destructiveHint: false, idempotentHint: true },
    monitor_status: { readOnlyHint: true },
    database_reset: { destructiveHint: true },
    config_set: { readOnlyHint: false, destructiveHint: false },
  });
  for (const { name, outputSchema } of tools.filter((tool) => /^(monitor|database)_/.test(tool.name))) expect(outputSchema, name).toBeDefined();
});

test("no model can confirm a reset for its user", { timeout: 60_000 }, async () => {
  const place = createPlace({ "tree/a.txt": "one" });
  const client = await connect(place, { revision: "2025-06-18" });
  await client.call("monitor_sync", { path: "tree" });
  const asked = await client.call("database_reset", { domain: "monitor" });
  expect(JSON.stringify(asked)).toContain("Delete everything that monitor has recorded?");
  const kept = await client.call("monitor_status");
  expect(kept.structuredContent?.data).toMatchObject({ tracked_files: 1 });
});

/** What differs from one moment to the next, and nothing else. */
function withoutTimes(text: string): string {
  return text
    .replaceAll(/("?duration_seconds"?: ?)[\d.]+/g, "$10")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "then")
    .replaceAll(/("(?:finished_at|size_bytes)": ?)\d+/g, "$10");
}
