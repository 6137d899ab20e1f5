import type { Answer } from "../command/context.ts";
import type {
  EnvironmentMarks,
  LimitedQuestion,
  NewTask,
  Task,
  TaskOutcome,
  TaskProgress,
  TaskQuestion,
  TaskRules,
  TaskStatus,
} from "./task.ts";

/** A worker's right to write to one task. */
export interface Claim {
  readonly taskId: string;
  readonly fence: number;
}

/** Whose tasks. Every look-up for a caller goes through one of these. */
export interface CallerScope {
  readonly caller: string;
}

/** How much of what has ended is kept. */
export interface KeptTasks {
  readonly count: number;
  readonly bytes: number;
}

export interface CreateOptions {
  /** Give back a live task of the same caller, project, digest and environment instead of making another. */
  readonly joinsEqual: boolean;
  /** Refuse when the caller has this many live tasks; those that wait for an answer do not count. */
  readonly maxLive: number;
  /**
   * Of the caller's ended tasks keep only those that ended last: so many of them, with so many bytes of input and
   * outcome. Live ones stay.
   */
  readonly keeps?: KeptTasks | undefined;
  /**
   * Whoever makes it already runs it: it begins as claimed, under fence 1. A journalled call always does, and is
   * neither joined nor refused for their number.
   */
  readonly claim?: { readonly worker: string; readonly leaseMs: number };
}

export type Created = { readonly kind: "created" | "joined" | "repeated"; readonly task: Task } | FullStore;

/** The caller has so many live tasks already. */
export interface FullStore {
  readonly kind: "full";
  readonly live: number;
}

export interface ListFilter {
  readonly project?: string;
  /** Only those that do not differ from it. */
  readonly environment?: EnvironmentMarks;
  readonly statuses?: readonly TaskStatus[];
  /** Calls that are still being answered, too. Those that ended on record are always listed. */
  readonly withCalls?: boolean;
  readonly limit: number;
  readonly cursor?: string;
}

export interface TaskPage {
  /** Newest first, without input and outcome. */
  readonly tasks: readonly Task[];
  readonly nextCursor: string | undefined;
}

export interface ClaimRequest {
  readonly project: string;
  /** What the worker's environment is; tasks that were asked for in one that differs are not for it. */
  readonly environment?: EnvironmentMarks;
  readonly worker: string;
  readonly leaseMs: number;
  /** Only this one, whoever's turn it is. */
  readonly taskId?: string;
  /** None of these. */
  readonly except?: readonly string[];
  /** Absent: the one that has waited longest, whoever's it is. */
  readonly shares?: ClaimShares;
}

export interface UnclaimableRequest {
  readonly project: string;
  /** The environment of the process that asks. */
  readonly environment: EnvironmentMarks;
  /** Only tasks that have been due for at least this long, so that a worker with room had time to claim them. */
  readonly dueMs: number;
}

/** Whose turn it is, in the eyes of the worker that asks. */
export interface ClaimShares {
  /** Callers who may have no more tasks run … */
  readonly full: readonly string[] | "everybody";
  /** … and no more endless ones, which have places of their own. */
  readonly fullOfEndless: readonly string[] | "everybody";
  /**
   * The lowest number comes first; who has none comes before all. Of one caller, and of equals, the one that has waited
   * longest.
   */
  readonly turns: readonly (readonly [caller: string, turn: number])[];
}

/** One bucket of a command's durations, see quantiles.ts. */
export interface DurationCount {
  readonly command: string;
  /**
   * How long runs took; how long a unit of their work took; how far off their author's estimates were; or how long runs
   * blocked the event loop.
   */
  readonly kind: "time" | "rate" | "scale" | "block";
  readonly bucket: number;
  readonly count: number;
}

/**
 * What the engine asks of a database. One verb a transition; each is one guarded write, and `false` or `undefined`
 * means that somebody else was first. What is acknowledged is durable: `create`, `handOut`, `settle`, `answer`,
 * `cancel` and `keepStep` have reached the disk when they resolve. Nobody was told of a journalled call, so making and
 * forgetting one waits for no disk.
 *
 * Time is the store's own, so that no two machines compare their clocks: nobody tells it what time it is.
 */
