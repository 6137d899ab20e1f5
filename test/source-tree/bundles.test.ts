import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

/** What keeps the package fit for bundlers. That bundles start is in test/package/bundlers.test.ts. */

const root = path.resolve(import.meta.dirname, "../..");
const sources = globSync("src/**/*.ts", { cwd: root });
/** Without comments and texts, in which snippets for users stand. */
const codeOf = (file: string) =>
  readFileSync(path.join(root, file), "utf8")
    .replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "")
    .replaceAll(/`[^`]*`|"[^"\n]*"/g, (text) => (/^"[\w@/.:-]*"$/.test(text) ? text : ""));
const having = (pattern: RegExp) => sources.filter((file) => pattern.test(codeOf(file)));

test("where our code is, is asked in one file: a bundle of CommonJS has no `import.meta`", () => {
  expect(having(/import\.meta/)).toEqual(["src/system/own-module.ts"]);
});

test("packages that only some programs need are imported by name when they are used", () => {
  const optional = 'pg|bullmq|ioredis|better-sqlite3|jiti|@modelcontextprotocol/server|@opentelemetry/[^"]*';
  const imports = new RegExp(`(?:^import (?!type)[^;]*from |(?<!typeof )import\\()"(?:${optional})"`, "m");
  // The thread that renews leases is a file of its own, which no bundle holds.
  expect(having(imports)).toEqual(["src/store/sqlite/heartbeat.ts"]);
});
