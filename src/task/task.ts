import type { ContentBlock } from "../command/content.ts";
import type { Answer, LogLine, Origin, Question } from "../command/context.ts";
import type { RunMessage } from "../command/outcome.ts";
import type { SourcePlace } from "../command/place.ts";

/**
 * Words of the engine, each defined here and used nowhere in another sense.
 *
 * task       a call made durable: one record, one terminal outcome, readable by its caller alone
 * caller     who asked; every way to a record goes through the caller it belongs to
 * project    a set of command folders and its config; a worker claims only tasks of its own project
 * environment  marks of the variables a task depends on; a worker leaves alone what was asked for with other values
 * attempt    one run of a task; a crash ends an attempt, not the task
 * claim      a worker takes a queued task and with it the right to write
 * lease      how long that right lasts without being renewed
 * fence      a number that grows with every claim; a write with an older one is refused
 * settle     to record the outcome: once, for good
 * outcome    how the run ended, in our own neutral shape
 * giving back  ending an attempt that does not count, because the worker stops
 * interrupted  the worker is gone; what the command did meanwhile is unknown
 * apart      in a process of its own: how a task runs on whose worker died, because any of those that ran there may
 * have ended it journalled call  a call that is still being answered, on record only so that a crash in the middle of
 * it is noticed handing out  giving a call's client the task's id in place of the answer: the call goes on as a task
 */

export type LiveStatus = "queued" | "working" | "input_required";
export type TerminalStatus = "completed" | "failed" | "cancelled";
export type TaskStatus = LiveStatus | TerminalStatus;

export const liveStatuses: readonly LiveStatus[] = ["queued", "working", "input_required"];

/** How a task ended. The neutral shape is stored, so that a later revision of the wire can read it. */
export type TaskOutcome = CompletedOutcome | FailedOutcome | CancelledOutcome;

interface AnyOutcome {
  readonly messages: readonly RunMessage[];
  readonly log: readonly LogLine[];
  readonly durationMs: number;
}

export interface CompletedOutcome extends AnyOutcome {
  readonly ending: "completed";
  readonly data: unknown;
  readonly content?: readonly ContentBlock[];
  readonly saidNo?: true;
}