export interface TaskStore {
  /** What time it is by the store's clock, as nearly as that is known here: by this its records are to be read. */
  now(): number;
  create(task: NewTask, options: CreateOptions): Promise<Created>;
  /** Unknown, expired and somebody else's look the same. */
  get(scope: CallerScope, taskId: string): Promise<Task | undefined>;
  list(scope: CallerScope, filter: ListFilter): Promise<TaskPage>;
  /** The live, handed-out task of an equal call; the oldest, when there are several. */
  findEqual(
    scope: CallerScope,
    project: string,
    digest: string,
    environment?: EnvironmentMarks,
  ): Promise<Task | undefined>;
  /**
   * False when it is certain, and known without reading the tasks anew, that no handed-out task of this command is
   * live, whoever's.
   */
  mayHaveLive(project: string, command: string): boolean;
  answer(scope: CallerScope, taskId: string, key: string, answer: Answer): Promise<boolean>;
  cancel(scope: CallerScope, taskId: string, message: string): Promise<boolean>;
  /**
   * The client that followed a live task by its token is gone, and the token with it. No news to anybody: nothing about
   * the work has changed.
   */
  dropToken(scope: CallerScope, taskId: string): Promise<boolean>;
  /** Takes the idempotency key from an ended task, so that another task may have it. False if there is no such task. */
  dropKey(scope: CallerScope, taskId: string): Promise<boolean>;

  claim(request: ClaimRequest): Promise<Task | undefined>;
  /**
   * Renews every lease of a worker, also while its event loop is blocked, until the returned function is called. Nobody
   * can see a lease, so that is no news.
   */
  keepLeases(worker: string, leaseMs: number, everyMs: number): () => void | Promise<void>;
  report(claim: Claim, news: { progress?: TaskProgress; statusMessage?: string }): Promise<boolean>;
  ask(claim: Claim, question: LimitedQuestion): Promise<TaskQuestion | undefined>;
  /** The number of a caller's open questions, counted up to `most`. */
  countOpenQuestions(scope: CallerScope, most: number): Promise<number>;
  settle(claim: Claim, outcome: TaskOutcome): Promise<boolean>;
  retryLater(claim: Claim, delayMs: number, why: string): Promise<boolean>;
  /** `why` is what it says of itself from then on. */
  giveBack(claim: Claim, why?: string): Promise<boolean>;
  /** Makes an ordinary task of a journalled call, durably. False when it is no call any more, or not ours. */
  handOut(
    claim: Claim,
    terms: { readonly reason: string; readonly ttlMs: number; readonly rules: TaskRules },
  ): Promise<boolean>;
  /** Removes a journalled call: its answer was delivered. False when it is no call any more, or not ours. */
  forget(claim: Claim): Promise<boolean>;
  /**
   * Remembers a finished step's value, as JSON. With `rules`, in the same write: from now on these hold, in place of
   * what the task began with. No news to anybody.
   */
  keepStep(claim: Claim, name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<boolean>;
  steps(taskId: string): Promise<ReadonlyMap<string, string>>;

  /** Tasks that are being worked on, by whom: for finding the dead. */
  workers(): Promise<readonly string[]>;
  /**
   * Ends or requeues the running tasks of this worker, or without a worker all whose lease expired before `expiredBefore`,
   * a time of the store's clock that is not in its future (default: now). Returns the IDs of these tasks. A store that carries the call out later
   * than it was made still compares with `expiredBefore`: workers may have been unable to renew their leases meanwhile.
   */
  interrupt(worker?: string, expiredBefore?: number): Promise<readonly string[]>;
  /** Ends what asks a question whose time is over; the tasks that it ended. */
  lapse(): Promise<readonly string[]>;
  /**
   * Sets the status message of queued tasks of a project that no worker may claim: they differ from this environment, and
   * no running task has theirs. Ends those that have waited for as long as their result would be kept. Handles at most
   * 100 tasks. Returns the IDs of the tasks that it changed.
   */
  markUnclaimable(request: UnclaimableRequest): Promise<readonly string[]>;
  /**
   * Replaces the environment of a queued task, clears its status message and makes it due now. False if there is no such
   * task.
   */
  setEnvironment(scope: CallerScope, taskId: string, environment: EnvironmentMarks): Promise<boolean>;
  /** Removes results whose time is over; all ended ones of a caller, or one of them. */
  sweep(): Promise<number>;
  prune(scope: CallerScope, taskId?: string): Promise<number>;
  /**
   * Puts right what is kept where the store's clock was set; by how many milliseconds it was, 0 where it was not. Ahead:
   * what had ended before keeps the time that it had left; once, however many processes have seen the jump. Back: nothing
   * is kept for longer than its time from now, and what is queued waits no longer than it would have.
   */
  putRight(): Promise<number>;

  recordDurations(counts: readonly DurationCount[]): Promise<void>;
  durations(command?: string): Promise<readonly DurationCount[]>;

  /**
   * Calls back when something may have changed: with the task's id, or without one when it happened elsewhere. Of one
   * task, when its id is given: then a change of another costs nothing, and one that happened elsewhere is told when it
   * was that task's, or may have been.
   */
  onChange(listener: (taskId: string | undefined) => void, taskId?: string): () => void;
  /** Calls back when there may be something to claim that was not there before. */
  onWork(listener: () => void): () => void;
  /** Looks for other processes' changes this often while someone waits. */
  watchClosely(isWaiting: boolean): void;
  close(): Promise<void>;
}
