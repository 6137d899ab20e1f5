import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { parseApiKey } from "../../../src/auth/api-key.ts";
import { createKeyVerifier } from "../../../src/auth/key-verifier.ts";
import { systemClock } from "../../../src/clock.ts";
import { silentLog } from "../../../src/log.ts";
import { readSettings } from "../../../src/settings/settings.ts";
import { openStore } from "../../../src/store/open.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { runCli, startCli } from "../../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";

const dayMs = 86_400_000;
const keyForm = /^mw_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}\n$/;
const minute = /\d{4}-\d\d-\d\d \d\d:\d\d UTC/g;
const command =
  'import { defineCommand } from "meanwhile"; export default defineCommand({ summary: "Hello", run: () => ({}) });';

/** A project, a home, and what `meanwhile keys …` says there. */
function place(files: Readonly<Record<string, string>> = { "commands/hello.mjs": command }) {
  const [cwd, home] = [writeFiles(temporaryFolder(), files), temporaryFolder()];
  const env = { MEANWHILE_HOME: home };
  const keys = (...words: string[]) => runCli(["keys", ...words], { cwd, env });
  const list = async () => JSON.parse((await keys("list", "--json")).stdout) as Record<string, unknown>[];
  const names = async () => (await list()).map(({ name }) => name);
  const complete = async (...words: string[]) => {
    const { stdout } = await runCli(["_complete", "--shell", "zsh", "--", "keys", ...words], { cwd, env });
    return stdout
      .split("\n")
      .slice(1, -1)
      .map((line) => line.split("\t")[0]);
  };
  const { project, store } = readSettings({ cwd, env, flags: {} }).settings;
  /** The store itself, at a time of its own. */
  async function open(atMs = 0) {
    const opened = await openStore(store, { clock: new FakeClock(Date.now() + atMs) });
    onTestFinished(() => opened.close());
    return opened.shared.keys;
  }
  async function verify(key: string) {
    const openKeys = async () => await open();
    return await createKeyVerifier({ openKeys, project, clock: systemClock, log: silentLog }).verify(key.trim());
  }
  return { cwd, env, home, keys, list, names, complete, open, verify, project };
}

test("add prints the key alone to stdout, and everything else to stderr", async () => {
  const { cwd, keys, list, verify } = place();
  const { code, stdout, stderr } = await keys("add", "ci", "--expires", "90d");
  expect(code).toBe(0);
  expect(stdout).toMatch(keyForm);
  expect(stderr.replaceAll(minute, "…")).toBe(
    `✓ Added ci for ${cwd}: meanwhile:call; all tools; expires …\n  It is shown this once. A client sends it as a header: Authorization: Bearer <key>\n`,
  );
  const [key] = await list();
  expect(key).toEqual({
    ...{ id: parseApiKey(stdout.trim())?.id, name: "ci", scopes: ["meanwhile:call"], commands: [] },
    ...{ createdAt: expect.any(String), expiresAt: expect.any(String), isExpired: false },
  });
  expect(Date.parse(key?.expiresAt as string) - Date.parse(key?.createdAt as string)).toBe(90 * dayMs);
  const { caller } = await verify(stdout);
  expect(caller).toMatchObject({ kind: "key", id: key?.id, name: "ci", scopes: ["meanwhile:call"] });
});

