import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { runVerb } from "../../../src/cli/verb.ts";
import { verb } from "../../../src/cli/verbs/tools.ts";
import { systemClock } from "../../../src/clock.ts";
import { loadSettings } from "../../../src/settings/settings.ts";
import { openStore } from "../../../src/store/open.ts";
import { History } from "../../../src/task/history.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { contextHere, openTerminalHere } from "../../helpers/terminal.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

const command = (more = "") =>
  `import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", ${more} run: () => ({}) });\n`;

/** A project in a home of its own, and its list of tools. */
function project(files: Readonly<Record<string, string>>) {
  const folder = writeFiles(temporaryFolder(), files);
  const home = path.join(folder, "home");
  vi.stubEnv("MEANWHILE_HOME", home);
  vi.stubEnv("MEANWHILE_STORE", undefined);
  async function list(): Promise<{ code: number; tools: Record<string, unknown>[]; said: string }> {
    const { terminal, printed, said } = openTerminalHere();
    const words = ["--json", "--no-bundled", "--commands", path.join(folder, "commands")];
    const code = await runVerb("tools", verb, {
      words,
      flags: {},
      terminal,
      context: contextHere(),
      protectStdout: async () => {},
    });
    return { code, tools: (JSON.parse(printed()) as { tools: Record<string, unknown>[] }).tools, said: said() };
  }
  const flags = { bundled: false, commands: [path.join(folder, "commands")] };
  const key = async () => (await loadSettings({ cwd: process.cwd(), env: { MEANWHILE_HOME: home }, flags })).project;
  return { home, storeFile: path.join(home, "tasks.db"), list, key };
}

async function record(
  storeFile: string,
  key: string,
  runs: Readonly<Record<string, readonly number[]>>,
): Promise<void> {
  const store = await openStore(storeFile);
  const history = new History(store, systemClock, key);
  for (const [name, lengths] of Object.entries(runs)) for (const ms of lengths) history.add(name, ms, undefined);
  await history.flush();
  await store.close();
}

test("the list says how long each command takes once five runs are known, and which are better run as tasks", async () => {
  const { storeFile, list, key } = project({
    "commands/a/declared.ts": command("long: true,"),
    "commands/a/few.ts": command(),
    "commands/a/quick.ts": command(),
    "commands/a/slow.ts": command(),
  });
  await record(storeFile, await key(), {
    a_few: [60_000, 60_000, 60_000, 60_000],
    a_quick: [10, 10, 10, 10, 10],
    a_slow: [1_000, 1_000, 1_000, 1_000, 20_000],
    gone: [1, 1, 1, 1, 1],
  });
  const { code, tools, said } = await list();
  expect({ code, said }).toEqual({ code: 0, said: "" });
  expect(
    tools.map(({ name, async, taskModeRecommended, stats }) => ({
      name,
      async,
      taskModeRecommended,
      runs: (stats as { runs: number } | undefined)?.runs,
    })),
  ).toEqual([
    { name: "a_declared", async: true, taskModeRecommended: true, runs: undefined },
    { name: "a_few", async: false, taskModeRecommended: false, runs: undefined },
    { name: "a_quick", async: false, taskModeRecommended: false, runs: 5 },
    { name: "a_slow", async: false, taskModeRecommended: true, runs: 5 },
  ]);
  const stats = tools[3]?.stats as Record<string, number>;
  expect(Object.keys(stats)).toEqual(["runs", "p50Ms", "p95Ms", "p99Ms"]);
  expect(stats.p50Ms).toBeCloseTo(1_000, -2);
  expect(stats.p95Ms).toBeCloseTo(20_000, -3);
});

test("listing makes no store, and leaves what help shows", async () => {
  const { home, storeFile, list } = project({ "commands/a/b.ts": command() });
  const { code, tools } = await list();
  expect(code).toBe(0);
  expect(tools).toMatchObject([{ name: "a_b", async: false, taskModeRecommended: false }]);
  expect(tools[0]).not.toHaveProperty("stats");
  expect(existsSync(storeFile)).toBe(false);
  expect(readdirSync(home)).toEqual(["cache"]);
});

test("a store that cannot be read is named, and the list is there all the same", async () => {
  const { home, list } = project({ "commands/a/b.ts": command("long: true,") });
  writeFiles(home, { "tasks.db": "this is not a database, and long enough to be looked at\n".repeat(50) });
  const { code, tools, said } = await list();
  expect(code).toBe(0);
  expect(tools).toMatchObject([{ name: "a_b", taskModeRecommended: true }]);
  expect(said).toMatch(/^! How long the commands take is not known: .+\n$/);
});

test("the list names the scopes that a command needs over HTTP", async () => {
  const { list } = project({
    "commands/note/read.ts": command(),
    "commands/note/write.ts": command('scopes: ["notes:write", "staff"],'),
  });
  const { tools } = await list();
  expect(tools.map(({ name, scopes }) => [name, scopes])).toEqual([
    ["note_read", undefined],
    ["note_write", ["notes:write", "staff"]],
  ]);
});
