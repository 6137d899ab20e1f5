import type { Clock } from "../clock.ts";
import type { Answer, ProgressReport, Question } from "../command/context.ts";
import type { Outcome } from "../command/outcome.ts";
import { addFailed, describeRetry, noEarlierAttempts } from "../command/retries.ts";
import { Cancelled, CommandError, isStoreError, ShuttingDown } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import type { Logger } from "../log.ts";
import { type Absences, absentMessage } from "./absence.ts";
import { type Dispatcher, ticketOf } from "./dispatcher.ts";
import type { EndedTasks } from "./ended.ts";
import { Inputs } from "./inputs.ts";
import { defaultLimits, type Limits, questionLimitMs } from "./limits.ts";
import { ProgressTrack } from "./progress.ts";
import { retryDelay } from "./retry.ts";
import { forCommands } from "./runner.ts";
import type { Claim, TaskStore } from "./store.ts";
import { isTerminal, maxOwnCrashes, type Task, type TaskOutcome, type TaskProgress, type TaskRules } from "./task.ts";
import { crashedOutcome, NotLoaded, toProgress, toTaskOutcome } from "./task-outcome.ts";
import { apply, interruptedOutcome } from "./transitions.ts";

export interface ClaimedTaskOptions {
  readonly store: TaskStore;
  /** Who is told that a task may be run again. */
  readonly dispatcher: Pick<Dispatcher, "offer">;
  readonly clock: Clock;
  readonly log: Logger;
  /** How long a question waits for its answer. Default: 24 hours. */
  readonly questionMs?: number;
  readonly limits?: Limits;
  /** Where it is remembered what has ended, for when the store is gone. */
  readonly ended?: EndedTasks;
  /** Called when there is a lease to keep. */
  readonly onClaim?: () => void;
  /** Knows which tasks wait for their command. */
  readonly absences?: Absences;
}

/** Where a run stands, as JSON, by its own word; and whether another attempt may go on from there. */
export interface LeftBehind {
  readonly step: string;
  readonly json: string;
  readonly isSafe: boolean;
}

/** What a call becomes a task with. */
export interface HandOutTerms {
  readonly reason: string;
  readonly ttlMs: number;
  readonly rules: TaskRules;
}

/** The name of the step that keeps the earlier attempts of a task. */
export const earlierStep = "meanwhile/earlier attempts";

/** How often a running task's progress is written. */
const reportMs = 200;

/** A record that is ours to write, under one fence: what its run says, asks, finishes and comes to. */
export class ClaimedTask {
  readonly #options: ClaimedTaskOptions;
  readonly #stop: (reason: Error) => void;
  readonly #claim: Claim;
  /** Made when the run asks, and when it says how far it is: most do neither, and thousands may wait. */
  #inputs: Inputs | undefined;
  #progress: ProgressTrack | undefined;
  readonly #stopWatching: () => void;
  /** The attempts before this one, under earlier claims. */
  earlier = noEarlierAttempts;
  #task: Task;
  #isStopped = false;
  /** What a call has left behind, as long as it is one: only a task is ever run again. */
  #left: LeftBehind | undefined;
  #saidSafe: boolean | undefined;
  #lastWord: LeftBehind | undefined;
  /** What depends on the last word of the run is written one after the other. */
  #turn: Promise<unknown> | undefined;

  /** `stop` is called when the task was cancelled, or is somebody else's. */
  constructor(options: ClaimedTaskOptions, task: Task, stop: (reason: Error) => void) {
    const { store, onClaim } = options;
    this.#options = options;
    this.#stop = stop;
    this.#task = task;
    this.#claim = { taskId: task.taskId, fence: task.fence };
    onClaim?.();
    this.#stopWatching = store.onChange(() => void this.look(), task.taskId);
  }

  get task(): Task {
    return this.#task;
  }

  /** Running it again after a crash does no harm: by the last word of the run, where it has said one. */
  get isSafe(): boolean {
    return this.#saidSafe ?? this.#task.rules.isSafe;
  }

  announce(text: string): void {
    this.#report({ statusMessage: text });
  }

