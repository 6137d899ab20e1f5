import type { CatalogEntry } from "../../command/catalog.ts";
import { thisProgram } from "../../program/program.ts";
import { wrap } from "../../screen/width.ts";
import { type DeferralRules, defaultDeferral } from "../../task/deferral.ts";
import { announceTaskMode } from "../../task/outlook.ts";
import { clean, type Terminal } from "../terminal.ts";

/** With less room than this, what a tool does stands below its name. */
const leastRoom = 24;
const gap = 2;

interface Row {
  readonly tool: string;
  readonly words: string;
  readonly text: string;
}

/** How wide printed data may be: a file or a pipe takes any line. */
export function columnsOf(terminal: Terminal): number {
  return terminal.isDataShown ? terminal.columns : Number.POSITIVE_INFINITY;
}

/**
 * The commands as MCP clients see them: a project's own, those that it registers by hand, then those that come with
 * Meanwhile, no wider than the screen.
 */
export function toolsTable(
  entries: readonly CatalogEntry[],
  columns: number,
  rules: DeferralRules = defaultDeferral,
): string {
  if (entries.length === 0)
    return thisProgram.authors === undefined
      ? `No commands yet; ${thisProgram.name} new hello/world writes the first.\n`
      : "No commands yet.\n";
  const own = entries.filter(({ isBundled, isListedByServer }) => isBundled !== true && isListedByServer !== true);
  const listed = entries.filter(({ isListedByServer }) => isListedByServer === true);
  const hooked = listed.filter(({ upstream }) => upstream === undefined);
  const bundled = entries.filter(({ isBundled }) => isBundled === true);
  const row = (entry: CatalogEntry) => toRow(entry, rules);
  const lay = toLayout(entries.map(row), columns);
  const heads = lay({ tool: "Tool", words: "In the terminal", text: "What it does" });
  if (own.length === entries.length) return `${heads}${own.map((entry) => lay(row(entry))).join("")}`;
  const groups = [
    { heading: thisProgram.authors === undefined ? "Commands of this project" : "Commands", members: own },
    { heading: hookHeading(), members: hooked },
    ...[...Map.groupBy(listed, ({ upstream }) => upstream)].flatMap(([upstream, members]) =>
      upstream === undefined ? [] : [{ heading: `The upstream ${upstream}`, members }],
    ),
    { heading: "Bundled commands", members: bundled },
  ].filter(({ members }) => members.length > 0);
  return `${heads}${groups.map(({ heading, members }) => `\n${heading}\n${members.map((entry) => lay(row(entry))).join("")}`).join("")}`;
}

/** Above what is registered in the `mcp` hook. */
export function hookHeading(): string {
  return thisProgram.authors === undefined ? "Registered in the `mcp` hook of the config" : "Registered by hand";
}

function toRow(entry: CatalogEntry, rules: DeferralRules): Row {
  const { toolName, path, command } = entry;
  const isLong = announceTaskMode(entry, undefined, rules).async;
  const { effects, scopes } = command;
  const marks = [
    isLong ? "long" : "",
    effects === "write" ? "" : effects,
    scopes.length === 0 ? "" : `over HTTP needs ${scopes.map(clean).join(" ")}`,
  ].filter(Boolean);
  return {
    tool: clean(toolName),
    words: clean(`${thisProgram.name} ${path.join(" ")}`),
    text: `${clean(command.summary)}${marks.length === 0 ? "" : ` [${marks.join(", ")}]`}`,
  };
}

/** How a row is written: in three columns, in two where those are too wide, or below its name. */
function toLayout(rows: readonly Row[], columns: number): (row: Row) => string {
  const toolWidth = Math.max(...rows.map(({ tool }) => tool.length), "Tool".length) + gap;
  const wordsWidth = Math.max(...rows.map(({ words }) => words.length), "In the terminal".length) + gap;
  const beside = (head: string, text: string) =>
    `${head}${wrap(text, columns - head.length).join(`\n${" ".repeat(head.length)}`)}\n`;
  if (columns - toolWidth - wordsWidth >= leastRoom)
    return ({ tool, words, text }) => beside(`${tool.padEnd(toolWidth)}${words.padEnd(wordsWidth)}`, text);
  if (columns - toolWidth >= leastRoom) return ({ tool, text }) => beside(tool.padEnd(toolWidth), text);
  return ({ tool, text }) => `${tool}\n${beside(" ".repeat(2 * gap), text)}`;
}
