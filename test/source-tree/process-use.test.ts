import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
/** The entry file passes the real process to everything else. */
const entryFile = "src/cli/entries/run-program.ts";

/** Lines that use the global `process`, or import it. Comments and texts do not count. */
function usesOf(text: string): string[] {
  const code = text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|"(?:[^"\\\n]|\\.)*"/gm, (part) =>
    part === '"node:process"' ? part : part.replaceAll(/[^\n]/g, " "),
  );
  const uses =
    /(?<![\w.#-])process(?:\.|\?\.|\[|[,;)\s]*$)|(?<![\w.#-])process(?=[,)])|globalThis\.process|"node:process"/;
  return code.split("\n").filter((line) => uses.test(line));
}

test("src/cli uses no process outside its entry file", () => {
  const files = globSync("src/cli/**/*.ts", { cwd: root }).filter((file) => file !== entryFile);
  expect(files.length).toBeGreaterThan(80);
  const uses = files.flatMap((file) =>
    usesOf(readFileSync(path.join(root, file), "utf8")).map((line) => `${file}: ${line.trim()}`),
  );
  expect(uses).toEqual([]);
});

test.each([
  "const folder = process.cwd();",
  "takeStdout(process);",
  "const { env } = process;",
  'import { env } from "node:process";',
  "globalThis.process.exit(1);",
  "const context = { signals: process, exit };",
])("%s counts as a use of the process", (line) => {
  expect(usesOf(line)).toEqual([line]);
});

test.each(['import { x } from "../../command/process-guard.ts";', "// process.cwd() is not here", "a.process.exit();"])(
  "%s does not count",
  (line) => {
    expect(usesOf(line)).toEqual([]);
  },
);
