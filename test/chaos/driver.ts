import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../src/clock.ts";
import type { FailpointName } from "../../src/failpoint.ts";
import { silentLog } from "../../src/log.ts";
import { Engine } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import { type AuditLine, check, type Findings, hashOf, readLines } from "./check.ts";
import { type Ground, openOn, toEnvironment } from "./ground.ts";
import { checkKeys, countKeySteps } from "./key-holder.ts";
import { Meddler } from "./meddler.ts";
import { openPostgresGround } from "./postgres-ground.ts";
import type { Ack } from "./producer.ts";
import { createRandom, pick } from "./random.ts";
import { openSqliteGround } from "./sqlite-ground.ts";

export interface ChaosOptions {
  /** Where tasks are kept. Default: a file. */
  readonly store?: "sqlite" | "postgres";
  /** With PostgreSQL: who hands out its tasks, by its address, or `store`. Default: BullMQ in the same database. */
  readonly queue?: string;
  /** Enough of them, once every one of `places` was struck as well, and the store has seen every upset there is. */
  readonly kills: number;
  readonly places?: readonly string[];
  /** At most so long … */
  readonly seconds: number;
  /** … and at least so long, however many kills there are. */
  readonly leastSeconds?: number;
  readonly seed: number;
  /** Default 1,000. */
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
  /** What happened to the store and its queue. */
  readonly upsets: ReadonlyMap<string, number>;
  /** Tasks by how they ended. */
  readonly tasks: ReadonlyMap<string, number>;
  readonly acknowledged: number;
  /** Acknowledged changes of API keys. */
  readonly keySteps: ReturnType<typeof countKeySteps>;
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
 * Kills workers and producers on one store until there were enough kills or time is up, lets the rest finish, and
 * checks.
 */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-chaos-"));
  const ground = await (options.store === "postgres"
    ? openPostgresGround(folder, options.queue)
    : openSqliteGround(folder));
  const run = new ChaosRun(ground, options);
  try {
    return await run.run();
  } finally {
    await run.close();
    await ground.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** One process of the cast; when it dies, its slot starts another. */
interface Life {
  readonly program: "worker" | "producer";
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
  readonly #ground: Ground;
  readonly #options: ChaosOptions;
  readonly #leaseMs: number;
  readonly #random: () => number;
  readonly #lives = new Map<number, Life>();
  readonly #kills = new Map<string, number>();
  readonly #upsets = new Map<string, number>();
  readonly #firstHashes = new Map<string, string>();
  readonly #others: string[] = [];
  /** What goes on in the background until it is over. */
  readonly #going: Promise<void>[] = [];
  readonly #startedAt = performance.now();
  #pauses = 0;
  #nextSeed: number;
  #lastSample = 0;
  #isOver = false;

  constructor(ground: Ground, options: ChaosOptions) {
    this.#ground = ground;
    this.#options = options;
    this.#leaseMs = options.leaseMs ?? 1_000;
    this.#random = createRandom(options.seed);
    this.#nextSeed = options.seed * 1000;
  }

  async run(): Promise<ChaosReport> {
    await this.#warmUp();
    const half = this.#options.kills / 2;
    const { nodes, workers, lateWorkers } = this.#ground.cast;
    const keepAll = (program: "worker" | "producer", count: number, first = 1) =>
      Array.from({ length: count }, (_, at) => this.#keep(program, `${program[0]}${first + at}`));
    this.#going.push(
      ...keepAll("producer", nodes),
      ...keepAll("worker", workers),
      this.#pauseSome(),
      this.#upsetSome(),
    );
    const endsAt = performance.now() + this.#options.seconds * 1000;
    const halfTime = endsAt - this.#options.seconds * 500;
    await this.#until(() => this.#killCount >= half || performance.now() >= halfTime);
    this.#going.push(...keepAll("worker", lateWorkers, workers + 1));
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
    const { elsewhere } = this.#ground;
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
  }

  get #killCount(): number {
    return [...this.#kills.values()].reduce((sum, count) => sum + count, 0);
  }

  #isEnough(): boolean {
    const { kills, places = [] } = this.#options;
    const isUpset = [...this.#ground.upsets.keys()].every((name) => this.#upsets.has(name));
    const isLongEnough = performance.now() - this.#startedAt >= (this.#options.leastSeconds ?? 0) * 1000;
    return isLongEnough && this.#killCount >= kills && isUpset && places.every((place) => this.#kills.has(place));
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
    while (!this.#isOver) {
      const failpoint = this.#random() < 0.7 ? this.#pickFailpoint(program) : undefined;
      const life = this.#start(program, name, failpoint);
      const killer = this.#killLater(life, 150 + this.#random() * (program === "worker" ? 1_300 : 4_000));
      await life.exited;
      killer.abort();
    }
  }

  /** Of those that are wanted, one at which nobody has died yet. */
  #pickFailpoint(program: "worker" | "producer"): FailpointName {
    const all = program === "worker" ? workerFailpoints : producerFailpoints;
    const wanted = all.filter((name) => this.#options.places?.includes(name) === true && !this.#kills.has(name));
    return pick(this.#random, wanted.length > 0 ? wanted : all);
  }

  #start(
    program: "worker" | "producer",
    name: string,
    failpoint: FailpointName | undefined,
    address = this.#ground.address,
  ): Life {
    const words = program === "worker" ? [String(this.#leaseMs)] : [name, String(this.#nextSeed++)];
    const child = spawn(process.execPath, [path.join(import.meta.dirname, `${program}.ts`), address.folder, ...words], {
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        ...process.env,
        ...toEnvironment(address),
        NODE_COMPILE_CACHE: path.join(tmpdir(), "meanwhile-test-code"),
        MEANWHILE_FAILPOINT:
          failpoint === undefined
            ? ""
            : `${failpoint}:${1 + Math.floor(this.#random() * (program === "producer" && this.#kills.has(failpoint) ? 15 : 3))}`,
      },
    });
    const ready = Promise.withResolvers<void>();
    const exited = Promise.withResolvers<void>();
    const life: Life = {
      program,
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
    const mayWork = this.#random() < 0.5;
    // With a failpoint it gets the time to reach it; without one it may die while it starts.
    if (life.failpoint !== undefined || mayWork) await life.ready;
    await wait(life.failpoint === undefined ? ms : ms + 1_500, undefined, { signal });
    // Whoever stood still gets the time to do what it must not: write as if nothing had happened.
    while (life.pauses.some(({ to }) => to + 500 > Date.now())) await wait(100, undefined, { signal });
    life.isOurKill = true;
    life.child.kill("SIGKILL");
  }

  /** Workers and nodes that stand still, mostly for longer than a lease. */
  async #pauseSome(): Promise<void> {
    while (!this.#isOver) {
      await wait(600);
      void (this.#random() < 0.8 ? this.#pauseWorker() : this.#pauseNode()).catch(() => undefined);
    }
  }

  /** What happens to the store and its queue: the first few soon, each in its turn, then any of them at times. */
  async #upsetSome(): Promise<void> {
    const upsets = [...this.#ground.upsets];
    for (let n = 0; upsets.length > 0; n++) {
      for (
        const endsAt = performance.now() + 1_000 + this.#random() * 3_000;
        performance.now() < endsAt;
        await wait(50)
      )
        if (this.#isOver) return;
      const [name, upset] = upsets[n] ?? pick(this.#random, upsets);
      await upset();
      this.#upsets.set(name, (this.#upsets.get(name) ?? 0) + 1);
    }
  }

  /**
   * Stops a worker that is at work until somebody else has taken its task over, and lets it go on in the middle of
   * that.
   */
  async #pauseWorker(): Promise<void> {
    const living = (await this.#ground.held()).flatMap((row) => {
      const life = this.#lives.get(Number(row.worker.split("|")[2]));
      return life !== undefined && isUp(life) ? [{ row, life }] : [];
    });
    if (living.length === 0) return;
    const { row, life } = pick(this.#random, living);
    const endsAt = Date.now() + 4 * this.#leaseMs;
    await this.#pause(life, async () => Date.now() < endsAt && (await this.#ground.fenceOf(row.task_id)) === row.fence);
  }

  async #pauseNode(): Promise<void> {
    const living = [...this.#lives.values()].filter((life) => life.program === "producer" && isUp(life));
    if (living.length === 0) return;
    const endsAt = Date.now() + this.#random() * 2 * this.#leaseMs;
    await this.#pause(pick(this.#random, living), async () => Date.now() < endsAt);
  }

  async #pause(life: Life, isStill: () => Promise<boolean>): Promise<void> {
    if (!life.child.kill("SIGSTOP")) return;
    const pause = { from: Date.now(), to: Number.POSITIVE_INFINITY };
    life.pauses.push(pause);
    this.#pauses += 1;
    try {
      while (await isStill()) await wait(20);
    } finally {
      pause.to = Date.now();
      life.child.kill("SIGCONT");
    }
  }

  /** Remembers every outcome as it was when first seen. */
  async #sample(): Promise<void> {
    const now = Date.now();
    for (const { task_id, status, outcome } of await this.#ground.endedSince(this.#lastSample)) {
      const hash = hashOf(status, outcome);
      const first = this.#firstHashes.get(task_id);
      if (first === undefined) this.#firstHashes.set(task_id, hash);
    }
    this.#lastSample = now - 2_000;
  }

  /** Two workers that nobody kills finish what is left. */
  async #drain(): Promise<void> {
    const workers = [this.#start("worker", "w1", undefined), this.#start("worker", "w2", undefined)];
    const { store, dispatcher } = await openOn(this.#ground.address);
    try {
      const history = new History(store, systemClock);
      const engine = new Engine({ store, dispatcher, history, clock: systemClock, log: silentLog, project: "chaos" });
      const meddler = new Meddler(engine, this.#ground.address.folder, this.#random);
      const endsAt = performance.now() + drainMs;
      while ((await this.#ground.liveCount()) > 0 && performance.now() < endsAt) {
        await wait(50, undefined, { signal: this.#options.signal });
        await meddler.answerQuestions();
        await this.#sample();
      }
    } finally {
      await dispatcher.close();
      await store.close();
    }
    await Promise.all(workers.map((life) => life.ready));
    await this.#end(workers);
  }

  async #report(): Promise<ChaosReport> {
    const findings = await check(this.#ground, this.#firstHashes);
    const keyFindings = await this.#checkKeys();
    const statuses = (await this.#ground.rows()).map(({ command, status }) => `${command} ${status}`);
    const crashes = (await this.#ground.audit()).filter((line) => line.is_crash === 1);
    const acks = readLines<Ack>(path.join(this.#ground.address.folder, "acks.jsonl"));
    return {
      ...findings,
      lost: [...findings.lost, ...keyFindings.lost],
      changed: [...findings.changed, ...keyFindings.changed],
      other: [...findings.other, ...this.#others],
      seed: this.#options.seed,
      seconds: (performance.now() - this.#startedAt) / 1000,
      kills: this.#kills,
      pauses: this.#pauses,
      upsets: this.#upsets,
      tasks: new Map([...Map.groupBy(statuses, (status) => status)].map(([status, all]) => [status, all.length])),
      acknowledged: new Set(acks.map(({ taskId }) => taskId)).size,
      keySteps: countKeySteps(this.#ground.address.folder),
      interruptions: crashes.length,
      spurious: crashes.filter((line) => this.#wasRunning(line)).length,
    };
  }

  async #checkKeys(): ReturnType<typeof checkKeys> {
    const { store, dispatcher } = await openOn(this.#ground.address);
    try {
      return await checkKeys(store.shared.keys, this.#ground.address.folder);
    } finally {
      await dispatcher.close();
      await store.close();
    }
  }

  /** True when the worker that lost its task was neither dead nor standing still. */
  #wasRunning({ old_worker, at }: AuditLine): boolean {
    const life = this.#lives.get(Number(old_worker?.split("|")[2]));
    if (life === undefined || life.endedAt <= at + 100) return false;
    return !life.pauses.some(({ from, to }) => from <= at && to >= at - 2 * this.#leaseMs);
  }
}

/** It runs, and does not stand still. */
function isUp({ endedAt, pauses }: Life): boolean {
  return endedAt === Number.POSITIVE_INFINITY && pauses.every(({ to }) => to < Date.now());
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
    `kills    ${total(report.kills)} (${detail(report.kills)}), and ${report.pauses} pauses, most longer than a lease`,
    ...(report.upsets.size === 0 ? [] : [`upsets   ${total(report.upsets)} (${detail(report.upsets)})`]),
    `tasks    ${total(report.tasks)}, ${report.acknowledged} of them acknowledged (${detail(report.tasks)})`,
    `         ${report.interruptions} times a worker was lost, ${report.spurious} times although it was running`,
    `keys     ${report.keySteps.add} added, ${report.keySteps.rotate} rotated, ${report.keySteps.revoke} revoked`,
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
