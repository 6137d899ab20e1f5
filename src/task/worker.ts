import { nextTurn, within } from "../clock.ts";
import { ownArguments } from "../command/aliases.ts";
import { isReadableKey } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import { isStoreError, ShuttingDown } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import { thisProgram } from "../program/program.ts";
import { Absences } from "./absence.ts";
import { Attempt, type QuestionAtRisk } from "./attempt.ts";
import type { CallRequest } from "./call-request.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { type CallTerms, HeldCall, type HeldCallOptions } from "./held-call.ts";
import { Leaving } from "./leaving.ts";
import { Paced } from "./paced.ts";
import type { Task } from "./task.ts";
import { type Occupant, WorkerPlaces } from "./worker-places.ts";

export interface WorkerOptions extends Omit<HeldCallOptions, "leaseMs" | "onClaim" | "records" | "absences"> {
  readonly dispatcher: Dispatcher;
  readonly find: (command: string) => CatalogEntry | undefined;
  /** Awaited before `find`. Default: every command is loaded. */
  readonly load?: (command: string) => Promise<void> | undefined;
  readonly leaseMs?: number;
  readonly concurrency?: number | undefined;
  /** False for a process that answers clients and leaves all work to others. */
  readonly worksHere?: boolean;
  /** Begins when this worker is told to stop; shared with the engine, whose callers wait here. */
  readonly leaving?: Leaving;
}

/** A second of silence is long enough to look again for retries that have become due. */
const pollMs = 1_000;
const defaultLeaseMs = 30_000;
const defaultGraceMs = 25_000;
const minCheckMs = 1_000;
/**
 * So many calls are put on record, or made tasks, in one turn of the event loop: each is a write of its own, and its
 * result may be large.
 */
const recordsATurn = 1;
/**
 * A client that does not take its answer keeps its own run from beginning for no longer, and others' for hardly any
 * time.
 */
const maxOwnDeliveryMs = 10_000;
const maxDeliveryMs = 100;

/** A place for a task that is about to be made here. */
export interface KeptPlace {
  /** The right under which it is made. */
  readonly claim: { readonly worker: string; readonly leaseMs: number };
  /** It is made, and begins. */
  begin(task: Task): void;
  /** Nothing came of it. Harmless afterwards. */
  giveBack(): void;
}

