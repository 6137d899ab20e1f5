import { realpathSync } from "node:fs";
import path from "node:path";
import { versions } from "node:process";
import { describe, expect, test } from "vitest";
import { loadEntry } from "../../src/command/load-entry.ts";
import { describeLoadError, exportedNames } from "../../src/command/load-error.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const command =
  'import { defineCommand } from "meanwhile";\nexport default defineCommand({ summary: "x", run: () => ({}) });\n';

/** Loads `commands/a/b.ts` of a project and returns the sentence, with the folder as `<project>`. */
async function problemOf(text: string, files: Readonly<Record<string, string>> = {}, name = "b.ts"): Promise<string> {
  const folder = realpathSync(
    writeFiles(temporaryFolder(), { "package.json": "{}", ...files, [`commands/a/${name}`]: text }),
  );
  const loaded = await loadEntry({ file: path.join(folder, "commands/a", name), path: ["a", "b"], toolName: "a_b" });
  if (!("text" in loaded)) throw new Error("the file was loaded");
  expect(loaded.text).not.toContain("\n");
  // Of an error that has no place in a file, the stack leads to this test.
  return loaded.text.replace(/ \([^)]*\.test\.ts:\d+\)/, "").replaceAll(folder, "<project>");
}

/** An error of Node that no file here can cause. */
function nodeError(code: string, message: string, more: object = {}): string {
  return describeLoadError(Object.assign(new Error(message), { code, stack: "", ...more }), "/project/commands/a/b.ts");
}

describe("a module that cannot be loaded is one sentence with the cure", () => {
  test.each([
    [{}, "npm install"],
    [{ "pnpm-lock.yaml": "" }, "pnpm add"],
    [{ "yarn.lock": "" }, "yarn add"],
  ])("a package that is not installed, with %j", async (files, installer) => {
    expect(await problemOf(`import "@acme/none/part";\n${command}`, files)).toBe(
      `Cannot find package '@acme/none' imported from <project>/commands/a/b.ts; install it: \`${installer} @acme/none\` in <project>`,
    );
  });

  test("a package that is not installed, in a file that Node alone cannot load", async () => {
    expect(await problemOf(`enum E { A }\nimport "none";\n${command}`)).toMatch(
      /^Cannot find (package|module) 'none'.*; install it: `npm install none` in <project>$/,
    );
  });

  test("a package that is not installed, with Plug'n'Play of yarn", () => {
    const text = "Your application tried to access @acme/none, but it isn't declared in your dependencies";
    expect(nodeError("MODULE_NOT_FOUND", text, { stack: `Error: ${text}\n    at x (/project/.pnp.cjs:6443:3)` })).toBe(
      `${text}; install it: \`npm install @acme/none\``,
    );
  });

  test("a TypeScript file under the name of its JavaScript", async () => {
    expect(await problemOf(`import "../_lib/x.js";\n${command}`, { "commands/_lib/x.ts": "" })).toMatch(
      /^Cannot find module '<project>\/commands\/_lib\/x\.js' .*; import \.\.\/_lib\/x\.ts, as the file is called$/,
    );
  });

  test("a file that does not exist", async () => {
    expect(await problemOf(`import "./_x.ts";\n${command}`)).toMatch(
      /; there is no such file: correct the import, or write the file$/,
    );
  });

  test("a name that a file or a package does not export", async () => {
    expect(
      await problemOf(`import { X } from "./_x.ts";\n${command}`, { "commands/a/_x.ts": "export type X = 1;" }),
    ).toMatch(
      /does not provide an export named 'X'.*; if that is a type, write `import type`; if the module is CommonJS, import its default export; else export it there$/,
    );
    const text =
      "Named export 'x' not found. The requested module 'y' is a CommonJS module, which may not support …\nCommonJS";
    expect(nodeError("", text)).toBe(
      "Named export 'x' not found. The requested module 'y' is a CommonJS module; import its default export and take the name from that",
    );
  });

  test("a mistyped name of the package itself", async () => {
    expect(await problemOf('import { defineCommandd } from "meanwhile"; export default defineCommandd({});')).toMatch(
      /does not provide an export named 'defineCommandd'.*; did you mean defineCommand\? If that is a type, write `import type`$/,
    );
    expect(await problemOf('import { X } from "meanwhile"; export default X;')).toMatch(
      /named 'X'.*; if that is a type, write `import type`; if the module is CommonJS/,
    );
    expect(exportedNames.toSorted()).toEqual(Object.keys(await import("../../src/index.ts")).toSorted());
  });

  test("JSON without its attribute", async () => {
    expect(await problemOf(`import x from "./_x.json";\n${command}`, { "commands/a/_x.json": "{}" })).toContain(
      '; write `with { type: "json" }` behind the import',
    );
  });

  test.each([
    ["require('node:fs');", "write `import`, or make a `require` with createRequire of node:module"],
    ["console.log(__dirname);", "write import.meta.dirname"],
    ["module.exports = 1;", "write `export default`"],
  ])("%s in an ES module", async (line, cure) => {
    expect(await problemOf(`${line}\n${command}`)).toMatch(/is not defined in ES module scope.*\(line 1\); /);
    expect(await problemOf(`${line}\n${command}`)).toContain(`; ${cure}`);
  });

  test("a subpath that a package does not export, and TypeScript in node_modules", () => {
    expect(nodeError("ERR_PACKAGE_PATH_NOT_EXPORTED", "Package subpath './x' is not defined.")).toBe(
      "Package subpath './x' is not defined; import what the package exports, or install a version that has it",
    );
    expect(nodeError("ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING", "Stripping types is unsupported")).toContain(
      "; use a package that is compiled to JavaScript",
    );
  });
});

