import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { ownArgument, ownArguments } from "../../src/command/aliases.ts";
import { openCatalog } from "../../src/command/catalog.ts";
import { filterCatalog } from "../../src/command/filtered-catalog.ts";
import { silentLog } from "../../src/log.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openLiveCatalog } from "../helpers/live-catalog.ts";

const isNotBundled = ({ isBundled }: { readonly isBundled?: boolean }) => isBundled !== true;

const command = (aliases: unknown) => `import { defineCommand, jsonSchema } from "meanwhile";
const input = jsonSchema({ type: "object", properties: { url: { type: "string" }, full: { type: "boolean" } } });
export default defineCommand({ summary: "x", input, aliases: ${JSON.stringify(aliases)}, run: (given) => given });\n`;
const open = (files: Record<string, string>, toolPrefix = "") =>
  openCatalog({ folders: [writeFiles(temporaryFolder(), files)], toolPrefix, log: silentLog });

describe("a command with aliases", () => {
  test("is found by each of them, and listed by its own name alone", async () => {
    const catalog = await open({
      "server/check.ts": command(["diagnose", { name: "check_server", arguments: { endpoint: "url" } }]),
    });
    const entry = catalog.get("server_check");
    expect(entry?.toolName).toBe("server_check");
    for (const name of ["diagnose", "check_server"]) expect(catalog.get(name)).toBe(entry);
    expect(catalog.entries.map(({ toolName }) => toolName)).toEqual(["server_check"]);
  });

  test("has the prefix in front of them, too", async () => {
    const catalog = await open({ "a/b.ts": command(["old"]) }, "wksm");
    expect([catalog.get("wksm_old")?.toolName, catalog.get("old")]).toEqual(["wksm_a_b", undefined]);
  });

  test("is not loaded when an alias with its prefix is too long", async () => {
    const catalog = await open({ "a/b.ts": command(["x".repeat(60)]), "a/c.ts": command([]) }, "wksm");
    expect(catalog.problemOf("wksm_a_b")?.text).toMatch(
      /^its alias wksm_x+ has 65 characters, at most 64 are allowed; shorten toolPrefix or the alias$/,
    );
    expect(catalog.get("wksm_a_c")).toBeDefined();
  });

  test.each([
    [
      "another tool",
      "a_c",
      { "a/b.ts": command(["a_c"]), "a/c.ts": command([]) },
      /^The alias a_c of .*b\.ts is the name of another tool, .*c\.ts; take the alias out, or rename the tool\.$/,
    ],
    [
      "a tool that cannot be loaded",
      undefined,
      { "a/b.ts": command(["a_c"]), "a/c.ts": "export default 1;" },
      /^The alias a_c of .*b\.ts is the name of another tool, .*c\.ts/,
    ],
    [
      "another's alias",
      "a_b",
      { "a/b.ts": command(["old"]), "a/c.ts": command(["old"]) },
      /^Two commands have the alias old: .*b\.ts and .*c\.ts; take it out of one\.$/,
    ],
  ])(
    "that clash with %s lead to the first owner, and the command stays served",
    async (_with, owner, files, sentence) => {
      const catalog = await open(files);
      const name = owner === "a_b" ? "old" : "a_c";
      expect(catalog.get(name)?.toolName).toBe(owner);
      const problem = catalog.problems.find(({ isServed }) => isServed === true);
      expect(problem?.text).toMatch(sentence);
      expect(catalog.get(problem?.toolName ?? "")).toBeDefined();
    },
  );

  test("that clash with its own name are a problem of its file", async () => {
    const catalog = await open({ "a/b.ts": command(["a_b"]), "a/c.ts": command([]) });
    expect(catalog.problemOf("a_b")?.text).toBe("it has its own name a_b among its `aliases`; take it out");
    expect(catalog.get("a_c")).toBeDefined();
  });

  test("that clash with a follow-up tool is a problem of its file, and the others still work", async () => {
    const catalog = await open({ "a/b.ts": command(["task_result"]), "a/c.ts": command([]) });
    expect(catalog.problemOf("a_b")?.text).toContain(
      "`aliases`: task_result clashes with the tools that follow up a task",
    );
    expect([catalog.get("task_result"), catalog.get("a_c")?.toolName]).toEqual([undefined, "a_c"]);
  });

  test("that is bundled is reached by none of them, by callers whom nobody knows", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "a/mine.ts": command(["my_old"]),
      "b/theirs.ts": command(["their_old"]),
    });
    const catalog = await openCatalog({
      folders: [folder],
      toolPrefix: "",
      log: silentLog,
      isBundled: (file) => file.includes("/b/"),
    });
    const strangers = filterCatalog(catalog, { isKnown: isNotBundled, isListed: isNotBundled });
    expect([catalog.get("their_old")?.toolName, strangers.get("their_old"), strangers.get("my_old")?.toolName]).toEqual(
      ["b_theirs", undefined, "a_mine"],
    );
  });

  test("gains and loses them while it is served", async () => {
    const folder = writeFiles(temporaryFolder(), { "a/b.ts": command(["old"]) });
    const catalog = await openLiveCatalog({
      folders: [folder],
      toolPrefix: "",
      log: silentLog,
      clock: systemClock,
      isBundled: () => false,
    });
    onTestFinished(() => catalog.close());
    const changed = new Promise<void>((resolve) => catalog.onChange(resolve));
    writeFiles(folder, { "a/b.ts": command(["older"]) });
    await changed;
    expect([catalog.get("old"), catalog.get("older")?.toolName]).toEqual([undefined, "a_b"]);
  });
});

describe("a call's arguments", () => {
  const entry = {
    toolName: "check",
    aliases: [
      { name: "check", arguments: { address: "url" } },
      { name: "diagnose", arguments: { endpoint: "url" } },
    ],
  };

  test("get their own names: those of the name it was called by, and those of every name", () => {
    expect(ownArguments(entry, "diagnose", { endpoint: "a", full: true })).toEqual({ url: "a", full: true });
    expect(ownArguments(entry, "diagnose", { address: "a" })).toEqual({ url: "a" });
    expect(ownArguments(entry, "check", { address: "a" })).toEqual({ url: "a" });
    expect(ownArguments(entry, "check", { endpoint: "a" })).toEqual({ endpoint: "a" });
    expect([ownArgument(entry, "diagnose", "endpoint"), ownArgument(entry, "diagnose", "full")]).toEqual([
      "url",
      "full",
    ]);
  });

  test("given by two names are refused in one sentence", () => {
    const sentence = "`endpoint` is another name of `url`; give one of them.";
    expect(() => ownArguments(entry, "diagnose", { endpoint: "a", url: "b" })).toThrow(sentence);
    expect(() => ownArguments(entry, "diagnose", { url: "b", endpoint: "a" })).toThrow(sentence);
  });

  test.each([[undefined], [null], ["text"], [[1]], [JSON.parse('{"__proto__": 1, "constructor": 2}')]])(
    "stay what they are where there is nothing to rename: %j",
    (given) => {
      expect(ownArguments(entry, "diagnose", given)).toEqual(given);
    },
  );
});
