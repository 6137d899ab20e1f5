import { cut, pad, widthOf, wrap } from "../../screen/width.ts";
import { shorten } from "./inert.ts";
import {
  briefly,
  type CellState,
  cellLooks,
  type Matrix,
  type MatrixCell,
  statesIn,
  tellEverywhere,
  tellLeftOut,
  toolsFrom,
} from "./matrix.ts";
import type { Colors, TerminalPage } from "./terminal-report.ts";

const maxNameWidth = 22;
const maxCellWidth = 32;
/** Lines of a cell; what is longer is cut. */
const maxCellLines = 3;
/** Narrower than this a column says nothing. */
const minCellWidth = 14;
const gap = 2;

/** A table of hosts and tools that fits the page: with many tools, those that fare worst. */
export function drawMatrix(matrix: Matrix, page: TerminalPage): string[] {
  const { colors, width } = page;
  const hanging = (text: string) => wrap(text, width - 4).map((line, at) => `${at === 0 ? "  " : "    "}${line}`);
  const alike = matrix.everywhere.flatMap((one) =>
    hanging(shorten(tellEverywhere(one), 1_000)).map((line) => paintState(one.state, line, colors)),
  );
  const left = tellLeftOut(matrix);
  const table = matrix.columns.length === 0 ? [] : drawTable(matrix, page);
  return [colors.bold("Hosts"), ...table, ...alike, ...(left === undefined ? [] : hanging(left).map(colors.dim))];
}

function drawTable(matrix: Matrix, { colors, width }: TerminalPage): string[] {
  const nameWidth = Math.min(maxNameWidth, Math.max(...matrix.rows.map(({ name }) => widthOf(name)), 4));
  const { shown, widths } = choose(matrix, width - nameWidth - 2);
  const hidden = toolsFrom(matrix, shown) + matrix.hidden;
  const line = (name: string, cells: readonly string[]) =>
    `  ${pad(cut(name, nameWidth), nameWidth)}${cells.join("")}`.trimEnd();
  const head = matrix.columns
    .slice(0, shown)
    .map((name, at) => `${" ".repeat(gap)}${pad(cut(name, widths[at] ?? 0), widths[at] ?? 0)}`);
  const rows = matrix.rows.flatMap(({ name, cells }) => {
    const drawn = cells.slice(0, shown).map((cell, at) => drawCell(cell, widths[at] ?? 0));
    return Array.from({ length: Math.max(...drawn.map(({ lines }) => lines.length)) }, (_, at) =>
      line(
        at === 0 ? name : "",
        drawn.map(
          ({ state, lines, width }) => " ".repeat(gap) + paintState(state, pad(lines[at] ?? "", width), colors),
        ),
      ),
    );
  });
  const shared = matrix.shared.filter(({ name }) => matrix.columns.indexOf(name) < shown);
  return [
    colors.dim(line("", head)),
    ...rows,
    ...drawLegend(statesIn(matrix), { colors, width }),
    ...shared.map(({ name, tools }) => colors.dim(`  ${cut(`${name}: ${tools.slice(1, 50).join(", ")}`, width - 2)}`)),
    ...(hidden > 0
      ? wrap(
          `${hidden} more ${hidden === 1 ? "tool" : "tools"} did not fit here; --out <folder> writes them all`,
          width - 2,
        ).map((line) => colors.dim(`  ${line}`))
      : []),
  ];
}

/** The lines of a cell: its sign, and what it says first, broken between words. */
function drawCell({ state, text }: MatrixCell, width: number) {
  const sign = `${cellLooks[state].sign} `;
  const lines = wrap(briefly(text), Math.max(1, width - sign.length));
  const kept = [...lines.slice(0, maxCellLines - 1), lines.slice(maxCellLines - 1).join(" ")].filter(
    (line, at) => at === 0 || line !== "",
  );
  return {
    state,
    width,
    lines: kept.map((line, at) => cut(`${at === 0 ? sign : " ".repeat(sign.length)}${line}`.trimEnd(), width)),
  };
}

/** What the signs mean, in as many lines as it takes. */
function drawLegend(states: readonly CellState[], { colors, width }: Pick<TerminalPage, "colors" | "width">): string[] {
  const lines: { readonly painted: string; readonly places: number }[] = [];
  for (const state of states) {
    const words = `${cellLooks[state].sign} ${cellLooks[state].meaning}`;
    const last = lines.at(-1);
    const painted = `  ${paintState(state, words, colors)}`;
    const places = widthOf(words) + 2;
    if (last === undefined || last.places + places > width) lines.push({ painted, places });
    else lines[lines.length - 1] = { painted: last.painted + painted, places: last.places + places };
  }
  return lines.map(({ painted }) => painted);
}

/** As many columns as fit, at least one; the last of them may be narrower than it would like. */
function choose({ columns, rows }: Matrix, room: number): { shown: number; widths: number[] } {
  const widths: number[] = [];
  let left = room;
  for (const [at, name] of columns.entries()) {
    const longest = Math.max(
      Math.min(widthOf(name), maxNameWidth),
      ...rows.map(({ cells }) => widthOf(briefly(cells[at]?.text ?? "")) + 2),
    );
    const wanted = Math.min(maxCellWidth, longest);
    const width = Math.min(wanted, left - gap);
    if (widths.length > 0 && width < Math.min(wanted, minCellWidth)) break;
    widths.push(Math.max(1, width));
    left -= width + gap;
  }
  return { shown: widths.length, widths };
}

function paintState(state: CellState, text: string, colors: Colors): string {
  if (state === "ok") return colors.green(text);
  if (state === "cut") return colors.red(text);
  return state === "progress" ? colors.yellow(text) : colors.dim(text);
}
