import { type Clock, sleep } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Answer, Door, LogLine, Origin, ProgressReport, Question, Steps } from "../command/context.ts";
import { type Outcome, type RunOptions, runCommand } from "../command/run.ts";
import { Cancelled, CommandError, isStoreError, ShuttingDown } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import type { Logger } from "../log.ts";
import { type Absences, absentMessage } from "./absence.ts";
import { toCaller } from "./callers.ts";
import type { EndedTasks } from "./ended.ts";
import { authorsEstimate, type History } from "./history.ts";
import { Inputs } from "./inputs.ts";
import type { RunIsolated } from "./isolate.ts";
import { checkStorable, keptOf, questionLimitMs } from "./limits.ts";
import { crashedOutcome, NotLoaded, notLoaded, notRun, toProgress, toTaskOutcome, withSentence } from "./outcome.ts";
import type { Paced } from "./paced.ts";
import { ProgressTrack, type ProgressUpdate } from "./progress.ts";
import { retryAt } from "./retry.ts";
import type { Claim, TaskStore } from "./store.ts";
import { isTerminal, maxOwnCrashes, type NewTask, type Task, type TaskOutcome, type TaskProgress, type TaskRules } from "./task.ts";
import { apply, interruptedOutcome } from "./transitions.ts";

export interface AttemptOptions {
  readonly store: TaskStore;
  readonly history: History;
  readonly clock: Clock;
  readonly log: Logger;
  /** Names this process, so that others can tell whether it lives. */
  readonly worker: string;
  readonly leaseMs: number;
  /** Calls that are to be put on record or made tasks: many begin at once, and many are lost with their client at once. */
  readonly records: Paced;
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
  /** How long a question waits for its answer. Default: 24 hours. */
  readonly questionMs?: number;
  /** Runs an attempt in a child process; absent where there can be none. */
  readonly runIsolated?: RunIsolated;
  /** Where it is remembered what has ended, for when the store is gone. */
  readonly ended?: EndedTasks;
  /** The same for a task whose worker died: under the bounds of this process, so that all that is new to it is to be alone. */
  readonly runApart?: RunIsolated;
  /** Called when there is a lease to keep. */
  readonly onClaim?: () => void;
  /** Knows which tasks wait for their command. */
  readonly absences?: Absences;
  /** Called when a run has nothing to do but to wait for an answer. */
  readonly onWaiting?: () => void;
}

/** What whoever holds a call wants to hear of its run. */
export interface Watcher {
  progress?(update: ProgressUpdate): void;
  log?(line: LogLine): void;
  room?(data: unknown): Promise<unknown> | undefined;
  /** The run has asked something, and it is on record. */
  asked?(): void;
  /** Set where a question would find nobody; says what to do instead. */
  readonly whyNoAnswer?: string;
}

/** A task that a worker has claimed, and when its run may begin, unless that is at once. */
export interface ClaimedTask {
  readonly task: Task;
  readonly entry: CatalogEntry | undefined;
  readonly mayBegin: Promise<unknown> | undefined;
}

/** A call that is answered while it runs: what its record would be, and who listens. */
export interface HeldCall {
  readonly entry: CatalogEntry;
  readonly input: unknown;
  readonly caller: string;
  readonly origin: Origin;
  readonly fresh: () => NewTask;
  readonly watcher: Watcher;
}

/** What a call becomes a task with. */
export interface HandOutTerms {
  readonly reason: string;
  readonly ttlMs: number;
  readonly rules: TaskRules;
}

/** A call that runs longer than this is put on record. */
const journalAfterMs = 50;
/** A store that fails is asked again after this long. */
const insistMs = 1_000;
/** How often a running task's progress is written. */
const reportMs = 200;

