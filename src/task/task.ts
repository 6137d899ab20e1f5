import type { ContentBlock } from "../command/content.ts";
import type { Answer, LogLine, Origin, Question } from "../command/context.ts";
import type { GivenUpHost, RpcError, RunMessage } from "../command/outcome.ts";
import type { SourcePlace } from "../command/place.ts";

/**
 * Our own words, each defined here and used nowhere in another sense. What the specification names is called as there.
 *
 * Commands
 *   command        what an author writes and everybody calls: over MCP as a tool, in the terminal as words
 *   catalog        the commands that are served, by name
 *   pack           the commands that come with the package
 *   project        a set of command folders and its config; a worker claims only tasks of its own project
 *   home           the folder of this user that holds database, token, logs and records of daemons
 *   source         where commands come from: folders, code, somebody else's server
 *   guest          somebody else's server, made with an SDK, at the other end of a pair in memory
 *   hook           where an author registers things by hand, on a guest
 *   foreign        of a guest's tool as a command: its result, questions and notices pass word for word
 *   relay          what a guest has of the client whose call it works on
 *   run            one command, once; its outcome is how it ended, in our own neutral shape
 *   door           by which a run was asked for and is told of: MCP or a terminal
 *   origin         a door and the folder it was asked for in
 *   step           a part of a run whose value is remembered by later attempts
 *   isolated run   a run in a child process of its own
 *
 * Calls
 *   caller         who asked; every way to a record goes through the caller it belongs to, by its key
 *   host           the program that a client is part of, with its own limit for a slow call
 *   generation     how a kind of client is told of tasks: 2026, 2025, plain or jobs
 *   plain          of a client: it knows no tasks, gets a handle and asks with follow-up tools
 *   handle         what a plain client is answered with in place of a result that takes longer
 *   job            a task as it is told to clients that take job notifications
 *   held call      a call that runs while its client waits
 *   journalled call  a call that is still being answered, on record only so that a crash in the middle is noticed
 *   handing out    giving a call's client the task's id in place of the answer: the call goes on as a task
 *   deferral       deciding whether a call is answered while its client waits, and how long that may last
 *   outlook        what is to be expected of a call, from history and from its author's estimate
 *
 * Tasks
 *   task           a call made durable: one record, one terminal outcome, readable by its caller alone
 *   environment    marks of the variables a task depends on; a worker leaves alone what was asked for with other values
 *   attempt        one run of a task; a crash ends an attempt, not the task
 *   claim          a worker takes a queued task and with it the right to write
 *   lease          how long that right lasts without being renewed
 *   fence          a number that grows with every claim; a write with an older one is refused
 *   settle         to record the outcome: once, for good
 *   give back      to end an attempt that does not count, because the worker stops
 *   interrupted    the worker is gone; what the command did meanwhile is unknown
 *   apart          in an isolated run: how a task goes on whose worker died, because any that ran there may have ended it
 *   absent         its command is not there, or cannot be loaded, for now
 *   dispatcher     says which task is next; a store is one
 *   sweeper        notices leases that have run out, and removes what has expired
 *
 * Processes
 *   daemon         the process that serves a project to all its sessions; its key says for which
 *   front          the process that a host starts, which carries lines between it and the daemon
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
  /** The sum of all attempts, without the time in which a person was asked. */
  readonly durationMs: number;
  /** Absent where there was one. */
  readonly attempts?: number;
  /** The longest time in which it blocked the event loop. Absent where none was longer than a second. */
  readonly blockedMs?: number;
  /** The host that had stopped waiting for the answer when a block ended. */
  readonly lateFor?: GivenUpHost;
}

export interface CompletedOutcome extends AnyOutcome {
  readonly ending: "completed";
  readonly data: unknown;
  readonly content?: readonly ContentBlock[];
  /** The result of somebody else's tool, word for word, as JSON; `data` is `{}` then. */
  readonly foreign?: string;
  readonly saidNo?: true;
}

export interface FailedOutcome extends AnyOutcome {
  readonly ending: "failed";
  readonly cause: TaskFailure;
  readonly message: string;
  /** Where in the author's files it went wrong, for the terminal alone. */
  readonly at?: SourcePlace;
  /** The JSON-RPC error it ended in, when the command ended in one. */
  readonly rpc?: RpcError;
  /** The result in which somebody else's tool says no, word for word, as JSON. */
  readonly foreign?: string;
}

export interface CancelledOutcome extends AnyOutcome {
  readonly ending: "cancelled";
  readonly message: string;
}

/**
 * `interrupted`: the worker died and running again would not be safe, or no worker might claim the task. `protocol`: the command ended in a JSON-RPC
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

/** A question, and for how long it may be answered: then its task ends. */
export interface LimitedQuestion extends Question {
  readonly limitMs?: number;
}

/** A question on record. Keys are never reused over a task's life. */
export interface TaskQuestion extends Question {
  readonly key: string;
  readonly askedAt: number;
  readonly until?: number;
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
  /** How long ago it began, where it is put on record later. */
  readonly ageMs?: number;
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

interface TaskState extends Omit<NewTask, "ageMs"> {
  readonly createdAt: number;
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