test("at a terminal the key stands between both lines", async () => {
  const { cwd, env } = place();
  const run = startCli(["keys", "add", "ci"], { cwd, env, screen: { columns: 100, rows: 24, isDataShown: true } });
  expect(await run.exited).toBe(0);
  const lines = run
    .drawn()
    .replaceAll(/\x1b\[\d+m/g, "")
    .split(/\r?\n/);
  expect(lines[0]).toMatch(/^✓ Added ci for .*: meanwhile:call; all tools; never expires$/);
  expect(`${lines[1]}\n`).toMatch(keyForm);
  expect(lines[2]).toBe("  It is shown this once. A client sends it as a header: Authorization: Bearer <key>");
});

test("the secret is in no file of the home", async () => {
  const { home, keys } = place();
  const secret = (await keys("add", "ci")).stdout.trim().slice(-43);
  const files = globSync("**", { cwd: home, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.map(({ name }) => name)).toContain("tasks.db");
  for (const { parentPath, name } of files)
    expect(readFileSync(path.join(parentPath, name)).includes(secret), name).toBe(false);
});

test("list shows names, times, scopes and tools, no wider than the screen", async () => {
  const { cwd, env, keys, open, project } = place();
  expect((await keys()).stdout).toBe(`No API keys for ${cwd}; meanwhile keys add <name> adds one.\n`);
  await keys("add", "ci", "--expires", "1d");
  await keys("add", "reports", "--scopes", "meanwhile:read,repo:admin", "--commands", "report_*,text_count");
  const [ci] = (await (await open()).list(project)).keys;
  await (await open(2 * dayMs)).noteUse(project, ci?.id ?? "");
  await keys("rotate", "reports", "--overlap", "1h");
  await keys("add", "short", "--expires", "30m");
  const shown = (text: string) =>
    text
      .replaceAll(minute, "<minute>")
      .replaceAll(/\d{4}-\d\d-\d\d/g, "<day>")
      .replaceAll(/in \d+ /g, "in <n> ");
  const { stdout, code } = await keys("list");
  expect(code).toBe(0);
  expect(shown(stdout).replaceAll(/ {2,}/g, "  ")).toBe(
    [
      "Name  Created  Expires  Last used  Scopes",
      "ci  <day>  in <n> h  <minute>  meanwhile:call",
      "reports  <day>  never  never  meanwhile:read, repo:admin; tools report_*, text_count; secret before until <minute>",
      "short  <day>  in <n> min  never  meanwhile:call",
      "",
    ].join("\n"),
  );
  const run = startCli(["keys"], { cwd, env, screen: { columns: 80, rows: 24, isDataShown: true } });
  await run.exited;
  for (const line of run.stdout().split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  expect(run.stdout()).toMatch(/^Name +Created +Expires +Last used +Scopes$/m);
});

test("an expired key is listed as such, and is not rotated", async () => {
  const { keys, list, open, project } = place();
  const common = { project, hash: "hash", scopes: ["meanwhile:call"], commands: [] };
  await (await open(-2 * dayMs)).add({ ...common, id: "id", name: "old", expiresInMs: dayMs });
  expect((await keys("list")).stdout).toMatch(
    /^old +\d{4}-\d\d-\d\d +expired \d{4}-\d\d-\d\d +never +meanwhile:call$/m,
  );
  expect(await list()).toMatchObject([{ name: "old", isExpired: true }]);
  const { code, stdout, stderr } = await keys("rotate", "old");
  expect([code, stdout]).toEqual([1, ""]);
  expect(stderr.replaceAll(minute, "…")).toBe(
    "✗ The key old expired …, and a new secret would expire with it; revoke it, and add another.\n",
  );
  expect((await (await open()).list(project)).keys[0]?.hash).toBe("hash");
});

test("rotate prints a new secret of the same caller; the one before is valid for 24 h, or for --overlap", async () => {
  const { keys, list, verify } = place();
  const first = (await keys("add", "ci", "--scopes", "meanwhile:read")).stdout;
  const { code, stdout: second, stderr } = await keys("rotate", "ci");
  expect(code).toBe(0);
  expect(second).toMatch(keyForm);
  expect(stderr.replaceAll(minute, "…")).toBe(
    "✓ ci has a new secret; the one before is valid until …\n  It is shown this once. A client sends it as a header: Authorization: Bearer <key>\n",
  );
  const found = await Promise.all([first, second].map(verify));
  expect(found[0]?.caller).toEqual(found[1]?.caller);
  const until = Date.parse((await list())[0]?.earlierSecretUntil as string);
  expect(Math.abs(until - Date.now() - dayMs)).toBeLessThan(60_000);
  const third = await keys("rotate", "ci", "--overlap", "0");
  expect(third.stderr).toContain("✓ ci has a new secret; servers refuse both before within 5 s\n");
  await expect(verify(second)).rejects.toThrow("unknown, expired or revoked");
  await expect(verify(first)).rejects.toThrow("unknown, expired or revoked");
  expect((await verify(third.stdout)).caller.id).toBe(found[0]?.caller.id);
});

test("a second rotate within the overlap says that the oldest secret is refused", async () => {
  const { keys, verify } = place();
  const first = (await keys("add", "ci")).stdout;
  const second = await keys("rotate", "ci");
  const third = await keys("rotate", "ci");
  expect(third.stderr.replaceAll(minute, "…")).toContain(
    "✓ ci has a new secret; the one before is valid until …, and servers refuse the one before that within 5 s\n",
  );
  await expect(verify(first)).rejects.toThrow("unknown, expired or revoked");
  await verify(second.stdout);
  expect((await keys("rotate", "ci", "--overlap", "0")).stderr).toContain(
    "✓ ci has a new secret; servers refuse both before within 5 s\n",
  );
});

test("rotate without an overlap refuses the secret before", async () => {
  const { keys } = place();
  await keys("add", "ci");
  expect((await keys("rotate", "ci", "--overlap", "0")).stderr).toContain(
    "✓ ci has a new secret; servers refuse the one before within 5 s\n",
  );
});

test("revoke removes a key, and its name may be used again by another caller", async () => {
  const { keys, names, verify } = place();
  const first = (await keys("add", "ci")).stdout;
  expect(await keys("revoke", "ci")).toMatchObject({
    ...{ code: 0, stdout: "", stderr: "✓ Revoked ci; servers refuse it within 5 s\n" },
  });
  expect(await names()).toEqual([]);
  await expect(verify(first)).rejects.toThrow("unknown, expired or revoked");
  const second = (await keys("add", "ci")).stdout;
  expect(parseApiKey(second.trim())?.id).not.toBe(parseApiKey(first.trim())?.id);
});

test("--json prints one document, the key in it where one was made", async () => {
  const { keys } = place();
  const added = await keys("add", "ci", "--commands", "hello", "--json");
  expect(added).toMatchObject({ code: 0, stderr: "" });
  const { key, id, ...facts } = JSON.parse(added.stdout) as Record<string, string>;
  expect(facts).toEqual({
    ...{ name: "ci", scopes: ["meanwhile:call"], commands: ["hello"], createdAt: expect.any(String) },
  });
  expect(parseApiKey(key ?? "")?.id).toBe(id);
  const rotated = JSON.parse((await keys("rotate", "ci", "--json")).stdout) as Record<string, string>;
  expect(rotated).toEqual({ id, ...facts, key: expect.stringMatching(/^mw_/), earlierSecretUntil: expect.any(String) });
  expect(rotated.key).not.toBe(key);
  expect(JSON.parse((await keys("revoke", "ci", "--json")).stdout)).toMatchObject({ id, name: "ci" });
});

describe("what is refused is one sentence with the cure, and changes nothing", () => {
  test.each<[string, readonly string[], number, string | RegExp]>([
    [
      "a name that exists",
      ["add", "ci", "--scopes", "meanwhile:admin"],
      1,
      "There is a key ci already; `meanwhile keys rotate` gives it a new secret, or choose another name.",
    ],
    [
      "a name of another key to rotate",
      ["rotate", "none"],
      1,
      "This project has no key none; `meanwhile keys list` shows the keys that it has.",
    ],
    [
      "a name of another key to revoke",
      ["revoke", "CI"],
      1,
      "This project has no key CI; `meanwhile keys list` shows the keys that it has.",
    ],
    ...["", " ci", "a\nb", "a\u001b[2Jb", "\u202eci", "x".repeat(65)].map(
      (name): [string, readonly string[], number, string | RegExp] => [
        `the name ${JSON.stringify(name)}`,
        ["add", name],
        2,
        /^`.*` is no name for a key; a name has 1 to 64 visible characters, and no space at its ends\.$/,
      ],
    ),
    [
      "a key in place of a name",
      ["add", "mw_0123456789abcdef_secret"],
      2,
      "A name must not begin with mw_, so that no key is taken for one; choose another.",
    ],
    [
      "a scope that is unknown",
      ["add", "x", "--scopes", "meanwhile:read,meanwhile:cal"],
      2,
      "--scopes: `meanwhile:cal` is no scope; those that begin with meanwhile: are meanwhile:read, meanwhile:call, meanwhile:metrics, meanwhile:admin.",
    ],
    ...["", "meanwhile:call,", "meanwhile:read meanwhile:call", 'a"b', "é"].map(
      (scopes): [string, readonly string[], number, string | RegExp] => [
        `the scopes ${JSON.stringify(scopes)}`,
        ["add", "x", "--scopes", scopes],
        2,
        /^--scopes: `.*` is no scope; give scopes without spaces, quotes and backslashes, separated by commas\.$/,
      ],
    ),
    ...["90", "0d", "-1d", "1.5d", "90 d", "3651d", "9999999w", "tomorrow", ""].map(
      (text): [string, readonly string[], number, string | RegExp] => [
        `--expires ${JSON.stringify(text)}`,
        ["add", "x", `--expires=${text}`],
        2,
        `--expires: \`${text}\` is no duration; give minutes, hours, days or weeks, such as 30m, 12h, 90d or 52w, and at most 3650d.`,
      ],
    ),
    [
      "--overlap 24",
      ["rotate", "ci", "--overlap", "24"],
      2,
      "--overlap: `24` is no duration; give minutes, hours, days or weeks, such as 30m, 12h, 90d or 52w, and at most 3650d.",
    ],
    ...["", "a,", "**", "a b", "[a-z]"].map((pattern): [string, readonly string[], number, string | RegExp] => [
      `the pattern ${JSON.stringify(pattern)}`,
      ["add", "x", "--commands", pattern],
      2,
      /^--commands: `.*` is no pattern; give a tool's name, or a pattern such as report_\* in which \* stands for any characters\.$/,
    ]),
    ["a verb that is none", ["remove", "ci"], 2, "Unknown command `keys remove`; there are list, add, rotate, revoke."],
  ])("%s", async (_, words, exitCode, sentence) => {
    const { keys, list } = place();
    await keys("add", "ci");
    const before = await list();
    const { code, stdout, stderr } = await keys(...words);
    expect([code, stdout]).toEqual([exitCode, ""]);
    expect(stderr).toMatch(/^✗ [^\n]*\n$/);
    const said = stderr.slice(2, -1);
    if (typeof sentence === "string") expect(said).toBe(sentence);
    else expect(said).toMatch(sentence);
    expect(await list()).toEqual(before);
  });
});

test("a key by whose scopes nothing may be done is added with a warning", async () => {
  const { keys } = place();
  const warned = async (scopes: string) =>
    (await keys("add", scopes, "--scopes", scopes)).stderr.includes("! It may do");
  expect(await warned("repo:admin")).toBe(true);
  for (const scopes of ["meanwhile:read", "meanwhile:metrics", "meanwhile:admin,repo:admin"])
    expect(await warned(scopes), scopes).toBe(false);
});

test("in a folder without commands a key for less than administrators is added with a warning", async () => {
  const { keys } = place({});
  const warning =
    "! This folder has no commands of its own, and the bundled ones need meanwhile:admin; add keys in your project's folder.\n";
  const { stderr } = await keys("add", "ci");
  expect(stderr).toContain("✓ Added ci for the bundled commands: ");
  expect(stderr.endsWith(warning)).toBe(true);
  for (const scopes of ["meanwhile:admin", "meanwhile:metrics,meanwhile:admin"])
    expect((await keys("add", scopes, "--scopes", scopes)).stderr).not.toContain("!");
});

test("keys belong to a project: another one of the same home has none of them", async () => {
  const { keys, env, project } = place();
  const key = (await keys("add", "ci")).stdout;
  const cwd = writeFiles(temporaryFolder(), { "commands/other.mjs": command });
  const elsewhere = (...words: string[]) => runCli(["keys", ...words], { cwd, env });
  expect((await elsewhere("list", "--json")).stdout).toBe("[]\n");
  expect((await elsewhere("revoke", "ci")).code).toBe(1);
  expect((await elsewhere("add", "ci")).code).toBe(0);
  const { settings } = readSettings({ cwd, env, flags: {} });
  expect(settings.project).not.toBe(project);
  const store = await openStore(settings.store);
  onTestFinished(() => store.close());
  const openKeys = async () => store.shared.keys;
  const verifier = createKeyVerifier({ openKeys, project: settings.project, clock: systemClock, log: silentLog });
  await expect(async () => await verifier.verify(key.trim())).rejects.toThrow("unknown, expired or revoked");
});

test("options before keys select the project, and an empty list says so", async () => {
  const { cwd, env, keys } = place();
  const bundled = (...words: string[]) => runCli(["--bundled", "keys", ...words], { cwd, env });
  await keys("add", "ci");
  expect((await bundled("list")).stderr).toBe(
    "  Each set of --commands, --bundled and config file is a project of its own. Give keys the options of the server: meanwhile --bundled keys list\n",
  );
  expect((await bundled("add", "ci")).code).toBe(0);
  expect((await bundled("list")).stderr).toBe("");
});

test("a config that is code, and was not loaded as it is, is loaded first: it says which project this is", async () => {
  const { cwd, env, keys } = place({
    "tools/hello.mjs": command,
    "meanwhile.config.mjs": 'export default { commands: ["tools"], bundled: false };\n',
  });
  const refused = {
    ...{ code: 1, stdout: "" },
    stderr:
      "✗ It is not certain which project's keys are meant: meanwhile.config.mjs has not been loaded yet; `meanwhile tools` loads it.\n",
  };
  for (const words of [
    ["add", "ci"],
    ["rotate", "ci"],
    ["revoke", "ci"],
  ])
    expect(await keys(...words)).toMatchObject(refused);
  expect((await keys("list")).stderr).toBe(
    "! meanwhile.config.mjs has not been loaded yet; `meanwhile tools` loads it.\n",
  );
  await runCli(["tools"], { cwd, env });
  expect(await keys("add", "ci")).toMatchObject({ code: 0 });
  writeFileSync(path.join(cwd, "meanwhile.config.mjs"), 'export default { commands: ["others"] };\n');
  expect((await keys("add", "laptop")).stderr).toContain("has changed since it was last loaded");
});

test("a store that cannot be opened is an error that names it", async () => {
  const { cwd, env } = place();
  const broken = path.join(temporaryFolder(), "tasks.db");
  writeFileSync(broken, "not a database at all, but a text that is long enough to be taken for one\n".repeat(10));
  const { code, stdout, stderr } = await runCli(["keys", "add", "ci"], {
    cwd,
    env: { ...env, MEANWHILE_STORE: broken },
  });
  expect([code, stdout]).toEqual([70, ""]);
  expect(stderr).toContain(broken);
});

test("Tab offers the verbs, the project's keys, scopes and tools, and makes no store", async () => {
  const { home, keys, complete, list } = place();
  expect(await complete("revoke", "")).toEqual([]);
  expect(existsSync(path.join(home, "tasks.db"))).toBe(false);
  await keys("add", "ci");
  await keys("add", "laptop");
  expect(await list()).toHaveLength(2);
  expect(await complete("")).toEqual(["list", "add", "rotate", "revoke"]);
  for (const verb of ["rotate", "revoke"]) {
    expect(await complete(verb, "")).toEqual(["ci", "laptop"]);
    expect(await complete(verb, "l")).toEqual(["laptop"]);
  }
  expect(await complete("rotate", "ci", "")).not.toContain("laptop");
  expect(await complete("add", "")).toEqual([]);
  expect(await complete("add", "x", "--scopes", "meanwhile:read,meanwhile:c")).toEqual([
    "meanwhile:read,meanwhile:call",
  ]);
  expect(await complete("add", "x", "--commands", "he")).toEqual(["hello"]);
  expect(await complete("add", "x", "--expires", "9")).toEqual(["90d"]);
});