/**
 * One run of a command under one fence.
 *
 * It begins as a task that a worker has claimed, or as a call that somebody is waiting for. A call has no record at first; after
 * a moment one is written, already claimed, and when the call is handed out that record is an ordinary task, the run still
 * the same. A call that is answered leaves nothing behind.
 */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #entry: CatalogEntry | undefined;
  readonly #input: unknown;
  readonly #call: HeldCall | undefined;
  readonly #from: { readonly caller: string; readonly origin: Origin };
  readonly #startedAt: number;
  #stopper: ((reason: Error) => void) | undefined;
  #stopReason: Error | undefined;
  #stopping: AbortController | undefined;
  #answered: PromiseWithResolvers<void> | undefined;
  #isReleased = false;
  #ended: Promise<void> | undefined;
  #live: ProgressTrack | undefined;
  #written: ProgressTrack | undefined;
  #task: Task | undefined;
  #claim: Claim | undefined;
  #journal: Promise<void> | undefined;
  #cancelJournal: (() => void) | undefined;
  #stopWatching: (() => void) | undefined;
  #inputs: Inputs | undefined;
  #isHandedOut = false;
  #isLeaving = false;
  #asking = 0;
  #askedAt = 0;
  /** How long it had nothing to do but to wait for a person. */
  #waitedMs = 0;
  #lastReport: ProgressReport | undefined;
  #announced: string | undefined;
  /** How the run ended, as soon as it has. Never rejects. */
  readonly outcome: Promise<Outcome>;

  constructor(options: AttemptOptions, start: ClaimedTask | HeldCall) {
    this.#options = options;
    this.#entry = start.entry;
    this.#startedAt = options.clock.monotonic();
    this.#from = "task" in start ? start.task : start;
    if ("task" in start) {
      this.#input = start.task.input;
      this.#isHandedOut = true;
      this.#take(start.task);
    } else {
      this.#call = start;
      this.#input = start.input;
    }
    this.outcome = this.#execute("task" in start ? start.mayBegin : undefined).catch((error: unknown) => withSentence(notRun(error), options.clock.now()));
    if ("task" in start) this.#ended = this.#recordSafely();
  }

  /** When the outcome is recorded too, and there is nothing left to do. Of a call, only once it is held. */
  get ended(): Promise<void> {
    return this.#ended ?? Promise.resolve();
  }

  /**
   * From here on the call may take long: it is put on record after a moment. Most calls never come to this: they end within a
   * turn of the event loop, and then cost no timer and no record.
   */
  hold(): void {
    const { clock } = this.#options;
    this.#answered ??= Promise.withResolvers<void>();
    const elapsedMs = clock.monotonic() - this.#startedAt;
    if (this.#claim === undefined) this.#cancelJournal = clock.after(Math.max(0, journalAfterMs - elapsedMs), () => this.#journalInTurn());
    this.#ended = this.#recordSafely();
  }

  /** True when nothing of the call was ever written down. */
  get isUnrecorded(): boolean {
    return this.#journal === undefined;
  }

  /** A call that ended before it was held: only how long it took is remembered. */
  finish(outcome: Outcome): void {
    this.#remember(outcome);
  }

  /** The record, once there is one. */
  get taskId(): string | undefined {
    return this.#claim?.taskId;
  }

  stop(reason: Error): void {
    this.#stopReason ??= reason;
    this.#stopper?.(reason);
    this.#stopping?.abort(reason);
  }

  /** Its process is about to end. What is safe to run again is stopped and given back, a call as soon as it is handed out; the rest may go on. */
  leave(): void {
    this.#isLeaving = true;
    if (this.#isHandedOut && this.#task?.rules.isSafe === true) this.stop(new ShuttingDown());
  }

  /** False as long as it is a call that somebody waits for. */
  get isTask(): boolean {
    return this.#isHandedOut;
  }

  get #stopSignal(): AbortSignal {
    this.#stopping ??= new AbortController();
    if (this.#stopReason !== undefined) this.#stopping.abort(this.#stopReason);
    return this.#stopping.signal;
  }

  /** Makes a task of a call that is still running, or has just ended; undefined when it cannot be one any more. */
  async handOut(terms: HandOutTerms): Promise<Task | undefined> {
    const { store, clock, records } = this.#options;
    await new Promise<void>((resolve) => records.add(resolve));
    await this.#writeJournal();
    const claim = this.#claim;
    const isTaken = claim !== undefined && (await store.handOut(claim, terms, clock.now()));
    if (!isTaken) return undefined;
    this.#isHandedOut = true;
    // The request it came by has been answered: nothing more may be sent on it.
    this.#live?.finish();
    const task = await store.get({ caller: this.#task?.caller ?? "", now: clock.now() }, claim.taskId);
    this.#task = task ?? this.#task;
    if (this.#isLeaving) this.leave();
    this.#answered?.resolve();
    return task;
  }

  /** The call has been answered, so its record is no longer needed. */
  release(): void {
    this.#isReleased = true;
    this.#cancelJournal?.();
    this.#answered?.resolve();
  }

  #recordSafely(): Promise<void> {
    return this.#record().catch((error: unknown) => this.#options.log.error("an attempt could not be recorded; its lease will run out", { error }));
  }

  async #record(): Promise<void> {
    const outcome = await this.outcome;
    this.#cancelJournal?.();
    await this.#answered?.promise;
    try {
      if (this.#isHandedOut) await this.#insist(() => this.#conclude(outcome));
      else await this.#forget(outcome);
    } finally {
      this.#stopWatching?.();
    }
  }

  async #forget(outcome: Outcome): Promise<void> {
    this.#remember(outcome);
    await this.#journal?.catch(() => undefined);
    this.#stopWatching?.();
    if (this.#claim !== undefined) await this.#options.store.forget(this.#claim);
  }

  #journalInTurn(): void {
    this.#cancelJournal = this.#options.records.add(() => void this.#tryJournal());
  }

  #tryJournal(): Promise<void> {
    return this.#writeJournal().catch((error: unknown) => {
      if (!isStoreError(error)) this.#options.log.warn("a running call could not be put on record", { error });
    });
  }

  /** Puts the call on record, once; what failed may be tried again. */
  #writeJournal(): Promise<void> {
    this.#journal ??= this.#writeRecord().catch((error: unknown) => {
      this.#journal = undefined;
      throw error;
    });
    return this.#journal;
  }

  async #writeRecord(): Promise<void> {
    const call = this.#call;
    if (call === undefined || this.#claim !== undefined) return;
    this.#cancelJournal?.();
    const { store, worker, leaseMs } = this.#options;
    const fresh = call.fresh();
    const claim = { worker, leaseMs };
    const created = await store.create(fresh, { joinsEqual: false, maxLive: Number.MAX_SAFE_INTEGER, keeps: keptOf(fresh.caller), claim });
    if (created.kind !== "created") throw new Error("The record of a call was there before it.");
    this.#take(created.task);
  }

  /** From here on there is a record that is ours to write. */
  #take(task: Task): void {
    const { store, clock, onClaim, questionMs } = this.#options;
    this.#task = task;
    this.#claim = { taskId: task.taskId, fence: task.fence };
    onClaim?.();
    this.#inputs = new Inputs(store, this.#claim, task, { now: () => clock.now(), limitMs: questionLimitMs(task, questionMs) });
    this.#stopWatching = store.onChange(() => void this.#look(), task.taskId);
    this.#written = new ProgressTrack({ clock, intervalMs: reportMs, deliver: (update) => this.#report({ progress: toProgress(update) }) });
    if (this.#announced !== undefined) this.#report({ statusMessage: this.#announced });
    if (this.#lastReport !== undefined) this.#written.report(this.#lastReport);
  }

  /** Tries until the store takes it, or we are stopped: our heartbeat keeps the lease, so nobody else would ever end the task. */
  async #insist<T>(action: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#options;
    for (;;) {
      const isLast = this.#stopReason !== undefined;
      try {
        return await action();
      } catch (error) {
        // What the store can never take is no reason to insist.
        const isHopeless = error instanceof TypeError || error instanceof RangeError;
        if (isLast || isHopeless) throw error;
        // What is wrong with the store, the store has said.
        if (!isStoreError(error)) log.error("the store failed a running task; trying again in a second", { error });
        await sleep(clock, insistMs, this.#stopSignal).catch(() => undefined);
      }
    }
  }

  /** Notices a cancel, or that somebody else holds the task now. */
  async #look(): Promise<void> {
    const [known, claim] = [this.#task, this.#claim];
    if (this.#stopReason !== undefined || known === undefined || claim === undefined) return;
    const { store, clock } = this.#options;
    const task = await store.get({ caller: known.caller, now: clock.now() }, claim.taskId).catch(() => known);
    if (task === undefined || isTerminal(task)) this.stop(new Cancelled(task?.statusMessage ?? "The task is gone."));
    else if (task.fence !== claim.fence || task.lease === undefined) this.stop(new Cancelled("The task was taken from this worker."));
  }

  async #execute(mayBegin: Promise<unknown> | undefined): Promise<Outcome> {
    if (mayBegin !== undefined) await mayBegin;
    const { clock, home, config, isDebug, store } = this.#options;
    const entry = this.#entry;
    const task = this.#task;
    if (entry === undefined) return notLoaded(`The command ${task?.command} is no longer there.`);
    const kept = task === undefined ? new Map<string, string>() : new Map(await this.#insist(() => store.steps(task.taskId)));
    const options: RunOptions = {
      name: entry.toolName,
      clock,
      home,
      config,
      caller: toCaller(this.#from.caller),
      origin: this.#from.origin,
      isDebug,
      door: this.#door(),
      steps: this.#steps(kept),
      attempt: task === undefined ? 1 : task.attempts + task.crashes,
      stoppers: this.#stoppers,
    };
    const runElsewhere = this.#elsewhere(entry);
    const outcome =
      runElsewhere === undefined
        ? await runCommand(entry.command, this.#input, options)
        : withSentence(await runElsewhere(entry, this.#input, { ...options, signals: [this.#stopSignal] }), clock.now());
    this.#live?.finish();
    this.#written?.finish();
    return outcome;
  }

  /** How it is run in a child process; undefined where it runs in this one. */
  #elsewhere({ command, file }: CatalogEntry): RunIsolated | undefined {
    const { runIsolated, runApart } = this.#options;
    if (command.isolation === "process") return runIsolated;
    // Of all that ran where a worker died any may have ended it. In a process of its own a crash names its culprit, and hurts nobody else.
    return this.#task !== undefined && this.#task.crashes > 0 && file !== "" ? runApart : undefined;
  }

  readonly #stoppers = {
    add: (stop: (reason: Error) => void) => {
      this.#stopper = stop;
      if (this.#stopReason !== undefined) stop(this.#stopReason);
    },
    delete: () => {
      this.#stopper = undefined;
    },
  };

  #steps(kept: Map<string, string>): Steps {
    return {
      get: (name) => kept.get(name),
      keep: async (name, json) => {
        checkStorable(json, `step ${name}`);
        const isKept = await forCommands(async () => {
          await this.#writeJournal();
          return this.#claim !== undefined && (await this.#options.store.keepStep(this.#claim, name, json));
        });
        if (!isKept) throw new Cancelled("The task is no longer ours.");
        kept.set(name, json);
      },
      all: () => [...kept],
    };
  }

  #door(): Door {
    const watcher = this.#call?.watcher;
    const door: Door = {
      announce: (text) => {
        this.#announced = text;
        this.#liveTrack()?.report({ message: text });
        if (this.#claim !== undefined) this.#report({ statusMessage: text });
      },
      progress: (report) => {
        failpoint("mid-run");
        this.#lastReport = report;
        this.#liveTrack()?.report(report);
        this.#written?.report(report);
      },
      log: (line) => {
        if (!this.#isHandedOut) watcher?.log?.(line);
      },
      room: (data) => {
        const waiting = this.#isHandedOut || this.#isReleased ? undefined : watcher?.room?.(data);
        if (waiting === undefined) return undefined;
        // What becomes a task meanwhile goes to the store, and needs no other room.
        this.#answered ??= Promise.withResolvers<void>();
        return Promise.race([waiting, this.#answered.promise]);
      },
    };
    if (watcher?.whyNoAnswer !== undefined) return { ...door, whyNoAnswer: watcher.whyNoAnswer };
    return { ...door, ask: (question, signal) => this.#ask(question, signal) };
  }

  /** What the one who waits is told; made when there is something to tell. */
  #liveTrack(): ProgressTrack | undefined {
    const watcher = this.#call?.watcher;
    if (watcher === undefined || this.#isHandedOut) return undefined;
    this.#live ??= new ProgressTrack({ clock: this.#options.clock, deliver: (update) => watcher.progress?.(update) });
    return this.#live;
  }

  /** Every question is on record before anybody sees it. */
  async #ask(question: Question, signal: AbortSignal): Promise<Answer> {
    await forCommands(() => this.#writeJournal());
    if (this.#inputs === undefined) throw new Cancelled("The task is no longer ours.");
    this.#asking += 1;
    if (this.#asking === 1) this.#askedAt = this.#options.clock.monotonic();
    const onAsked = () => {
      this.#options.onWaiting?.();
      this.#call?.watcher.asked?.();
    };
    try {
      const inputs = this.#inputs;
      return await forCommands(() => inputs.ask(question, signal, onAsked));
    } finally {
      this.#asking -= 1;
      if (this.#asking === 0) this.#waitedMs += this.#options.clock.monotonic() - this.#askedAt;
    }
  }

  /** True while it waits for a person. */
  get isWaiting(): boolean {
    return this.#asking > 0;
  }

  #report(news: { progress?: TaskProgress; statusMessage?: string }): void {
    const { store, clock, log } = this.#options;
    if (this.#claim === undefined) return;
    // Progress is a courtesy: when it cannot be written the run goes on.
    store.report(this.#claim, news, clock.now()).catch((error: unknown) => {
      if (!isStoreError(error)) log.warn("progress not recorded", { error });
    });
  }

  async #conclude(outcome: Outcome): Promise<void> {
    const { store, clock, log, absences } = this.#options;
    const [task, claim] = [this.#task, this.#claim];
    if (task === undefined || claim === undefined) return;
    const isStopped = this.#stopReason instanceof ShuttingDown;
    const isAbsent = outcome.ending === "failed" && outcome.error instanceof NotLoaded;
    if (!isAbsent) absences?.forget(task.taskId);
    // Nothing of it has run, so giving it back is safe for any command.
    else if (isStopped || absences?.mayWait(task) === true) {
      await store.giveBack(claim, clock.now(), absentMessage(task.command));
      return;
    }
    if (isStopped && outcome.ending !== "completed") {
      if (task.rules.isSafe) await store.giveBack(claim, clock.now());
      else await store.settle(claim, interruptedOutcome(false, 1), clock.now());
      return;
    }
    if (outcome.ending === "failed" && outcome.cause === "crash") {
      await this.#afterCrash(outcome.message, task, claim);
      return;
    }
    const final = toTaskOutcome(outcome, task.command);
    const again = retryAt(task, final, clock.now());
    if (again !== undefined && final.ending === "failed") {
      const seconds = Math.round((again - clock.now()) / 1000);
      await store.retryLater(claim, again, `Attempt ${task.attempts} failed (${final.message}); trying again in ${seconds} s.`, clock.now());
      return;
    }
    failpoint("before-settle");
    const isSettled = await this.#settle(task, final);
    failpoint("after-settle");
    if (!isSettled) log.debug("a late result was refused", { command: task.command, fence: claim.fence });
    else if (final.ending === "completed") this.#remember(outcome);
  }

  /** Where the record is gone for good nobody can ever read it there, so it is told from memory without one. */
  async #settle(task: Task, outcome: TaskOutcome): Promise<boolean> {
    const { store, clock, ended } = this.#options;
    const { taskId, fence } = task;
    const now = clock.now();
    const settled = apply(task, { type: "settle", fence, outcome }, now);
    const remember = () => void (settled.ok && isTerminal(settled.task) && ended?.keep(settled.task));
    try {
      const isSettled = await store.settle({ taskId, fence }, outcome, now);
      if (isSettled) remember();
      return isSettled;
    } catch (error) {
      if (isStoreError(error) && error.code === "STORE_GONE") remember();
      throw error;
    }
  }

  /** How long it took counts for the next estimate. */
  #remember(outcome: Outcome): void {
    const entry = this.#entry;
    const { home, config, history } = this.#options;
    if (entry === undefined || outcome.ending !== "completed") return;
    // The time that a person took to answer is not the command's.
    const ms = Math.max(0, outcome.durationMs - this.#waitedMs);
    history.add(entry.toolName, ms, authorsEstimate(entry.command, this.#input, { home, config, origin: this.#from.origin }));
  }

  /** The child process died, not we, and nothing else ran in it: a failed attempt, of which a safe command has three at least. */
  async #afterCrash(message: string, task: Task, claim: Claim): Promise<void> {
    const { store, clock } = this.#options;
    const { rules, attempts } = task;
    const mayRunAgain = rules.isSafe && attempts < Math.max(maxOwnCrashes, rules.maxAttempts);
    if (mayRunAgain) await store.retryLater(claim, clock.now(), `${message} Running it again.`, clock.now());
    else
      await store.settle(
        claim,
        crashedOutcome(
          rules.isSafe ? `${message} Given up after ${attempts} attempts.` : `${message} Outcome unknown: running it again might do its work twice.`,
        ),
        clock.now(),
      );
  }
}

/** What a command is refused for want of the store ends in its result, which its client reads: no path may stand there. */
async function forCommands<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw isStoreError(error) && error.forClients !== undefined ? new CommandError(error.forClients, { cause: error }) : error;
  }
}
