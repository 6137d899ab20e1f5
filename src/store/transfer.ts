/**
 * What a store keeps, on its way from one database to another: each side reads and writes these shapes, and nothing of
 * them is looked into. JSON stays the text that it was, and times stay what they were. A lease that has ended goes along,
 * so that whoever sweeps the target does by the usual rule what would have been done at the source.
 */

/** Columns of a task by their kind; both databases call them so. */
export const taskColumns = {
  texts: [
    ..."task_id caller project command digest idempotency_key reason status status_message worker progress".split(" "),
    ..."questions progress_token door folder environment client input outcome".split(" "),
  ],
  integers: [
    ..."number ttl_ms max_attempts backoff_ms version fence attempts crashes not_before lease_until".split(" "),
    ..."created_at updated_at started_at finished_at expires_at".split(" "),
  ],
  reals: ["estimate_ms"],
  flags: ["is_safe", "is_call", "is_endless", "is_proven"],
} as const;

export const allTaskColumns: readonly string[] = Object.values(taskColumns).flat();
/** Those that lie in tables of their own. */
export const payloadColumns: readonly string[] = ["input", "outcome"];

export const apiKeysTable = {
  name: "api_keys",
  columns: {
    id: "text",
    project: "text",
    name: "text",
    hash: "text",
    earlier_hash: "text",
    earlier_until: "integer",
    scopes: "text",
    commands: "text",
    created_at: "integer",
    expires_at: "integer",
    used_at: "integer",
  },
} as const;

/**
 * Tables that go as they are, each as a whole and in this order: none of them grows with the number of tasks. One more is
 * a line here, where both databases have it under this name with these columns. What nodes that run say to each other
 * (nodes, letters) stays behind, and so does which rows a home took (taken_rows): they are its own in the copy.
 */
export const plainTables = [
  { name: "durations", columns: { command: "text", kind: "text", bucket: "integer", count: "integer" } },
  { name: "shared_secret", columns: { number: "integer", secret: "text" } },
  { name: "used_marks", columns: { mark: "text", until: "integer" } },
  {
    name: "sessions",
    columns: { session_id: "text", caller: "text", greeting: "text", silence_ms: "integer", used_at: "integer" },
  },
  { name: "session_notes", columns: { session_id: "text", name: "text", value: "text" } },
  apiKeysTable,
] as const satisfies readonly { readonly name: string; readonly columns: Readonly<Record<string, ColumnKind>> }[];
export type PlainTable = (typeof plainTables)[number];
export type ColumnKind = "text" | "integer";

type TransferValue = string | number | boolean | null;
export type TransferRow = Readonly<Record<string, TransferValue>>;

/** A task with its input, its outcome and its steps, by name. */
export interface TransferTask {
  readonly number: number;
  readonly columns: TransferRow;
  readonly steps: readonly (readonly [name: string, value: string])[];
}

/** A worker that may still write. */
export interface LiveWorker {
  readonly worker: string;
  readonly tasks: number;
  readonly leftMs: number;
}

/** One side of a copy. */
export interface TransferSide {
  /** For people, and for telling one store from another: without a password. */
  readonly place: string;
  count(): Promise<{ readonly tasks: number; readonly live: number }>;
  liveWorkers(): Promise<readonly LiveWorker[]>;
  /** The next tasks by number, and about how many bytes each is. */
  weigh(after: number, limit: number): Promise<readonly { readonly number: number; readonly bytes: number }[]>;
  /** Tasks after one number up to another, in order. */
  read(after: number, upTo: number): Promise<readonly TransferTask[]>;
  readTable(table: PlainTable): Promise<readonly TransferRow[]>;
  close(): Promise<void>;
}

/** Whose copy it is, and from where. */
export interface CopyMark {
  readonly source: string;
  /** Another for every run: the latest one may write, and no other. */
  readonly copier: string;
}

/** The side that is filled. As long as it is not finished, nobody else opens it. */
export interface TransferTarget extends TransferSide {
  /** From where an unfinished copy here is; undefined where there is none. */
  readUnfinished(): Promise<string | undefined>;
  /** Marks it as unfinished, or takes over what an earlier run has begun. */
  begin(mark: CopyMark): Promise<void>;
  /** Tasks in place of those with the same numbers, and without those that are to go; false when another run has taken over. */
  write(
    copier: string,
    change: { readonly gone: readonly number[]; readonly tasks: readonly TransferTask[] },
  ): Promise<boolean>;
  writeTable(copier: string, table: PlainTable, rows: readonly TransferRow[]): Promise<boolean>;
  /** New tasks get numbers after these; from then on it is a store like any other. */
  finish(copier: string): Promise<boolean>;
}

/** A task as one line, the same for equal ones. */
export function toLine({ columns, steps }: TransferTask): string {
  return JSON.stringify([...allTaskColumns.map((name) => columns[name]), steps]);
}

/** A row as one line, the same for equal ones. */
export function toPlainLine(row: TransferRow, { columns }: PlainTable): string {
  return JSON.stringify(Object.keys(columns).map((name) => row[name]));
}

/** Puts steps beside their tasks. */
export function withSteps(
  rows: readonly TransferRow[],
  steps: readonly { readonly number: number; readonly name: string; readonly value: string }[],
): TransferTask[] {
  const byNumber = Map.groupBy(steps, ({ number }) => number);
  return rows.map((columns) => {
    const number = columns.number as number;
    const own = (byNumber.get(number) ?? []).map(({ name, value }) => [name, value] as const);
    return { number, columns, steps: own.sort(([one], [other]) => (one < other ? -1 : 1)) };
  });
}