describe("a wrong version of Node is one sentence with the cure", () => {
  test("a module of Node that this one does not have", async () => {
    expect(await problemOf(`import "node:none";\n${command}`)).toBe(
      `No such built-in module: node:none; this is Node ${versions.node}: install a newer one, or do without that module`,
    );
  });

  test("a name that this Node's modules do not export", async () => {
    expect(await problemOf(`import { none } from "node:fs";\n${command}`)).toMatch(
      new RegExp(`an export named 'none'.*; this is Node ${versions.node}: install a newer one, or do without it$`),
    );
  });

  test("a native module that was built for another version", () => {
    const text = "The module '/project/node_modules/x/x.node'\nwas compiled against a different Node.js version using";
    expect(nodeError("ERR_DLOPEN_FAILED", text)).toBe(
      `the native module /project/node_modules/x/x.node cannot be loaded; it was built for another version of Node than this one (${versions.node}) or for another system; run \`npm rebuild\``,
    );
  });

  test.each([
    [">=99", true],
    ["^98.1 || >=99.0.1", true],
    [">=20 <99", false],
    ["<20 || >=99", false],
    ["*", false],
  ])("engines.node %s", async (node, isNamed) => {
    const files = { "package.json": JSON.stringify({ engines: { node } }) };
    const cure = `; <project>/package.json asks for Node ${node}, and this is Node ${versions.node}: install that`;
    expect(await problemOf('throw new Error("Iterator.zip is not a function");', files)).toBe(
      `Iterator.zip is not a function (line 1)${isNamed ? cure : ""}`,
    );
  });
});

describe("a missing permission is one sentence with the cure", () => {
  test("a module that may not be read", () => {
    const text = "EACCES: permission denied, open '/project/commands/a/b.ts'";
    expect(nodeError("EACCES", text, { path: "/project/commands/a/b.ts" })).toBe(
      `${text}; let this user read it: chmod u+rX /project/commands/a /project/commands/a/b.ts`,
    );
  });

  test("what the code of the file opens", async () => {
    const text = `throw Object.assign(new Error("EACCES: permission denied, open '/secret'"), { code: "EACCES", path: "/secret" });`;
    expect(await problemOf(text)).toBe(
      "EACCES: permission denied, open '/secret' (line 1); give this user the right to do that, or use another path",
    );
  });

  test("Node's permission model", () => {
    const text = "Access to this API has been restricted. Use --allow-fs-read to manage permissions.";
    expect(nodeError("ERR_ACCESS_DENIED", text)).toBe(
      "Access to this API has been restricted. Use --allow-fs-read to manage permissions; start Node with that flag, or without --permission",
    );
  });
});
