import type { Clock } from "../clock.ts";
import type { Command } from "../command/command.ts";
import { type CallFacts, type Origin, unknownOrigin } from "../command/context.ts";
import { isStoreError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { type AuthorsEstimate, authorsEstimate } from "./authors-estimate.ts";
import {
  type KnownDurations,
  type Outlook,
  type Summary,
  scaleWeight,
  toBlocks,
  toDurations,
  toKnown,
  toOutlook,
  toSummary,
} from "./outlook.ts";
import { bucketOf } from "./quantiles.ts";
import type { DurationCount, TaskStore } from "./store.ts";

export interface CommandStats extends KnownDurations {
  readonly command: string;
  /** How many runs blocked the event loop for more than a second. Absent where none did. */
  readonly blockedRuns?: number;
  readonly longestBlockMs?: number;
}

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
    if (said?.ms !== undefined) this.#count(one, "scale", ms / Math.max(said.ms, 1), scaleWeight(ms, said.ms));
    this.#flushLater();
  }

  /** Remembers a run that blocked the event loop. */
  addBlock(command: string, ms: number): void {
    this.#count(this.#of(command), "block", ms);
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
      ...toBlocks(counts),
    }));
  }

  /** The same of every project in the store, each by its id. */
  async statsOfAll(): Promise<(CommandStats & { readonly project: string })[]> {
    const all = await this.#all();
    return [...Map.groupBy(all, ({ command }) => command)].map(([key, counts]) => {
      const at = key.indexOf("/");
      return {
        project: key.slice(0, Math.max(0, at)),
        command: key.slice(at + 1),
        ...toDurations(counts),
        ...toBlocks(counts),
      };
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

  #count(one: OneCommand, kind: DurationCount["kind"], value: number, by = 1): void {
    const bucket = bucketOf(value);
    raise(one.pending, one.key, kind, bucket, by);
    const recent = this.#recentOf(one);
    if (recent === undefined) return;
    raise(recent.own, one.key, kind, bucket, by);
    recent.addedSince += 1;
  }
}

const kinds: readonly DurationCount["kind"][] = ["time", "rate", "scale", "block"];

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
