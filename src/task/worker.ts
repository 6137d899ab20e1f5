import { type Clock, sleep } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Door, Steps } from "../command/context.ts";
import { type Outcome, type RunOptions, runCommand } from "../command/run.ts";
import { Cancelled, CommandError, messageOf, ShuttingDown } from "../errors.ts";
import { failpoint } from "../failpoint.ts";
import type { Logger } from "../log.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { authorsEstimate, type History } from "./history.ts";
import { Inputs } from "./inputs.ts";
import { checkStorable } from "./limits.ts";
import { ProgressTrack, type ProgressUpdate } from "./progress.ts";
import { retryAt } from "./retry.ts";
import type { Claim, TaskStore } from "./store.ts";
import { isTerminal, maxCrashes, type Task, type TaskOutcome, type TaskProgress } from "./task.ts";
import { interruptedOutcome } from "./transitions.ts";

export interface WorkerOptions {
  readonly store: TaskStore;
  readonly dispatcher: Dispatcher;
  readonly history: History;
  readonly find: (command: string) => CatalogEntry | undefined;
  readonly clock: Clock;
  readonly log: Logger;
  readonly project: string;
  /** Names this process, so that others can tell whether it lives. */
  readonly worker: string;
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
  readonly leaseMs?: number;
  readonly concurrency?: number;
  /** Only this task, whatever else is queued. */
  readonly taskId?: string;
  /** Runs an attempt in a child process; absent where there can be none. */
  readonly runIsolated?: (entry: CatalogEntry, input: unknown, options: RunOptions) => Promise<Outcome>;
}

/** A second of silence is long enough to look again for retries that have become due. */
const pollMs = 1_000;
/** A store that fails is asked again after this long. */
const insistMs = 1_000;
/** How often a running task's progress is written. */
const reportMs = 200;
export const defaultLeaseMs = 30_000;
const defaultDrainMs = 25_000;

