import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "better-sqlite3";
import { systemClock } from "../../src/clock.ts";
import { messageOf } from "../../src/errors.ts";
import type { FailpointName } from "../../src/failpoint.ts";
import { silentLog } from "../../src/log.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { openQuestions } from "../../src/task/task.ts";
import { type AuditLine, auditTriggers, check, type Findings, hashOf, type Row, readLines } from "./check.ts";
import type { Ack } from "./producer.ts";
import { createRandom, pick } from "./random.ts";

export interface ChaosOptions {
  /** Enough of them, once every one of `places` was struck as well. */
  readonly kills: number;
  readonly places?: readonly string[];
  readonly seconds: number;
  readonly seed: number;
  readonly leaseMs?: number;
  /** Ends the run early, and every process of it. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (line: string) => void;
}

export interface ChaosReport extends Findings {
  readonly seed: number;
  readonly seconds: number;
  /** Kills by where they struck: a failpoint's name, or "random". */
  readonly kills: ReadonlyMap<string, number>;
  readonly pauses: number;
  /** Tasks by how they ended. */
  readonly tasks: ReadonlyMap<string, number>;
  readonly acknowledged: number;
  /**
   * How often a task lost its worker, and how often that worker was alive and running. A process that gets no time for
   * most of so short a lease looks dead to anybody, so on a busy machine the second is not zero, and no violation.
   */
  readonly interruptions: number;
  readonly spurious: number;
}

const workerFailpoints: readonly FailpointName[] = [
  "after-claim",
  "mid-run",
  "before-settle",
  "after-settle",
  "before-notify",
];
const producerFailpoints: readonly FailpointName[] = ["after-insert", "before-ack"];
const drainMs = 90_000;
const endMs = 60_000;

/**
 * Kills workers and producers on one file until there were enough kills or time is up, lets the rest finish, and
 * checks.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-chaos-"));
  const run = new ChaosRun(folder, await openStore(path.join(folder, "tasks.db")), options);
  try {
    return await run.run();
  } finally {
    await run.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One process of the cast; when it dies, its slot starts another. */
interface Life {
  readonly child: ChildProcess;
  readonly failpoint: FailpointName | undefined;
  /** Resolves once it works, or has ended. */
  readonly ready: Promise<void>;
  readonly exited: Promise<void>;
  endedAt: number;
  readonly pauses: { from: number; to: number }[];
  isOurKill: boolean;
  errors: string;
}

class ChaosRun {
  readonly #folder: string;
  readonly #options: ChaosOptions;
  readonly #leaseMs: number;
  readonly #random: () => number;
  readonly #store: Store;
  readonly #engine: Engine;
  readonly #db: Database.Database;
  readonly #lives = new Map<number, Life>();
  readonly #kills = new Map<string, number>();
  readonly #firstHashes = new Map<string, string>();
  readonly #cancels = new Map<string, boolean>();
  readonly #colours = new Map<string, string>();
  readonly #others: string[] = [];
  /** What goes on in the background until it is over. */
  readonly #going: Promise<void>[] = [];
  readonly #startedAt = performance.now();
  #pauses = 0;
  #nextSeed: number;
  #ackCount = 0;
  #lastSample = 0;
  #isOver = false;

