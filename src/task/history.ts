import type { Clock } from "../clock.ts";
import type { Command } from "../command/command.ts";
import { bucketOf, quantile, totalOf } from "./quantiles.ts";
import type { DurationCount, TaskStore } from "./store.ts";

export interface CommandStats {
  readonly command: string;
  readonly runs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** From this many runs on, history knows better than the author. */
const enoughRuns = 5;
const flushMs = 10_000;

/** How long commands took, kept in the store; what this process adds is written every ten seconds and at the end. */
export class History {
  readonly #store: TaskStore;
  readonly #clock: Clock;
  readonly #pending = new Map<string, DurationCount>();
  #cancelFlush: (() => void) | undefined;

  constructor(store: TaskStore, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Remembers a successful run. `work` is its size, when the command tells one. */
  add(command: string, ms: number, work: number | undefined): void {
    this.#count({ command, kind: "time", bucket: bucketOf(ms), count: 1 });
    if (work !== undefined && work > 0) this.#count({ command, kind: "rate", bucket: bucketOf(ms / work), count: 1 });
    this.#flushLater();
  }

  async flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    const counts = [...this.#pending.values()];
    this.#pending.clear();
    try {
      await this.#store.recordDurations(counts);
    } catch (error) {
      for (const count of counts) this.#count(count);
      throw error;
    }
  }

  /** Called by a timer, where an error would end the process: what could not be written is written with the next. */
  #flushLater(): void {
    this.#cancelFlush ??= this.#clock.after(flushMs, () => void this.flush().catch(() => this.#flushLater()));
  }

  /** Milliseconds a run will take: from enough history, scaled by its size, else the author's word. */
  async estimateMs(name: string, command: Command, input: unknown): Promise<number | undefined> {
    const said = authorsEstimate(command, input);
    const kind = said?.work === undefined ? "time" : "rate";
    const counts = (await this.#all(name)).filter((count) => count.kind === kind);
    const median = totalOf(counts) < enoughRuns ? undefined : quantile(counts, 0.5);
    if (median === undefined) return said?.ms;
    return kind === "rate" ? median * (said?.work ?? 1) : median;
  }

  /** What is known of every command that has run. */
  async stats(): Promise<CommandStats[]> {
    const byCommand = Map.groupBy(
      (await this.#all()).filter((count) => count.kind === "time"),
      (count) => count.command,
    );
    return [...byCommand].map(([command, counts]) => ({
      command,
      runs: totalOf(counts),
      p50Ms: quantile(counts, 0.5) ?? 0,
      p95Ms: quantile(counts, 0.95) ?? 0,
      p99Ms: quantile(counts, 0.99) ?? 0,
    }));
  }

  async #all(command?: string): Promise<DurationCount[]> {
    const pending = [...this.#pending.values()].filter((count) => command === undefined || count.command === command);
    return [...(await this.#store.durations(command)), ...pending];
  }

  #count(count: DurationCount): void {
    const key = `${count.command} ${count.kind} ${count.bucket}`;
    this.#pending.set(key, { ...count, count: count.count + (this.#pending.get(key)?.count ?? 0) });
  }
}

/** What the author says about a run's length: milliseconds, or a size. An estimate that throws says nothing. */
export function authorsEstimate(command: Command, input: unknown): { ms?: number; work?: number } | undefined {
  try {
    const said = command.estimate?.(input as never);
    if (typeof said === "number") return Number.isFinite(said) && said >= 0 ? { ms: said * 1000 } : undefined;
    return said !== undefined && Number.isFinite(said.work) && said.work > 0 ? { work: said.work } : undefined;
  } catch {
    return undefined; // An estimate is a courtesy: one that fails must not fail the call.
  }
}
