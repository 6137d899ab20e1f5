import { expect, test } from "vitest";
import { bySpecificity, isToolPattern, matchesTool } from "../../src/auth/tool-pattern.ts";

test.each<[pattern: string, matching: readonly string[], others: readonly string[]]>([
  ["report_build", ["report_build"], ["report_build2", "Report_build", "report_", ""]],
  ["github__delete_*", ["github__delete_repo", "github__delete_"], ["github__delete", "my_github__delete_repo"]],
  ["*_delete", ["a_delete", "_delete"], ["delete", "a_delete_b"]],
  ["a*b*c", ["abc", "aXbYc", "abcbc"], ["ac", "acb", "abcd"]],
  ["ab*ba", ["abba", "abXba"], ["aba"]],
  ["*", ["", "anything"], []],
])("the pattern %s matches %j and not %j", (pattern, matching, others) => {
  expect(matching.filter((name) => !matchesTool(pattern, name))).toEqual([]);
  expect(others.filter((name) => matchesTool(pattern, name))).toEqual([]);
});

test("matching takes no longer for a hostile pattern", () => {
  const pattern = `${"a*".repeat(90)}b`;
  expect(matchesTool(pattern, "a".repeat(100_000))).toBe(false);
});

test.each(["", "a b", "**", "a**", "delete?", "(a|b)", "a\n", "[ab]", "^a", "a,b", 1, null, undefined, ["a"]])(
  "%j is no pattern",
  (value) => expect(isToolPattern(value)).toBe(false),
);

test.each(["a", "*", "github__delete_*", "a-b.c/d", "*a*"])("%j is a pattern", (value) =>
  expect(isToolPattern(value)).toBe(true),
);

test("a name is more specific than a pattern, then the longer start counts, then the longer pattern", () => {
  const patterns = ["*", "*_delete", "g*", "git*", "github_delete", "git*_delete", "*delete"];
  expect(patterns.toSorted(bySpecificity)).toEqual([
    "github_delete",
    "git*_delete",
    "git*",
    "g*",
    "*_delete",
    "*delete",
    "*",
  ]);
  expect(bySpecificity("a*b", "a*c")).toBe(0);
});
