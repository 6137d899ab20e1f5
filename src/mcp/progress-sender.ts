import type { Timing } from "../task/call-request.ts";
import { secondsLeft } from "../task/estimate.ts";
import { type ProgressUpdate, withoutDust } from "../task/progress.ts";
import { toWords } from "../task/status-line.ts";

/** SDK clients drop progress that arrives in one piece with the answer: leave this much between them. */
export const progressGapMs = 25;

/** Sends `notifications/progress` for one token: strictly rising, and silent once finished. */
export class ProgressSender {
  readonly #token: string | number | undefined;
  readonly #send: (params: Record<string, unknown>) => void;
  readonly #monotonic: () => number;
  readonly #related: Record<string, unknown>;
  #value = -1;
  #total: number | undefined;
  #isPast = false;
  #isFinished = false;
  lastSentAt = Number.NEGATIVE_INFINITY;

  constructor(options: {
    token: string | number | undefined;
    send: (params: Record<string, unknown>) => void;
    monotonic: () => number;
    /** Put into every notification's `_meta`. */
    related?: Record<string, unknown>;
  }) {
    this.#token = options.token;
    this.#send = options.send;
    this.#monotonic = options.monotonic;
    this.#related = options.related ?? {};
  }

  update(update: ProgressUpdate, timing: Timing): void {
    if (this.#token === undefined || this.#isFinished) return;
    const value = this.#raise(update);
    if (value !== undefined) this.#deliver(value, update, timing);
  }

  /** Shows that the run lives, when it has said nothing by itself. */
  beat(timing: Timing): void {
    const left = secondsLeft({
      elapsedMs: timing.elapsedMs,
      percentage: undefined,
      estimateSeconds: toSeconds(timing.estimateMs),
    });
    const expected = left === undefined || left < 1 ? "" : `, about ${toWords(left)} left`;
    const message = `Still running after ${toWords(timing.elapsedMs / 1000)}${expected}`;
    const update = { value: this.#value, total: this.#total, message, percentage: undefined, context: undefined };
    if (this.#token === undefined || this.#isFinished) return;
    const value = this.#raise(update) ?? this.#pass();
    this.#deliver(value, update, timing);
  }

  /** A run that has said "all of it" and goes on is still to be seen alive: from here on there is no total. */
  #pass(): number {
    this.#total = undefined;
    this.#isPast = true;
    this.#value = withoutDust(this.#value + 1e-6 * Math.max(1, this.#value));
    return this.#value;
  }

  /** Nothing is sent after this. */
  finish(): void {
    this.#isFinished = true;
  }

  /** A value that is not above the last one is raised by a millionth; undefined where there is no room left. */
  #raise({ value, total }: ProgressUpdate): number | undefined {
    if (!this.#isPast) this.#total = total ?? this.#total;
    const isFirst = this.#value < 0;
    const raised =
      value > this.#value
        ? value
        : isFirst
          ? 0
          : withoutDust(this.#value + 1e-6 * (this.#total ?? Math.max(1, this.#value)));
    if (!Number.isFinite(raised) || raised <= this.#value || (this.#total !== undefined && raised > this.#total))
      return undefined;
    this.#value = raised;
    return raised;
  }

  #deliver(value: number, { message, percentage, context }: ProgressUpdate, timing: Timing): void {
    const left = secondsLeft({
      elapsedMs: timing.elapsedMs,
      percentage,
      estimateSeconds: toSeconds(timing.estimateMs),
    });
    const details = {
      ...(percentage !== undefined && { percentage }),
      ...(left !== undefined && { etaSeconds: Math.round(left) }),
      ...(context !== undefined && { context }),
    };
    const _meta = { ...this.#related, ...(Object.keys(details).length > 0 && { "meanwhile/progress": details }) };
    this.lastSentAt = this.#monotonic();
    this.#send({
      progressToken: this.#token,
      progress: value,
      ...(this.#total !== undefined && { total: this.#total }),
      ...(message !== undefined && { message }),
      ...(Object.keys(_meta).length > 0 && { _meta }),
    });
  }
}

function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}
