import { formatDuration } from "../clock.ts";
import type { Answer, Question } from "../command/context.ts";
import { thisProgram } from "../program/program.ts";
import {
  type EndedTask,
  type EnvironmentMarks,
  isTerminal,
  type LimitedQuestion,
  type LiveTask,
  lapsedQuestion,
  maxCrashes,
  type NewTask,
  openQuestions,
  type Task,
  type TaskOutcome,
  type TaskProgress,
  type TaskQuestion,
  type TaskRules,
} from "./task.ts";

/**
 * Everything that can happen to a task, and nothing else.
 *
 *              create               create, claimed (fence 1)
 *                │                       │
 *                ▼      claim (fence+1)  ▼          settle
 *              queued ─────────────────▶ working ──────────────▶ completed | failed | cancelled
 *                ▲ ▲                     │ │  ▲                     ▲
 *                │ └── retry, give back, ┘ │  │ answer, while       │ settle
 *                │     interrupt (safe)    │  │ a worker waits      │
 *  answer, while │                     ask ▼  │                     │
 *  nobody waits  └──────────────────── input_required ──────────────┘
 *                                       │  ▲
 *                                       └──┘ retry, give back, interrupt (safe): the worker goes, its questions stay
 *
 *  cancel, from every live status, or lapse, when a question's time is over ──▶ cancelled
 *        interrupt, unsafe or once too often, or of a call ──▶ failed
 *        unclaimable, from queued, for as long as the result would be kept ──▶ failed
 *
 * Terminal is final. A live task is input_required exactly as long as one of its questions is open. A worker's events
 * carry its fence; one that is not the task's own is refused.
 * A journalled call is created claimed and never run again: retry and give back, which would queue it, are refused.
 * Hand out makes an ordinary task of it and leaves its status as it is. Whether a task is safe may be said anew while
 * it runs, with a step that is kept; that is no transition, either. A call that was answered is deleted, and that
 * is no transition. Stores write the same rules as one guarded statement each; this file says what they must do.
 */
export type TaskEvent =
  | { readonly type: "claim"; readonly worker: string; readonly leaseMs: number }
  | {
      readonly type: "report";
      readonly fence: number;
      readonly progress: TaskProgress | undefined;
      readonly statusMessage: string | undefined;
    }
  | { readonly type: "ask"; readonly fence: number; readonly question: LimitedQuestion }
  | { readonly type: "answer"; readonly key: string; readonly answer: Answer }
  | { readonly type: "settle"; readonly fence: number; readonly outcome: TaskOutcome }
  | { readonly type: "retry"; readonly fence: number; readonly delayMs: number; readonly why: string }
  | { readonly type: "giveBack"; readonly fence: number; readonly why?: string | undefined }
  | {
      readonly type: "handOut";
      readonly fence: number;
      readonly reason: string;
      readonly ttlMs: number;
      readonly rules: TaskRules;
    }
  | { readonly type: "interrupt" }
  | { readonly type: "lapse" }
  /** No worker has the values of these variables that the task depends on. */
  | { readonly type: "unclaimable"; readonly names: readonly string[] }
  | { readonly type: "setEnvironment"; readonly environment: EnvironmentMarks }
  | { readonly type: "cancel"; readonly message: string };

/** A new task, before anybody has seen it; with a claim, one that is being worked on already. */
export function begin(
  { ageMs = 0, ...fresh }: NewTask,
  now: number,
  claim?: { readonly worker: string; readonly leaseMs: number },
): LiveTask {
  if (fresh.isCall && claim === undefined)
    throw new Error("A call is journalled by whoever runs it, so it needs a claim.");
  const createdAt = Math.round(now - ageMs);
  const queued: LiveTask = {
    ...fresh,
    createdAt,
    status: "queued",
    version: 1,
    fence: 0,
    attempts: 0,
    crashes: 0,
    notBefore: createdAt,
    lease: undefined,
    statusMessage: undefined,
    progress: undefined,
    updatedAt: createdAt,
    startedAt: undefined,
  };
  if (claim === undefined) return queued;
  const lease = { worker: claim.worker, until: now + claim.leaseMs };
  return { ...queued, status: "working", fence: 1, attempts: 1, lease, startedAt: createdAt };
}

