import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { run, sectionsOf } from "../helpers/bench.ts";

const root = path.resolve(import.meta.dirname, "../..");
const bench = path.join(root, "bench");

test("every bench that needs nothing but us runs to its end in the smallest size, and prints its table", () => {
  for (const [words, row] of [
    [[], "create → result, trivial command, p50"],
    [["--growth"], "list of live tasks, none there"],
  ] as const) {
    const { status, stdout, stderr } = run("tasks.mjs", "--smallest", ...words);
    expect(status, stderr).toBe(0);
    expect(stdout).toContain(row);
  }
});

test("every section is named in the bench's own words", () => {
  const sections = sectionsOf();
  expect(sections.length).toBeGreaterThan(12);
  const readme = readFileSync(path.join(bench, "README.md"), "utf8");
  const head = readFileSync(path.join(bench, "run.mjs"), "utf8").split("import")[0];
  for (const section of sections) {
    expect(head, section).toMatch(new RegExp(`\\b${section}\\b`));
    expect(readme, section).toMatch(new RegExp(`\\b${section}\\b`));
  }
});

test("every file of the bench finds what it imports of ours", () => {
  const files = globSync("**/*.mjs", { cwd: bench, exclude: ["**/node_modules/**"] });
  expect(files.length).toBeGreaterThan(25);
  const missing = files.flatMap((file) =>
    [...readFileSync(path.join(bench, file), "utf8").matchAll(/(?:from|import\() ?"(\.[^"]+)"/g)]
      .map(([, name = ""]) => path.resolve(bench, path.dirname(file), name))
      .filter((name) => !name.startsWith(path.join(root, "dist")) && globSync(name).length === 0)
      .map((name) => `${file} imports ${path.relative(root, name)}`),
  );
  expect(missing).toEqual([]);
});