  constructor(folder: string, store: Store, options: ChaosOptions) {
    this.#folder = folder;
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? 800;
    this.#random = createRandom(options.seed);
    this.#nextSeed = options.seed * 1000;
    this.#store = store;
    this.#engine = new Engine({
      store: this.#store,
      history: new History(this.#store, systemClock),
      clock: systemClock,
      log: silentLog,
      project: "chaos",
    });
    this.#db = new Database(path.join(folder, "tasks.db"), { timeout: 10_000 });
    this.#db.exec(auditTriggers);
  }

  async run(): Promise<ChaosReport> {
    await this.#warmUp();
    const half = this.#options.kills / 2;
    this.#going.push(
      this.#keep("producer", "p1"),
      this.#keep("producer", "p2"),
      this.#keep("worker", "w1"),
      this.#keep("worker", "w2"),
      this.#meddle(),
    );
    const endsAt = performance.now() + this.#options.seconds * 1000;
    const halfTime = endsAt - this.#options.seconds * 500;
    await this.#until(() => this.#killCount >= half || performance.now() >= halfTime);
    this.#going.push(this.#keep("worker", "w3"), this.#keep("worker", "w4"));
    await this.#until(() => this.#isEnough() || performance.now() >= endsAt);
    this.#isOver = true;
    await Promise.all(this.#going);
    await this.#drain();
    return this.#report();
  }

  /**
   * Compiled code is kept only by a process that ends in peace, and without it the others hardly start before they die.
   */
  async #warmUp(): Promise<void> {
    const elsewhere = path.join(this.#folder, "warm-up");
    const lives = [
      this.#start("producer", "p", undefined, elsewhere),
      this.#start("worker", "w", undefined, elsewhere),
    ];
    await Promise.all(lives.map((life) => life.ready));
    await this.#end(lives);
  }

  async #end(lives: readonly Life[]): Promise<void> {
    for (const { child } of lives) child.kill("SIGTERM");
    await Promise.race([Promise.all(lives.map((life) => life.exited)), wait(endMs, undefined, { ref: false })]);
    for (const { endedAt } of lives)
      if (endedAt === Number.POSITIVE_INFINITY) this.#others.push("a process ignored SIGTERM");
  }

  async close(): Promise<void> {
    this.#isOver = true;
    const left = [...this.#lives.values()].filter((life) => life.endedAt === Number.POSITIVE_INFINITY);
    for (const { child } of left) child.kill("SIGKILL");
    await Promise.allSettled([...left.map((life) => life.exited), ...this.#going]);
    this.#db.close();
    await this.#store.close();
  }

  get #killCount(): number {
    return [...this.#kills.values()].reduce((sum, count) => sum + count, 0);
  }

  #isEnough(): boolean {
    const { kills, places = [] } = this.#options;
    return this.#killCount >= kills && places.every((place) => this.#kills.has(place));
  }

  async #until(isDone: () => boolean): Promise<void> {
    for (let round = 0; !isDone(); round++) {
      await wait(50, undefined, { signal: this.#options.signal });
      await this.#sample();
      if (round % 200 === 199)
        this.#options.onProgress?.(
          `${Math.round((performance.now() - this.#startedAt) / 1000)} s: ${this.#killCount} kills`,
        );
    }
  }

  /**
   * One slot: starts a process that is to die at a failpoint or at some moment, and at once another, until it is over.
   */
  async #keep(program: "worker" | "producer", name: string): Promise<void> {
    const all = program === "worker" ? workerFailpoints : producerFailpoints;
    while (!this.#isOver) {
      // Where nobody has died yet goes first: otherwise the last place takes five times as many kills as there are.
      const left = all.filter((place) => !this.#kills.has(place));
      const failpoint = this.#random() < 0.7 ? pick(this.#random, left.length > 0 ? left : all) : undefined;
      const life = this.#start(program, name, failpoint);
      const killer = this.#killLater(life, 150 + this.#random() * (program === "worker" ? 1_300 : 4_000));
      await life.exited;
      killer.abort();
    }
  }

  #start(
    program: "worker" | "producer",
    name: string,
    failpoint: FailpointName | undefined,
    folder = this.#folder,
  ): Life {
    const words = program === "worker" ? [String(this.#leaseMs)] : [name, String(this.#nextSeed++)];
    const child = spawn(process.execPath, [path.join(import.meta.dirname, `${program}.ts`), folder, ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        ...process.env,
        NODE_COMPILE_CACHE: path.join(tmpdir(), "meanwhile-test-code"),
        MEANWHILE_FAILPOINT:
          failpoint === undefined
            ? ""
            : `${failpoint}:${1 + Math.floor(this.#random() * (program === "worker" ? 3 : 15))}`,
      },
    });
    const ready = Promise.withResolvers<void>();
    const exited = Promise.withResolvers<void>();
    const life: Life = {
      child,
      failpoint,
      ready: ready.promise,
      exited: exited.promise,
      endedAt: Number.POSITIVE_INFINITY,
      pauses: [],
      isOurKill: false,
      errors: "",
    };
    this.#lives.set(child.pid ?? 0, life);
    child.stdin?.on("error", () => {});
    child.stdout?.on("data", () => ready.resolve());
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (life.errors += text));
    child.on("close", (code, signal) => {
      life.endedAt = Date.now();
      if (signal === "SIGKILL") this.#count(life.isOurKill || failpoint === undefined ? "random" : failpoint);
      else if (code !== 0)
        this.#others.push(`a ${program} ended by itself (${code ?? signal}): ${life.errors.trim().slice(0, 500)}`);
      ready.resolve();
      exited.resolve();
    });
    return life;
  }

  #count(where: string): void {
    this.#kills.set(where, (this.#kills.get(where) ?? 0) + 1);
  }

  #killLater(life: Life, ms: number): AbortController {
    const stop = new AbortController();
    void this.#killAfter(life, ms, stop.signal).catch(() => undefined);
    return stop;
  }

  async #killAfter(life: Life, ms: number, signal: AbortSignal): Promise<void> {
    // With a failpoint it gets the time to reach it; without one it may die while it starts.
    if (life.failpoint !== undefined) await life.ready;
    await wait(life.failpoint === undefined ? ms : ms + 1_500, undefined, { signal });
    // Whoever stood still gets the time to do what it must not: write as if nothing had happened.
    while (life.pauses.some(({ to }) => to + 500 > Date.now())) await wait(100, undefined, { signal });
    life.isOurKill = true;
    life.child.kill("SIGKILL");
  }

  /**
   * Everything else that happens to tasks meanwhile: answers, cancels, workers that stand still for longer than their
   * lease.
   */
  async #meddle(): Promise<void> {
    for (let round = 1; !this.#isOver; round++) {
      await wait(100);
      await this.#answerQuestions();
      await this.#cancelSome();
      if (round % 6 === 0) void this.#pauseOne();
    }
  }

  async #answerQuestions(): Promise<void> {
    for (const caller of ["ada", "bob", "cleo"]) {
      const { tasks } = await this.#engine.list(caller, { statuses: ["input_required"] });
      for (const task of tasks) {
        for (const { key } of openQuestions(task)) {
          const colour = `colour ${Math.floor(this.#random() * 1000)}`;
          const isTaken = await this.#engine.answer(caller, task.taskId, {
            [key]: { action: "accept", content: { colour } },
          });
          if (isTaken) this.#colours.set(task.taskId, colour);
        }
      }
    }
  }

  async #cancelSome(): Promise<void> {
    const acks = readLines<Ack>(path.join(this.#folder, "acks.jsonl"));
    const fresh = acks.slice(this.#ackCount).filter(() => this.#random() < 0.08);
    // Some come too late, and must not change a thing.
    const late = acks.length > 0 && this.#random() < 0.1 ? [pick(this.#random, acks)] : [];
    for (const { taskId, caller } of [...fresh, ...late]) {
      if (this.#cancels.has(taskId)) continue;
      try {
        this.#cancels.set(taskId, await this.#engine.cancel(caller, taskId));
      } catch (error) {
        this.#others.push(`${taskId} was acknowledged, and could not be cancelled: ${messageOf(error)}`);
      }
    }
    this.#ackCount = acks.length;
  }

  /**
   * Stops a worker that is at work until somebody else has taken its task over, and lets it go on in the middle of
   * that.
   */
  async #pauseOne(): Promise<void> {
    const held = this.#db.prepare("select task_id, fence, worker from tasks where status = 'working'").all() as (Row & {
      worker: string;
    })[];
    const living = held.flatMap((row) => {
      const life = this.#lives.get(Number(row.worker.split("|")[2]));
      return life?.endedAt === Number.POSITIVE_INFINITY && life.pauses.every(({ to }) => to < Date.now())
        ? [{ row, life }]
        : [];
    });
    if (living.length === 0) return;
    const { row, life } = pick(this.#random, living);
    if (!life.child.kill("SIGSTOP")) return;
    const pause = { from: Date.now(), to: Number.POSITIVE_INFINITY };
    life.pauses.push(pause);
    this.#pauses += 1;
    const fence = this.#db.prepare("select fence from tasks where task_id = ?").pluck();
    while (Date.now() < pause.from + 4 * this.#leaseMs && fence.get(row.task_id) === row.fence) await wait(20);
    pause.to = Date.now();
    life.child.kill("SIGCONT");
  }

  /** Remembers every outcome as it was when first seen. */
  async #sample(): Promise<void> {
    const now = Date.now();
    const rows = this.#db
      .prepare(
        "select task_id, status, outcome from tasks left join outcomes using (number) where finished_at is not null and updated_at >= ?",
      )
      .all(this.#lastSample) as Row[];
    for (const { task_id, status, outcome } of rows) {
      const hash = hashOf(status, outcome);
      const first = this.#firstHashes.get(task_id);
      if (first === undefined) this.#firstHashes.set(task_id, hash);
    }
    this.#lastSample = now - 2_000;
  }

  /** Two workers that nobody kills finish what is left. */
  async #drain(): Promise<void> {
    const workers = [this.#start("worker", "w1", undefined), this.#start("worker", "w2", undefined)];
    const endsAt = performance.now() + drainMs;
    const live = this.#db.prepare("select count(*) from tasks where finished_at is null").pluck();
    while ((live.get() as number) > 0 && performance.now() < endsAt) {
      await wait(50, undefined, { signal: this.#options.signal });
      await this.#answerQuestions();
      await this.#sample();
    }
    await Promise.all(workers.map((life) => life.ready));
    await this.#end(workers);
  }

  #report(): ChaosReport {
    const findings = check(this.#db, this.#folder, {
      firstHashes: this.#firstHashes,
      cancels: this.#cancels,
      colours: this.#colours,
    });
    const statuses = this.#db.prepare("select command || ' ' || status as status from tasks").pluck().all() as string[];
    const crashes = this.#db.prepare("select * from audit where is_crash = 1").all() as AuditLine[];
    return {
      ...findings,
      other: [...findings.other, ...this.#others],
      seed: this.#options.seed,
      seconds: (performance.now() - this.#startedAt) / 1000,
      kills: this.#kills,
      pauses: this.#pauses,
      tasks: new Map([...Map.groupBy(statuses, (status) => status)].map(([status, all]) => [status, all.length])),
      acknowledged: new Set(readLines<Ack>(path.join(this.#folder, "acks.jsonl")).map(({ taskId }) => taskId)).size,
      interruptions: crashes.length,
      spurious: crashes.filter((line) => this.#wasRunning(line)).length,
    };
  }

  /** True when the worker that lost its task was neither dead nor standing still. */
  #wasRunning({ old_worker, at }: AuditLine): boolean {
    const life = this.#lives.get(Number(old_worker?.split("|")[2]));
    if (life === undefined || life.endedAt <= at + 100) return false;
    return !life.pauses.some(({ from, to }) => from <= at && to >= at - 2 * this.#leaseMs);
  }
}

/** What a run found, for people. */
export function summarize(report: ChaosReport): string {
  const total = (counts: ReadonlyMap<string, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0);
  const detail = (counts: ReadonlyMap<string, number>) =>
    [...counts]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  const problems = (["lost", "changed", "double", "other"] as const).flatMap((kind) =>
    report[kind].slice(0, 10).map((text) => `  ${kind}: ${text}`),
  );
  return [
    `seed     ${report.seed}`,
    `kills    ${total(report.kills)} (${detail(report.kills)}), and ${report.pauses} pauses longer than a lease`,
    `tasks    ${total(report.tasks)}, ${report.acknowledged} of them acknowledged (${detail(report.tasks)})`,
    `         ${report.interruptions} times a worker was lost, ${report.spurious} times although it was running`,
    `lost     ${report.lost.length}`,
    `changed  ${report.changed.length}`,
    `double   ${report.double.length}`,
    `other    ${report.other.length}`,
    `seconds  ${report.seconds.toFixed(1)}`,
    ...problems,
    "",
  ].join("\n");
}

export function violations(report: Findings): number {
  return report.lost.length + report.changed.length + report.double.length + report.other.length;
}
