import type { Clock } from "../clock.ts";
import type { ProgressReport } from "../command/context.ts";
import { isTerminal, type Task, type TaskProgress } from "./task.ts";

/** One value on the wire: `value` grows strictly, `total` stays what the first report made it. */
export interface ProgressUpdate {
  readonly value: number;
  readonly total: number | undefined;
  readonly message: string | undefined;
  /** 0–100, when the end is known. */
  readonly percentage: number | undefined;
  readonly context: Readonly<Record<string, unknown>> | undefined;
}

export interface ProgressTrackOptions {
  readonly clock: Clock;
  readonly deliver: (update: ProgressUpdate) => void;
  /** At most one update in this time; the last one is never dropped. */
  readonly intervalMs?: number;
}

/** A report without a new number still has to raise the value: by this part of the total. */
const nudge = 1e-6;

/** Turns an author's reports into strictly increasing, rate-limited updates; the last value is always delivered. */
export class ProgressTrack {
  readonly #options: ProgressTrackOptions;
  readonly #intervalMs: number;
  #total: number | undefined;
  #hasScale = false;
  #value = 0;
  #deliveredValue = -1;
  #fraction: number | undefined;
  #message: string | undefined;
  #context: Readonly<Record<string, unknown>> | undefined;
  #lastDeliveryAt = Number.NEGATIVE_INFINITY;
  #cancelTimer: (() => void) | undefined;
  #isPending = false;
  #isFinished = false;

  constructor(options: ProgressTrackOptions) {
    this.#options = options;
    this.#intervalMs = options.intervalMs ?? 100;
  }

  report(report: ProgressReport): void {
    if (this.#isFinished) return;
    const isFirst = !this.#isPending && this.#deliveredValue < 0;
    const raised = this.#raise(report);
    const hasNews = report.message !== undefined && report.message !== this.#message;
    if (!raised && !hasNews && !isFirst) return;
    if (report.message !== undefined) this.#message = report.message;
    if (report.context !== undefined) this.#context = report.context;
    this.#isPending = true;
    this.#schedule();
  }

  /** Delivers what is left; nothing is sent after this. */
  finish(): void {
    if (this.#isFinished) return;
    this.#cancelTimer?.();
    this.#deliver();
    this.#isFinished = true;
  }

  #raise(report: ProgressReport): boolean {
    const fraction = this.#fractionOf(report);
    const value =
      fraction === undefined || this.#total === undefined
        ? report.done
        : Math.min(this.#total, withoutDust(fraction * this.#total));
    if (value === undefined || !Number.isFinite(value) || value <= this.#value)
      return value === 0 && this.#deliveredValue < 0;
    this.#value = value;
    if (fraction !== undefined) this.#fraction = fraction;
    return true;
  }

  /** The part that is done, 0–1; the first report with a number fixes the scale. */
  #fractionOf(report: ProgressReport): number | undefined {
    if (report.percentage !== undefined) {
      if (!Number.isFinite(report.percentage)) return undefined;
      this.#fixScale(100);
      return clamp(report.percentage / 100);
    }
    if (report.done === undefined || !Number.isFinite(report.done)) return undefined;
    const total =
      report.total !== undefined && Number.isFinite(report.total) && report.total > 0 ? report.total : undefined;
    this.#fixScale(total);
    if (total === undefined) return this.#total === undefined ? undefined : clamp(report.done / this.#total);
    return clamp(report.done / total);
  }

  #fixScale(total: number | undefined): void {
    if (this.#hasScale) return;
    this.#hasScale = true;
    this.#total = total;
  }

  #schedule(): void {
    if (this.#cancelTimer !== undefined) return;
    const waitMs = this.#lastDeliveryAt + this.#intervalMs - this.#options.clock.monotonic();
    if (waitMs <= 0) this.#deliver();
    else
      this.#cancelTimer = this.#options.clock.after(waitMs, () => {
        this.#cancelTimer = undefined;
        this.#deliver();
      });
  }

  #deliver(): void {
    if (!this.#isPending) return;
    this.#isPending = false;
    if (this.#value <= this.#deliveredValue) {
      const raised = withoutDust(this.#deliveredValue + nudge * (this.#total ?? Math.max(1, this.#deliveredValue)));
      // Past the end, or where numbers are too large to differ, there is no room left to say more.
      if (
        !Number.isFinite(raised) ||
        raised <= this.#deliveredValue ||
        (this.#total !== undefined && raised > this.#total)
      )
        return;
      this.#value = raised;
    }
    this.#deliveredValue = this.#value;
    this.#lastDeliveryAt = this.#options.clock.monotonic();
    this.#options.deliver({
      value: this.#value,
      total: this.#total,
      message: this.#message,
      percentage: this.#fraction === undefined ? undefined : Math.round(this.#fraction * 1000) / 10,
      context: this.#context,
    });
  }
}

/**
 * Reads a task's progress change by change; undefined when there is nothing new. The last value counts also when the
 * end comes with it.
 */
export class ProgressReader {
  #last: TaskProgress | undefined;

  /** Of a task that has ended before anybody looked there is nothing to follow. */
  constructor(begun: Task) {
    this.#last = isTerminal(begun) ? begun.progress : undefined;
  }

  next(task: Task): ProgressUpdate | undefined {
    const { progress } = task;
    if (progress === undefined) return undefined;
    const isKnown =
      this.#last !== undefined && this.#last.value === progress.value && this.#last.message === progress.message;
    if (isKnown) return undefined;
    this.#last = progress;
    const { value, total, message, percentage, context } = progress;
    return { value, total, message, percentage, context };
  }
}

/** Without what calculating with fractions leaves behind: 110, not 109.99999999999999. */
export function withoutDust(value: number): number {
  return Number(value.toPrecision(15));
}

function clamp(fraction: number): number {
  return Math.min(1, Math.max(0, fraction));
}
