import { execFile } from "node:child_process";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import type { ProgressUpdate } from "../../src/task/progress.ts";
import { ProgressTokens } from "../../src/task/tokens.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const start = Date.UTC(2026, 6, 28);

function setUp() {
  const clock = new FakeClock(start);
  const tokens = new ProgressTokens(clock);
  const connection = { name: "ada's client" };
  const track = (token: string | number, more: { connection?: object; tool?: string; isAlive?: () => boolean } = {}) =>
    tokens.track({ token, connection, tool: "report_build", isAlive: () => true, ...more });
  const listed = () => tokens.list().map(({ token }) => token);
  onTestFinished(() => {
    for (const mine of [connection, ...others]) tokens.dropConnection(mine);
    expect(clock.pendingTimers).toBe(0);
  });
  const others: object[] = [];
  const otherConnection = () => {
    const other = { name: "bob's client" };
    others.push(other);
    return other;
  };
  return { clock, tokens, connection, track, listed, otherConnection };
}

const page = (value: number): ProgressUpdate => ({
  value,
  total: 12,
  percentage: (100 * value) / 12,
  message: `Page ${value} of 12`,
  context: { stage: "render" },
});

describe("a tracked token", () => {
  test("is listed with its tool and its start, and nothing yet to say", () => {
    const { tokens, connection, track } = setUp();
    track("t-1");
    const view = { token: "t-1", tool: "report_build", startedAt: start, updatedAt: start };
    expect(tokens.list()).toEqual([
      { ...view, value: undefined, total: undefined, percentage: undefined, message: undefined },
    ]);
    expect(tokens.get(connection, "t-1")).toEqual(tokens.list()[0]);
    expect(tokens.get(connection, "t-2")).toBeUndefined();
  });

  test("remembers the last update and when it came", () => {
    const { clock, tokens, connection, track } = setUp();
    const tracked = track("t-1");
    tracked.update(page(1));
    clock.advance(2_000);
    tracked.update(page(3));
    clock.advance(1_000);
    expect(tokens.get(connection, "t-1")).toEqual({
      token: "t-1",
      tool: "report_build",
      startedAt: start,
      updatedAt: start + 2_000,
      value: 3,
      total: 12,
      percentage: 25,
      message: "Page 3 of 12",
    });
  });

  test("is a picture of its moment: what is handed out does not change", () => {
    const { tokens, connection, track } = setUp();
    const tracked = track("t-1");
    const before = tokens.get(connection, "t-1");
    tracked.update(page(3));
    expect(before?.value).toBeUndefined();
  });

  test("is gone when its call ends; ending twice is as good as once", () => {
    const { clock, tokens, connection, track, listed } = setUp();
    const tracked = track("t-1");
    track("t-2");
    tracked.drop();
    tracked.drop();
    tracked.update(page(1));
    expect(listed()).toEqual(["t-2"]);
    expect(tokens.get(connection, "t-1")).toBeUndefined();
    expect(clock.pendingTimers).toBe(1);
  });

  test("may be used again by a later call, which the end of the earlier one does not touch", () => {
    const { tokens, connection, track } = setUp();
    const earlier = track("t-1", { tool: "earlier" });
    earlier.drop();
    track("t-1", { tool: "later" });
    earlier.drop();
    earlier.update(page(1));
    expect(tokens.get(connection, "t-1")).toMatchObject({ tool: "later", value: undefined });
  });

  test("is told from another client's token of the same name, and a number from its digits", () => {
    const { tokens, connection, track, otherConnection } = setUp();
    const other = otherConnection();
    track(1, { tool: "number" });
    track("1", { tool: "digits" });
    const theirs = track(1, { tool: "theirs", connection: other });
    expect(
      [tokens.get(connection, 1), tokens.get(connection, "1"), tokens.get(other, 1), tokens.get(other, "1")].map(
        (view) => view?.tool,
      ),
    ).toEqual(["number", "digits", "theirs", undefined]);
    theirs.drop();
    expect(tokens.list().map(({ tool }) => tool)).toEqual(["number", "digits"]);
  });

  test("goes with its client, and only with its own", () => {
    const { tokens, connection, track, listed, otherConnection } = setUp();
    track("t-1");
    const late = track("t-2");
    track("t-1", { connection: otherConnection(), tool: "theirs" });
    tokens.dropConnection(connection);
    late.update(page(1));
    late.drop();
    expect(tokens.list()).toMatchObject([{ token: "t-1", tool: "theirs" }]);
    tokens.dropConnection(connection);
    tokens.dropConnection({});
    expect(listed()).toEqual(["t-1"]);
  });
});

test("a connection's tokens go the moment it is closed, also those of later calls", () => {
  const { tokens, connection, track, listed } = setUp();
  const closed = new AbortController();
  for (const token of ["t-1", "t-2"]) {
    tokens.dropWhenClosed(connection, closed.signal);
    track(token).drop();
  }
  track("t-3");
  expect(listed()).toEqual(["t-3"]);
  closed.abort();
  expect(listed()).toEqual([]);
});

