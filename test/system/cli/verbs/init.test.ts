import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../../../helpers/home.ts";
import { runProcess, startMeanwhile } from "../../../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../../../helpers/wire.ts";

/** The project that `meanwhile init` makes, under Node, the compiler and the formatter. */

const root = path.resolve(import.meta.dirname, "../../../..");
const manifest = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));

/** Every file below a folder, by its name. */
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();
const readJson = (...names: string[]) => JSON.parse(readFileSync(path.join(...names), "utf8"));

/** Puts into a folder what npm would install there, the package as it is built. */
function install(folder: string): string {
  const modules = path.join(folder, "node_modules");
  for (const name of ["package.json", "dist"])
    cpSync(path.join(root, name), path.join(modules, "meanwhile", name), { recursive: true });
  for (const name of [...Object.keys(manifest.dependencies), "@types/node", "undici-types"]) {
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true });
    symlinkSync(path.join(root, "node_modules", name), path.join(modules, name));
  }
  return folder;
}

const run = (folder: string, command: string, ...words: string[]) => {
  const { status, stdout, stderr } = spawnSync(command, words, {
    cwd: folder,
    encoding: "utf8",
    env: {
      ...process.env,
      MEANWHILE_HOME: path.join(folder, "home"),
      ACME_HOME: path.join(folder, "home"),
      NODE_OPTIONS: "",
    },
  });
  return { status, printed: `${stdout}${stderr}` };
};
const tools = path.join(root, "test/system/node_modules/.bin");
const tsc = path.join(tools, "tsc");
/** Several checkers would each do a part of the others' work. */
const once = ["--checkers", "1"];

describe("what was made", () => {
  const made = shareAmongTests(async () => {
    const folder = temporaryFolder();
    for (const words of [["acme"], ["published", "--package", "--name", "acme"]]) {
      expect(await runProcess(["init", ...words], { cwd: folder })).toMatchObject({ code: 0 });
      install(path.join(folder, words[0] as string));
    }
    return folder;
  });

  test.each(["acme", "published"])("%s: its test passes", async (name) => {
    const folder = path.join(await made(), name);
    expect(run(folder, process.execPath, "--test", "--test-reporter=tap")).toEqual({
      status: 0,
      printed: expect.stringContaining("# pass 2\n# fail 0"),
    });
  });

  test.each(["acme", "published"])("%s: its types are right, a command of `meanwhile new` too", async (name) => {
    const folder = path.join(await made(), name);
    expect(await runProcess(["new", "hello/world"], { cwd: folder })).toMatchObject({ code: 0 });
    expect(run(folder, tsc, "--noEmit", ...once)).toEqual({ status: 0, printed: "" });
  });

  test("the types of a project are looked at, in each of its folders", async () => {
    const folder = path.join(await made(), "acme");
    const wrong = "export const wrong: string = 1;\n";
    writeFiles(folder, { "commands/_wrong.ts": wrong, "test/wrong.ts": wrong });
    const { printed } = run(folder, tsc, "--noEmit", ...once);
    for (const name of ["commands/_wrong.ts", "test/wrong.ts"]) rmSync(path.join(folder, name));
    expect(printed.match(/^\S+(?=\(.*TS2322)/gm)).toEqual(["commands/_wrong.ts", "test/wrong.ts"]);
  });

  test("a project: its command runs in the terminal, and MCP clients get it as a tool", async () => {
    const cwd = path.join(await made(), "acme");
    expect(await runProcess(["report", "build", "Q3", "--pages", "1", "--quiet"], { cwd })).toMatchObject({
      code: 0,
      stdout: "title: Report of Q3\npages: 1\n",
      stderr: "",
    });
    const server = startMeanwhile(["serve", "--in-process"], { cwd });
    const client = await new WireClient(overPipes(server.child), { revision: "2025-11-25" }).begin();
    const { tools } = (await client.request("tools/list")).result as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).toContain("report_build");
    expect((await client.call("report_build", { quarter: "Q1", pages: 1 })).structuredContent).toMatchObject({
      data: { title: "Report of Q1" },
    });
    await client.close();
  });

  test("one to publish: builds to code without types, with what it imports, and nothing that is gone", async () => {
    const folder = writeFiles(path.join(await made(), "published"), {
      "commands/_words.ts": 'export const greeting: string = "Hello";\n',
      "commands/hello/say.ts": `import { defineCommand } from "meanwhile";
import { greeting } from "../_words.ts";
export default defineCommand({ summary: "Say hello", run: () => ({ greeting }) });
`,
      "dist/commands/gone.js": "",
    });
    const { scripts } = readJson(folder, "package.json") as { scripts: { build: string } };
    const PATH = `${path.dirname(tsc)}:${process.env.PATH}`;
    const { status, stdout } = spawnSync("sh", ["-c", scripts.build], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, PATH },
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
    expect(filesIn(path.join(folder, "dist"))).toEqual(
      expect.arrayContaining(["commands/_words.js", "commands/hello/say.js", "commands/report/build.js"]),
    );
    expect(existsSync(path.join(folder, "dist/commands/gone.js"))).toBe(false);
    expect(readFileSync(path.join(folder, "dist/commands/hello/say.js"), "utf8")).toContain('"../_words.js"');
    const acme = (...words: string[]) => run(folder, process.execPath, "bin/acme.js", ...words);
    expect(acme("hello", "say", "--quiet")).toEqual({ status: 0, printed: "greeting: Hello\n" });
    expect(acme("--version")).toEqual({ status: 0, printed: "0.1.0\n" });
    expect(acme("--help").printed).toMatch(/^acme 0\.1\.0: Commands for the terminal and for MCP clients\n/);
    expect(acme("init").status).toBe(2);
  });

  test("is formatted as this repository is", async () => {
    const folder = writeFiles(temporaryFolder(), { "biome.json": readFileSync(path.join(root, "biome.json"), "utf8") });
    spawnSync("git", ["init", "--quiet"], { cwd: folder });
    for (const words of [["one"], ["two", "--package"]])
      expect(await runProcess(["init", ...words], { cwd: folder })).toMatchObject({ code: 0 });
    const { status, printed } = run(folder, path.join(tools, "biome"), "check", "one", "two");
    expect({ status, printed }).toEqual({ status: 0, printed: expect.stringContaining("No fixes applied") });
  });
});
