import { type Clock, sleep } from "../clock.ts";
import { toCaller } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Door, Origin, Question, Steps } from "../command/context.ts";
import type { Outcome } from "../command/outcome.ts";
import { runWithRetries } from "../command/retries.ts";
import { type RunOptions, runCommand, type WaitingClient } from "../command/run.ts";
import { CommandError, isStoreError } from "../errors.ts";
import type { HostLimit } from "../host/profiles.ts";
import type { Logger } from "../log.ts";
import { authorsEstimate } from "./authors-estimate.ts";
import type { History } from "./history.ts";
import type { RunIsolated } from "./isolated/isolation.ts";
import { checkStorable } from "./limits.ts";
import { rulesOf } from "./retry.ts";
import { notRun, withSentence } from "./task-outcome.ts";

/** A question of a run that has no answer yet. */
export interface OpenQuestion {
  readonly message: string;
  /** The end of its time; absent where it has none. */
  readonly until?: number;
}

export interface RunnerOptions {
  readonly history: History;
  readonly clock: Clock;
  readonly log: Logger;
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
}

/** What a command is run with, and for whom. */
interface Subject {
  readonly input: unknown;
  readonly caller: string;
  readonly origin: Origin;
  /** What the host of a client that waits does with a slow call. */
  readonly limit?: HostLimit & { readonly host: string };
  /** When the request of that client arrived, on the monotonic clock. */
  readonly arrivedAt?: number | undefined;
  readonly progressToken?: string | number | undefined;
}

/** Where what a run says and does goes. */
interface RunTerms {
  readonly door: Door;
  readonly steps: Steps;
  readonly attempt: number;
  /** Runs it in a child process; undefined where it runs in this one. */
  readonly elsewhere: RunIsolated | undefined;
}

/** A store that fails is asked again after this long. */
const insistMs = 1_000;

/**
 * The runs of a command for one task or call: how they are stopped, whether they wait for a person, and what is
 * remembered of them.
 */
export class Runner {
  readonly #options: RunnerOptions;
  readonly #subject: Subject;
  #entry: CatalogEntry | undefined;
  #stopper: ((reason: Error) => void) | undefined;
  #stopReason: Error | undefined;
  #stopping: AbortController | undefined;
  readonly #asked = new Map<Question, { until: number | undefined }>();

  constructor(options: RunnerOptions, subject: Subject) {
    this.#options = options;
    this.#subject = subject;
  }

  /** At once where the command answers at once. Never rejects. */
  run(entry: CatalogEntry, { door, steps, attempt, elsewhere }: RunTerms): Outcome | Promise<Outcome> {
    this.#entry = entry;
    const { clock, home, config, isDebug } = this.#options;
    const { input, caller, origin } = this.#subject;
    const options: RunOptions = {
      name: entry.toolName,
      clock,
      home,
      config,
      caller: toCaller(caller, origin.client?.caller),
      origin,
      isDebug,
      door,
      steps,
      attempt,
      stoppers: this,
      waiting: this.#waiting,
    };
    if (elsewhere === undefined) return runCommand(entry.command, input, options);
    return elsewhere(entry, input, { ...options, signals: [this.#stopSignal] })
      .catch(notRun)
      .then((outcome) => {
        door.finish?.();
        return withSentence(outcome, clock.now());
      });
  }

  get #waiting(): WaitingClient | undefined {
    const { limit, arrivedAt, progressToken } = this.#subject;
    if (limit?.limitMs === undefined || arrivedAt === undefined) return undefined;
    const { host, limitMs, isExtended } = limit;
    return { host, limitMs, isExtended: isExtended && progressToken !== undefined, since: arrivedAt };
  }

  /** The same, and again after a failure as the command's `retry` says. `onRetry` hears of each failed attempt. */
  runWithRetries(
    entry: CatalogEntry,
    terms: Omit<RunTerms, "attempt">,
    onRetry: (why: string) => void | Promise<void>,
  ): Outcome | Promise<Outcome> {
    return runWithRetries({
      name: entry.toolName,
      rules: rulesOf(entry.command),
      clock: this.#options.clock,
      stopped: () => this.#stopSignal,
      run: (attempt) => this.run(entry, { ...terms, attempt }),
      onRetry,
    });
  }

  /** Called by the run: this ends it. */
  add(stop: (reason: Error) => void): void {
    this.#stopper = stop;
    if (this.#stopReason !== undefined) stop(this.#stopReason);
  }

  delete(): void {
    this.#stopper = undefined;
  }

  get stopReason(): Error | undefined {
    return this.#stopReason;
  }

  stop(reason: Error): void {
    this.#stopReason ??= reason;
    this.#stopper?.(reason);
    this.#stopping?.abort(reason);
  }

  get #stopSignal(): AbortSignal {
    this.#stopping ??= new AbortController();
    if (this.#stopReason !== undefined) this.#stopping.abort(this.#stopReason);
    return this.#stopping.signal;
  }

  /** True while it waits for a person. */
  get isWaiting(): boolean {
    return this.#asked.size > 0;
  }

  /** The questions that have no answer yet, and until when each can be answered. */
  get openQuestions(): readonly OpenQuestion[] {
    return [...this.#asked].map(([{ message }, { until }]) => ({ message, ...(until !== undefined && { until }) }));
  }

  /** Waits for a person's answer to a question. `answer` reports the end of the question's time once it is known. */
  async waitFor<T>(
    question: Question,
    answer: (onAsked: (until: number | undefined) => void) => Promise<T>,
  ): Promise<T> {
    const asked: { until: number | undefined } = { until: undefined };
    this.#asked.set(question, asked);
    try {
      return await answer((until) => {
        asked.until = until;
      });
    } finally {
      this.#asked.delete(question);
    }
  }

  /** How long it took counts for the next estimate; how long it blocked the event loop is shown. */
  remember(outcome: Outcome): void {
    if (this.#entry !== undefined && outcome.blockedMs !== undefined)
      this.#options.history.addBlock(this.#entry.toolName, outcome.blockedMs);
    if (outcome.ending !== "completed" || this.#entry === undefined) return;
    const { home, config, history } = this.#options;
    const { input, origin } = this.#subject;
    const { command, toolName } = this.#entry;
    const said = command.estimate === undefined ? undefined : authorsEstimate(command, input, { home, config, origin });
    history.add(toolName, outcome.durationMs, said);
  }

  /**
   * Tries until the store takes it, or we are stopped: our heartbeat keeps the lease, so nobody else would ever end the
   * task.
   */
  async insist<T>(action: () => Promise<T>): Promise<T> {
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
}

/** The steps of a run: those of earlier attempts, and those that it keeps itself. */
export class KeptSteps implements Steps {
  readonly #keep: Steps["keep"];
  #kept: Map<string, string> | undefined;

  constructor(keep: Steps["keep"], kept?: Map<string, string>) {
    this.#keep = keep;
    this.#kept = kept;
  }

  get(name: string): string | undefined {
    return this.#kept?.get(name);
  }

  async keep(name: string, json: string, rules?: { readonly isSafe: boolean }): Promise<void> {
    checkStorable(json, `step ${name}`);
    await this.#keep(name, json, rules);
    this.#kept ??= new Map();
    this.#kept.set(name, json);
  }

  all(): readonly (readonly [string, string])[] {
    return [...(this.#kept ?? [])];
  }
}

/**
 * What a command is refused for want of the store ends in its result, which its client reads: no path may stand there.
 */
export async function forCommands<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw isStoreError(error) && error.forClients !== undefined
      ? new CommandError(error.forClients, { cause: error })
      : error;
  }
}