/** What becomes of a task; undefined when the event does not apply: somebody else was first, mostly. */
export function apply(task: Task, event: TaskEvent, now: number): Task | undefined {
  if (isTerminal(task)) return undefined;
  if ("fence" in event && (task.lease === undefined || event.fence !== task.fence)) return undefined;
  switch (event.type) {
    case "claim":
      return claim(task, event, now);
    case "report":
      return change(task, now, {
        progress: event.progress ?? task.progress,
        statusMessage: event.statusMessage ?? task.statusMessage,
      });
    case "ask": {
      const { limitMs, ...question } = event.question;
      const until = limitMs === undefined ? {} : { until: now + limitMs };
      const asked = { ...question, ...until, key: keyFor(question, task.questions), askedAt: now };
      return change(task, now, { status: "input_required", questions: [...task.questions, asked] });
    }
    case "answer":
      return answer(task, event, now);
    case "settle":
      return end(task, event.outcome, now);
    case "retry":
      return release(task, now, { notBefore: now + event.delayMs, statusMessage: event.why });
    case "giveBack":
      return release(task, now, {
        attempts: task.attempts - 1,
        notBefore: now,
        statusMessage: event.why ?? task.statusMessage,
      });
    case "handOut":
      if (!task.isCall) return undefined;
      return change(task, now, { isCall: false, reason: event.reason, ttlMs: event.ttlMs, rules: event.rules });
    case "interrupt":
      return interrupt(task, now);
    case "lapse": {
      // Who waits for the call is asked for as long as they wait.
      const lapsed = task.isCall ? undefined : lapsedQuestion(task, now);
      return lapsed === undefined ? undefined : cancel(task, lapsedMessage(lapsed), now);
    }
    case "unclaimable":
      return markUnclaimable(task, event.names, now);
    case "setEnvironment":
      if (task.status !== "queued") return undefined;
      return change(task, now, { environment: event.environment, statusMessage: undefined, notBefore: now });
    case "cancel":
      return cancel(task, event.message, now);
  }
}

/** What a question is called: by its own name, numbered in front when it is not the first of that name. */
function keyFor({ key }: Question, earlier: readonly TaskQuestion[]): string {
  if (key === undefined) return `q${earlier.length + 1}`;
  const isItsOwn = (used: string) => used === key || (/^r\d/.test(used) && used.endsWith(`/${key}`));
  const sameNamed = earlier.filter((question) => isItsOwn(question.key)).length;
  return sameNamed === 0 ? key : `r${sameNamed + 1}/${key}`;
}

function claim(task: LiveTask, event: { worker: string; leaseMs: number }, now: number): Task | undefined {
  if (task.status !== "queued" || task.notBefore > now) return undefined;
  return change(task, now, {
    status: "working",
    fence: task.fence + 1,
    attempts: task.attempts + 1,
    lease: { worker: event.worker, until: now + event.leaseMs },
    startedAt: task.startedAt ?? now,
    statusMessage: undefined,
  });
}

/** Its worker lets go of it; its open questions stay. */
function release(task: LiveTask, now: number, changes: Partial<LiveTask>): Task | undefined {
  return task.isCall ? undefined : change(task, now, { ...changes, status: waitingStatus(task), lease: undefined });
}

function cancel(task: LiveTask, message: string, now: number): Task {
  return end(task, cancelledOutcome(message, task.startedAt === undefined ? 0 : now - task.startedAt), now);
}

function answer(task: LiveTask, event: { key: string; answer: Answer }, now: number): Task | undefined {
  const isOpen = openQuestions(task).some((question) => question.key === event.key);
  if (!isOpen) return undefined;
  const questions = task.questions.map((question) =>
    question.key === event.key ? { ...question, answer: event.answer, answeredAt: now } : question,
  );
  const hasMore = questions.some((question) => question.answer === undefined);
  if (hasMore) return change(task, now, { questions });
  // With a worker waiting it goes on; without one it is run again, its answers replayed.
  return change(task, now, {
    questions,
    ...(task.lease === undefined
      ? { status: "queued", notBefore: Math.max(task.notBefore, now) }
      : { status: "working" }),
  });
}

function interrupt(task: LiveTask, now: number): Task | undefined {
  if (task.lease === undefined) return undefined;
  // A crash is not the command's own failure: it is counted apart, so that it uses up none of its attempts.
  const counts = { crashes: task.crashes + 1, attempts: task.attempts - 1 };
  if (task.isCall) return end({ ...task, ...counts }, interruptedCallOutcome(), now);
  const mayRunAgain = task.rules.isSafe && counts.crashes < maxCrashes;
  if (mayRunAgain)
    return release(task, now, { ...counts, notBefore: now, statusMessage: interruptedMessage(counts.crashes) });
  return end({ ...task, ...counts }, interruptedOutcome(task.rules.isSafe, counts.crashes), now);
}

