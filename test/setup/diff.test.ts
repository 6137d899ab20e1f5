import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { unifiedDiff } from "../../src/setup/diff.ts";

const names = { before: "a", after: "b" };

describe("a unified diff", () => {
  test("shows what changes, with three lines around it", () => {
    const before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    expect(unifiedDiff(before, before.replace("5\n", "5,\nnew\n"), names)).toBe(
      "--- a\n+++ b\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+5,\n+new\n 6\n 7\n 8\n",
    );
  });

  test("says when a last line is open", () => {
    expect(unifiedDiff("x", "x\n", names)).toBe("--- a\n+++ b\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n");
  });

  test("of a new file begins at nothing", () => {
    expect(unifiedDiff("", "x\ny\n", names)).toBe("--- a\n+++ b\n@@ -0,0 +1,2 @@\n+x\n+y\n");
  });

  test("is empty when nothing differs", () => {
    expect(unifiedDiff("x\n", "x\n", names)).toBe("");
  });

  test("of files that share too little shows the one removed and the other added", () => {
    const lines = (letter: string) => Array.from({ length: 1500 }, (_, at) => `${letter}${at}\n`).join("");
    const diff = unifiedDiff(lines("a"), lines("b"), names);
    expect(diff).toMatch(/^--- a\n\+\+\+ b\n@@ -1,1500 \+1,1500 @@\n(-a\d+\n){1500}(\+b\d+\n){1500}$/);
    expect(applyDiff(lines("a"), diff)).toBe(lines("b"));
  });

  test("turns the one text into the other, whatever they are", () => {
    const text = fc
      .array(fc.constantFrom("a\n", "b\n", "c\n", "d\n", "\n"), { maxLength: 30 })
      .chain((lines) => fc.constantFrom(lines.join(""), `${lines.join("")}end`));
    fc.assert(
      fc.property(text, text, (before, after) => {
        expect(applyDiff(before, unifiedDiff(before, after, names))).toBe(after);
      }),
    );
  });
});

/** As `patch` would, by the numbers in the hunks. */
function applyDiff(before: string, diff: string): string {
  const lines = before.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const result: string[] = [];
  let at = 0;
  for (const [, start = "", count = "1", body = ""] of diff.matchAll(
    /^@@ -(\d+)(?:,(\d+))? \+\S+ @@\n((?:[ +\-\\].*\n?)*)/gm,
  )) {
    const from = Number(start) - (count === "0" ? 0 : 1);
    result.push(...lines.slice(at, from));
    at = from;
    for (const [line] of body.replaceAll("\n\\ No newline at end of file\n", "\0").matchAll(/[ +-][^\n\0]*[\n\0]/g)) {
      const text = line.slice(1).replace("\0", "");
      if (!line.startsWith("+")) expect(lines[at++]).toBe(text);
      if (!line.startsWith("-")) result.push(text);
    }
  }
  return [...result, ...lines.slice(at)].join("");
}
