import type { CheckResult } from "../report/report.ts";
import { oneLine } from "./inert.ts";

/** Which host copes with which tool: what a check may leave in `data.matrix`, made short. */
export interface Matrix {
  /** Tools, or several that fare alike in every host: `12 tools like echo`. */
  readonly columns: readonly string[];
  /** Hosts, with one cell a column. */
  readonly rows: readonly MatrixRow[];
  /** The tools behind each column that stands for several. */
  readonly shared: readonly { readonly name: string; readonly tools: readonly string[] }[];
  /** Tools of which every host says the very same: a line says as much as a column. */
  readonly everywhere: readonly Everywhere[];
  /** How many tools were left out here, because nobody reads a thousand; the JSON report has them. */
  readonly hidden: number;
  /** How many tools the check itself left out. */
  readonly leftOut: number;
}

export interface Everywhere extends MatrixCell {
  readonly tools: readonly string[];
  readonly hosts: readonly string[];
}

export interface MatrixRow {
  readonly name: string;
  readonly cells: readonly MatrixCell[];
}

export interface MatrixCell {
  readonly state: CellState;
  readonly text: string;
}

const cellStates = ["cut", "progress", "unknown", "ok"] as const;
export type CellState = (typeof cellStates)[number];

/** A sign that is understood without colour, and what it stands for. */
export const cellLooks: Readonly<Record<CellState, { readonly sign: string; readonly meaning: string }>> = {
  ok: { sign: "✓", meaning: "survives" },
  progress: { sign: "~", meaning: "survives with progress" },
  cut: { sign: "✗", meaning: "is cut, or cannot be called" },
  unknown: { sign: "?", meaning: "not known" },
};

const unknownCell: MatrixCell = { state: "unknown", text: "" };
const maxColumns = 200;
const maxRows = 100;
/** More than any check leaves; a report may come from anybody's file. */
const maxTools = 2_000;

/** What a file may hold under that name. */
type Found = { readonly [key in "columns" | "rows" | "named" | "leftOut"]?: unknown };

/**
 * The matrix of a check: named tools first, then those that fare worst; undefined when it has none, or something else
 * under that name.
 */
export function matrixOf(check: Pick<CheckResult, "data">): Matrix | undefined {
  const found = check.data?.matrix as Found | null | undefined;
  if (!Array.isArray(found?.columns) || !Array.isArray(found.rows)) return undefined;
  const names = found.columns.slice(0, maxTools).map(textOf);
  const rows = (found.rows as readonly ({ name?: unknown; cells?: unknown } | null)[]).slice(0, maxRows).map((row) => ({
    name: textOf(row?.name),
    cells: names.map((_, at) =>
      toCell(Array.isArray(row?.cells) ? (row.cells[at] as Partial<MatrixCell> | undefined) : undefined),
    ),
  }));
  if (names.length === 0 || rows.length === 0) return undefined;
  const named = new Set(Array.isArray(found.named) ? found.named.slice(0, maxTools).map(textOf) : []);
  const columns = inOrder(foldAlike(names, rows), named);
  const wide = columns.filter((column) => !isUniform(column));
  const shown = wide.slice(0, maxColumns);
  const hosts = rows.map(({ name }) => name);
  return {
    columns: shown.map(nameOf),
    rows: hosts.map((name, at) => ({ name, cells: shown.map(({ cells }) => cells[at] ?? unknownCell) })),
    shared: shown
      .filter(({ tools }) => tools.length > 1)
      .map((column) => ({ name: nameOf(column), tools: column.tools })),
    everywhere: columns.filter(isUniform).map(({ tools, cells }) => ({ ...(cells[0] ?? unknownCell), tools, hosts })),
    hidden: found.columns.length - names.length + countTools(wide.slice(maxColumns)),
    leftOut: typeof found.leftOut === "number" && Number.isSafeInteger(found.leftOut) ? Math.max(0, found.leftOut) : 0,
  };
}

/** Tools that fare alike, and what each host does with them. */
interface Column {
  readonly tools: string[];
  readonly cells: readonly MatrixCell[];
}

function foldAlike(names: readonly string[], rows: readonly MatrixRow[]): Column[] {
  const columns = new Map<string, Column>();
  for (const [at, name] of names.entries()) {
    const cells = rows.map((row) => row.cells[at] ?? unknownCell);
    const key = JSON.stringify(cells.map(({ state, text }) => [state, text]));
    const known = columns.get(key);
    if (known === undefined) columns.set(key, { tools: [name], cells });
    else known.tools.push(name);
  }
  return [...columns.values()];
}

/** The user's own tools first, then those that fare worst. */
function inOrder(columns: readonly Column[], named: ReadonlySet<string>): Column[] {
  const count = ({ cells }: Column, state: CellState) => cells.filter((cell) => cell.state === state).length;
  const weight = (column: Column) =>
    (column.tools.some((tool) => named.has(tool)) ? maxRows ** 3 : 0) +
    count(column, "cut") * (maxRows + 1) +
    count(column, "progress") +
    count(column, "unknown") / (maxRows + 1);
  return columns
    .map((column) => ({ column, weight: weight(column) }))
    .sort((a, b) => b.weight - a.weight)
    .map(({ column }) => column);
}

function isUniform({ cells }: Column): boolean {
  return cells.every(({ state, text }) => state === cells[0]?.state && text === cells[0]?.text);
}

function nameOf({ tools }: Column): string {
  return tools.length === 1 ? (tools[0] ?? "") : `${tools.length} tools like ${tools[0]}`;
}

function countTools(columns: readonly Column[]): number {
  return columns.reduce((sum, { tools }) => sum + tools.length, 0);
}

/** How many tools there are in the columns from this one on. */
export function toolsFrom({ columns, shared }: Matrix, at: number): number {
  return columns.slice(at).reduce((sum, name) => sum + (shared.find((one) => one.name === name)?.tools.length ?? 1), 0);
}

/** `36 tools: ✓ everywhere (15 hosts): gets a result in time`, in the words of the format. */
export function tellEverywhere(
  { state, text, tools, hosts }: Everywhere,
  draw: (name: string) => string = (name) => name,
): string {
  const who = tools.length === 1 ? draw(tools[0] ?? "") : `${tools.length} tools`;
  return `${who}: ${cellLooks[state].sign} everywhere (${hosts.length} ${hosts.length === 1 ? "host" : "hosts"})${text === "" ? "" : `: ${draw(text)}`}`;
}

/** What is said of tools that are not in the matrix at all. */
export function tellLeftOut({ leftOut }: Matrix): string | undefined {
  if (leftOut === 0) return undefined;
  return `${leftOut} more ${leftOut === 1 ? "tool was" : "tools were"} left out: of a server with so many only those that matter most are listed.`;
}

function toCell(cell: Partial<MatrixCell> | null | undefined): MatrixCell {
  const state = cellStates.find((name) => name === cell?.state);
  return state === undefined ? unknownCell : { state, text: textOf(cell?.text) };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? oneLine(value) : "";
}

/** Rows become columns: the longer side reads better downwards. */
export function turned(matrix: Matrix): Matrix {
  const { columns, rows } = matrix;
  return {
    ...matrix,
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
