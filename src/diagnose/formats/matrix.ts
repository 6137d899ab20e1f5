import type { CheckResult } from "../report.ts";
import { oneLine } from "./inert.ts";

/** Which host copes with which tool: what a check may leave in `data.matrix`. */
export interface Matrix {
  /** Tools. */
  readonly columns: readonly string[];
  /** Hosts, with one cell a tool. */
  readonly rows: readonly MatrixRow[];
  /** How many tools were left out, because nobody reads a thousand. */
  readonly hidden: number;
}

export interface MatrixRow {
  readonly name: string;
  readonly cells: readonly MatrixCell[];
}

export interface MatrixCell {
  readonly state: CellState;
  readonly text: string;
}

export const cellStates = ["cut", "progress", "unknown", "ok"] as const;
export type CellState = (typeof cellStates)[number];

/** A sign that is understood without colour, and what it stands for. */
export const cellLooks: Readonly<Record<CellState, { readonly sign: string; readonly meaning: string }>> = {
  ok: { sign: "✓", meaning: "survives" },
  progress: { sign: "~", meaning: "survives with progress" },
  cut: { sign: "✗", meaning: "is cut" },
  unknown: { sign: "?", meaning: "not known" },
};

const unknownCell: MatrixCell = { state: "unknown", text: "" };
const maxColumns = 200;
const maxRows = 100;

/** The matrix of a check, tools that fare worst first; undefined when it has none, or something else under that name. */
export function matrixOf(check: Pick<CheckResult, "data">): Matrix | undefined {
  const matrix = check.data?.matrix as Partial<Matrix> | undefined;
  if (!Array.isArray(matrix?.columns) || !Array.isArray(matrix.rows)) return undefined;
  const names: readonly unknown[] = matrix.columns;
  const rows = (matrix.rows as readonly (Partial<MatrixRow> | null)[]).slice(0, maxRows).map((row) => ({
    name: textOf(row?.name),
    cells: names.map((_, at) => toCell(Array.isArray(row?.cells) ? (row.cells[at] as Partial<MatrixCell> | undefined) : undefined)),
  }));
  return names.length === 0 || rows.length === 0 ? undefined : worstFirst(names, rows);
}

function toCell(cell: Partial<MatrixCell> | null | undefined): MatrixCell {
  const state = cellStates.find((name) => name === cell?.state);
  return state === undefined ? unknownCell : { state, text: textOf(cell?.text) };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? oneLine(value) : "";
}

function worstFirst(names: readonly unknown[], rows: readonly MatrixRow[]): Matrix {
  const count = (at: number, state: CellState) => rows.filter((row) => row.cells[at]?.state === state).length;
  const order = names
    .map((_, at) => ({ at, weight: count(at, "cut") * (maxRows + 1) + count(at, "progress") }))
    .sort((a, b) => b.weight - a.weight || a.at - b.at)
    .slice(0, maxColumns);
  return {
    columns: order.map(({ at }) => textOf(names[at])),
    rows: rows.map(({ name, cells }) => ({ name, cells: order.map(({ at }) => cells[at] ?? unknownCell) })),
    hidden: names.length - order.length,
  };
}

/** Rows become columns: the longer side reads better downwards. */
export function turned({ columns, rows, hidden }: Matrix): Matrix {
  return {
    hidden,
    columns: rows.map(({ name }) => name),
    rows: columns.map((name, at) => ({ name, cells: rows.map(({ cells }) => cells[at] ?? unknownCell) })),
  };
}

/** What a cell says first; the rest of it is for where there is room. */
export function briefly(text: string): string {
  return text.split(/[;:,]| \(/)[0]?.trim() ?? "";
}

/** The states that occur, worst first. */
export function statesIn({ rows }: Matrix): CellState[] {
  return cellStates.filter((state) => rows.some(({ cells }) => cells.some((cell) => cell.state === state)));
}
