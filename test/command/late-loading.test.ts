import { rmSync } from "node:fs";
import { registerHooks } from "node:module";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import type { Catalog } from "../../src/command/catalog.ts";
import { listenForCommands } from "../../src/command/running.ts";
import { silentLog } from "../../src/log.ts";
import { runCli } from "../helpers/cli.ts";
import { FakeClock, pass } from "../helpers/fake-clock.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openLiveCatalog } from "../helpers/live-catalog.ts";
import { type LocalOptions, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import type { Answer } from "../helpers/wire.ts";

const loadedFiles = (globalThis as { lateLoaded?: string[] }).lateLoaded ?? [];
(globalThis as { lateLoaded?: string[] }).lateLoaded = loadedFiles;

/** A command whose file notes in `loadedFiles` that it was loaded, and whose output is the notes so far. */
const command = (label: string, more = "") => `import { defineCommand } from "meanwhile";
globalThis.lateLoaded.push(${JSON.stringify(label)});
export default defineCommand({ summary: ${JSON.stringify(label)}, effects: "read", ${more} run: () => ({ loaded: [...globalThis.lateLoaded] }) });\n`;

const broken: Readonly<Record<string, { readonly text: string; readonly error: RegExp }>> = {
  throws: { text: 'throw new Error("no disk");', error: /no disk \(line 1\)/ },
  "exports no command": { text: "export default 1;", error: /its default export is not a command/ },
  "has another name than its file": {
    text: 'import { defineCommand } from "meanwhile";\nexport default defineCommand({ name: "a other", summary: "x", run: () => ({}) });\n',
    error: /its `name` is "a other", and a command in a file is named by where that lies: "a bad"/,
  },
};

const listed = ({ result }: Answer) => (result?.tools ?? []) as { name: string; description: string }[];

function filesOf(files: Readonly<Record<string, string>>): string {
  loadedFiles.length = 0;
  return writeFiles(temporaryFolder(), files);
}

/** A server whose files are loaded late. Its clock stands still, so that it loads nothing because of the time. */
async function openLate(folder: string, options: Partial<LocalOptions> = {}) {
  return await openServer({ in: "memory", commands: folder, clock: new FakeClock(), loadsLate: true, ...options });
}

async function openCatalogLate(folder: string, options: { loadLimitMs?: number; log?: typeof silentLog } = {}) {
  const catalog: Catalog = await openLiveCatalog({
    folders: [folder],
    toolPrefix: "",
    log: silentLog,
    clock: systemClock,
    isBundled: () => false,
    isLoadedLate: true,
    ...options,
  });
  onTestFinished(() => catalog.close());
  return catalog;
}

const three = { "a/one.ts": command("one"), "a/two.ts": command("two"), "b/three.ts": command("three") };

describe("a server with late loading", () => {
  test("loads the file of the called tool, and the others after the answer", async () => {
    const server = await openLate(filesOf(three));
    const client = await server.client("2025-11-25");
    expect(loadedFiles).toEqual([]);
    const result = await client.call("a_two");
    expect(result.structuredContent).toMatchObject({ data: { loaded: ["two"] } });
    await server.runtime.catalog.whenLoaded;
    expect([...loadedFiles].sort()).toEqual(["one", "three", "two"]);
  });

  test("loads a file again that could not be opened for want of file descriptors, and says the cure until then", async () => {
    const folder = filesOf(three);
    let isShort = true;
    const hooks = registerHooks({
      load(url, context, next) {
        if (!isShort || !url.includes(folder)) return next(url, context);
        throw Object.assign(new Error(`EMFILE: too many open files, open '${url}'`), { code: "EMFILE" });
      },
    });
    onTestFinished(() => hooks.deregister());
    const clock = new FakeClock();
    const server = await openLate(folder, { clock });
    const client = await server.client("2025-11-25");
    const refused = await client.call("a_two");
    expect(refused.isError).toBe(true);
    expect(refused.content?.[0]?.text).toContain("raise their number with `ulimit -n`");
    await pass(clock, 3_000);
    expect(listed(await client.request("tools/list")).map(({ name }) => name)).not.toContain("a_two");
    isShort = false;
    await pass(clock, 1_000);
    await client.comes("notifications/tools/list_changed");
    expect((await client.call("a_two")).isError ?? false).toBe(false);
    const names = listed(await client.request("tools/list")).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["a_one", "a_two", "b_three"]));
  });

  test("loads all files after one second without a call", async () => {
    const clock = new FakeClock();
    const server = await openLate(filesOf(three), { clock });
    clock.advance(999);
    expect(loadedFiles).toEqual([]);
    clock.advance(1);
    await server.runtime.catalog.whenLoaded;
    expect(loadedFiles).toHaveLength(3);
  });

  test("loads all files for a list in a fresh home, and none for the same list in a warm home", async () => {
    const folder = filesOf({ ...three, "b/broken.ts": "export default 1;" });
    const cold = await openLate(folder);
    const list = async (server: typeof cold, method: string) =>
      (await (await server.client("2025-11-25")).request(method)).result;
    const lists = [await list(cold, "tools/list"), await list(cold, "prompts/list")];
    expect(loadedFiles).toHaveLength(3);
    await cold.close();
    loadedFiles.length = 0;
    const warm = await openLate(folder, { home: cold.home, cwd: cold.cwd });
    expect([await list(warm, "tools/list"), await list(warm, "prompts/list")]).toEqual(lists);
    expect(lists[0]?.tools).toHaveLength(3 + 5);
    expect(loadedFiles).toEqual([]);
  });

  test("sends list_changed when the loaded files say something else than the cached list", async () => {
    const helper = (text: string) => `export const summary = ${JSON.stringify(text)};\n`;
    const files = {
      "a/_summary.ts": helper("before"),
      "a/one.ts": command("one")
        .replace('summary: "one"', "summary")
        .replace("\n", '\nimport { summary } from "./_summary.ts";\n'),
    };
    const first = await openLate(filesOf(files));
    await (await first.client("2025-11-25")).request("tools/list");
    await first.close();
    // The same command files in the same folder, whose helper was changed while no server ran.
    const folder = first.settings.commandFolders[0] as string;
    writeFiles(folder, { "a/_summary.ts": helper("after") });
    const { forgetModules } = await import("../../src/command/load.ts");
    forgetModules([folder]);
    const second = await openLate(folder, { home: first.home, cwd: first.cwd });
    const client = await second.client("2025-11-25");
    const summaries = async () =>
      listed(await client.request("tools/list"))
        .filter(({ name }) => name === "a_one")
        .map(({ description }) => description);
    expect(await summaries()).toEqual(["before"]);
    const changed = client.comes("notifications/tools/list_changed");
    await second.runtime.catalog.loadAll();
    await changed;
    expect(await summaries()).toEqual(["after"]);
  });

  test.each(["old_one", "no_such_tool"])("loads all files for a call of %s, which no file has", async (name) => {
    const folder = filesOf({ ...three, "a/one.ts": command("one", 'aliases: ["old_one"],') });
    const client = await (await openLate(folder)).client("2025-11-25");
    const answer = await client.request("tools/call", { name, arguments: {} });
    expect([...loadedFiles].sort()).toEqual(["one", "three", "two"]);
    if (name === "old_one") expect(answer.result?.structuredContent).toMatchObject({ success: true });
    else expect(answer.error?.message).toContain('Unknown tool "no_such_tool"');
  });

  test.each(Object.keys(broken))(
    "answers a call of a file that %s with the error that a loaded catalog has",
    async (how) => {
      const { text, error } = broken[how] as (typeof broken)[string];
      const folder = filesOf({ "a/bad.ts": text, "a/good.ts": command("good") });
      const messages: string[] = [];
      for (const loadsLate of [true, false]) {
        const server = await openLate(folder, { loadsLate });
        const result = await (await server.client("2025-11-25")).call("a_bad");
        expect(result.isError).toBe(true);
        messages.push(result.structuredContent?.messages.map((one) => one.text).join() ?? "");
        await server.close();
      }
      expect(messages[0]).toMatch(error);
      expect(messages[0]).toBe(messages[1]);
      const tools = await runCli(["tools", "--no-bundled", "--commands", folder]);
      expect(tools.stderr).toMatch(error);
      expect(tools.stdout).toContain("a good");
      expect(tools.code).toBe(1);
    },
  );

  test("does not start when two files have one tool name", async () => {
    const folder = filesOf({ "a/b-c.ts": command("x"), "a/b_c.ts": command("y") });
    await expect(openLate(folder)).rejects.toThrow(
      /^Two commands are called a_b_c: .*b-c\.ts and .*b_c\.ts; rename one\.$/,
    );
    expect(loadedFiles).toEqual([]);
  });

  test("completes arguments and gets the prompt of a tool that is not loaded", async () => {
    const folder = filesOf({
      ...three,
      "a/two.ts": command(
        "two",
        'input: (await import("zod")).z.object({ kind: (await import("zod")).z.enum(["red", "blue"]) }),',
      ),
    });
    const client = await (await openLate(folder)).client("2025-11-25");
    const ref = { type: "ref/prompt", name: "a_two" };
    const completed = await client.request("completion/complete", { ref, argument: { name: "kind", value: "r" } });
    expect(completed.result?.completion).toMatchObject({ values: ["red"] });
    const prompt = await client.request("prompts/get", { name: "b_three" });
    expect(prompt.result?.description).toBe("three");
    expect([...loadedFiles].sort()).toEqual(["three", "two"]);
  });
});

