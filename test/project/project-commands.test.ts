import { rmSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { type Catalog, openCatalog } from "../../src/command/catalog.ts";
import { silentLog } from "../../src/log.ts";
import { findForTerminal, findServed, servedCatalog } from "../../src/project/project-commands.ts";
import { type Flags, readSettings } from "../../src/settings/settings.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { openLiveCatalog } from "../helpers/live-catalog.ts";

const command =
  'import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n';
const everyDomain = ["config", "database", "diagnose-server", "ingest", "monitor", "transform", "vault"];

/** The settings of a folder with these files, and of a home of its own. */
function settingsOf(files: Readonly<Record<string, string>>, flags: Flags = {}) {
  const cwd = writeFiles(temporaryFolder(), files);
  const commands = flags.commands?.map((folder) => path.join(cwd, folder));
  const env = { MEANWHILE_HOME: path.join(cwd, "home") };
  return {
    cwd,
    ...readSettings({ cwd, env, flags: { ...flags, ...(commands !== undefined && { commands }) } }).settings,
  };
}

const own = { "commands/report/build.ts": command };
const config = (bundled: unknown) => ({ "meanwhile.config.json": JSON.stringify({ bundled }) });

test.for<[title: string, files: Readonly<Record<string, string>>, flags: Flags, served: readonly string[]]>([
  ["a folder without commands", {}, {}, everyDomain],
  ["a folder whose commands have no file yet", { "commands/_helper.ts": "" }, {}, everyDomain],
  ["a config file without commands", config(undefined), {}, everyDomain],
  ["commands of one's own", own, {}, ["report"]],
  ["commands of one's own, asked for with --bundled", own, { bundled: true }, [...everyDomain, "report"]],
  ["commands of one's own, asked for in the config", { ...own, ...config(true) }, {}, [...everyDomain, "report"]],
  [
    "commands of one's own, two domains asked for",
    { ...own, ...config(["vault", "monitor"]) },
    {},
    ["monitor", "report", "vault"],
  ],
  ["--no-bundled, which wins over the config", { ...own, ...config(true) }, { bundled: false }, ["report"]],
  [
    "--bundled, which wins over the config",
    { ...own, ...config(false) },
    { bundled: true },
    [...everyDomain, "report"],
  ],
  ["refused, and no commands of one's own", config(false), {}, []],
  ["two domains, and no commands of one's own", config(["vault", "monitor"]), {}, ["monitor", "vault"]],
  ["folders that are named, even without a command", { "mine/_x.ts": "" }, { commands: ["mine"] }, []],
  ["folders that are named, with --bundled", { "mine/_x.ts": "" }, { commands: ["mine"], bundled: true }, everyDomain],
])("The bundled commands are served as asked: %s", ([, files, flags, served]) => {
  const domains = new Set(findServed(settingsOf(files, flags)).map(({ path: words }) => words[0]));
  expect([...domains].sort()).toEqual([...served].sort());
});

test("In a terminal the bundled commands are at hand beside a project's own, which win, unless they are refused", () => {
  const wordsOf = (files: Readonly<Record<string, string>>, flags: Flags = {}) =>
    findForTerminal(settingsOf(files, flags)).map(({ path: words }) => words.join(" "));
  const files = {
    "commands/report/build.ts": command,
    "commands/vault/check.ts": command,
    "commands/monitor.ts": command,
  };
  const found = wordsOf(files);
  expect(found).toEqual(expect.arrayContaining(["report build", "config set", "vault status"]));
  expect(found.filter((words) => words === "vault check")).toHaveLength(1);
  expect(
    found.filter((words) => words.startsWith("monitor")),
    "what leads to a project's own command leads nowhere else",
  ).toEqual(["monitor"]);
  expect(wordsOf(files, { commands: ["commands"] })).toContain("config set");
  expect(wordsOf({ ...own, ...config(["vault"]) })).toContain("config set");
  for (const refused of [wordsOf(own, { bundled: false }), wordsOf({ ...own, ...config(false) })])
    expect(refused).toEqual(["report build"]);
});

test("Two commands of one name are refused with both files and both cures; between a project's own there is one cure", async () => {
  const clashing = settingsOf({ "commands/vault/check.ts": command }, { bundled: true });
  const file = path.join(clashing.cwd, "commands/vault/check.ts");
  const cures =
    "rename yours, or leave the bundled one out: --no-bundled, or in the config `bundled: false` or a list of domains without vault.";
  const refusal = await openCatalog(servedCatalog(clashing, silentLog)).catch((error: Error) => error.message);
  expect(refusal).toMatch(/^Two commands are called vault_check: .+ and .+dist\/commands\/vault\/check\.js; /);
  expect(refusal).toContain(file);
  expect(refusal).toContain(cures);
  const { cwd, ...two } = settingsOf(
    { "a/vault/check.ts": command, "b/vault/check.ts": command },
    { commands: ["a", "b"] },
  );
  const files = ["a", "b"].map((folder) => path.join(cwd, folder, "vault/check.ts"));
  await expect(openCatalog(servedCatalog(two, silentLog))).rejects.toThrow(
    `Two commands are called vault_check: ${files.join(" and ")}; rename one.`,
  );
});

test("A server without commands takes up the first and lets the bundled ones go; without any it has those again", async () => {
  const settings = settingsOf({ "commands/_helper.ts": "" });
  const catalog = await openLiveCatalog({ ...servedCatalog(settings, silentLog), clock: systemClock });
  onTestFinished(() => catalog.close());
  const namesAfter = (change: () => unknown) => nextNames(catalog, change);
  expect(catalog.get("vault_check")?.isBundled).toBe(true);
  expect(await namesAfter(() => writeFiles(settings.cwd, { "commands/say/hello.ts": command }))).toEqual(["say_hello"]);
  expect(await namesAfter(() => rmSync(path.join(settings.cwd, "commands/say/hello.ts")))).toContain("vault_check");
});

function nextNames(catalog: Catalog, change: () => unknown): Promise<string[]> {
  return new Promise((resolve) => {
    const stop = catalog.onChange(() => {
      stop();
      resolve(catalog.entries.map(({ toolName }) => toolName));
    });
    change();
  });
}
