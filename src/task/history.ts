import type { Clock } from "../clock.ts";
import type { Command } from "../command/command.ts";
import { type CallFacts, type Origin, unknownOrigin } from "../command/context.ts";
import { validate } from "../command/schema.ts";
import { isStoreError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { bucketOf, quantile, quantiles, totalOf } from "./quantiles.ts";
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

/** One bucket of one kind, counted on as runs end. */
interface Counted extends DurationCount {
  count: number;
}

/** By kind and bucket, so that many runs of one length take no more room than one. */
type Counts = Map<number, Counted>;

/** What the store said about a command, and what this process has added since. */
interface Recent {
  readonly at: number;
  /** Undefined once it has answered. */
  asked: Promise<void> | undefined;
  rows: readonly DurationCount[];
  readonly own: Counts;
  /** Worked out from both, and how many runs have been added since. */
  summary: Summary | undefined;
  addedSince: number;
}

/** One command: each has its own, so that none costs more for there being many. */
interface OneCommand {
  /** What the store keeps it under. */
  readonly key: string;
  /** Not on its way to the store yet; and what is, and perhaps not there. */
  readonly pending: Counts;
  writing: readonly DurationCount[];
  recent: Recent | undefined;
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
  /** What is to be expected where the author says nothing: the same for every call. */
  readonly outlook: Outlook;
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
  readonly #commands = new Map<string, OneCommand>();
  #written: Promise<void> = Promise.resolve();
  #cancelFlush: (() => void) | undefined;

  /**
   * Of one project: commands of the same name in another are other commands. The settings are for the authors'
   * estimates.
   */
  constructor(store: TaskStore, clock: Clock, project = "", settings: HistorySettings = { home: "", config: {} }) {
    this.#store = store;
    this.#clock = clock;
    this.#settings = settings;
    this.#prefix = project === "" ? "" : `${project}/`;
  }

  /** Remembers a successful run, and how it compares with what its author said of it. */
  add(command: string, ms: number, said: AuthorsEstimate | undefined): void {
    const one = this.#of(command);
    this.#count(one, "time", ms);
    if (said?.work !== undefined) this.#count(one, "rate", ms / said.work);
    if (said?.ms !== undefined) this.#count(one, "scale", scaleOf(ms, said.ms));
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
    const changed = [...this.#commands.values()].filter(({ pending }) => pending.size > 0);
    for (const one of changed) {
      one.writing = [...one.pending.values()];
      one.pending.clear();
    }
    try {
      await this.#store.recordDurations(changed.flatMap(({ writing }) => writing));
    } catch (error) {
      for (const { pending, writing } of changed) for (const count of writing) addTo(pending, count);
      throw error;
    } finally {
      for (const one of changed) one.writing = [];
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

  /**
   * How long a command takes, once it has run often enough to say; of other processes' runs the last second may be
   * missing.
   */
  async known(name: string): Promise<KnownDurations | undefined> {
    return toKnown(await this.#summaryOf(name));
  }

  /**
   * What to expect of a run, from enough history, scaled by its size, else the author's word; at once where the answer
   * is at hand: most calls want it, and few have time to wait.
   */
  look(name: string, command: Command, input: unknown, origin: Origin = unknownOrigin): Outlook | Promise<Outlook> {
    const summary = this.#summaryOf(name);
    if (command.estimate === undefined)
      return summary instanceof Promise ? summary.then(({ outlook }) => outlook) : summary.outlook;
    const { home, config } = this.#settings;
    const said = () => authorsEstimate(command, input, { home, config, origin }, (odd) => this.#tellOnce(name, odd));
    return summary instanceof Promise ? summary.then((value) => toOutlook(value, said())) : toOutlook(summary, said());
  }

  #tellOnce(name: string, odd: string): void {
    if (this.#told.has(name)) return;
    this.#told.add(name);
    this.#settings.log?.warn(`${name}: ${odd}`);
  }

  /** What is known of every command that has run, as of now. */
  async stats(): Promise<CommandStats[]> {
    const all = (await this.#all()).filter((count) => count.command.startsWith(this.#prefix));
    return [...Map.groupBy(all, (count) => count.command.slice(this.#prefix.length))].map(([command, counts]) => ({
      command,
      ...toDurations(counts),
    }));
  }

  /** The same of every project in the store, each by its id. */
  async statsOfAll(): Promise<(CommandStats & { readonly project: string })[]> {
    const all = await this.#all();
    return [...Map.groupBy(all, ({ command }) => command)].map(([key, counts]) => {
      const at = key.indexOf("/");
      return { project: key.slice(0, Math.max(0, at)), command: key.slice(at + 1), ...toDurations(counts) };
    });
  }

  async #all(): Promise<DurationCount[]> {
    const own = [...this.#commands.values()].flatMap(unwritten);
    return [...(await this.#store.durations()), ...own];
  }

  #of(name: string): OneCommand {
    let one = this.#commands.get(name);
    if (one === undefined) {
      one = { key: this.#prefix + name, pending: new Map(), writing: [], recent: undefined };
      this.#commands.set(name, one);
    }
    return one;
  }

  /** A command in a few numbers; the store is asked at most once a second, however many calls want to know. */
  #summaryOf(name: string): Summary | Promise<Summary> {
    const one = this.#of(name);
    const recent = this.#recentOf(one) ?? this.#ask(one);
    return recent.asked === undefined ? summarize(recent) : recent.asked.then(() => summarize(recent));
  }

  #ask(one: OneCommand): Recent {
    const recent: Recent = {
      at: this.#clock.monotonic(),
      asked: undefined,
      rows: [],
      own: new Map(),
      summary: undefined,
      addedSince: 0,
    };
    for (const count of unwritten(one)) addTo(recent.own, count);
    recent.asked = this.#store.durations(one.key).then(
      (rows) => {
        recent.rows = rows;
        recent.asked = undefined;
      },
      (error: unknown) => {
        if (one.recent === recent) one.recent = undefined;
        // What is expected of a call is no reason to refuse it: without the store there is what this process has seen.
        if (!isStoreError(error)) throw error;
      },
    );
    one.recent = recent;
    return recent;
  }

  #recentOf({ recent }: OneCommand): Recent | undefined {
    return recent === undefined || this.#clock.monotonic() - recent.at < maxAgeMs ? recent : undefined;
  }

  #count(one: OneCommand, kind: DurationCount["kind"], value: number): void {
    const bucket = bucketOf(value);
    raise(one.pending, one.key, kind, bucket, 1);
    const recent = this.#recentOf(one);
    if (recent === undefined) return;
    raise(recent.own, one.key, kind, bucket, 1);
    recent.addedSince += 1;
  }
}

const kinds: readonly DurationCount["kind"][] = ["time", "rate", "scale"];

/**
 * By what an author's estimate has to be multiplied. Of a short run start-up is all there is to see, which says nothing
 * about a long one: a second on both sides makes it count for little.
 */
function scaleOf(ms: number, estimatedMs: number): number {
  return (ms + 1_000) / (estimatedMs + 1_000);
}

function addTo(counts: Counts, { command, kind, bucket, count }: DurationCount): void {
  raise(counts, command, kind, bucket, count);
}

/** One more run, most of the time: five words rather than an object for each. */
function raise(counts: Counts, command: string, kind: DurationCount["kind"], bucket: number, by: number): void {
  const key = kinds.length * bucket + kinds.indexOf(kind);
  const known = counts.get(key);
  if (known === undefined) counts.set(key, { command, kind, bucket, count: by });
  else known.count += by;
}

function unwritten({ writing, pending }: OneCommand): DurationCount[] {
  return [...writing, ...pending.values()];
}

function summarize(recent: Recent): Summary {
  if (recent.summary === undefined || recent.addedSince > recent.summary.runs * worthPart) {
    recent.summary = toSummary([...recent.rows, ...recent.own.values()]);
    recent.addedSince = 0;
  }
  return recent.summary;
}

function toKnown({ runs, p50Ms, p95Ms, p99Ms }: Summary): KnownDurations | undefined {
  return runs < enoughRuns ? undefined : { runs, p50Ms, p95Ms, p99Ms };
}

function toOutlook(summary: Omit<Summary, "outlook">, said: AuthorsEstimate | undefined): Outlook {
  const { runs, p95Ms } = summary;
  return {
    p95Ms: runs >= enoughRuns ? p95Ms : undefined,
    isEndless: said?.isEndless === true,
    ...estimateFrom(summary, said),
  };
}

/**
 * What the author says of this very input, corrected by what history knows of such words; without a word of the
 * author's, history alone.
 */
function estimateFrom(
  { runs, p50Ms, rateMs, scale }: Omit<Summary, "outlook">,
  said: AuthorsEstimate | undefined,
): Pick<Outlook, "estimateMs" | "isProven"> {
  if (said?.isEndless === true) return { estimateMs: undefined, isProven: false };
  if (said?.work !== undefined)
    return { estimateMs: rateMs === undefined ? undefined : rateMs * said.work, isProven: rateMs !== undefined };
  if (said?.ms !== undefined) return { estimateMs: said.ms * (scale ?? 1), isProven: scale !== undefined };
  const isKnown = runs >= enoughRuns;
  return { estimateMs: isKnown ? p50Ms : undefined, isProven: isKnown };
}

function toDurations(counts: readonly DurationCount[]): KnownDurations {
  const times = counts.filter((count) => count.kind === "time");
  const [p50Ms = 0, p95Ms = 0, p99Ms = 0] = quantiles(times, [0.5, 0.95, 0.99]);
  return { runs: totalOf(times), p50Ms, p95Ms, p99Ms };
}

function toSummary(counts: readonly DurationCount[]): Summary {
  const rates = counts.filter((count) => count.kind === "rate");
  const scales = counts.filter((count) => count.kind === "scale");
  const summary = {
    ...toDurations(counts),
    rateMs: totalOf(rates) < enoughRuns ? undefined : quantile(rates, 0.5),
    scale: totalOf(scales) < enoughRuns ? undefined : quantile(scales, 0.5),
  };
  return { ...summary, outlook: toOutlook(summary, undefined) };
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

/**
 * What the author says about a run's length: milliseconds, or a size. What is neither, or throws, says nothing; `onOdd`
 * hears what is wrong with it.
 */
export function authorsEstimate(
  command: Command,
  input: unknown,
  call: CallFacts,
  onOdd: (sentence: string) => void = () => {},
): AuthorsEstimate | undefined {
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
  onOdd(
    `\`estimate\` gave ${shown}, which is left out; it must give seconds from 0 to ${maxEstimateSeconds}, or { work } with a number above 0.`,
  );
  return undefined;
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === "number" && value >= 0 && value <= max;
}