describe("a catalog with late loading", () => {
  test("names a file that does not finish loading, and serves the others meanwhile", async () => {
    const folder = filesOf({ "a/endless.ts": "await new Promise(() => {});", "a/good.ts": command("good") });
    const catalog = await openCatalogLate(folder, { loadLimitMs: 20 });
    const loading = catalog.load("a_endless");
    await catalog.load("a_good");
    expect(catalog.get("a_good")).toBeDefined();
    await loading;
    expect(catalog.problemOf("a_endless")?.text).toContain(
      "it did not finish loading within 0.02 s; a top-level await that never ends?",
    );
  });

  test("gives a name to the file that has it, and names the alias that clashes once all files are loaded", async () => {
    const errors: string[] = [];
    const folder = filesOf({ "a/one.ts": command("one", 'aliases: ["a_two", "old"],'), "a/two.ts": command("two") });
    const log = { ...silentLog, error: (text: string) => void errors.push(text) };
    const catalog = await openCatalogLate(folder, { log });
    await catalog.load("a_one");
    expect([catalog.get("a_one")?.toolName, catalog.get("old"), errors]).toEqual(["a_one", undefined, []]);
    await catalog.load("old");
    expect(catalog.get("a_two")?.file).toContain("two.ts");
    expect([catalog.get("a_one")?.toolName, catalog.get("old")?.toolName]).toEqual(["a_one", "a_one"]);
    const sentence =
      /^The alias a_two of .*one\.ts is the name of another tool, .*two\.ts; take the alias out, or rename the tool\.$/;
    expect(errors).toEqual([expect.stringMatching(sentence)]);
    expect(catalog.problems.map(({ text }) => text)).toEqual(errors);
    const tools = await runCli(["tools", "--no-bundled", "--commands", folder]);
    expect(tools.stderr).toContain(errors[0]);
    expect(tools.stderr).not.toContain("is missing");
  });

  test.each<[title: string, change: (folder: string) => void, names: readonly string[]]>([
    [
      "added",
      (folder) => writeFiles(folder, { "c/four.ts": command("four") }),
      ["a_one", "a_two", "b_three", "c_four"],
    ],
    ["removed", (folder) => rmSync(path.join(folder, "a/one.ts")), ["a_two", "b_three"]],
    ["changed", (folder) => writeFiles(folder, { "a/one.ts": command("newer") }), ["a_one", "a_two", "b_three"]],
  ])("takes up a file that was %s before all files were loaded", async (how, change, names) => {
    const folder = filesOf(three);
    const catalog = await openCatalogLate(folder);
    await catalog.load("a_one");
    const changed = new Promise<void>((resolve) => catalog.onChange(resolve));
    change(folder);
    await catalog.loadAll();
    await changed;
    expect(catalog.entries.map(({ toolName }) => toolName)).toEqual(names);
    if (how === "changed") expect(catalog.get("a_one")?.command.summary).toBe("newer");
  });

  test("calls no listener when a pending file is loaded, and one when a file changes", async () => {
    const folder = filesOf(three);
    const catalog = await openCatalogLate(folder);
    let changes = 0;
    catalog.onChange(() => changes++);
    await catalog.load("a_one");
    await catalog.loadAll();
    expect([changes, catalog.pending, catalog.entries.length]).toEqual([0, [], 3]);
    writeFiles(folder, { "c/four.ts": command("four") });
    await waitFor(() => changes > 0);
    expect(catalog.get("c_four")).toBeDefined();
  });
});

test("the names of commands whose files are being loaded are told before the files run, and when all have", async () => {
  const told: (readonly string[])[] = [];
  onTestFinished(listenForCommands((_running, loading) => void told.push(loading)));
  const catalog = await openCatalogLate(filesOf(three));
  await catalog.load("a_one");
  expect(told).toEqual([["a_one"], []]);
  await catalog.loadAll();
  expect(told.slice(2)).toEqual([["a_two"], ["a_two", "b_three"], []]);
});
