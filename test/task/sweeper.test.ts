import path from "node:path";
import Database from "better-sqlite3";
import { describe, expect, onTestFinished, test } from "vitest";
import { RuntimeError } from "../../src/errors.ts";
import { silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { statements } from "../../src/store/sqlite/statements.ts";
import { Sweeper } from "../../src/task/sweeper.ts";
import type { Task } from "../../src/task/task.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { newTask } from "../store-suite/cases/bench.ts";

const leaseMs = 30_000;
const outageMs = 42_000;

/** A clock of a process that can be stopped: while it is stopped time passes, and its timers fire late. */
class PausableClock extends FakeClock {
  #pausedMs = 0;

  override now(): number {
    return super.now() + this.#pausedMs;
  }

  override monotonic(): number {
    return super.monotonic() + this.#pausedMs;
  }

  pause(ms: number): void {
    this.#pausedMs += ms;
  }
}

interface OpenedStore {
  readonly store: Store;
  /** Renews all leases of a worker once. */
  renew(worker: string): void;
}

const stores: readonly (readonly [string, (clock: FakeClock) => Promise<OpenedStore>])[] = [
  [
    "memory",
    async (clock) => {
      const store = new MemoryStore(clock);
      return { store, renew: (worker) => store.keepLeases(worker, leaseMs, leaseMs)() };
    },
  ],
  [
    "SQLite",
    async (clock) => {
      const file = path.join(temporaryFolder(), "tasks.db");
      const store = await openStore(file, { clock });
      const db = new Database(file);
      onTestFinished(() => void db.close());
      // The thread that renews leases reads the system clock.
      const renew = db.prepare(statements.renew);
      return { store, renew: (worker) => void renew.run({ worker, leaseMs, now: clock.now() }) };
    },
  ],
];

describe.each(stores)("the sweeper on %s", (_name, open) => {
  /** A sweeper on a store that can be away, a living worker with two running tasks, and a dead one with one. */
  async function setUp({ secondsSinceStart = 60 } = {}) {
    const clock = new PausableClock();
    const { store, renew } = await open(clock);
    let awayMs = 0;
    let isAway = false;
    let created = 0;
    const faulty = new Proxy(store, {
      get(target, name) {
        const member = (target as never)[name] as unknown;
        if (typeof member !== "function") return member;
        const method = member.bind(target) as (...given: unknown[]) => unknown;
        if (name !== "workers") return method;
        return async () => {
          if (isAway) throw new RuntimeError("STORE_UNAVAILABLE", "The task database is away.");
          // A store that is patient answers once it is back.
          clock.pause(awayMs);
          awayMs = 0;
          return await method();
        };
      },
    });
    const warnings: string[] = [];
    const log = { ...silentLog, warn: (text: string) => void warnings.push(text) };
    const sweeper = new Sweeper({ store: faulty, clock, log, isDead: () => false, leaseMs });
    onTestFinished(async () => {
      sweeper.stop();
      await store.close();
    });
    const claimNew = async (worker: string, isSafe: boolean): Promise<Task> => {
      const fresh = newTask(++created, { rules: { isSafe, maxAttempts: 1, backoffMs: 0 } });
      const made = await store.create(fresh, { joinsEqual: false, maxLive: 100, claim: { worker, leaseMs } });
      if (made.kind !== "created") throw new Error("The task was not created.");
      return made.task;
    };
    const read = ({ caller, taskId }: Task) => store.get({ caller }, taskId);
    /** Moves time on by seconds; the living worker renews its leases every ten of them. */
    const pass = async (seconds: number, isRenewing = true) => {
      for (let second = 0; second < seconds; second++) {
        if (isRenewing && second % 10 === 0) renew("living");
        clock.advance(1_000);
        for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    const unsafe = await claimNew("living", false);
    const safe = await claimNew("living", true);
    sweeper.start();
    await pass(secondsSinceStart);
    const dead = await claimNew("dead", true);
    const expectLivingUntouched = async () => {
      for (const task of [unsafe, safe])
        expect(await read(task)).toMatchObject({ status: "working", fence: task.fence, crashes: 0 });
    };
    const secondsUntilDeadIsFound = async () => {
      for (let seconds = 0; ; seconds++) {
        if ((await read(dead))?.status === "queued") return seconds;
        if (seconds > 120) throw new Error("The task of the dead worker was never found.");
        if (seconds % 10 === 0) renew("living");
        await pass(1, false);
      }
    };
    return {
      clock,
      warnings,
      pass,
      expectLivingUntouched,
      secondsUntilDeadIsFound,
      setAway: (value: boolean) => (isAway = value),
      answerAfter: (ms: number) => (awayMs = ms),
    };
  }

  test("declares no living worker's task interrupted after an outage longer than a lease", async () => {
    const { pass, setAway, expectLivingUntouched, secondsUntilDeadIsFound } = await setUp();
    setAway(true);
    await pass(outageMs / 1_000, false);
    setAway(false);
    // The living worker's connection needs some seconds longer than the sweeper's.
    await pass(3, false);
    await expectLivingUntouched();
    expect(await secondsUntilDeadIsFound(), "a dead worker's is found a lease later").toBeLessThanOrEqual(33);
    await expectLivingUntouched();
  });

  test("waits one lease after a store call that took longer than a lease", async () => {
    const { pass, answerAfter, expectLivingUntouched, secondsUntilDeadIsFound } = await setUp();
    answerAfter(outageMs);
    await pass(3, false);
    await expectLivingUntouched();
    expect(await secondsUntilDeadIsFound()).toBeLessThanOrEqual(33);
    await expectLivingUntouched();
  });

  test("waits one lease after its own process was stopped for longer than a lease", async () => {
    const { clock, warnings, pass, expectLivingUntouched, secondsUntilDeadIsFound } = await setUp();
    clock.pause(40_000);
    await pass(3, false);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^no lease was checked for 4\d\.\d s, because the task store was away, this process was stopped, or a command blocked its event loop; tasks of other workers are not declared interrupted for the next 30\.0 s$/,
      ),
    ]);
    await expectLivingUntouched();
    expect(await secondsUntilDeadIsFound()).toBeLessThanOrEqual(33);
    await expectLivingUntouched();
  });

  test("waits one lease after a stop of 40 s within its first second", async () => {
    const { clock, pass, expectLivingUntouched, secondsUntilDeadIsFound } = await setUp({ secondsSinceStart: 1 });
    clock.pause(40_000);
    await pass(3, false);
    await expectLivingUntouched();
    expect(await secondsUntilDeadIsFound()).toBeLessThanOrEqual(33);
    await expectLivingUntouched();
  });

  test("finds a dead worker's task within 35 s where neither the store nor the process was away", async () => {
    const { secondsUntilDeadIsFound, expectLivingUntouched } = await setUp();
    const seconds = await secondsUntilDeadIsFound();
    expect(seconds).toBeGreaterThanOrEqual(30);
    expect(seconds).toBeLessThanOrEqual(35);
    await expectLivingUntouched();
  });
});
