import { type Clock, within } from "../clock.ts";
import { type Budget, budgetOf, lastAnswerMs } from "../host/budget.ts";
import type { Logger } from "../log.ts";
import type { CallEnding, CallRequest } from "./call-request.ts";
import type { Decision } from "./deferral.ts";
import { inTwoTurns } from "./two-turns.ts";

interface AnswerDeadlineOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Max time that a call stays open, whatever its host allows. */
  readonly keepInlineMs: number;
}

/**
 * Waits for one step of a request until shortly before its host gives up; then returns what `late` returns or throws.
 * Waits as long as the step takes where the host has no hard limit.
 */
export async function withinHostLimit<T, L>(
  step: Promise<T>,
  request: { readonly clock: Clock; readonly arrivedAt: number; readonly budget: Budget },
  late: () => L,
): Promise<T | L> {
  const { clock, arrivedAt, budget } = request;
  const lastMs = lastAnswerMs(budget);
  if (lastMs === undefined) return await step;
  // Most steps need no more than a turn of the event loop, and no timer.
  const isSlow = new Promise<true>((resolve) => inTwoTurns(() => resolve(true)));
  const needsTimer = await Promise.race([step.then(() => false), isSlow]);
  return needsTimer ? await within(clock, lastMs - (clock.monotonic() - arrivedAt), step, late) : await step;
}

/** Whether a call has started, and what its client was told where it was answered late. */
type CallState = "notStarted" | "started" | "toldNotStarted" | "toldStarted";

/**
 * Ends one call as "unstored" shortly before its host gives up, if it has neither a result nor a handle by then: the
 * task store does not respond. A call that runs and could not be deferred waits for its result.
 */
export class AnswerDeadline {
  readonly #request: CallRequest;
  readonly #options: AnswerDeadlineOptions;
  #state: CallState = "notStarted";

  constructor(request: CallRequest, options: AnswerDeadlineOptions) {
    this.#request = request;
    this.#options = options;
  }

  /** The command runs, or its task is stored: from now on the call must not be repeated. */
  noteStart(): void {
    if (this.#state === "notStarted") this.#state = "started";
  }

  /** True if the client was told that its call has not started. */
  get wasRefused(): boolean {
    return this.#state === "toldNotStarted";
  }

  /** Waits for a step in the store before the command starts. Does not continue if that takes too long. */
  async beforeStart<T>(step: Promise<T>, next: (value: T) => CallEnding | Promise<CallEnding>): Promise<CallEnding> {
    const { clock } = this.#options;
    const { arrivedAt = clock.monotonic() } = this.#request;
    const known = step.then((value) => ({ value }));
    const ended = await withinHostLimit(known, { clock, arrivedAt, budget: this.#budget }, () => undefined);
    return ended === undefined ? this.#unstored() : await next(ended.value);
  }

  async guard(ending: Promise<CallEnding>, decision: Decision): Promise<CallEnding> {
    if (decision.kind === "inline" && decision.deferAs === undefined) return await ending;
    const { clock } = this.#options;
    const { arrivedAt = clock.monotonic() } = this.#request;
    const { handleAfterMs, graceMs } = this.#budget;
    if (graceMs === undefined) return await ending;
    const untilHandleMs = handleAfterMs - (clock.monotonic() - arrivedAt);
    // Two timers: the second one starts when the event loop is free, so that a handle can be stored after a long block.
    return await within(clock, untilHandleMs, ending, () => within(clock, graceMs, ending, () => this.#pass(ending)));
  }

  get #budget(): Budget {
    const { limit, progressToken } = this.#request;
    return budgetOf(limit, progressToken !== undefined, this.#options.keepInlineMs);
  }

  #pass(ending: Promise<CallEnding>): CallEnding {
    // The client gets an error now, so a result that comes later is kept as a task.
    ending.then(
      (late) => late.kind === "ended" && late.finish(false),
      (error: unknown) => this.#options.log.debug("a call failed after its client got an error", { error }),
    );
    return this.#unstored();
  }

  #unstored(): CallEnding {
    const hasStarted = this.#state === "started" || this.#state === "toldStarted";
    this.#state = hasStarted ? "toldStarted" : "toldNotStarted";
    return { kind: "unstored", hasStarted };
  }
}
