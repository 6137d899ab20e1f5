import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { createRandom } from "../../chaos/random.ts";
import type { Message } from "../../helpers/wire.ts";
import { live, SoakClient } from "./clients.ts";
import { Ledger } from "./ledger.ts";
import { endsOf, look, type Measure, type Sample, slopeOf } from "./measure.ts";
import { Place } from "./places.ts";
import { type Kept, maxKeptBytes, repeatRequests } from "./repeat.ts";

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  /** Clients at a time, in each of the two homes. */
  readonly clients?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (line: string) => void;
}

export interface SoakReport {
  readonly seed: number;
  readonly minutes: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly promised: number;
  readonly lost: readonly string[];
  readonly double: readonly string[];
  readonly unanswered: readonly string[];
  /** Answers that were another's, came twice, or should have been none. */
  readonly wrong: readonly string[];
  /** What grew faster than it may; empty too where the run was too short to tell. */
  readonly growing: readonly string[];
  readonly table: string;
}

/** Until then everything that is made once is made. */
const warmUpSeconds = 180;
/** Slopes of a shorter run prove nothing. */
const judgedMinutes = 4;
const sampleMs = 5_000;
const drainMs = 120_000;
const silentMs = 20_000;
/** As many abandoned sessions as a caller may have: from then on each new one ends an old one. */
const mostSessions = 500;
/**
 * What is counted is flat when it grows by less than this in all: clients come and go, so it is never quite the same.
 * Heaps are judged by what requests leave in them when nothing else runs: by the hour a cache that fills looks like a
 * leak.
 */
const limits: Readonly<Partial<Record<Measure, { readonly inAll: number }>>> = {
  fds: { inAll: 5 },
  threads: { inAll: 2 },
};
const roughHeapMB = 400;

/**
 * Clients of three generations come, call, ask, vanish and are killed for so many minutes, in a home where nobody else
 * dies and in one whose daemon does.
 */
