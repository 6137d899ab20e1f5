import type { Clock } from "../clock.ts";
import type { Command } from "../command/command.ts";
import { type CallFacts, type Origin, unknownOrigin } from "../command/context.ts";
import { validate } from "../command/schema.ts";
import { isStoreError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { bucketOf, quantile, totalOf } from "./quantiles.ts";
import type { DurationCount, TaskStore } from "./store.ts";

/** How long a command takes. */
export interface KnownDurations {
  readonly runs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

export interface CommandStats extends KnownDurations {
  readonly command: string;
}

/** From this many runs on, history knows better than the author. */
const enoughRuns = 5;
/** A command of which one run in twenty takes longer than this is better run as a task. */
const longMs = 10_000;
const flushMs = 10_000;
/** What the store said about a command is asked again after this. */
const maxAgeMs = 1_000;

/** Counts by command, kind and bucket, so that many runs of one length take no more room than one. */
type Counts = Map<string, Map<number, DurationCount>>;

/** What the store said about a command, and what this process has added since. */
interface Recent {
  readonly at: number;
  readonly rows: Promise<readonly DurationCount[]>;
  readonly own: Counts;
  /** Worked out from both, and how many runs have been added since. */
  summary?: Summary;
  addedSince: number;
}

/** What is to be expected of one call: each number only where there is enough to go by. */
export interface Outlook {
  readonly estimateMs: number | undefined;
  /** Runs have shown that such estimates hold: without that nobody is told how long it will still take. */
  readonly isProven: boolean;
  readonly p95Ms: number | undefined;
  /** Its author says that it never ends by itself. */
  readonly isEndless: boolean;
}

/** What is worked out of a command's counts. */
interface Summary extends KnownDurations {
  /** Milliseconds a unit of work, once there are enough runs to say. */
  readonly rateMs: number | undefined;
  /** By what the author's estimates were off, once there are enough runs to say. */
  readonly scale: number | undefined;
}

export interface AuthorsEstimate {
  readonly ms?: number;
  readonly work?: number;
  /** It never ends by itself. */
  readonly isEndless?: true;
}

/** Working it out again pays once this part of the runs is new. */
const worthPart = 0.05;

/** What an author's estimate may look at, and who hears of one that is none. */
export interface HistorySettings extends Omit<CallFacts, "origin"> {
  readonly log?: Pick<Logger, "warn">;
}

/** How long commands took, kept in the store; what this process adds is written every ten seconds and at the end. */
export class History {
  readonly #store: TaskStore;
  readonly #clock: Clock;
  readonly #prefix: string;
  readonly #settings: HistorySettings;
  /** Commands whose author has been told of an estimate that is none. */
  readonly #told = new Set<string>();
  readonly #recent = new Map<string, Recent>();
  readonly #pending: Counts = new Map();
  /** On its way to the store, and perhaps not there yet. */
  #writing: readonly DurationCount[] = [];
  #written: Promise<void> = Promise.resolve();
  #cancelFlush: (() => void) | undefined;

  /** Of one project: commands of the same name in another are other commands. The settings are for the authors' estimates. */
  constructor(store: TaskStore, clock: Clock, project = "", settings: HistorySettings = { home: "", config: {} }) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#prefix = project === "" ? "" : `${project}/`;
  }

  /** Remembers a successful run, and how it compares with what its author said of it. */
  add(command: string, ms: number, said: AuthorsEstimate | undefined): void {
    const key = this.#prefix + command;
    this.#add({ command: key, kind: "time", bucket: bucketOf(ms), count: 1 });
    if (said?.work !== undefined) this.#add({ command: key, kind: "rate", bucket: bucketOf(ms / said.work), count: 1 });
    if (said?.ms !== undefined) this.#add({ command: key, kind: "scale", bucket: bucketOf(scaleOf(ms, said.ms)), count: 1 });
    this.#flushLater();
  }

  /** Writes what was added; one write at a time, so that nothing is under way when the last has resolved. */
  flush(): Promise<void> {
    this.#cancelFlush?.();
    this.#cancelFlush = undefined;
    this.#written = this.#written.catch(() => undefined).then(() => this.#write());
    return this.#written;
  }

  async #write(): Promise<void> {
    this.#writing = [...allOf(this.#pending)];
    this.#pending.clear();
    try {
      await this.#store.recordDurations(this.#writing);
    } catch (error) {
      for (const count of this.#writing) addTo(this.#pending, count);
      throw error;
    } finally {
      this.#writing = [];
    }
  }

  /** Called by a timer, where an error would end the process: what could not be written is written with the next. */
  #flushLater(): void {
    this.#cancelFlush ??= this.#clock.after(flushMs, () => void this.flush().catch(() => this.#flushLater()));
  }

  /** Milliseconds a run will take. */
  async estimateMs(name: string, command: Command, input: unknown, origin?: Origin): Promise<number | undefined> {
    return (await this.look(name, command, input, origin)).estimateMs;
  }

  /** How long a command takes, once it has run often enough to say; of other processes' runs the last second may be missing. */
  async known(name: string): Promise<KnownDurations | undefined> {
    return toKnown(await this.#summaryOf(name));
  }

  /** What to expect of a run, from enough history, scaled by its size, else the author's word; at once where the answer is at hand: most calls want it, and few have time to wait. */
  look(name: string, command: Command, input: unknown, origin: Origin = unknownOrigin): Outlook | Promise<Outlook> {
    const summary = this.#summaryOf(name);
    const { home, config } = this.#settings;
    const onOdd = (odd: string) => this.#tellOnce(name, odd);
    const said = () => (command.estimate === undefined ? undefined : authorsEstimate(command, input, { home, config, origin }, onOdd));
    return summary instanceof Promise ? summary.then((value) => toOutlook(value, said())) : toOutlook(summary, said());
  }

  #tellOnce(name: string, odd: string): void {
    if (this.#told.has(name)) return;
    this.#told.add(name);
    this.#settings.log?.warn(`${name}: ${odd}`);
  }

  /** What is known of every command that has run, as of now. */
  async stats(): Promise<CommandStats[]> {
    const unwritten = this.#unwritten();
    const all = [...(await this.#store.durations()), ...unwritten].filter((count) => count.command.startsWith(this.#prefix));
    return [...Map.groupBy(all, (count) => count.command.slice(this.#prefix.length))].map(([command, counts]) => ({ command, ...toDurations(counts) }));
  }

  /** The same of every project in the store, each by its id. */
  async statsOfAll(): Promise<(CommandStats & { readonly project: string })[]> {
    const all = [...(await this.#store.durations()), ...this.#unwritten()];
    return [...Map.groupBy(all, ({ command }) => command)].map(([key, counts]) => {
      const at = key.indexOf("/");
      return { project: key.slice(0, Math.max(0, at)), command: key.slice(at + 1), ...toDurations(counts) };
    });
  }

  /** A command in a few numbers; the store is asked at most once a second, however many calls want to know. */
  #summaryOf(name: string): Summary | Promise<Summary> {
    const command = this.#prefix + name;
    let recent = this.#recentOf(command);
    if (recent === undefined) {
      const own: Counts = new Map();
      for (const count of this.#unwritten()) if (count.command === command) addTo(own, count);
      recent = { at: this.#clock.monotonic(), rows: this.#store.durations(command), own, addedSince: 0 };
      this.#recent.set(command, recent);
    }
    if (recent.summary !== undefined && recent.addedSince <= recent.summary.runs * worthPart) return recent.summary;
    return this.#summarize(command, recent);
  }

  async #summarize(command: string, recent: Recent): Promise<Summary> {
    try {
      const rows = await recent.rows;
      recent.summary = toSummary([...rows, ...allOf(recent.own)]);
      recent.addedSince = 0;
      return recent.summary;
    } catch (error) {
      if (this.#recent.get(command) === recent) this.#recent.delete(command);
      if (!isStoreError(error)) throw error;
      // What is expected of a call is no reason to refuse it: without the store there is what this process has seen.
      return toSummary([...allOf(recent.own)]);
    }
  }

  #recentOf(command: string): Recent | undefined {
    const recent = this.#recent.get(command);
    if (recent === undefined || this.#clock.monotonic() - recent.at < maxAgeMs) return recent;
    this.#recent.delete(command);
    return undefined;
  }

  #unwritten(): DurationCount[] {
    return [...this.#writing, ...allOf(this.#pending)];
  }

  #add(count: DurationCount): void {
    addTo(this.#pending, count);
    const recent = this.#recentOf(count.command);
    if (recent === undefined) return;
    addTo(recent.own, count);
    recent.addedSince += count.count;
  }
}

const kinds: readonly DurationCount["kind"][] = ["time", "rate", "scale"];

/**
 * By what an author's estimate has to be multiplied. Of a short run start-up is all there is to see, which says nothing about a long one: a
 * second on both sides makes it count for little.
 */
function scaleOf(ms: number, estimatedMs: number): number {
  return (ms + 1_000) / (estimatedMs + 1_000);
}

function addTo(counts: Counts, count: DurationCount): void {
  const buckets = counts.get(count.command) ?? new Map<number, DurationCount>();
  if (buckets.size === 0) counts.set(count.command, buckets);
  const key = kinds.length * count.bucket + kinds.indexOf(count.kind);
  const known = buckets.get(key);
  buckets.set(key, known === undefined ? count : { ...count, count: count.count + known.count });
}

function* allOf(counts: Counts): Generator<DurationCount> {
  for (const buckets of counts.values()) yield* buckets.values();
}

function toKnown({ runs, p50Ms, p95Ms, p99Ms }: Summary): KnownDurations | undefined {
  return runs < enoughRuns ? undefined : { runs, p50Ms, p95Ms, p99Ms };
}

function toOutlook(summary: Summary, said: AuthorsEstimate | undefined): Outlook {
  const { runs, p95Ms } = summary;
  return { p95Ms: runs >= enoughRuns ? p95Ms : undefined, isEndless: said?.isEndless === true, ...estimateFrom(summary, said) };
}

/** What the author says of this very input, corrected by what history knows of such words; without a word of the author's, history alone. */
function estimateFrom({ runs, p50Ms, rateMs, scale }: Summary, said: AuthorsEstimate | undefined): Pick<Outlook, "estimateMs" | "isProven"> {
  if (said?.isEndless === true) return { estimateMs: undefined, isProven: false };
  if (said?.work !== undefined) return { estimateMs: rateMs === undefined ? undefined : rateMs * said.work, isProven: rateMs !== undefined };
  if (said?.ms !== undefined) return { estimateMs: said.ms * (scale ?? 1), isProven: scale !== undefined };
  const isKnown = runs >= enoughRuns;
  return { estimateMs: isKnown ? p50Ms : undefined, isProven: isKnown };
}

function toDurations(counts: readonly DurationCount[]): KnownDurations {
  const times = counts.filter((count) => count.kind === "time");
  return { runs: totalOf(times), p50Ms: quantile(times, 0.5) ?? 0, p95Ms: quantile(times, 0.95) ?? 0, p99Ms: quantile(times, 0.99) ?? 0 };
}

function toSummary(counts: readonly DurationCount[]): Summary {
  const rates = counts.filter((count) => count.kind === "rate");
  const scales = counts.filter((count) => count.kind === "scale");
  return {
    ...toDurations(counts),
    rateMs: totalOf(rates) < enoughRuns ? undefined : quantile(rates, 0.5),
    scale: totalOf(scales) < enoughRuns ? undefined : quantile(scales, 0.5),
  };
}

/** True when a caller does better to run it as a task: its author says it is long, or its history does. */
export function isTaskModeRecommended(command: Pick<Command, "long">, known: KnownDurations | undefined): boolean {
  return command.long || (known !== undefined && known.runs >= enoughRuns && known.p95Ms > longMs);
}

/** The input as `run` gets it, where that can be told at once; what does not fit will be refused anyway. */
function parsed(command: Command, input: unknown): unknown {
  const checked = command.input === undefined ? undefined : validate(command.input, input ?? {});
  return checked === undefined || checked instanceof Promise || !checked.ok ? input : checked.value;
}

/** A year: nobody waits longer, and whoever says more has meant milliseconds, or divided by nothing. */
const maxEstimateSeconds = 31_536_000;

/** What the author says about a run's length: milliseconds, or a size. What is neither, or throws, says nothing; `onOdd` hears what is wrong with it. */
export function authorsEstimate(command: Command, input: unknown, call: CallFacts, onOdd: (sentence: string) => void = () => {}): AuthorsEstimate | undefined {
  let said: unknown;
  try {
    said = command.estimate?.(parsed(command, input) as never, call);
  } catch {
    return undefined; // An estimate is a courtesy: one that fails must not fail the call.
  }
  const { work } = (typeof said === "object" && said !== null ? said : {}) as { readonly work?: unknown };
  if (said === Number.POSITIVE_INFINITY) return { isEndless: true };
  if (said === undefined || work === 0) return undefined;
  if (isWithin(said, maxEstimateSeconds)) return { ms: said * 1000 };
  if (isWithin(work, Number.MAX_SAFE_INTEGER)) return { work };
  const shown = work === undefined ? String(said) : `{ work: ${String(work)} }`;
  onOdd(`\`estimate\` gave ${shown}, which is left out; it must give seconds from 0 to ${maxEstimateSeconds}, or { work } with a number above 0.`);
  return undefined;
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === "number" && value >= 0 && value <= max;
}
