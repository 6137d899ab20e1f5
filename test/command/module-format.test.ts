import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { type Catalog, openCatalog } from "../../src/command/catalog.ts";
import { forgetModules, loadModule } from "../../src/command/load.ts";
import { loadEntry } from "../../src/command/load-entry.ts";
import { silentLog } from "../../src/log.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const index = path.resolve(import.meta.dirname, "../../src/index.ts");
const open = (folder: string): Promise<Catalog> => openCatalog({ folders: [folder], toolPrefix: "", log: silentLog });

/** ES modules: each imports a second file, which is an ES module too. */
const modules = {
  "commands/a/typed.ts": `import { defineCommand } from "meanwhile";
import { summary } from "../_lib/typed.ts";
export default defineCommand({ summary, run: () => ({}) });
`,
  "commands/_lib/typed.ts": 'export const summary: string = "TypeScript";\n',
  "commands/a/plain.js": `#!/usr/bin/env node
import { defineCommand } from "meanwhile";
import { summary } from "../_lib/plain.js";
export default defineCommand({ summary, run: () => ({ here: import.meta.dirname }) });
`,
  "commands/_lib/plain.js": 'export const summary = await Promise.resolve("JavaScript");\n',
  "commands/a/enum.ts": `import { defineCommand } from "meanwhile";
enum Colour { Red = "Enum" }
export default defineCommand({ summary: Colour.Red, run: () => ({}) });
`,
};

/** CommonJS, with texts in it that look like ES module syntax. */
const scripts = {
  "commands/b/typed.ts": `const { defineCommand } = require(${JSON.stringify(index)});
const { summary }: { summary: string } = require("../_lib/script.js");
/*
import nothing from "./nothing.js";
*/
module.exports = defineCommand({ summary, run: () => ({ code: \`
export default 1;\` }) });
`,
  "commands/b/plain.js": `const { defineCommand } = require(${JSON.stringify(index)});
module.exports = defineCommand({ summary: require("../_lib/script.js").summary, run: () => ({}) });
`,
  "commands/_lib/script.js": 'exports.summary = "CommonJS";\n',
};

const manifests = {
  "a package of type commonjs": { "package.json": '{ "name": "first", "type": "commonjs" }' },
  "a package without a type": { "package.json": '{ "name": "first" }' },
  "a folder without package.json": {},
};

test.each(Object.entries(manifests))(
  "ES modules and CommonJS in %s load, and Node prints no warning",
  async (_name, files) => {
    const warn = vi.spyOn(process, "emitWarning");
    const folder = writeFiles(temporaryFolder(), { ...files, ...modules, ...scripts });
    const { entries, problems } = await open(path.join(folder, "commands"));
    expect(problems).toEqual([]);
    expect(entries.map(({ toolName, command }) => [toolName, command.summary])).toEqual([
      ["a_enum", "Enum"],
      ["a_plain", "JavaScript"],
      ["a_typed", "TypeScript"],
      ["b_plain", "CommonJS"],
      ["b_typed", "CommonJS"],
    ]);
    expect(warn.mock.calls).toEqual([]);
    warn.mockRestore();
  },
);

test("ES modules in a package of type module load as before", async () => {
  const folder = writeFiles(temporaryFolder(), { "package.json": '{ "type": "module" }', ...modules });
  expect((await open(path.join(folder, "commands"))).problems).toEqual([]);
});

test("a changed ES module in a package of type commonjs is read again", async () => {
  const folder = writeFiles(temporaryFolder(), { "package.json": '{ "type": "commonjs" }', ...modules });
  const summaryOf = async () => {
    const loaded = await loadModule(path.join(folder, "commands/a/typed.ts"));
    return (loaded.default as { readonly summary: string }).summary;
  };
  expect(await summaryOf()).toBe("TypeScript");
  writeFiles(folder, { "commands/_lib/typed.ts": 'export const summary: string = "Changed";\n' });
  forgetModules([path.join(folder, "commands")]);
  expect(await summaryOf()).toBe("Changed");
});

test("the config file of a package of type commonjs may be an ES module", async () => {
  const folder = writeFiles(temporaryFolder(), {
    "package.json": '{ "type": "commonjs" }',
    "meanwhile.config.ts":
      'import { defineConfig } from "meanwhile";\nexport default defineConfig({ name: "first" });\n',
  });
  expect((await loadModule(path.join(folder, "meanwhile.config.ts"))).default).toEqual({ name: "first" });
});

test("a syntax error in an ES module is named, not its format", async () => {
  const folder = writeFiles(temporaryFolder(), {
    "package.json": '{ "type": "commonjs" }',
    "commands/a/plain.js": 'import "node:fs";\nexport default {;\n',
    "commands/a/typed.ts": 'import "node:fs";\nexport default {;\n',
  });
  const texts = (await open(path.join(folder, "commands"))).problems.map(({ text }) => text);
  expect(texts).toHaveLength(2);
  for (const text of texts) {
    expect(text).toMatch(/Unexpected|Expression expected/);
  }
});

test.each(["commands/a/typed.ts", "commands/a/plain.js"])(
  "%s in a package of type commonjs loads after a time without file descriptors",
  async (name) => {
    const folder = writeFiles(temporaryFolder(), { "package.json": '{ "type": "commonjs" }', ...modules });
    const file = path.join(folder, name);
    const endShortage = refuseToRead(file);
    expect(await loadEntry({ file, toolName: "a", path: ["a"] })).toMatchObject({ isTransient: true });
    endShortage();
    expect(await loadEntry({ file, toolName: "a", path: ["a"] })).toHaveProperty("command");
  },
);

/** Throws EMFILE where a file is read, until the returned function is called. */
function refuseToRead(refused: string): () => void {
  const { readFileSync } = fs;
  const read = vi.spyOn(fs, "readFileSync").mockImplementation(((file: string, ...rest: []) => {
    if (file === refused)
      throw Object.assign(new Error(`EMFILE: too many open files, open '${file}'`), { code: "EMFILE" });
    return readFileSync(file, ...rest);
  }) as typeof readFileSync);
  syncBuiltinESMExports();
  const restore = () => {
    read.mockRestore();
    syncBuiltinESMExports();
  };
  onTestFinished(restore);
  return restore;
}
