import { expect, test } from "vitest";
import { rootHelp } from "../../../src/cli/command-usage.ts";
import { toolsTable } from "../../../src/cli/screens/tools-view.ts";
import type { CatalogEntry } from "../../../src/command/catalog.ts";
import { defineCommand } from "../../../src/index.ts";

function entry(words: string, summary: string, isBundled = false): CatalogEntry {
  const path = words.split(" ");
  return {
    toolName: path.join("_"),
    path,
    file: `/p/${words}`,
    command: defineCommand({ summary, run: () => ({}) }),
    isBundled,
  };
}

const own = entry("report build", "Build the report of a month from the files that were handed in, page by page");
const bundled = entry(
  "monitor priority remove",
  "Take a folder's priority away, whatever it was and whoever set it",
  true,
);

test("tools are listed under whose they are, a project's own first; alone they need no heading", () => {
  expect(toolsTable([bundled, own], Number.POSITIVE_INFINITY)).toBe(
    [
      "Tool                     In the terminal                    What it does",
      "",
      "Commands of this project",
      `report_build             meanwhile report build             ${own.command.summary}`,
      "",
      "Bundled commands",
      `monitor_priority_remove  meanwhile monitor priority remove  ${bundled.command.summary}`,
      "",
    ].join("\n"),
  );
  expect(toolsTable([own], Number.POSITIVE_INFINITY)).toBe(
    `Tool          In the terminal         What it does\nreport_build  meanwhile report build  ${own.command.summary}\n`,
  );
});

test("what is registered by hand stands between the two", () => {
  const hooked = { ...entry("by_hand", "Say it by hand"), isListedByServer: true };
  const lines = toolsTable([bundled, hooked, own], Number.POSITIVE_INFINITY).split("\n");
  expect(lines.map((line) => line.replace(/ {2}.*/, ""))).toEqual([
    "Tool",
    ...["", "Commands of this project", "report_build"],
    ...["", "Registered in the `mcp` hook of the config", "by_hand"],
    ...["", "Bundled commands", "monitor_priority_remove"],
    "",
  ]);
});

test.for([40, 60, 80])("at %i columns tools and help break no word", (columns) => {
  const table = toolsTable([own, bundled], columns);
  const groups = [
    { heading: "Bundled commands, in the terminal alone (--bundled serves them too)", found: [bundled, own] },
  ];
  const verbs = [
    { name: "diagnose", summary: "will this server survive in my host: diagnose <url | . | -- command …>" },
  ];
  const help = rootHelp({ version: "1.2.3", verbs, groups, columns });
  for (const [text, words] of [
    [table, `${own.command.summary} ${bundled.command.summary}`],
    [help, `${groups[0]?.heading} ${verbs[0]?.summary} priority remove`],
  ] as const) {
    for (const line of text.split("\n")) expect(line.length, line).toBeLessThanOrEqual(columns);
    for (const word of words.split(" ")) expect(text.split(/[\s]+/)).toContain(word);
  }
});
