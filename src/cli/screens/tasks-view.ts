import { formatDuration, toTimestamp } from "../../clock.ts";
import { cutWords } from "../../screen/width.ts";
import type { CommandStats } from "../../task/history.ts";
import { statusLine } from "../../task/status-line.ts";
import { isTerminal, type Task, type TaskOutcome } from "../../task/task.ts";
import type { TokenProgress } from "../../task/token-progress.ts";
import { clean } from "../terminal.ts";
import { toColumns } from "./layout.ts";
import { shownId } from "./task-id.ts";

interface TableOptions {
  /** How wide the table may be. Default: as wide as it needs. */
  readonly width?: number;
  /** Shows IDs with eight characters. Default false. */
  readonly hasShortIds?: boolean;
}

export function taskTable(
  tasks: readonly Task[],
  now: number,
  { width, hasShortIds = false }: TableOptions = {},
): string {
  const rows = tasks.map((task) => [
    shownId(task.taskId, hasShortIds),
    task.command,
    task.status,
    ageOf(task, now),
    newsOf(task, now),
  ]);
  return toColumns([["Task", "Command", "Status", "Age", "Latest"], ...rows], width);
}

/** One line for each task, for a view that is redrawn in place. A line that does not fit is cut between words. */
export function taskLines(tasks: readonly Task[], now: number, width: number): string {
  const rows = tasks.map((task) => [
    shownId(task.taskId, true),
    task.status,
    ageOf(task, now),
    [task.command, newsOf(task, now)].filter(Boolean).join("  "),
  ]);
  return toColumns([["Task", "Status", "Age", "Latest"], ...rows])
    .split("\n")
    .map((line) => cutWords(line, width))
    .join("\n");
}

/** The live tasks and calls, with the progress tokens of their clients. */
export function liveTable(
  tasks: readonly Task[],
  now: number,
  { width, hasShortIds = false }: TableOptions = {},
): string {
  const rows = tasks.map((task) => [
    shownId(task.taskId, hasShortIds),
    task.command,
    task.isCall ? "answering" : task.status,
    ageOf(task, now),
    task.progressToken === undefined ? "-" : clean(String(task.progressToken)),
    newsOf(task, now),
  ]);
  return toColumns([["Task", "Command", "Status", "Age", "Token", "Latest"], ...rows], width);
}

/** The calls with a progress token. */
export function tokenTable(all: readonly TokenProgress[]): string {
  const rows = all.map(({ token, tool, status, percentage, message }) => [
    clean(String(token)),
    tool,
    status,
    percentage === undefined ? "-" : `${Math.floor(percentage)}%`,
    clean(message ?? ""),
  ]);
  return toColumns([["Token", "Command", "Status", "Done", "Latest"], ...rows]);
}

export function statsTable(stats: readonly CommandStats[], width?: number): string {
  const hasBlocks = stats.some(({ longestBlockMs }) => longestBlockMs !== undefined);
  const rows = stats.map(({ command, runs, p50Ms, p95Ms, p99Ms, longestBlockMs }) => [
    command,
    String(runs),
    ...[p50Ms, p95Ms, p99Ms].map(formatDuration),
    ...(hasBlocks ? [longestBlockMs === undefined ? "-" : formatDuration(longestBlockMs)] : []),
  ]);
  return toColumns([["Command", "Runs", "p50", "p95", "p99", ...(hasBlocks ? ["Blocked"] : [])], ...rows], width);
}

/** The cure for commands that block the event loop; empty where none does. */
export function blockedHint(stats: readonly CommandStats[]): string {
  const names = stats.flatMap(({ command, blockedRuns }) => (blockedRuns === undefined ? [] : [command]));
  if (names.length === 0) return "";
  return `${names.join(", ")} ${names.length === 1 ? "blocks" : "block"} the event loop (Blocked: longest time), so other calls wait. isolation: "process" in the command prevents that.`;
}

function ageOf(task: Task, now: number): string {
  return formatDuration(Math.max(0, now - task.createdAt)).replace(/\.\d s/, " s");
}

/** The present status line of a task, without control characters. */
function newsOf(task: Task, now: number): string {
  return clean(statusLine(task, now));
}

/** All that a caller may know of a task, as data for `tasks show` and `--json`. */
export function describeTask(task: Task): Record<string, unknown> {
  const at = (ms: number | undefined) => (ms === undefined ? undefined : toTimestamp(ms));
  // Lists of a store have no outcomes of ended tasks.
  const { outcome } = task as { readonly outcome?: TaskOutcome };
  return {
    taskId: task.taskId,
    command: task.command,
    project: task.project,
    status: task.status,
    statusMessage: task.statusMessage,
    reason: task.reason,
    isCall: task.isCall ? true : undefined,
    progressToken: task.progressToken,
    input: withoutSecrets(task.input),
    progress: task.progress,
    questions:
      task.questions.length === 0
        ? undefined
        : task.questions.map(({ key, message, answer, until }) => ({
            key,
            message,
            answer: answer?.action,
            answerUntil: answer === undefined && until !== undefined ? at(until) : undefined,
          })),
    // An attempt whose worker died has begun as well; the store counts it apart.
    attempts: (outcome?.attempts ?? task.attempts) + task.crashes,
    crashes: task.crashes,
    eventLoopBlocked: describeBlock(outcome),
    ...(!isTerminal(task) && task.lease !== undefined && { worker: describeWorker(task.lease.worker) }),
    createdAt: at(task.createdAt),
    startedAt: at(task.startedAt),
    updatedAt: at(task.updatedAt),
    ...(isTerminal(task) && { finishedAt: at(task.finishedAt), keptUntil: at(task.expiresAt) }),
  };
}

/** How long a run blocked the event loop, and which host its answer came too late for. */
function describeBlock(outcome: TaskOutcome | undefined): string | undefined {
  if (outcome?.blockedMs === undefined) return undefined;
  const { blockedMs, lateFor } = outcome;
  const late =
    lateFor === undefined
      ? ""
      : `, so its answer came too late: ${clean(lateFor.host)} waits ${formatDuration(lateFor.limitMs)}`;
  return `for ${formatDuration(blockedMs)}${late}; isolation: "process" in its command prevents that`;
}

const secretNames =
  /^(authorization|proxy-authorization|cookie|.*(token|secret|password|passwd|api[-_]?key|credentials?))$/i;
const headerNames = /headers$/i;
const blank = "•••";

/**
 * Replaces values that may be secrets, in what is shown on a screen or pasted into an issue: fields with names such as
 * `token` or `password`, and all headers.
 */
export function withoutSecrets(value: unknown, isHeader = false): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const isSecret = typeof inner === "string" && (isHeader || secretNames.test(name));
      return [name, isSecret ? blank : withoutSecrets(inner, headerNames.test(name))];
    }),
  );
}

/** Host and process ID of a worker, which are parts of its name. */
function describeWorker(worker: string): { host: string; pid: number } {
  const [host = "", , pid] = worker.split("|");
  return { host, pid: Number(pid) };
}
