import type { ClaimShares } from "../../task/store.ts";
import {
  type EnvironmentMarks,
  isTerminal,
  type LiveTask,
  type Task,
  type TaskQuestion,
  type TaskRules,
} from "../../task/task.ts";
import { fromExactText, toExactText } from "../exact-text.ts";

/** A row of the tasks table, as SQLite gives it. */
export interface TaskRow {
  readonly number: number;
  readonly task_id: string;
  readonly caller: string;
  readonly project: string;
  readonly command: string;
  readonly digest: string;
  readonly idempotency_key: string | null;
  /** Lists come without input and outcome, which lie apart. */
  readonly input?: string | null;
  readonly outcome?: string | null;
  readonly reason: string;
  readonly ttl_ms: number;
  readonly estimate_ms: number | null;
  readonly is_safe: number;
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
  readonly created_at: number;
  readonly updated_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  readonly expires_at: number | null;
  readonly is_call: number;
  /** JSON: 7 and "7" are different tokens. */
  readonly progress_token: string | null;
  readonly door: string;
  readonly folder: string | null;
  readonly is_endless: number;
  readonly is_proven: number;
  readonly environment: string | null;
  readonly client: string | null;
}

export type SqlValues = Record<string, string | number | null>;

/** A new task as the database takes it. */
export function fromTask(task: LiveTask): SqlValues & { readonly input: string } {
  return {
    taskId: task.taskId,
    caller: task.caller,
    project: task.project,
    command: task.command,
    digest: task.digest,
    idempotencyKey: task.idempotencyKey ?? null,
    input: JSON.stringify(task.input ?? {}),
    reason: task.reason,
    ttlMs: task.ttlMs,
    estimateMs: task.estimateMs ?? null,
    ...fromRules(task.rules),
    status: task.status,
    fence: task.fence,
    attempts: task.attempts,
    worker: task.lease?.worker ?? null,
    leaseUntil: task.lease?.until ?? null,
    createdAt: task.createdAt,
    startedAt: task.startedAt ?? null,
    isCall: task.isCall ? 1 : 0,
    questions: JSON.stringify(task.questions.map(toExactKey)),
    progressToken: task.progressToken === undefined ? null : JSON.stringify(task.progressToken),
    door: task.origin.door,
    folder: task.origin.folder ?? null,
    isEndless: task.isEndless ? 1 : 0,
    isProven: task.isProven ? 1 : 0,
    environment: fromEnvironment(task.environment),
    client: task.origin.client === undefined ? null : JSON.stringify(task.origin.client),
  };
}

/** Without any variables it is the same as none. */
export function fromEnvironment(environment: EnvironmentMarks | undefined): string | null {
  return environment === undefined || Object.keys(environment).length === 0 ? null : JSON.stringify(environment);
}

export function fromRules(rules: TaskRules): SqlValues {
  return { isSafe: rules.isSafe ? 1 : 0, maxAttempts: rules.maxAttempts, backoffMs: rules.backoffMs };
}

/** Who may be served now, and in which order, as the database takes it; null stands for nobody. */
export function fromShares({ full = [], fullOfEndless = [], turns = [] }: Partial<ClaimShares> = {}): SqlValues {
  const toList = (callers: readonly string[] | "everybody") => (callers === "everybody" ? null : fromTexts(callers));
  const exact = turns.map(([caller, turn]) => [toExactText(caller), turn]);
  return { full: toList(full), fullOfEndless: toList(fullOfEndless), turns: JSON.stringify(exact) };
}

/** SQLite reads and writes the keys of questions; the rest of them it leaves as it is. */
export function toExactKey<Q extends { readonly key?: string }>(question: Q): Q {
  return question.key === undefined ? question : { ...question, key: toExactText(question.key) };
}

export function fromExactKey(question: TaskQuestion): TaskQuestion {
  const key = fromExactText(question.key);
  return key === question.key ? question : { ...question, key };
}

/** A list to look for rows by: each text as the rows have it. */
export function fromTexts(texts: readonly string[]): string {
  return JSON.stringify(texts.map(toExactText));
}

/** SQLite would put something else in the place of half a surrogate pair. JSON has none. */
export function toExactValues(values: SqlValues): SqlValues {
  let exact: SqlValues | undefined;
  for (const name in values) {
    const value = values[name];
    if (typeof value !== "string") continue;
    const text = toExactText(value);
    if (text === value) continue;
    // Next to none differs, so next to nothing is copied.
    exact ??= { ...values };
    exact[name] = text;
  }
  return exact ?? values;
}

export function fromExactRow(row: unknown): unknown {
  const texts = row as Record<string, unknown>;
  for (const name in texts) {
    const value = texts[name];
    if (typeof value !== "string") continue;
    const text = fromExactText(value);
    if (text !== value) texts[name] = text;
  }
  return texts;
}

/** A row as the engine knows it. */
export function toTask(row: TaskRow): Task {
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
    rules: { isSafe: row.is_safe === 1, maxAttempts: row.max_attempts, backoffMs: row.backoff_ms },
    createdAt: row.created_at,
    isCall: row.is_call === 1,
    progressToken: row.progress_token === null ? undefined : JSON.parse(row.progress_token),
    isEndless: row.is_endless === 1,
    isProven: row.is_proven === 1,
    environment: row.environment === null ? undefined : JSON.parse(row.environment),
    version: row.version,
    fence: row.fence,
    attempts: row.attempts,
    crashes: row.crashes,
    notBefore: row.not_before,
    status: row.status,
    statusMessage: row.status_message ?? undefined,
    progress: row.progress === null ? undefined : JSON.parse(row.progress),
    questions: (JSON.parse(row.questions) as TaskQuestion[]).map(fromExactKey),
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
  return isTerminal(ended) ? ended : (state as unknown as Task);
}