function markUnclaimable(task: LiveTask, names: readonly string[], now: number): Task | undefined {
  if (task.status !== "queued" || names.length === 0) return undefined;
  const isMarked = isUnclaimable(task);
  if (!isMarked) return change(task, now, { statusMessage: unclaimableMessage(task.taskId, names) });
  // Another process may miss other variables: the first message stays. Its time counts from when it could be read.
  if (now - task.updatedAt < task.ttlMs) return undefined;
  return end(task, unclaimableOutcome(names, task.ttlMs), now);
}

export function cancelledOutcome(message: string, durationMs: number): TaskOutcome {
  return { ending: "cancelled", message, messages: [], log: [], durationMs };
}

/** Why a task ends whose question found nobody. */
export function lapsedMessage({ message, askedAt, until = askedAt }: TaskQuestion): string {
  return `Nobody answered «${message}» within ${formatDuration(until - askedAt).replace(/ 0 (min|s)$/, "")}; run it again to be asked again.`;
}

export function interruptedMessage(crashes: number): string {
  return `Interrupted ${crashes === 1 ? "once" : `${crashes} times`}; it will run again.`;
}

/** True if a task ended because its worker was lost, or because no worker might claim it: its command may not have run. */
export function isInterrupted(task: Task): boolean {
  const { status, crashes, statusMessage = "" } = task;
  return (
    status === "failed" &&
    ((crashes > 0 && /^Interrupted\b/.test(statusMessage)) || statusMessage.startsWith(unclaimablePrefix))
  );
}

/** True for a task that no worker has run: running its command again does nothing twice. */
export function hasNeverStarted({ startedAt }: Task): boolean {
  return startedAt === undefined;
}

/** How the status message of a task begins that no worker may claim. */
export const unclaimablePrefix = "Waits for a worker with the ";

/** True for a queued task that says that no worker may claim it: it waits for a person. */
export function isUnclaimable({ status, statusMessage }: Task): boolean {
  return status === "queued" && statusMessage?.startsWith(unclaimablePrefix) === true;
}

function unclaimableMessage(taskId: string, names: readonly string[]): string {
  const retry = thisProgram.typed(`tasks retry ${taskId}`);
  const cure =
    retry === undefined
      ? "Cancelling it ends it."
      : `\`${retry}\` runs it with the present values, \`tasks cancel\` ends it.`;
  return `${unclaimablePrefix}${quoteNames(names)} of its start. ${cure}`;
}

function unclaimableOutcome(names: readonly string[], waitedMs: number): TaskOutcome {
  return interruptedBy(
    `${unclaimablePrefix}${quoteNames(names)} of its start. Given up after ${formatDuration(waitedMs).replace(/ 0 (min|s)$/, "")}; a new call runs with the present values.`,
  );
}

/** Names in backticks, for a sentence. */
export function quoteNames(names: readonly string[]): string {
  return names
    .map((name) => `\`${name}\``)
    .join(", ")
    .replace(/, ([^,]*)$/, " and $1");
}

/** How a task ends whose worker died and which may not, or not once more, be run again. */
export function interruptedOutcome(isSafe: boolean, crashes: number): TaskOutcome {
  const message = isSafe
    ? `Interrupted ${crashes} times; given up, because it never gets to its end.`
    : "Interrupted; outcome unknown. The worker ended in the middle, and running the command again might do its work twice.";
  return interruptedBy(message);
}

/**
 * How a call ends whose worker died before it was answered: whoever called knows that, and would not expect a second
 * run.
 */
export function interruptedCallOutcome(): TaskOutcome {
  return interruptedBy(
    "Interrupted; outcome unknown. The worker ended before the call was answered, and only tasks are run again.",
  );
}

function interruptedBy(message: string): TaskOutcome {
  return { ending: "failed", cause: "interrupted", message, messages: [], log: [], durationMs: 0 };
}

/** Open questions outlive the worker that asked them. */
function waitingStatus(task: LiveTask): "queued" | "input_required" {
  return openQuestions(task).length > 0 ? "input_required" : "queued";
}

function end(task: LiveTask, outcome: TaskOutcome, now: number): EndedTask {
  const { lease: _lease, ...rest } = task;
  return {
    ...rest,
    status: outcome.ending,
    outcome,
    version: task.version + 1,
    statusMessage: outcome.ending === "completed" ? undefined : outcome.message,
    updatedAt: now,
    finishedAt: now,
    expiresAt: now + task.ttlMs,
  };
}

function change(task: LiveTask, now: number, changes: Partial<LiveTask>): LiveTask {
  return { ...task, ...changes, version: task.version + 1, updatedAt: now };
}
