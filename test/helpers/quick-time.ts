import { afterAll, beforeAll, beforeEach, vi } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { settleBuiltins } from "../../src/command/builtins.ts";
import { watchLoop } from "../../src/command/loop-watch.ts";
import { silentLog } from "../../src/log.ts";
import { SqliteStore } from "../../src/store/sqlite/sqlite-store.ts";
import { passRealMillisecond, realWorkEnds } from "./real-work.ts";

const limitMs = 120_000;
const { now: realNow } = Date;
/** What is open while nothing is on its way. */
const idleResources = new Set(["PipeWrap", "TCPServerWrap", "Timeout", "Immediate"]);

/**
 * For the tests of a file: timers fire and clocks move up to `timesFaster` as fast as the system's clock. Whatever needs no time
 * is done first: time passes after each eight turns of the event loop, and not before a real millisecond, so that
 * an answer of a server in the test's process takes little of that time, on a busy machine too. A test that takes more
 * than two minutes of it fails: a wait without an end would otherwise only cost seconds.
 *
 * @param timesFaster for tests that measure time: the busier the machine is, the less of this time their work may take.
 */
export function passTimeQuickly(timesFaster = 10): void {
  let isOver = false;
  let passing: Promise<void> | undefined;
  let endKeeping = () => {};
  let restoreFetch = () => {};
  /** What was open in how many steps of the present test. */
  const open = new Map<string, number>();
  beforeAll(async () => {
    restoreFetch = await fetchWithoutTimers();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
    // Otherwise a command of an earlier file that ends now would put the real timers back, as those of the language.
    settleBuiltins();
    endKeeping = keepSqliteLeases();
    passing = pass();
  });
  beforeEach(() => {
    const begun = performance.now();
    const realBegin = realNow();
    open.clear();
    return () => {
      const tookMs = performance.now() - begun;
      if (tookMs <= limitMs) return;
      const most = [...open].sort(([, one], [, other]) => other - one).slice(0, 3);
      throw new Error(
        `The test took ${tookMs} ms of the time that passes quickly, in ${realNow() - realBegin} real ms; steps with these resources: ${JSON.stringify(most)}`,
      );
    };
  });
  afterAll(async () => {
    isOver = true;
    await passing;
    endKeeping();
    restoreFetch();
    vi.useRealTimers();
    settleBuiltins();
    // A worker or server that a test left behind may still watch the event loop, by the clock of this file: to the next
    // file all its calls would seem to have waited for minutes. The newest watch takes the place of the others.
    watchLoop(systemClock, silentLog)();
  });

  async function pass(): Promise<void> {
    while (!isOver) {
      for (let turn = 0; turn < 8; turn++) {
        await new Promise((resolve) => setImmediate(resolve));
        await realWorkEnds();
      }
      const resources = process.getActiveResourcesInfo().filter((name) => !idleResources.has(name));
      await passRealMillisecond();
      open.set(resources.join(), (open.get(resources.join()) ?? 0) + 1);
      vi.advanceTimersByTime(timesFaster);
    }
  }
}

/** Where Node keeps what carries out the requests of `fetch`. */
const dispatcherKey = Symbol.for("undici.globalDispatcher.1");

/**
 * Has `fetch` set no timers of its own until the returned function is called: no limits, and a connection for each
 * request. Timers of connections that are kept belong to one clock, and are cleared by another after it was replaced.
 */
async function fetchWithoutTimers(): Promise<() => void> {
  // Node loads it with the first request.
  await fetch("data:,");
  const all = globalThis as unknown as Record<symbol, { readonly constructor: new (options: object) => object }>;
  const usual = all[dispatcherKey];
  if (usual === undefined) throw new Error("This Node keeps what carries out requests of fetch elsewhere.");
  const Dispatcher = usual.constructor;
  all[dispatcherKey] = new Dispatcher({ pipelining: 0, headersTimeout: 0, bodyTimeout: 0 }) as typeof usual;
  return () => {
    all[dispatcherKey] = usual;
  };
}

/**
 * Has no lease in SQLite expire until the returned function is called: a thread renews them by the system's clock, so
 * that on quick time those of running tasks would expire after three real seconds.
 */
function keepSqliteLeases(): () => void {
  const { interrupt } = SqliteStore.prototype;
  const spy = vi.spyOn(SqliteStore.prototype, "interrupt").mockImplementation(async function (
    this: SqliteStore,
    worker,
    expiredBefore,
  ) {
    return worker === undefined ? [] : await interrupt.call(this, worker, expiredBefore);
  });
  return () => spy.mockRestore();
}