/** Claims → runs → settles, as many at a time as it may; starts and stops. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #leaseMs: number;
  readonly #attempts: HeldCallOptions;
  readonly #places: WorkerPlaces;
  readonly #running = new Map<Attempt, Task>();
  readonly #absences: Absences;
  /** IDs of tasks whose callers this version does not know. */
  readonly #refused = new Set<string>();
  readonly #calls = new Set<HeldCall>();
  /** Tasks that are being made under this worker's claim, and begin as soon as they are there. */
  readonly #making = new Set<Promise<unknown>>();
  /** Ids of tasks that are on their way to their clients. */
  readonly #deliveries = new Map<string, { readonly own: Promise<void>; readonly others: Promise<void> }>();
  #begun: Promise<unknown> = Promise.resolve();
  readonly #leaving: Leaving;
  #isStarted = false;
  #isPumping = false;
  #pumped: Promise<void> = Promise.resolve();
  #wantsMore = false;
  /** When it last looked nothing waited, whoever's, and nobody has said otherwise since. */
  #isDry = false;
  /** How often somebody has said that there is work. */
  #heard = 0;
  #stopListening: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  #stopHeartbeat: (() => void | Promise<void>) | undefined;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#leaving = options.leaving ?? new Leaving();
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs;
    // Who waits for a person needs no place.
    const busy = () => [...this.#running].flatMap(([attempt, task]) => (attempt.isWaiting ? [] : [task]));
    this.#places = new WorkerPlaces(options.concurrency, busy);
    this.#absences = new Absences(options.clock, options.find);
    const hooks = { onClaim: () => this.#keepLeases(), onWaiting: () => this.#wake() };
    this.#attempts = {
      ...options,
      leaseMs: this.#leaseMs,
      records: new Paced(recordsATurn),
      absences: this.#absences,
      ...hooks,
    };
  }

  get name(): string {
    return this.#options.worker;
  }

  /** The right under which a task is made that this worker runs. */
  get claim(): { readonly worker: string; readonly leaseMs: number } {
    return { worker: this.name, leaseMs: this.#leaseMs };
  }

  /** False where a command is run elsewhere. What belongs to somebody else's server is run where its connection is. */
  runs({ command }: CatalogEntry): boolean {
    return this.takesWork || command.foreign !== undefined;
  }

  /** False where what is queued is left to others. */
  get takesWork(): boolean {
    return this.#options.worksHere !== false;
  }

  /** Makes a task that may begin here: who stops meanwhile waits for it, and lets it go in good order. */
  making<T>(make: () => Promise<T>): Promise<T> {
    const made = make().finally(() => this.#making.delete(made));
    this.#making.add(made);
    return made;
  }

  /** What it works on right now: calls that somebody waits for, and tasks, whoever began them. */
  get running(): { readonly calls: number; readonly tasks: number } {
    const attempts = this.#all();
    const tasks = attempts.filter(({ isTask }) => isTask).length;
    return { calls: attempts.length - tasks, tasks };
  }

  /** The open questions of its runs that must not be repeated. */
  get questionsAtRisk(): readonly QuestionAtRisk[] {
    return this.#all().flatMap((attempt) => attempt.questionsAtRisk);
  }

  /**
   * Runs a call under this worker's name, so that it can become a task without starting again. Works without `start`.
   */
  runCall(request: CallRequest, terms: CallTerms): HeldCall {
    return new HeldCall(this.#attempts, request, terms);
  }

  /** A call that did not end at once: it is stopped with the worker, and put on record after a moment. */
  holdCall(call: HeldCall, onEvent: Parameters<HeldCall["hold"]>[0]): void {
    call.hold(onEvent);
    if (this.isStopped) call.leave();
    this.#calls.add(call);
    void call.ended.then(() => this.#calls.delete(call));
  }

  /**
   * A task is about to be made, and its id has yet to reach its client. The first lines of a run may block this
   * process, so it does not begin before.
   */
  awaitDelivery(taskId: string, delivered: Promise<void>): void {
    const { clock } = this.#options;
    const forget = delivered.finally(() => this.#deliveries.delete(taskId));
    this.#deliveries.set(taskId, {
      own: within(clock, maxOwnDeliveryMs, forget),
      others: within(clock, maxDeliveryMs, forget),
    });
  }

  /**
   * Keeps a place for a task that is about to be made, so that it is made and claimed in one: undefined where it has to
   * wait in the queue, for a place or behind others.
   */
  keepPlace(occupant: Occupant): KeptPlace | undefined {
    const isFree = this.#isDry || (!occupant.isEndless && this.#places.isRoomy);
    const giveBack = this.#isStarted && isFree ? this.#places.keep(occupant) : undefined;
    if (giveBack === undefined) return undefined;
    return {
      claim: this.claim,
      begin: (task) => {
        giveBack();
        this.#places.serve(task.caller);
        this.#begin(task);
      },
      giveBack,
    };
  }

  /** Runs a task that was made under this worker's claim. */
  runClaimed(task: Task): void {
    this.#begin(task);
  }

  start(): void {
    if (this.#isStarted || this.isStopped || !this.takesWork) return;
    this.#isStarted = true;
    this.#stopListening = this.#options.dispatcher.onWork(() => {
      this.#isDry = false;
      this.#heard += 1;
      this.#wake();
    });
    this.#poll();
    this.#wake();
  }

  /** Runs what there is and resolves once nothing is left to do right now. */
  async runUntilIdle(): Promise<void> {
    const wasStarted = this.#isStarted;
    this.start();
    this.#idle ??= Promise.withResolvers<void>();
    this.#wake();
    await this.#idle.promise;
    if (!wasStarted) await this.#halt(defaultGraceMs);
  }

  /** True once it was told to stop: from then on it starts nothing. */
  get isStopped(): boolean {
    return this.#leaving.signal.aborted;
  }

  /** Calls back when it is told to stop, unless it was. */
  onLeaving(listener: () => void): () => void {
    return this.#leaving.onBegin(listener);
  }

  /**
   * Takes nothing more. Calls are handed out, what is safe to run again is given back at once, and the rest has this
   * long to end. For good; harmless when never started, or twice. With `keepQuestions`, runs that wait for a person stay
   * until they have their answer, or until it is aborted, and have the same time afterwards. The abort
   * of `endNow` stops every run at once.
   */
  async stop(graceMs = defaultGraceMs, keepQuestions?: AbortSignal, endNow?: AbortSignal): Promise<void> {
    this.#leaving.begin();
    await this.#halt(graceMs, keepQuestions, endNow);
  }

  /**
   * Ends as in a crash, for a server that a test kills in its own process: stops every run and the renewal of leases,
   * and waits for nothing. The store must be severed first, or runs would still be settled.
   */
  async kill(): Promise<void> {
    this.#leaving.begin();
    this.#isStarted = false;
    this.#stopListening?.();
    this.#cancelPoll?.();
    for (const attempt of this.#all()) attempt.stop(new ShuttingDown());
    await this.#stopHeartbeat?.();
  }

  async #halt(graceMs: number, keepQuestions?: AbortSignal, endNow?: AbortSignal): Promise<void> {
    this.#isStarted = false;
    this.#stopListening?.();
    this.#cancelPoll?.();
    for (const attempt of this.#all()) attempt.leave();
    // A claim that is just being made is ours to finish too, and so is a task.
    await this.#pumped;
    while (this.#making.size > 0) await Promise.allSettled(this.#making);
    // And a call that has just begun is held within two turns.
    await nextTurn();
    await nextTurn();
    for (const attempt of this.#all()) attempt.leave();
    const cancelGrace = this.#stopAfter(graceMs, keepQuestions);
    const cancelNow = onAbort(endNow, () => this.#stopRuns());
    while (this.#all().length > 0) await Promise.all(this.#all().map((attempt) => attempt.ended));
    cancelGrace();
    cancelNow();
    await this.#stopHeartbeat?.();
    this.#stopHeartbeat = undefined;
  }

  /**
   * Stops the runs after the grace period. While questions are kept, checks the runs once per period, and stops a run
   * that waited for a person neither at this check nor at the one before. The grace period begins anew at the abort of
   * `keepQuestions`, and then ends every run.
   */
  #stopAfter(graceMs: number, keepQuestions: AbortSignal | undefined): () => void {
    let cancel = () => {};
    const waiting = () => new Set(this.#all().filter((attempt) => attempt.isWaiting));
    const checkAfter = (ms: number, waitedBefore: ReadonlySet<Attempt | HeldCall>) => {
      cancel = this.#options.clock.after(ms, () => {
        const waitNow = waiting();
        this.#stopRuns((attempt) => waitNow.has(attempt) || waitedBefore.has(attempt));
        checkAfter(Math.max(graceMs, minCheckMs), waitNow);
      });
    };
    const stopAllAfterGrace = () => {
      cancel();
      cancel = this.#options.clock.after(graceMs, () => this.#stopRuns());
    };
    if (keepQuestions === undefined) stopAllAfterGrace();
    else checkAfter(graceMs, waiting());
    const cancelAbort = onAbort(keepQuestions, stopAllAfterGrace);
    return () => {
      cancelAbort();
      cancel();
    };
  }

  #stopRuns(except: (attempt: Attempt | HeldCall) => boolean = () => false): void {
    for (const attempt of this.#all()) if (!except(attempt)) attempt.stop(new ShuttingDown());
  }

  #all(): (Attempt | HeldCall)[] {
    return [...this.#running.keys(), ...this.#calls];
  }

  #keepLeases(): void {
    this.#stopHeartbeat ??= this.#options.store.keepLeases(this.#options.worker, this.#leaseMs, this.#leaseMs / 3);
  }

  #poll(): void {
    this.#cancelPoll = this.#options.clock.after(pollMs, () => {
      this.#wake();
      this.#poll();
    });
  }

  #wake(): void {
    this.#wantsMore = true;
    if (!this.#isPumping && this.#isStarted) this.#pumped = this.#pump();
  }

  async #pump(): Promise<void> {
    this.#isPumping = true;
    try {
      while (this.#wantsMore && this.#isStarted) {
        this.#wantsMore = false;
        while (this.#isStarted && (await this.#takeOne()));
      }
    } catch (error) {
      // What is wrong with the store, the store has said.
      if (!isStoreError(error)) this.#options.log.error("claiming tasks failed; trying again in a second", { error });
    } finally {
      this.#isPumping = false;
    }
    if (this.#running.size === 0 && !this.#wantsMore) this.#idle?.resolve();
    if (this.#running.size === 0 && !this.#wantsMore) this.#idle = undefined;
    if (this.#wantsMore) this.#wake();
  }

  async #takeOne(): Promise<boolean> {
    const { dispatcher, project, environment, worker } = this.#options;
    const shares = this.#places.shares();
    dispatcher.setRoom(this.#places.hasRoom);
    if (shares === undefined) return false;
    const heard = this.#heard;
    const task = await dispatcher.next({
      project,
      ...(environment !== undefined && { environment: environment() }),
      worker,
      leaseMs: this.#leaseMs,
      except: [...this.#absences.held(), ...this.#refused],
      shares,
    });
    if (task === undefined) {
      if (shares.full.length === 0 && shares.fullOfEndless.length === 0 && heard === this.#heard) this.#isDry = true;
      return false;
    }
    this.#isDry = false;
    failpoint("after-claim");
    if (!isReadableKey(task.caller)) {
      await this.#refuse(task);
      return true;
    }
    this.#places.serve(task.caller);
    await this.#options.load?.(task.command);
    this.#begin(task);
    return true;
  }

  /** Leaves a task of a caller that only a later version knows to that version: here it would run as somebody else's. */
  async #refuse({ taskId, fence }: Task): Promise<void> {
    this.#refused.add(taskId);
    const { store, log } = this.#options;
    await store.giveBack(
      { taskId, fence },
      `Waits for a worker whose version of ${thisProgram.title} knows its caller.`,
    );
    log.warn(
      `The task ${taskId} is of a kind of caller that only a later version of ${thisProgram.title} knows, and is left to a worker of that version; update this one.`,
    );
  }

  /**
   * Undefined when it may at once. While ids are on their way to clients one run after the other begins, each a turn of
   * the event loop later, so that what has come meanwhile is read: it waits for its own id to arrive, and a moment for
   * the others.
   */
  #mayBegin(taskId: string): Promise<unknown> | undefined {
    if (this.#deliveries.size === 0) return undefined;
    const own = this.#deliveries.get(taskId)?.own;
    this.#begun = this.#begun
      .then(nextTurn)
      .then(() => Promise.all([...this.#deliveries.values()].map(({ others }) => others)));
    return Promise.all([this.#begun, own]);
  }

  #begin(task: Task): void {
    const entry = this.#options.find(task.command);
    const attempt = new Attempt(this.#attempts, {
      task: entry === undefined ? task : toOwnNames(task, entry),
      entry,
      mayBegin: this.#mayBegin(task.taskId),
    });
    this.#running.set(attempt, task);
    if (this.isStopped) attempt.leave();
    void attempt.ended.then(() => {
      this.#running.delete(attempt);
      this.#wake();
    });
  }
}

/** A task on record under a name that its command only still answers to has the arguments of that name. */
function toOwnNames(task: Task, entry: CatalogEntry): Task {
  if (task.command === entry.toolName) return task;
  try {
    return { ...task, input: ownArguments(entry, task.command, task.input) };
  } catch {
    // Its own check of the input says what is wrong.
    return task;
  }
}

/** Calls back at the abort, or at once after it. Returns the function that stops listening. */
function onAbort(signal: AbortSignal | undefined, listener: () => void): () => void {
  if (signal?.aborted === true) listener();
  else signal?.addEventListener("abort", listener, { once: true });
  return () => signal?.removeEventListener("abort", listener);
}
