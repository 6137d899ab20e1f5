import { briefly, type CellState, cellLooks, type Matrix, statesIn } from "./matrix.ts";
import type { Colors, Page } from "./terminal.ts";
import { cut, pad, widthOf } from "./wrap.ts";

const maxNameWidth = 22;
const maxCellWidth = 32;
/** Narrower than this a column says nothing. */
const minCellWidth = 14;
const gap = 2;

/** A table of hosts and tools that fits the page: with many tools, those that fare worst. */
export function drawMatrix(matrix: Matrix, { colors, width, isFull }: Page): string[] {
  const nameWidth = Math.min(maxNameWidth, Math.max(...matrix.rows.map(({ name }) => widthOf(name)), 4));
  const { shown, widths } = choose(matrix, width - nameWidth - 2);
  const hidden = matrix.columns.length - shown + matrix.hidden;
  const line = (name: string, cells: readonly string[]) => `  ${pad(cut(name, nameWidth), nameWidth)}${cells.join("")}`.trimEnd();
  const head = matrix.columns.slice(0, shown).map((name, at) => `${" ".repeat(gap)}${pad(cut(name, widths[at] ?? 0), widths[at] ?? 0)}`);
  const rows = matrix.rows.map(({ name, cells }) =>
    line(
      name,
      cells.slice(0, shown).map(({ state, text }, at) => {
        const room = widths[at] ?? 0;
        return `${" ".repeat(gap)}${paintState(state, pad(cut(`${cellLooks[state].sign} ${briefly(text)}`.trim(), room), room), colors)}`;
      }),
    ),
  );
  const legend = statesIn(matrix).map((state) => paintState(state, `${cellLooks[state].sign} ${cellLooks[state].meaning}`, colors));
  return [
    colors.bold("Hosts"),
    colors.dim(line("", head)),
    ...rows,
    ...(hidden > 0 ? [colors.dim(`  ${hidden} more ${hidden === 1 ? "tool" : "tools"} in the report${isFull ? ", for which this is too narrow" : ""}`)] : []),
    `  ${legend.join("  ")}`,
  ];
}

/** As many columns as fit, at least one; the last of them may be narrower than it would like. */
function choose({ columns, rows }: Matrix, room: number): { shown: number; widths: number[] } {
  const widths: number[] = [];
  let left = room;
  for (const [at, name] of columns.entries()) {
    const longest = Math.max(Math.min(widthOf(name), maxNameWidth), ...rows.map(({ cells }) => widthOf(briefly(cells[at]?.text ?? "")) + 2));
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
