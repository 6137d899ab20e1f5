import path from "node:path";
import { describe, expect, test } from "vitest";
import { environmentNames, isVariableName } from "../../src/command/environment.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** The names in a project of these files; the commands are below commands/. */
function namesIn(files: Readonly<Record<string, string>>): readonly string[] {
  const folder = writeFiles(temporaryFolder(), files);
  return environmentNames({ folders: [path.join(folder, "commands")] }).names;
}

const namesOf = (text: string) => namesIn({ "commands/a.ts": text });

describe("a variable is found in every way to read one by name", () => {
  test.each([
    ["process.env.KEY", ["KEY"]],
    ["process.env.KEY!.trim() + process.env?.OTHER", ["KEY", "OTHER"]],
    ["process\n  .env\n  .KEY ?? 'none'", ["KEY"]],
    ["globalThis.process.env.KEY", ["KEY"]],
    [`process.env["KEY"] || process.env['OTHER'] || process.env[\`THIRD\`]`, ["KEY", "OTHER", "THIRD"]],
    [`process["env"].KEY`, ["KEY"]],
    [`const { A, B: b, C = "x", "D": d } = process.env;`, ["A", "B", "C", "D"]],
    ["const {\n  A,\n  B,\n}: NodeJS.ProcessEnv = process.env;", ["A", "B"]],
    ["(process.env as Env).KEY", ["KEY"]],
    [`import { env } from "node:process";\nenv.KEY; env["OTHER"]; const { third } = env;`, ["KEY", "OTHER", "third"]],
    [`import process, { argv, env as variables } from "process";\nvariables.KEY + process.env.OTHER`, ["KEY", "OTHER"]],
    [`import * as proc from "node:process";\nproc.env.KEY`, ["KEY"]],
    [`const proc = require("node:process"); proc.env.KEY`, ["KEY"]],
    [`const { env } = require('process'); env.KEY`, ["KEY"]],
    ["const { env, argv } = process; env.KEY", ["KEY"]],
    ["const env = process.env;\nconst key = env.KEY;", ["KEY"]],
    ["function read(from: NodeJS.ProcessEnv = process.env) { return from.KEY; }", ["KEY"]],
    ["let first = process.env, second = first;\nsecond.KEY", ["KEY"]],
  ])("%s", (text, names) => expect(namesOf(text)).toEqual(names));
});

describe("where it is used in another way, every word in capitals counts", () => {
  test.each([
    ["const { ACME_KEY } = z.object({ ACME_KEY: z.string() }).parse(process.env);"],
    [`const read = (name: string) => process.env[name]; read("ACME_KEY");`],
    ["spawn('acme', { env: { ...process.env, ACME_KEY: '1' } });"],
    ["for (const name of ['ACME_KEY']) if (name in process.env) use(name);"],
    ["const { OTHER, ...rest } = process.env; rest.ACME_KEY"],
    ["process.env.hasOwnProperty('ACME_KEY')"],
    ["parse(process.env).ACME_KEY"],
    [`import { env } from "node:process"; check({ env }).ACME_KEY`],
    ["class A { env = {}; constructor() { this.env = process.env; } key() { return this.env.ACME_KEY; } }"],
  ])("%s", (text) => expect(namesOf(text)).toContain("ACME_KEY"));

  test("also in the other files of the project", () => {
    const files = {
      "commands/a.ts": `import { env } from "../lib/env.ts"; env.ACME_KEY`,
      "lib/env.ts": "export const env = process.env;",
    };
    expect(namesIn(files)).toContain("ACME_KEY");
  });
});

test("code that does not read the environment has no names, whatever is in capitals", () => {
  expect(
    namesOf(
      `const LIMIT = 5; const config = { env: "KEY" }; config.env.KEY; import.meta.env.MODE; // environment of ACME_KEY`,
    ),
  ).toEqual([]);
});

test("what is named only in a comment or a text counts, which does no harm", () => {
  expect(namesOf("// process.env.IN_COMMENT\nconst text = 'process.env.IN_TEXT';")).toEqual(["IN_COMMENT", "IN_TEXT"]);
});

test("helpers and what is imported by path are looked at, but neither packages nor tests", () => {
  const names = namesIn({
    "commands/report/build.ts": `import "../../lib/a.js"; const b = await import('../../lib/b'); require("../../lib/c"); export * from "zod";`,
    "commands/_shared/helper.ts": "process.env.IN_HELPER",
    "commands/report/build.test.ts": "process.env.IN_TEST",
    "commands/node_modules/x/index.js": "process.env.IN_PACKAGE",
    "lib/a.ts": `import "./deep/d.mjs"; import "../node_modules/y/index.js"; import "./gone.ts"; process.env.IN_A`,
    "lib/b/index.ts": `import "../a.ts"; process.env.IN_B`,
    "lib/c.cjs": "",
    "lib/c.js": "process.env.IN_C",
    "lib/deep/d.mjs": "process.env.IN_D",
    "lib/unused.ts": "process.env.IN_UNUSED",
    "node_modules/y/index.js": "process.env.IN_PACKAGE",
  });
  expect(names).toEqual(["IN_A", "IN_B", "IN_C", "IN_D", "IN_HELPER"]);
});

test("a changed file is looked at again, and files that are skipped are not", () => {
  const folder = writeFiles(temporaryFolder(), { "commands/a.ts": "process.env.ONE", "config.ts": "process.env.TWO" });
  const places = {
    folders: [path.join(folder, "commands")],
    files: [path.join(folder, "config.ts"), path.join(folder, "none.ts")],
  };
  expect(environmentNames(places)).toEqual({ names: ["ONE", "TWO"], isWhole: true });
  writeFiles(folder, { "commands/a.ts": "process.env.THREE" });
  expect(environmentNames(places).names).toEqual(["THREE", "TWO"]);
  expect(environmentNames({ ...places, skips: (file) => file.endsWith("config.ts") }).names).toEqual(["THREE"]);
});

test("a look has bounds, and says when there was more", () => {
  const folder = writeFiles(temporaryFolder(), {
    "commands/a.ts": "process.env.ONE",
    "commands/b.ts": `process.env.TWO;${" ".repeat(3 * 1024 * 1024)}`,
  });
  expect(environmentNames({ folders: [path.join(folder, "commands")] })).toEqual({ names: ["ONE"], isWhole: false });
  const many = Array.from({ length: 2_000 }, (_, at) => `process.env.N${at}`).join("\n");
  const found = environmentNames({ folders: [writeFiles(temporaryFolder(), { "a.ts": many })] });
  expect([found.names.length, found.isWhole]).toEqual([1_000, false]);
});

test("a hostile text costs no more than its length", () => {
  const text = `${"{".repeat(100_000)}${"= process.env".repeat(2_000)}${"(".repeat(50_000)}`;
  expect(namesOf(`${text};process.env.KEY`)).toContain("KEY");
});

test("names of variables", () => {
  for (const name of ["A", "_x", "acme_key2"]) expect(isVariableName(name)).toBe(true);
  for (const name of ["", "1X", "A B", "A=B", "Ä", "A-B", "A\n", 1, undefined, "X".repeat(300)])
    expect(isVariableName(name)).toBe(false);
});
