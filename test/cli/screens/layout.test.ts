import { describe, expect, test } from "vitest";
import { toColumns, wrapHelp } from "../../../src/cli/screens/layout.ts";
import { cutWords } from "../../../src/screen/width.ts";

describe("columns", () => {
  const rows = [
    ["Tool", "Typed", "What it does"],
    ["report_build", "report build", "Build the quarterly report from everything that was sold"],
    ["日本", "x", "Short"],
  ];

  test("are one line a row where there is room, or nobody who looks", () => {
    expect(toColumns(rows)).toBe(
      `Tool          Typed         What it does
report_build  report build  Build the quarterly report from everything that was sold
日本          x             Short
`,
    );
  });

  test("break the last one between words", () => {
    expect(toColumns(rows, 60).split("\n").slice(1, 4)).toEqual([
      "report_build  report build  Build the quarterly report from",
      "                            everything that was sold",
      "日本          x             Short",
    ]);
  });

  test("stand below each other where the last one has no room", () => {
    expect(toColumns(rows, 40)).toBe(
      `report_build
  report build
  Build the quarterly report from
  everything that was sold
日本
  x
  Short
`,
    );
  });
});

test("help keeps its columns, and a line for the shell can still be pasted", () => {
  const help = `Usage: meanwhile call <target> <tool> [key=value …] [options]

  --args <json>  the arguments as one JSON object, sent as they are
  list [--live] [--status s] [--limit n]  your tasks

  $ meanwhile call echo message=hi -- npx -y @modelcontextprotocol/server
`;
  expect(wrapHelp(help, 48)).toBe(`Usage: meanwhile call <target> <tool>
  [key=value …] [options]

  --args <json>  the arguments as one JSON
                 object, sent as they are
  list [--live] [--status s] [--limit n]
      your tasks

  $ meanwhile call echo message=hi -- npx -y \\
      @modelcontextprotocol/server
`);
  expect(wrapHelp(help, Number.POSITIVE_INFINITY)).toBe(help);
});

test("a line is cut between words; a single word where it must be", () => {
  expect(cutWords("Page three of twelve", 12)).toBe("Page three …");
  expect(cutWords("Page three of twelve", 11)).toBe("Page …");
  expect(cutWords("Page three", 10)).toBe("Page three");
  expect(cutWords("interminable", 6)).toBe("inter…");
});