export interface FailedOutcome extends AnyOutcome {
  readonly ending: "failed";
  readonly cause: TaskFailure;
  readonly message: string;
  /** Where in the author's files it went wrong, for the terminal alone. */
  readonly at?: SourcePlace;
  /** The JSON-RPC error it ended in, when the command ended in one. */
  readonly rpc?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

export interface CancelledOutcome extends AnyOutcome {
  readonly ending: "cancelled";
  readonly message: string;
}

/**
 * `interrupted`: the worker died and running again would not be safe. `protocol`: the command ended in a JSON-RPC
 * error.
 */
export type TaskFailure = "input" | "command" | "output" | "timeout" | "interrupted" | "protocol";

export interface TaskProgress {
  readonly value: number;
  readonly total?: number;
  readonly percentage?: number;
  readonly message?: string;
  readonly context?: Readonly<Record<string, unknown>>;
}

/** A question, and until when it may be answered: then its task ends. */
export interface LimitedQuestion extends Question {
  readonly until?: number;
}

/** A question on record. Keys are never reused over a task's life. */
export interface TaskQuestion extends LimitedQuestion {
  readonly key: string;
  readonly askedAt: number;
  readonly answer?: Answer;
  readonly answeredAt?: number;
}

/** What a task begins with. Handing out a journalled call sets its reason, ttl and rules anew. */
export interface NewTask {
  readonly taskId: string;
  readonly caller: string;
  readonly project: string;
  readonly command: string;
  readonly input: unknown;
  /** By which door it was asked for, and in which folder: whoever runs it, now or later, goes by that. */
  readonly origin: Origin;
  /** Equal for equal calls: same command, same input, same origin. */
  readonly digest: string;
  readonly idempotencyKey: string | undefined;
  /** Why this call became a task. */
  readonly reason: string;
  /** How long the result is kept after the end. */
  readonly ttlMs: number;
  readonly estimateMs: number | undefined;
  /** Runs have shown that such estimates hold. */
  readonly isProven: boolean;
  /** It never ends by itself, says its author: it runs in places of its own. */
  readonly isEndless: boolean;
  readonly rules: TaskRules;
  readonly createdAt: number;
  /**
   * True while it is only the journal of a call that is still being answered: not handed out, not listed, not counted,
   * not joined, never run again.
   */
  readonly isCall: boolean;
  /** What was asked so far; what was asked and answered ahead of the run is there from the start. */
  readonly questions: readonly TaskQuestion[];
  /** The token its client follows it by. */
  readonly progressToken: string | number | undefined;
  /** What the code depended on where it was asked for; without one, whoever comes may run it. */
  readonly environment?: EnvironmentMarks | undefined;
}

/**
 * The variables that a project's code reads, each with a mark of its value that says nothing about the value itself.
 */
export type EnvironmentMarks = Readonly<Record<string, string>>;

/**
 * The variables that both know, with other values. A name that only one of them knows is one that code no longer, or
 * not yet, reads.
 */
export function differingNames(one: EnvironmentMarks | undefined, other: EnvironmentMarks | undefined): string[] {
  return Object.entries(one ?? {}).flatMap(([name, mark]) =>
    other !== undefined && Object.hasOwn(other, name) && other[name] !== mark ? [name] : [],
  );
}

/** What may happen to a task whose attempt fails or whose worker dies. */
export interface TaskRules {
  /** Running it again after a crash does no harm. */
  readonly isSafe: boolean;
  /** How many attempts may fail by themselves, the first included. */
  readonly maxAttempts: number;
  readonly backoffMs: number;
}

export interface Lease {
  readonly worker: string;
  readonly until: number;
}

interface TaskState extends NewTask {
  /** Grows with every change anybody could see. */
  readonly version: number;
  readonly fence: number;
  /** Attempts begun that count. */
  readonly attempts: number;
  /** How often its worker died. Ends of a process of its own are attempts. */
  readonly crashes: number;
  /** A queued task is not claimed before this. */
  readonly notBefore: number;
  readonly statusMessage: string | undefined;
  readonly progress: TaskProgress | undefined;
  readonly updatedAt: number;
  readonly startedAt: number | undefined;
}

export interface LiveTask extends TaskState {
  readonly status: LiveStatus;
  readonly lease: Lease | undefined;
}

export interface EndedTask extends TaskState {
  readonly status: TerminalStatus;
  readonly outcome: TaskOutcome;
  readonly finishedAt: number;
  readonly expiresAt: number;
}

export type Task = LiveTask | EndedTask;

/**
 * How often a task may lose its worker before it is given up. Whatever ended the worker may have been something else
 * that ran beside it, so this is only the end of a row that would have none.
 */
export const maxCrashes = 20;
/** How often its own process, in which nothing else ran, may end under a safe task: then it is known what ends it. */
export const maxOwnCrashes = 3;

/** True once nothing about the task will change any more. */
export function isTerminal(task: Task): task is EndedTask {
  return task.status === "completed" || task.status === "failed" || task.status === "cancelled";
}

/** Questions that wait for an answer. */
export function openQuestions(task: Pick<TaskState, "questions">): TaskQuestion[] {
  return task.questions.filter((question) => question.answer === undefined);
}

/** The open question of a task whose time is over, if there is one. */
export function lapsedQuestion(task: Pick<TaskState, "questions">, now: number): TaskQuestion | undefined {
  return openQuestions(task).find(({ until }) => until !== undefined && until <= now);
}

/** Milliseconds in which a task had an open question: a person's time, not the command's. */
export function waitedMs({ questions }: Pick<TaskState, "questions">, now: number): number {
  let until = Number.NEGATIVE_INFINITY;
  let waited = 0;
  for (const { askedAt, answer, answeredAt } of questions.toSorted((a, b) => a.askedAt - b.askedAt)) {
    const end = answer === undefined ? now : (answeredAt ?? askedAt);
    waited += Math.max(0, end - Math.max(askedAt, until));
    until = Math.max(until, end);
  }
  return waited;
}

/** True when the result's time is over; such a task looks like one that never was. */
export function isExpired(task: Task, now: number): boolean {
  return isTerminal(task) && task.expiresAt <= now;
}