export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-soak-"));
  const run = new SoakRun(folder, options);
  try {
    return await run.run();
  } finally {
    await run.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

class SoakRun {
  readonly #options: SoakOptions;
  readonly #random: () => number;
  readonly #ledger = new Ledger();
  /** Its processes live from beginning to end, and are measured. */
  readonly #steady: Place;
  /** Its daemon is killed now and then. */
  readonly #mortal: Place;
  readonly #controls = new Map<Place, SoakClient>();
  readonly #samples = { daemon: [] as Sample[], http: [] as Sample[] };
  #startedAt = performance.now();
  #lives = 0;
  #isStopped = false;
  #kept: readonly Kept[] = [];

  constructor(folder: string, options: SoakOptions) {
    this.#options = options;
    this.#random = createRandom(options.seed);
    this.#steady = new Place(folder, "steady");
    this.#mortal = new Place(folder, "mortal");
  }

  async run(): Promise<SoakReport> {
    await this.#steady.serveHttp();
    for (const place of [this.#steady, this.#mortal]) this.#controls.set(place, await this.#connect(place, "stdio"));
    const http = await this.#connect(this.#steady, "http");
    if (this.#isJudged) await this.#fillSessions();
    this.#startedAt = performance.now();
    const { clients = 5 } = this.#options;
    const slots = [this.#steady, this.#mortal].flatMap((place) =>
      Array.from({ length: clients }, () => this.#keep(place)),
    );
    const going = [...slots, this.#killDaemons(), this.#abandonSessions(), this.#tidy(), this.#measure(http)];
    await Promise.all(going);
    await this.#drain();
    if (this.#isJudged) this.#kept = await repeatRequests(this.#steady);
    await Promise.all([...this.#controls.values(), http].map((client) => client.leave()));
    return this.#report();
  }

  async close(): Promise<void> {
    this.#isStopped = true;
    await Promise.all([this.#steady.close(), this.#mortal.close()]);
  }

  /** A short run proves nothing. */
  get #isJudged(): boolean {
    return this.#options.minutes >= judgedMinutes;
  }

  get #seconds(): number {
    return (performance.now() - this.#startedAt) / 1000;
  }

  readonly #isOver = (): boolean => {
    this.#options.signal?.throwIfAborted();
    return this.#isStopped || this.#seconds >= this.#options.minutes * 60;
  };

  async #connect(place: Place, door: "stdio" | "http"): Promise<SoakClient> {
    const client = new SoakClient(place.connect(door), this.#ledger, {
      revision: "2026-07-28",
      capabilities: {},
      name: `control of ${place.name}`,
    });
    await client.begin();
    await client.request("tools/list");
    return client;
  }

  /** One client after the other. */
  async #keep(place: Place): Promise<void> {
    while (!this.#isOver()) {
      const name = `${this.#options.seed}-${++this.#lives}`;
      const random = createRandom(this.#options.seed * 100_000 + this.#lives);
      await live({ place, ledger: this.#ledger, random, name, isOver: this.#isOver });
    }
  }

  async #killDaemons(): Promise<void> {
    // In a short run, too, one is killed.
    const leastMs = Math.min(12_000, (this.#options.minutes * 60_000) / 4);
    while (!this.#isOver()) {
      await this.#pause(leastMs * (1 + this.#random() * 1.6));
      if (this.#isOver()) return;
      this.#mortal.killDaemon();
      this.#ledger.count("daemons killed");
    }
  }

  /** Clients of 2025 that begin a session over HTTP, and are never heard of again. */
  async #abandonSessions(): Promise<void> {
    while (!this.#isOver()) {
      await this.#abandonSession();
      await this.#pause(2_000);
    }
  }

  async #abandonSession(): Promise<void> {
    const about = { revision: "2025-11-25", capabilities: {}, name: "abandoned" } as const;
    const client = new SoakClient(this.#steady.connect("http"), this.#ledger, about);
    await client.begin();
    client.vanish();
    this.#ledger.count("sessions abandoned");
  }

  /**
   * Sessions are kept for an hour, or until there are as many as there may be: only from then on nothing of them may
   * grow.
   */
  async #fillSessions(): Promise<void> {
    for (let n = 0; n < mostSessions; n += 10)
      await Promise.all(Array.from({ length: 10 }, () => this.#abandonSession()));
  }

  /** What nobody answers is cancelled after a while, as its person would. */
  async #tidy(): Promise<void> {
    while (!this.#isOver()) {
      await this.#pause(5_000);
      for (const place of [this.#steady, this.#mortal]) await this.#cancelSilent(place, silentMs);
    }
  }

  async #cancelSilent(place: Place, olderThanMs: number): Promise<void> {
    const silent = this.#tasksOf(place, "status = 'input_required' and created_at <= ?", Date.now() - olderThanMs);
    for (const taskId of silent) {
      const promised = this.#ledger.promised.get(taskId);
      if (promised !== undefined) promised.isCancelled = true;
      await (this.#controls.get(place) as SoakClient).call("task_cancel", { job_id: taskId });
    }
  }

  #tasksOf(place: Place, condition: string, ...values: number[]): string[] {
    const db = new Database(path.join(place.home, "tasks.db"), { readonly: true, timeout: 10_000 });
    try {
      return db
        .prepare(`select task_id from tasks where ${condition}`)
        .pluck()
        .all(...values) as string[];
    } finally {
      db.close();
    }
  }

  async #measure(http: SoakClient): Promise<void> {
    const control = this.#controls.get(this.#steady) as SoakClient;
    for (let n = 1; !this.#isOver(); n++) {
      await this.#pause(sampleMs);
      const daemon = await this.#sample(control, this.#samples.daemon);
      const server = await this.#sample(http, this.#samples.http);
      if (n % 6 !== 0) continue;
      const words = (sample: Sample | undefined) =>
        sample === undefined
          ? "?"
          : `heap ${sample.heapMB.toFixed(1)} MB, ${sample.fds} fds, ${sample.threads} threads`;
      this.#options.onProgress?.(
        `${Math.round(this.#seconds)} s: ${this.#lives} clients, ${this.#ledger.counts.get("requests")} requests; daemon ${words(daemon)}; HTTP ${words(server)}`,
      );
    }
  }

  async #sample(client: SoakClient, samples: Sample[]): Promise<Sample | undefined> {
    const answer: Message = await client.call("soak_memory", {});
    const data = answer.result?.structuredContent?.data as
      | { pid: number; heapUsed: number; external: number }
      | undefined;
    const seen = data === undefined ? undefined : look(data.pid);
    if (data === undefined || seen === undefined) {
      this.#ledger.wrong.push(`no sample: ${JSON.stringify(answer).slice(0, 300)}`);
      return undefined;
    }
    const sample = { atSeconds: this.#seconds, heapMB: (data.heapUsed + data.external) / 1e6, ...seen };
    samples.push(sample);
    return sample;
  }

  /** Everything that was begun ends. */
  async #drain(): Promise<void> {
    for (const place of [this.#steady, this.#mortal]) {
      const end = performance.now() + drainMs;
      while (this.#tasksOf(place, "finished_at is null").length > 0 && performance.now() < end) {
        await this.#cancelSilent(place, 0);
        await this.#pause(200);
      }
    }
  }

  async #pause(ms: number): Promise<void> {
    await wait(ms, undefined, { signal: this.#options.signal });
  }

  #report(): SoakReport {
    const { minutes, seed } = this.#options;
    const places = [this.#steady, this.#mortal];
    const rows = [...(["daemon", "http"] as const).flatMap((name) => this.#judge(name)), ...this.#kept.map(judgeKept)];
    return {
      seed,
      minutes,
      counts: this.#ledger.counts,
      promised: this.#ledger.promised.size,
      lost: this.#ledger.lost(),
      double: Ledger.double(places),
      unanswered: this.#ledger.unanswered,
      wrong: this.#ledger.wrong,
      growing: rows.flatMap(({ problem }) => problem ?? []),
      table: toTable(rows.map(({ cells }) => cells)),
    };
  }

  #judge(name: "daemon" | "http"): { readonly cells: readonly string[]; readonly problem?: string }[] {
    const isJudged = this.#isJudged;
    const all = this.#samples[name];
    const samples = isJudged ? all.filter(({ atSeconds }) => atSeconds >= warmUpSeconds) : all;
    const title = name === "daemon" ? "daemon" : "HTTP server";
    return (["heapMB", "rssMB", "fds", "threads"] as const).map((measure) => {
      const [first, last] = endsOf(samples, measure);
      const slope = slopeOf(samples, measure);
      const [what, unit] = names[measure];
      const limit = limits[measure];
      const hours = ((samples.at(-1)?.atSeconds ?? 0) - (samples[0]?.atSeconds ?? 0)) / 3600;
      const most = limit === undefined ? Number.POSITIVE_INFINITY : limit.inAll / hours;
      const isOver = (isJudged && slope >= most) || (measure === "heapMB" && last > roughHeapMB);
      const words = limit === undefined ? "" : `< ${limit.inAll} in all`;
      const bound = isJudged || limit === undefined ? words : "not judged";
      const round = (value: number) => value.toFixed(unit === "" ? 0 : 1);
      const cells = [
        title,
        what,
        `${round(first)} ${unit}`,
        `${round(last)} ${unit}`,
        isJudged ? `${slope.toFixed(1)} ${unit} an hour` : "–",
        bound,
      ];
      return {
        cells,
        ...(isOver && {
          problem: `${title}: ${what} went from ${round(first)} to ${round(last)} ${unit}, ${slope.toFixed(1)} an hour`,
        }),
      };
    });
  }
}

function judgeKept({ server, kind, bytes, looks }: Kept): {
  readonly cells: readonly string[];
  readonly problem?: string;
} {
  const [first, last] = [looks[0], looks.at(-1)].map((look) => `${((look?.heapBytes ?? 0) / 1e6).toFixed(1)} MB`);
  const kept = `${bytes.toFixed(0)} bytes each`;
  return {
    cells: [server, `heap, by ${kind}`, first ?? "", last ?? "", kept, `< ${maxKeptBytes} bytes each`],
    ...(bytes >= maxKeptBytes && { problem: `${server}: each ${kind} leaves ${kept}` }),
  };
}

const names: Readonly<Record<Measure, readonly [what: string, unit: string]>> = {
  heapMB: ["heap after collecting", "MB"],
  rssMB: ["resident", "MB"],
  fds: ["file descriptors", ""],
  threads: ["threads", ""],
};

function toTable(rows: readonly (readonly string[])[]): string {
  const all = [["process", "what", "first", "last", "slope", "bound"], ...rows].map((row) =>
    row.map((cell) => cell.replace(/\s+/g, " ").trim()),
  );
  const widths = (all[0] ?? []).map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const [head = "", ...lines] = all.map(
    (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`,
  );
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...lines].join("\n");
}

/** What a run found, for people. */
export function summarizeSoak(report: SoakReport): string {
  const counts = [...report.counts].sort(([a], [b]) => a.localeCompare(b)).map(([what, count]) => `${count} ${what}`);
  const kinds = ["lost", "double", "unanswered", "wrong", "growing"] as const;
  return [
    `seed ${report.seed}, ${report.minutes} min: ${report.promised} tasks promised; ${counts.join(", ")}`,
    "",
    report.table,
    "",
    ...kinds.flatMap((kind) => [
      `${kind.padEnd(10)} ${report[kind].length}`,
      ...report[kind].slice(0, 10).map((text) => `  ${text}`),
    ]),
    "",
    soakViolations(report) === 0
      ? "✓ nothing lost, nothing done twice, nothing unanswered, nothing grows"
      : "✗ see above",
    "",
  ].join("\n");
}

export function soakViolations({ lost, double, unanswered, wrong, growing }: SoakReport): number {
  return lost.length + double.length + unanswered.length + wrong.length + growing.length;
}