describe("a second call with a live token", () => {
  test("is not listed and says nothing; the token goes on speaking for the first", () => {
    const { tokens, connection, track } = setUp();
    const first = track("t-1", { tool: "first" });
    const second = track("t-1", { tool: "second" });
    first.update(page(3));
    second.update(page(9));
    expect(tokens.list()).toMatchObject([{ tool: "first", value: 3 }]);
    second.drop();
    expect(tokens.get(connection, "t-1")).toMatchObject({ tool: "first", value: 3 });
  });

  test("stays so after the first has ended", () => {
    const { track, listed } = setUp();
    const first = track("t-1", { tool: "first" });
    const second = track("t-1", { tool: "second" });
    first.drop();
    second.update(page(9));
    expect(listed()).toEqual([]);
  });
});

describe("the sweep", () => {
  test("drops a token after nobody has worked on its call for 30 s", () => {
    const { clock, track, listed } = setUp();
    track("t-1", { isAlive: () => false });
    track("t-2");
    // First seen without a worker at 5 s.
    clock.advance(34_999);
    expect(listed()).toEqual(["t-1", "t-2"]);
    clock.advance(1);
    expect(listed()).toEqual(["t-2"]);
  });

  test("looks every 5 s", () => {
    const { clock, track } = setUp();
    let looks = 0;
    track("t-1", {
      isAlive() {
        looks += 1;
        return true;
      },
    });
    clock.advance(4_999);
    expect(looks).toBe(0);
    clock.advance(1);
    expect(looks).toBe(1);
    clock.advance(55_000);
    expect(looks).toBe(12);
  });

  test("leaves a silent call that lives its token, however long", () => {
    const { clock, track, listed } = setUp();
    track("t-1");
    clock.advance(24 * 3_600_000);
    expect(listed()).toEqual(["t-1"]);
  });

  test("begins anew when somebody takes the call up again", () => {
    const { clock, track, listed } = setUp();
    let isAlive = false;
    track("t-1", { isAlive: () => isAlive });
    clock.advance(30_000);
    isAlive = true;
    clock.advance(5_000);
    isAlive = false;
    clock.advance(34_999);
    expect(listed()).toEqual(["t-1"]);
    clock.advance(1);
    expect(listed()).toEqual([]);
  });

  test("leaves no timer behind the last token, whichever way it went, and starts again with the next", () => {
    const { clock, tokens, connection, track, listed } = setUp();
    expect(clock.pendingTimers).toBe(0);
    const tracked = track("t-1");
    track("t-2").drop();
    expect(clock.pendingTimers).toBe(1);
    tracked.drop();
    expect(clock.pendingTimers).toBe(0);
    track("t-1");
    tokens.dropConnection(connection);
    expect(clock.pendingTimers).toBe(0);
    track("t-1", { isAlive: () => false });
    clock.advance(60_000);
    expect({ listed: listed(), timers: clock.pendingTimers }).toEqual({ listed: [], timers: 0 });
  });
});

describe("ten thousand live tokens", () => {
  /**
   * Runs in a process of its own, where nothing else is allocated and the heap can be collected. The calls themselves
   * are there before.
   */
  const measure = `
    import { ProgressTokens } from ${JSON.stringify(pathToFileURL(path.resolve(import.meta.dirname, "../../src/task/tokens.ts")).href)};
    const clock = { now: () => Date.now(), monotonic: () => performance.now(), after: () => () => {} };
    const perClient = Number(process.argv[1]);
    // As it comes off the wire: in one piece.
    const flat = (text) => JSON.parse(JSON.stringify([text]))[0];
    const clients = Array.from({ length: 10_000 / perClient }, () => ({}));
    const calls = Array.from({ length: 10_000 }, (_, at) => {
      const call = { isLive: true };
      return { token: flat("token-" + at), connection: clients[Math.floor(at / perClient)], tool: "report_build", isAlive: () => call.isLive };
    });
    function fill(tokens) {
      for (const [at, call] of calls.entries()) {
        const tracked = tokens.track(call);
        tracked.update({ value: at + 0.5, total: 20_000.5, percentage: at / 200, message: flat("Page " + at + " of 20000"), context: { stage: "render" } });
      }
    }
    function heap() {
      for (let turn = 0; turn < 3; turn++) globalThis.gc();
      return process.memoryUsage().heapUsed;
    }
    const tokens = new ProgressTokens(clock);
    // The first time compiles the code, which is not what grows.
    fill(tokens);
    for (const client of clients) tokens.dropConnection(client);
    const before = heap();
    fill(tokens);
    const bytes = (heap() - before) / calls.length;
    process.stdout.write(JSON.stringify({ bytes, listed: tokens.list().length, last: tokens.get(calls.at(-1).connection, calls.at(-1).token).value }));
  `;

  test.each([
    ["of one client", 10_000],
    ["of a hundred clients", 100],
    ["of as many clients", 1],
  ])("%s take no more than 500 bytes each, their words included", async (_, perClient) => {
    const words = [
      "--expose-gc",
      "--disable-warning=ExperimentalWarning",
      "--input-type=module",
      "--eval",
      measure,
      String(perClient),
    ];
    const { stdout } = await promisify(execFile)(process.execPath, words);
    const { bytes, ...facts } = JSON.parse(stdout) as { bytes: number; listed: number; last: number };
    expect(facts).toEqual({ listed: 10_000, last: 9_999.5 });
    expect(bytes).toBeGreaterThan(100);
    expect(bytes).toBeLessThanOrEqual(500);
  });
});