/** Claims → runs → settles, as many at a time as it may; starts and stops. */
export class Worker {
  readonly #options: WorkerOptions;
  readonly #leaseMs: number;
  readonly #running = new Set<Attempt>();
  #isStarted = false;
  #isPumping = false;
  #pumped: Promise<void> = Promise.resolve();
  #wantsMore = false;
  #stopListening: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  #stopHeartbeat: (() => void | Promise<void>) | undefined;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: WorkerOptions) {
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? defaultLeaseMs;
  }

  get running(): number {
    return this.#running.size;
  }

  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#stopListening = this.#options.dispatcher.onWork(() => this.#wake());
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
    if (!wasStarted) await this.stop();
  }

  /** Takes nothing more, waits for what runs, then gives the rest back. Harmless when never started, or twice. */
  async stop(drainMs = defaultDrainMs): Promise<void> {
    this.#isStarted = false;
    this.#stopListening?.();
    this.#cancelPoll?.();
    // A claim that is just being made is ours to finish too.
    await this.#pumped;
    const attempts = [...this.#running];
    const ended = Promise.all(attempts.map((attempt) => attempt.ended));
    const cancelDrain = this.#options.clock.after(drainMs, () => {
      for (const attempt of attempts) attempt.stop(new ShuttingDown());
    });
    await ended;
    cancelDrain();
    await this.#stopHeartbeat?.();
    this.#stopHeartbeat = undefined;
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
        while (this.#isStarted && this.#running.size < (this.#options.concurrency ?? 16) && (await this.#takeOne()));
      }
    } catch (error) {
      this.#options.log.error("claiming tasks failed; trying again in a second", { error });
    } finally {
      this.#isPumping = false;
    }
    if (this.#running.size === 0 && !this.#wantsMore) this.#idle?.resolve();
    if (this.#running.size === 0 && !this.#wantsMore) this.#idle = undefined;
    if (this.#wantsMore) this.#wake();
  }

  async #takeOne(): Promise<boolean> {
    const { dispatcher, project, worker, clock, taskId } = this.#options;
    const task = await dispatcher.next({ project, worker, leaseMs: this.#leaseMs, now: clock.now(), ...(taskId !== undefined && { taskId }) });
    if (task === undefined) return false;
    failpoint("after-claim");
    this.#stopHeartbeat ??= this.#options.store.keepLeases(worker, this.#leaseMs, this.#leaseMs / 3);
    const attempt = new Attempt(this.#options, task);
    this.#running.add(attempt);
    void attempt.ended.then(() => {
      this.#running.delete(attempt);
      this.#wake();
    });
    return true;
  }
}

/** One attempt of one task, under one fence. */
class Attempt {
  readonly #options: WorkerOptions;
  readonly #task: Task;
  readonly #claim: Claim;
  readonly #stop = new AbortController();
  readonly ended: Promise<void>;

  constructor(options: WorkerOptions, task: Task) {
    this.#options = options;
    this.#task = task;
    this.#claim = { taskId: task.taskId, fence: task.fence };
    this.ended = this.#run().catch((error: unknown) => options.log.error("an attempt could not be recorded; its lease will run out", { error }));
  }

  stop(reason: Error): void {
    this.#stop.abort(reason);
  }

  async #run(): Promise<void> {
    const { store, find, clock } = this.#options;
    const entry = find(this.#task.command);
    if (entry === undefined) {
      const message = `The command ${this.#task.command} is no longer there.`;
      const outcome: TaskOutcome = { ending: "failed", cause: "command", message, messages: [], log: [], durationMs: 0 };
      await this.#insist(() => store.settle(this.#claim, outcome, clock.now()));
      return;
    }
    const stopWatching = store.onChange((changed) => {
      if (changed === undefined || changed === this.#task.taskId) void this.#look();
    });
    try {
      const kept = await this.#insist(() => store.steps(this.#task.taskId));
      const outcome = await this.#execute(entry, new Map(kept)).catch((error: unknown) => notRun(error));
      const isStopped = this.#stop.signal.reason instanceof ShuttingDown;
      await this.#insist(() => this.#conclude(entry, outcome, isStopped));
    } finally {
      stopWatching();
    }
  }

  /** Tries until the store takes it, or we are stopped: our heartbeat keeps the lease, so nobody else would ever end the task. */
  async #insist<T>(action: () => Promise<T>): Promise<T> {
    const { clock, log } = this.#options;
    for (;;) {
      const { aborted: isLast } = this.#stop.signal;
      try {
        return await action();
      } catch (error) {
        // What the store can never take is no reason to insist.
        const isHopeless = error instanceof TypeError || error instanceof RangeError;
        if (isLast || isHopeless) throw error;
        log.error("the store failed a running task; trying again in a second", { error });
        await sleep(clock, insistMs, this.#stop.signal).catch(() => undefined);
      }
    }
  }

  /** Notices a cancel, or that somebody else holds the task now. */
  async #look(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    const { store, clock } = this.#options;
    const task = await store.get({ caller: this.#task.caller, now: clock.now() }, this.#task.taskId).catch(() => this.#task);
    if (task === undefined || isTerminal(task)) this.stop(new Cancelled(task?.statusMessage ?? "The task is gone."));
    else if (task.fence !== this.#claim.fence || task.lease === undefined) this.stop(new Cancelled("The task was taken from this worker."));
  }

  async #execute(entry: CatalogEntry, kept: Map<string, string>): Promise<Outcome> {
    const { store, clock, home, config, isDebug, runIsolated } = this.#options;
    const steps: Steps = {
      get: (name) => kept.get(name),
      keep: async (name, json) => {
        checkStorable(json, `step ${name}`);
        if (!(await store.keepStep(this.#claim, name, json))) throw new Cancelled("The task is no longer ours.");
        kept.set(name, json);
      },
      all: () => [...kept],
    };
    const track = new ProgressTrack({ clock, intervalMs: reportMs, deliver: (update) => this.#report({ progress: toProgress(update) }) });
    const inputs = new Inputs(store, this.#claim, this.#task, () => clock.now());
    const door: Door = {
      announce: (text) => this.#report({ statusMessage: text }),
      progress: (report) => {
        failpoint("mid-run");
        track.report(report);
      },
      ask: (question, signal) => inputs.ask(question, signal),
    };
    const options: RunOptions = {
      name: entry.toolName,
      clock,
      home,
      config,
      isDebug,
      door,
      steps,
      attempt: this.#task.attempts + this.#task.crashes,
      signals: [this.#stop.signal],
    };
    const isIsolated = entry.command.isolation === "process" && runIsolated !== undefined;
    const outcome = isIsolated ? await runIsolated(entry, this.#task.input, options) : await runCommand(entry.command, this.#task.input, options);
    track.finish();
    return outcome;
  }

  #report(news: { progress?: TaskProgress; statusMessage?: string }): void {
    const { store, clock, log } = this.#options;
    // Progress is a courtesy: when it cannot be written the run goes on.
    store.report(this.#claim, news, clock.now()).catch((error: unknown) => log.warn("progress not recorded", { error }));
  }

  async #conclude(entry: CatalogEntry, outcome: Outcome, isStopped: boolean): Promise<void> {
    const { store, clock, log, history } = this.#options;
    if (isStopped && outcome.ending !== "completed") {
      if (this.#task.rules.isSafe) await store.giveBack(this.#claim, clock.now());
      else await store.settle(this.#claim, interruptedOutcome(false, 1), clock.now());
      return;
    }
    if (outcome.ending === "failed" && outcome.cause === "crash") {
      await this.#afterCrash(outcome.message);
      return;
    }
    const final = toTaskOutcome(outcome, entry.toolName);
    const again = retryAt(this.#task, final, clock.now());
    if (again !== undefined && final.ending === "failed") {
      const seconds = Math.round((again - clock.now()) / 1000);
      await store.retryLater(this.#claim, again, `Attempt ${this.#task.attempts} failed (${final.message}); trying again in ${seconds} s.`, clock.now());
      return;
    }
    failpoint("before-settle");
    const isSettled = await store.settle(this.#claim, final, clock.now());
    failpoint("after-settle");
    if (!isSettled) log.debug("a late result was refused", { command: entry.toolName, fence: this.#claim.fence });
    else if (final.ending === "completed") history.add(entry.toolName, outcome.durationMs, authorsEstimate(entry.command, this.#task.input)?.work);
  }

  /** The child process died, not we: the same rules as for a dead worker, without waiting for a lease. */
  async #afterCrash(message: string): Promise<void> {
    const { store, clock } = this.#options;
    const { rules, attempts, crashes } = this.#task;
    const mayRunAgain = rules.isSafe && attempts + crashes < maxCrashes;
    if (mayRunAgain) await store.retryLater(this.#claim, clock.now(), `${message} Running it again.`, clock.now());
    else
      await store.settle(
        this.#claim,
        crashedOutcome(
          rules.isSafe ? `${message} Given up after ${attempts + crashes} attempts.` : `${message} Outcome unknown: running it again might do its work twice.`,
        ),
        clock.now(),
      );
  }
}

/** A run that failed outside the command, in our own code or for want of a process. */
function notRun(error: unknown): Outcome {
  return { ending: "failed", cause: "crash", message: `It could not be run: ${messageOf(error)}`, error, messages: [], log: [], durationMs: 0 };
}

function crashedOutcome(message: string): TaskOutcome {
  return { ending: "failed", cause: "interrupted", message, messages: [], log: [], durationMs: 0 };
}

function toProgress({ value, total, percentage, message, context }: ProgressUpdate): TaskProgress {
  return {
    value,
    ...(total !== undefined && { total }),
    ...(percentage !== undefined && { percentage }),
    ...(message !== undefined && { message }),
    ...(context !== undefined && { context }),
  };
}

/** An outcome as it is stored: neutral, without what only this process can hold. */
function toTaskOutcome(outcome: Outcome, name: string): TaskOutcome {
  const { messages, log, durationMs } = outcome;
  const facts = { messages, log, durationMs };
  if (outcome.ending === "cancelled") return { ending: "cancelled", message: outcome.message, ...facts };
  if (outcome.ending === "failed")
    return {
      ending: "failed",
      cause: outcome.cause === "shutdown" || outcome.cause === "crash" ? "interrupted" : outcome.cause,
      message: outcome.message,
      ...facts,
    };
  try {
    checkStorable(outcome.json, name);
  } catch (error) {
    const text = error instanceof CommandError ? error.message : messageOf(error);
    return { ending: "failed", cause: "output", message: text, ...facts };
  }
  return { ending: "completed", data: outcome.data, ...(outcome.content !== undefined && { content: outcome.content }), ...facts };
}
