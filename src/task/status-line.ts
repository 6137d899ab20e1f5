import { formatDuration, toMinute } from "../clock.ts";
import { isForPerson } from "../command/foreign-question.ts";
import { secondsLeft } from "./estimate.ts";
import { isTerminal, openQuestions, type Task, type TaskQuestion, waitedMs } from "./task.ts";

/**
 * The newest thing to say about a task, in one line: what it asks, how far it is (`Page 3 of 12 (25%, about 34 s
 * left)`), how it ended.
 */
export function statusLine(task: Task, now: number): string {
  if (isTerminal(task)) return task.statusMessage ?? "";
  const open = openQuestions(task);
  const question = open.find(isForPerson) ?? open[0];
  if (question !== undefined)
    return `${isForPerson(question) ? "asks:" : "waits for"} ${question.message}${answerBy(question)}`;
  // The progress of an earlier attempt says less than why the task waits for the next one.
  if (task.status === "queued" && task.statusMessage !== undefined) return task.statusMessage;
  const words = task.progress?.message ?? task.statusMessage ?? "";
  const numbers = numbersOf(task, now);
  return [words, numbers === "" ? "" : words === "" ? numbers : `(${numbers})`].filter(Boolean).join(" ");
}

/** By when a question has to be answered, to be put behind it. */
function answerBy({ until }: TaskQuestion): string {
  return until === undefined ? "" : ` (to be answered by ${toMinute(until)})`;
}

/** The last progress message of a task, as a sentence behind another one; empty where there is none. */
export function lastProgress({ progress }: Pick<Task, "progress">): string {
  const { message = "" } = progress ?? {};
  return message === "" ? "" : ` Last progress: ${message}${/[.!?…]$/.test(message) ? "" : "."}`;
}

function numbersOf(task: Task, now: number): string {
  const { progress } = task;
  const left = timeLeft(task, now);
  const percentage = progress?.percentage === undefined ? "" : `${Math.floor(progress.percentage)}%`;
  return [percentage, left === undefined || left < 1 ? "" : `about ${toWords(left)} left`].filter(Boolean).join(", ");
}

/**
 * How long a task has been at work, and how long it will be, as far as runs have shown; a person's time does not count.
 */
export function timingOf(
  task: Task,
  now: number,
): { readonly elapsedMs: number; readonly estimateMs: number | undefined } {
  const elapsedMs = task.startedAt === undefined ? 0 : Math.max(0, now - task.startedAt - waitedMs(task, now));
  return { elapsedMs, estimateMs: task.isProven ? task.estimateMs : undefined };
}

/**
 * Seconds a live task still needs, when that can be told. Undefined while it waits for a worker. Only the start of the
 * first attempt is recorded, and the time since then includes waits between attempts. So a later attempt has a time left
 * only from the usual duration and its progress, not from its own speed.
 */
export function timeLeft(task: Task, now: number): number | undefined {
  if (task.startedAt === undefined || task.status === "queued" || isTerminal(task)) return undefined;
  const { elapsedMs, estimateMs } = timingOf(task, now);
  if (task.fence > 1) {
    const percentage = task.progress?.percentage;
    return estimateMs === undefined || percentage === undefined
      ? undefined
      : (estimateMs / 1000) * (1 - Math.min(100, percentage) / 100);
  }
  return secondsLeft({
    elapsedMs,
    percentage: task.progress?.percentage,
    estimateSeconds: estimateMs === undefined ? undefined : estimateMs / 1000,
    reportedMs: timingOf(task, task.updatedAt).elapsedMs,
  });
}

/** The estimate of a whole run in seconds, to a tenth; undefined where nothing is known, or less than that. */
export function estimatedSeconds({ estimateMs }: Pick<Task, "estimateMs">): number | undefined {
  const seconds = estimateMs === undefined ? 0 : Math.round(estimateMs / 100) / 10;
  return seconds > 0 ? seconds : undefined;
}

/** Whole seconds as people say them. */
export function toWords(seconds: number): string {
  return formatDuration(Math.ceil(seconds) * 1000).replace(".0 s", " s");
}