  progress(report: ProgressReport): void {
    const { clock } = this.#options;
    this.#progress ??= new ProgressTrack({
      clock,
      intervalMs: reportMs,
      deliver: (update) => this.#report({ progress: toProgress(update) }),
    });
    this.#progress.report(report);
  }

  /** Another attempt follows under the same claim. */
  async beginAttempt(): Promise<void> {
    if (this.#inputs === undefined) return;
    await this.refresh().catch(() => undefined);
    this.#inputs = undefined;
  }

  /** The run has ended: the last of its progress is written. */
  finishProgress(): void {
    this.#progress?.finish();
  }

  /** Every question is on record before anybody sees it; `onAsked` is called then with the end of its time. */
  ask(question: Question, signal: AbortSignal, onAsked: (until: number | undefined) => void): Promise<Answer> {
    const { store, questionMs, limits = defaultLimits } = this.#options;
    this.#inputs ??= new Inputs(store, this.#claim, this.#task, {
      limitMs: questionLimitMs(this.#task, questionMs),
      maxOpen: limits.openQuestions,
    });
    const inputs = this.#inputs;
    return forCommands(() => inputs.ask(question, signal, onAsked));
  }

  async keepStep(name: string, json: string, rules?: Pick<TaskRules, "isSafe">): Promise<void> {
    const isKept = await forCommands(() => this.#options.store.keepStep(this.#claim, name, json, rules));
    if (!isKept) throw new Cancelled("The task is no longer ours.");
  }

  /** In place of what was left before. Of a call it is written when that becomes a task. */
  async leave(left: LeftBehind): Promise<void> {
    this.#lastWord = left;
    // Until it is written the worse of both holds.
    if (!left.isSafe) this.#saidSafe = false;
    await this.#inTurn(async () => {
      if (this.#task.isCall) this.#left = left;
      else await this.keepStep(left.step, left.json, { isSafe: left.isSafe });
      if (this.#lastWord === left) this.#saidSafe = left.isSafe;
    });
  }

  /** Makes an ordinary task of a call; false when it cannot be one any more. What it has left behind rules. */
  handOut(terms: HandOutTerms): Promise<boolean> {
    return this.#inTurn(async () => {
      const { store } = this.#options;
      const { isSafe = terms.rules.isSafe, step, json } = this.#left ?? {};
      const rules = { ...terms.rules, isSafe };
      // Ahead, while a crash is still that of a call.
      const isKept = step === undefined || (await store.keepStep(this.#claim, step, json ?? "", rules));
      const isDone = isKept && (await store.handOut(this.#claim, { ...terms, rules }));
      if (isDone) this.#task = { ...this.#task, isCall: false, rules };
      return isDone;
    });
  }

  /** Reads it again. */
  async refresh(): Promise<Task | undefined> {
    const { caller } = this.#task;
    const task = await this.#options.store.get({ caller }, this.#claim.taskId);
    this.#task = task ?? this.#task;
    return task;
  }

  /** The call has been answered, so its record is no longer needed. */
  async forget(): Promise<void> {
    this.close();
    await this.#options.store.forget(this.#claim);
  }

  /** Nothing more is heard of it. */
  close(): void {
    this.#isStopped = true;
    this.#stopWatching();
  }

  /** Puts on record what the run came to; true when that was its result, and it counts. */
  conclude(outcome: Outcome, stopReason: Error | undefined): Promise<boolean> {
    // There is nothing left to stop: what happens to the task from now on is found by its fence.
    this.close();
    return this.#inTurn(() => this.#conclude(outcome, stopReason));
  }

  async #conclude(outcome: Outcome, stopReason: Error | undefined): Promise<boolean> {
    const { store, log, absences } = this.#options;
    const task = this.#task;
    const claim = this.#claim;
    const isStopped = stopReason instanceof ShuttingDown;
    const isAbsent = outcome.ending === "failed" && outcome.error instanceof NotLoaded;
    if (!isAbsent) absences?.forget(task.taskId);
    // Nothing of it has run, so giving it back is safe for any command.
    else if (isStopped || absences?.mayWait(task) === true) {
      await this.#giveBack(absentMessage(task.command));
      return false;
    }
    if (isStopped && outcome.ending !== "completed") {
      if (this.isSafe) await this.#giveBack();
      else await store.settle(claim, interruptedOutcome(false, 1));
      return false;
    }
    if (outcome.ending === "failed" && outcome.cause === "crash") {
      await this.#afterCrash(outcome.message, outcome.durationMs);
      return false;
    }
    const final = toTaskOutcome(outcome, task.command);
    // What cannot be stored is no failure of the run, and another run would end the same way.
    const delayMs = final.ending === outcome.ending ? retryDelay(task, outcome) : undefined;
    if (delayMs !== undefined && final.ending === "failed") {
      await this.#retryLater(delayMs, describeRetry(task.attempts, final.message, delayMs), final.durationMs);
      return false;
    }
    if (outcome.ending === "failed" && outcome.error !== undefined && !(outcome.error instanceof CommandError))
      log.warn("command failed", { tool: task.command, error: outcome.error });
    failpoint("before-settle");
    const isSettled = await this.#settle(final);
    failpoint("after-settle");
    if (!isSettled) log.debug("a late result was refused", { command: task.command, fence: claim.fence });
    return isSettled && final.ending === "completed";
  }

  async #giveBack(why?: string): Promise<void> {
    const { store, dispatcher } = this.#options;
    if (await store.giveBack(this.#claim, why)) dispatcher.offer(ticketOf(this.#claim));
  }

  /** `spentMs` is the duration of all attempts so far. It is kept as a step, because steps outlive an attempt. */
  async #retryLater(delayMs: number, why: string, spentMs: number): Promise<void> {
    const { store, dispatcher } = this.#options;
    const failed = { count: this.#task.attempts, durationMs: spentMs - this.earlier.spentMs, why, at: store.now() };
    await store.keepStep(this.#claim, earlierStep, JSON.stringify(addFailed(this.earlier, failed)));
    if (await store.retryLater(this.#claim, delayMs, why)) dispatcher.offer(ticketOf(this.#claim), delayMs);
  }

  /** Where the record is gone for good nobody can ever read it there, so it is told from memory without one. */
  async #settle(outcome: TaskOutcome): Promise<boolean> {
    const { store, ended } = this.#options;
    const settled = apply(this.#task, { type: "settle", fence: this.#claim.fence, outcome }, store.now());
    const remember = () => void (settled !== undefined && isTerminal(settled) && ended?.keep(settled));
    try {
      const isSettled = await store.settle(this.#claim, outcome);
      if (isSettled) remember();
      return isSettled;
    } catch (error) {
      if (isStoreError(error) && error.code === "STORE_GONE") remember();
      throw error;
    }
  }

  /**
   * The child process died, or the server behind the command, not we: a failed attempt, of which a safe command has
   * three at least.
   */
  async #afterCrash(message: string, spentMs: number): Promise<void> {
    const { store } = this.#options;
    const { rules, attempts } = this.#task;
    const mayRunAgain = this.isSafe && attempts < Math.max(maxOwnCrashes, rules.maxAttempts);
    if (mayRunAgain) await this.#retryLater(0, `${message} Running it again.`, spentMs);
    else
      await store.settle(
        this.#claim,
        crashedOutcome(
          this.isSafe
            ? `${message} Given up after ${attempts} attempts.`
            : `${message} Outcome unknown: running it again might do its work twice.`,
        ),
      );
  }

  /** Notices a cancel, or that somebody else holds the task now, also where no news of it has come yet. */
  async look(): Promise<void> {
    const { store } = this.#options;
    const known = this.#task;
    if (this.#isStopped) return;
    const task = await store.get({ caller: known.caller }, known.taskId).catch(() => known);
    if (this.#isStopped) return;
    if (task === undefined || isTerminal(task))
      this.#stopOnce(new Cancelled(task?.statusMessage ?? "The task is gone."));
    else if (task.fence !== this.#claim.fence || task.lease === undefined)
      this.#stopOnce(new Cancelled("The task was taken from this worker."));
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#turn === undefined ? act() : this.#turn.then(act);
    this.#turn = done.catch(() => undefined);
    return done;
  }

  #stopOnce(reason: Error): void {
    this.#isStopped = true;
    this.#stop(reason);
  }

  #report(news: { progress?: TaskProgress; statusMessage?: string }): void {
    const { store, log } = this.#options;
    // Progress is a courtesy: when it cannot be written the run goes on.
    store.report(this.#claim, news).catch((error: unknown) => {
      if (!isStoreError(error)) log.warn("progress not recorded", { error });
    });
  }
}
