import { type Clock, within } from "../clock.ts";
import { CommandError } from "../errors.ts";
import { budgetOf } from "../host/budget.ts";
import type { Logger } from "../log.ts";
import type { CallEnding, CallRequest } from "./call-request.ts";
import type { Decision } from "./deferral.ts";

interface AnswerDeadlinesOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Max time that a call stays open, whatever its host allows. */
  readonly keepInlineMs: number;
}

/**
 * Ends calls as "unstored" shortly before their hosts give up, if they have neither a result nor a handle by then: the
 * task store does not respond. Only for calls that could be deferred; the others wait for their result.
 */
export class AnswerDeadlines {
  readonly #options: AnswerDeadlinesOptions;
  readonly #started = new WeakSet<CallRequest>();
  readonly #passed = new WeakSet<CallRequest>();

  constructor(options: AnswerDeadlinesOptions) {
    this.#options = options;
  }

  noteStart(request: CallRequest): void {
    this.#started.add(request);
  }

  /** Throws if the client has already been told that its command was not started. */
  refuseIfPassed(request: CallRequest): void {
    if (this.#passed.has(request)) throw new CommandError(`${request.entry.toolName} was not started in time.`);
  }

  async guard(ending: Promise<CallEnding>, request: CallRequest, decision: Decision): Promise<CallEnding> {
    if (decision.kind === "inline" && decision.deferAs === undefined) return await ending;
    const { clock, keepInlineMs } = this.#options;
    const { limit, progressToken, arrivedAt = clock.monotonic() } = request;
    const { handleAfterMs, graceMs } = budgetOf(limit, progressToken !== undefined, keepInlineMs);
    if (graceMs === undefined) return await ending;
    const untilHandleMs = handleAfterMs - (clock.monotonic() - arrivedAt);
    // Two timers: the second one starts when the event loop is free, so that a handle can be stored after a long block.
    return await within(clock, untilHandleMs, ending, () =>
      within(clock, graceMs, ending, () => this.#pass(ending, request)),
    );
  }

  #pass(ending: Promise<CallEnding>, request: CallRequest): CallEnding {
    this.#passed.add(request);
    // The client gets an error now, so a result that comes later is kept as a task.
    ending.then(
      (late) => late.kind === "ended" && late.finish(false),
      (error: unknown) => this.#options.log.debug("a call failed after its client got an error", { error }),
    );
    return { kind: "unstored", hasStarted: this.#started.has(request) };
  }
}
