import { existsSync, readFileSync, statSync } from "node:fs";
import type { Clock } from "../clock.ts";
import {
  addGivenUp,
  type GivenUp,
  type GivenUpCall,
  type LearnedLimit,
  type LearnedLimits,
  learnedLimitLivesMs,
  type Transport,
} from "../host/learned-limits.ts";
import type { Logger } from "../log.ts";
import { createGoneCheck, ensureHome, type Home, writePrivately } from "../paths.ts";
import { withLock } from "../system/lock-file.ts";
import { fieldsOf, numberOf } from "../wire/json.ts";

/** What was learned in a project, by host and transport. */
type LearnedOfProject = Record<string, Partial<Record<Transport, GivenUp>>>;
/** The file `hosts.json` of a home: what was learned, by project. */
type LearnedFile = Record<string, LearnedOfProject>;

export interface LearnedHost extends LearnedLimit {
  readonly host: string;
  readonly transport: Transport;
}

interface LearnedHostsOptions {
  readonly home: Home;
  readonly project: string;
  readonly clock: Clock;
  readonly log: Pick<Logger, "info" | "debug">;
}

/** What another process has learned, or forgotten, is seen after this time. */
const readAgainMs = 2_000;
/** Hosts that are kept for a project; beyond that the first ones go. */
const maxHosts = 100;
const maxNameChars = 200;
const transports = ["stdio", "http"] as const;

/** What was learned about hosts in one project, kept in a file of the home. */
export class LearnedHosts implements LearnedLimits {
  readonly #options: LearnedHostsOptions;
  readonly #isHomeGone: () => boolean;
  #known: LearnedOfProject = {};
  #readAt = Number.NEGATIVE_INFINITY;
  #changedAt: number | undefined;

  constructor(options: LearnedHostsOptions) {
    this.#options = options;
    this.#isHomeGone = createGoneCheck(options.home);
  }

  limitOf(host: string, transport: Transport): LearnedLimit | undefined {
    const { clock } = this.#options;
    if (clock.monotonic() - this.#readAt >= readAgainMs) this.#read();
    const limit = Object.hasOwn(this.#known, host) ? this.#known[host]?.[transport]?.learned : undefined;
    return limit === undefined || this.#isOver(limit) ? undefined : limit;
  }

  /** Never rejects. */
  async noteGivenUp(host: string, transport: Transport, calls: readonly GivenUpCall[]): Promise<void> {
    const { clock, log } = this.#options;
    if (host.length > maxNameChars) return;
    try {
      const learned = await this.#change((hosts) => {
        const { [host]: known = {}, ...others } = hosts;
        const before = known[transport] ?? { agesMs: [] };
        const after = addGivenUp(before, calls, clock.now());
        if (after === before || (after.agesMs.length === 0 && before.agesMs.length === 0)) return undefined;
        const kept = Object.entries(others).slice(1 - maxHosts);
        // A name that every object has must not be taken for what the object inherits.
        const changed = Object.fromEntries([...kept, [host, { ...known, [transport]: after }]]);
        return { hosts: changed, result: after.learned === before.learned ? undefined : after.learned };
      });
      if (learned !== undefined) log.info("learned how long a host waits", { host, transport, ms: learned.limitMs });
    } catch (error) {
      log.debug("how long a host waits could not be kept", { error });
    }
  }

  /** Everything that holds, by host. */
  list(): LearnedHost[] {
    this.#read();
    return Object.entries(this.#known).flatMap(([host, known]) =>
      transports.flatMap((transport) => {
        const limit = known[transport]?.learned;
        return limit === undefined || this.#isOver(limit) ? [] : [{ host, transport, ...limit }];
      }),
    );
  }

  /** Returns what was removed. Running servers see it after two seconds. */
  async forget(host: string): Promise<LearnedHost[]> {
    const removed = this.list().filter((learned) => learned.host === host);
    if (!existsSync(this.#options.home.hostsFile)) return removed;
    await this.#change((hosts) => {
      const { [host]: _gone, ...kept } = hosts;
      return Object.hasOwn(hosts, host) ? { hosts: kept, result: undefined } : undefined;
    });
    return removed;
  }

  /**
   * Reads the hosts of this project, and writes what `change` returns, while no other process does the same. Writes
   * nothing where `change` returns undefined, or the home was moved away.
   */
  async #change<T>(change: (hosts: LearnedOfProject) => { hosts: LearnedOfProject; result: T } | undefined) {
    if (this.#isHomeGone()) return undefined;
    const { home, clock } = this.#options;
    ensureHome(home);
    return await withLock(`${home.hostsFile}.lock`, clock, () => {
      const all = this.#readFile();
      const changed = change(Object.hasOwn(all, this.#project) ? (all[this.#project] ?? {}) : {});
      if (changed !== undefined) this.#write({ ...all, [this.#project]: changed.hosts });
      return changed?.result;
    });
  }

  get #project(): string {
    return this.#options.project;
  }

  #isOver({ since }: LearnedLimit): boolean {
    return this.#options.clock.now() - since > learnedLimitLivesMs;
  }

  #read(): void {
    this.#readAt = this.#options.clock.monotonic();
    const changedAt = statSync(this.#options.home.hostsFile, { throwIfNoEntry: false })?.mtimeMs;
    if (changedAt === this.#changedAt) return;
    this.#changedAt = changedAt;
    const all = this.#readFile();
    this.#known = Object.hasOwn(all, this.#project) ? (all[this.#project] ?? {}) : {};
  }

  #write(all: LearnedFile): void {
    writePrivately(this.#options.home.hostsFile, `${JSON.stringify(all, null, 2)}\n`);
    this.#changedAt = undefined;
    this.#read();
  }

  /** What is no record of ours is left out. */
  #readFile(): LearnedFile {
    let text: unknown;
    try {
      text = JSON.parse(readFileSync(this.#options.home.hostsFile, "utf8"));
    } catch {
      return {};
    }
    const map = <T>(value: unknown, read: (inner: unknown) => T) =>
      Object.fromEntries(Object.entries(fieldsOf(value)).map(([name, inner]) => [name, read(inner)]));
    return map(text, (hosts) =>
      map(hosts, (known) => {
        const { stdio, http } = fieldsOf(known);
        return {
          ...(stdio !== undefined && { stdio: toGivenUp(stdio) }),
          ...(http !== undefined && { http: toGivenUp(http) }),
        };
      }),
    );
  }
}

function toGivenUp(value: unknown): GivenUp {
  const { agesMs, learned } = fieldsOf(value);
  const ages = Array.isArray(agesMs) ? agesMs.filter((age): age is number => typeof age === "number") : [];
  const { limitMs, since } = fieldsOf(learned);
  const [limit, at] = [numberOf(limitMs), numberOf(since)];
  return {
    agesMs: ages,
    ...(limit !== undefined && limit > 0 && at !== undefined && { learned: { limitMs: limit, since: at } }),
  };
}
