import { formatDuration, toTimestamp } from "../../clock.ts";
import { cutWords } from "../../screen/width.ts";
import type { CommandStats } from "../../task/history.ts";
import { statusLine } from "../../task/status-line.ts";
import { isTerminal, type Task, type TaskOutcome } from "../../task/task.ts";
import type { TokenProgress } from "../../task/token-progress.ts";
import { clean } from "../terminal.ts";
import { toColumns } from "./layout.ts";

export function taskTable(tasks: readonly Task[], now: number, width?: number): string {
  const rows = tasks.map((task) => [task.taskId, task.command, task.status, ageOf(task, now), newsOf(task, now)]);
  return toColumns([["Task", "Command", "Status", "Age", "Latest"], ...rows], width);
}

/**
 * A line for each task, for a view that is drawn again and again: what does not fit is left out from the end, word by
 * word.
 */
export function taskLines(tasks: readonly Task[], now: number, width: number): string {
  const rows = tasks.map((task) => [
    task.taskId.slice(0, 8),
    task.status,
    ageOf(task, now),
    [task.command, newsOf(task, now)].filter(Boolean).join("  "),
  ]);
  return toColumns([["Task", "Status", "Age", "Latest"], ...rows])
    .split("\n")
    .map((line) => cutWords(line, width))
    .join("\n");
}

/** What runs now, with the progress token its client follows it by. */
export function liveTable(tasks: readonly Task[], now: number, width?: number): string {
  const rows = tasks.map((task) => [
    task.taskId,
    task.command,
    task.isCall ? "answering" : task.status,
    ageOf(task, now),
    task.progressToken === undefined ? "-" : clean(String(task.progressToken)),
    newsOf(task, now),
  ]);
  return toColumns([["Task", "Command", "Status", "Age", "Token", "Latest"], ...rows], width);
}

/** The calls that clients follow by a token. */
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

/** What to do about commands that block the event loop; empty where none does. */
export function blockedHint(stats: readonly CommandStats[]): string {
  const names = stats.flatMap(({ command, blockedRuns }) => (blockedRuns === undefined ? [] : [command]));
  if (names.length === 0) return "";
  return `${names.join(", ")} ${names.length === 1 ? "blocks" : "block"} the event loop (Blocked: longest time), so other calls wait. isolation: "process" in the command prevents that.`;
}

function ageOf(task: Task, now: number): string {
  return formatDuration(Math.max(0, now - task.createdAt)).replace(/\.\d s/, " s");
}

/** The newest thing to say about a task, fit for a terminal. */
function newsOf(task: Task, now: number): string {
  return clean(statusLine(task, now));
}

/** Everything about a task that its caller may know, as data. */
export function describeTask(task: Task): Record<string, unknown> {
  const at = (ms: number | undefined) => (ms === undefined ? undefined : toTimestamp(ms));
  // A store lists ended tasks without their outcomes.
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
    attempts: outcome?.attempts ?? task.attempts,
    crashes: task.crashes,
    eventLoopBlocked: describeBlock(outcome?.blockedMs),
    ...(!isTerminal(task) && task.lease !== undefined && { worker: describeWorker(task.lease.worker) }),
    createdAt: at(task.createdAt),
    startedAt: at(task.startedAt),
    updatedAt: at(task.updatedAt),
    ...(isTerminal(task) && { finishedAt: at(task.finishedAt), keptUntil: at(task.expiresAt) }),
  };
}

function describeBlock(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : `for ${formatDuration(ms)}; isolation: "process" in its command prevents that`;
}

const secretNames =
  /^(authorization|proxy-authorization|cookie|.*(token|secret|password|passwd|api[-_]?key|credentials?))$/i;
const headerNames = /headers$/i;
const blank = "•••";

/**
 * What somebody may look at over a shoulder, or paste into an issue: texts that are named as secrets are, and all
 * headers, are blanked.
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

/** The process that runs a task, from its name. */
function describeWorker(worker: string): { host: string; pid: number } {
  const [host = "", , pid] = worker.split("|");
  return { host, pid: Number(pid) };
}
