import type { ClaimShares, CreateOptions } from "../../task/store.ts";
import {
  type EnvironmentMarks,
  isTerminal,
  type NewTask,
  openQuestions,
  type Task,
  type TaskQuestion,
  type TaskRules,
} from "../../task/task.ts";
import { fromExactText, toExactText } from "../exact-text.ts";

/** A row of the tasks table, as the driver gives it; with input and outcome where they were asked for. */
export interface PostgresRow {
  readonly number: number;
  readonly task_id: string;
  readonly caller: string;
  readonly project: string;
  readonly command: string;
  readonly digest: string;
  readonly idempotency_key: string | null;
  readonly input?: string | null;
  readonly reason: string;
  readonly ttl_ms: number;
  readonly estimate_ms: number | null;
  readonly is_safe: boolean;
  readonly max_attempts: number;
  readonly backoff_ms: number;
  readonly status: Task["status"];
  readonly status_message: string | null;
  readonly version: number;
  readonly fence: number;
  readonly attempts: number;
  readonly crashes: number;
  readonly not_before: number;
  readonly worker: string | null;
  readonly lease_until: number | null;
  readonly progress: string | null;
  readonly questions: string;
  readonly outcome?: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  readonly expires_at: number | null;
  readonly is_call: boolean;
  /** JSON: 7 and "7" are different tokens. */
  readonly progress_token: string | null;
  readonly door: string;
  readonly folder: string | null;
  readonly is_endless: boolean;
  readonly is_proven: boolean;
  readonly environment: string | null;
  readonly client: string | null;
}

type PostgresScalar = string | number | boolean | null;
export type PostgresValue = PostgresScalar | readonly PostgresScalar[];
export type NewRow = ReturnType<typeof fromNewTask>;
export type PostgresValues = Readonly<Record<string, PostgresValue>>;

/** A new task as the database takes it, by the names of its columns; when it begins, the database says. */
export function fromNewTask(fresh: NewTask, claim: CreateOptions["claim"]) {
  const isHeld = claim !== undefined;
  const { isSafe, maxAttempts, backoffMs } = fresh.rules;
  const { questions, openQuestions: open, lapsesAt } = fromQuestions(fresh.questions);
  return {
    task_id: fresh.taskId,
    caller: fresh.caller,
    project: fresh.project,
    command: fresh.command,
    digest: fresh.digest,
    idempotency_key: fresh.idempotencyKey ?? null,
    reason: fresh.reason,
    ttl_ms: fresh.ttlMs,
    estimate_ms: fresh.estimateMs ?? null,
    is_safe: isSafe,
    max_attempts: maxAttempts,
    backoff_ms: backoffMs,
    status: isHeld ? "working" : "queued",
    fence: isHeld ? 1 : 0,
    attempts: isHeld ? 1 : 0,
    worker: claim?.worker ?? null,
    lease_ms: claim?.leaseMs ?? null,
    age_ms: fresh.ageMs ?? 0,
    is_call: fresh.isCall,
    questions,
    open_questions: open,
    lapses_at: lapsesAt,
    progress_token: fresh.progressToken === undefined ? null : JSON.stringify(fresh.progressToken),
    door: fresh.origin.door,
    folder: fresh.origin.folder ?? null,
    is_endless: fresh.isEndless,
    is_proven: fresh.isProven,
    environment: fromEnvironment(fresh.environment),
    client: fresh.origin.client === undefined ? null : JSON.stringify(fresh.origin.client),
  };
}

/** Several rows as one value, each with its place. */
export function toGiven(rows: readonly object[]): string {
  return JSON.stringify(
    rows.map((row, place) => ({ ...row, place })),
    (_, value: unknown) => (typeof value === "string" ? toExactText(value) : value),
  );
}

/** Questions, and what is counted and looked for without reading them. */
export function fromQuestions(questions: readonly TaskQuestion[]) {
  const open = openQuestions({ questions });
  const limits = open.flatMap(({ until }) => (until === undefined ? [] : [until]));
  return {
    questions: JSON.stringify(questions),
    openQuestions: open.length,
    lapsesAt: limits.length === 0 ? null : Math.min(...limits),
  };
}

/** Without any variables it is the same as none. Compared as `jsonb`, which takes only text that can be kept. */
export function fromEnvironment(environment: EnvironmentMarks | undefined): string | null {
  const marks = Object.entries(environment ?? {}).map((entry) => entry.map(toExactText));
  return marks.length === 0 ? null : JSON.stringify(Object.fromEntries(marks));
}

export function fromRules(rules: TaskRules): PostgresValues {
  return { isSafe: rules.isSafe, maxAttempts: rules.maxAttempts, backoffMs: rules.backoffMs };
}

/** Who may be served now, and in which order, as the database takes it; null, which nobody is unlike, for everybody. */
export function fromShares({ full = [], fullOfEndless = [], turns = [] }: Partial<ClaimShares> = {}): PostgresValues {
  return {
    full: full === "everybody" ? null : full,
    fullOfEndless: fullOfEndless === "everybody" ? null : fullOfEndless,
    turnsOf: turns.map(([caller]) => caller),
    turns: turns.map(([, turn]) => turn),
  };
}

/** A row as the engine knows it. */
export function toTask(row: PostgresRow): Task {
  const state = {
    taskId: row.task_id,
    caller: row.caller,
    project: row.project,
    command: row.command,
    input: typeof row.input === "string" ? JSON.parse(row.input) : undefined,
    origin: {
      door: row.door === "terminal" ? ("terminal" as const) : ("mcp" as const),
      folder: row.folder ?? undefined,
      ...(row.client !== null && { client: JSON.parse(row.client) }),
    },
    digest: row.digest,
    idempotencyKey: row.idempotency_key ?? undefined,
    reason: row.reason,
    ttlMs: row.ttl_ms,
    estimateMs: row.estimate_ms ?? undefined,
    rules: { isSafe: row.is_safe, maxAttempts: row.max_attempts, backoffMs: row.backoff_ms },
    createdAt: row.created_at,
    isCall: row.is_call,
    progressToken: row.progress_token === null ? undefined : JSON.parse(row.progress_token),
    isEndless: row.is_endless,
    isProven: row.is_proven,
    environment: row.environment === null ? undefined : toEnvironment(row.environment),
    version: row.version,
    fence: row.fence,
    attempts: row.attempts,
    crashes: row.crashes,
    notBefore: row.not_before,
    status: row.status,
    statusMessage: row.status_message ?? undefined,
    progress: row.progress === null ? undefined : JSON.parse(row.progress),
    questions: JSON.parse(row.questions),
    updatedAt: row.updated_at,
    startedAt: row.started_at ?? undefined,
  };
  if (row.finished_at === null)
    return {
      ...state,
      lease: row.worker === null ? undefined : { worker: row.worker, until: row.lease_until ?? 0 },
    } as Task;
  const ended = {
    ...state,
    outcome: typeof row.outcome === "string" ? JSON.parse(row.outcome) : undefined,
    finishedAt: row.finished_at,
    expiresAt: row.expires_at ?? 0,
  } as Task;
  return isTerminal(ended) ? ended : (state as Task);
}

/** The reverse of `fromEnvironment`. */
export function toEnvironment(json: string): EnvironmentMarks {
  const marks = Object.entries(JSON.parse(json) as EnvironmentMarks);
  return Object.fromEntries(marks.map((entry) => entry.map(fromExactText)));
}
