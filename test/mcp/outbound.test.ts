import { expect, test } from "vitest";
import { Backlog, BacklogPlace, ResultRoom } from "../../src/mcp/outbound.ts";
import type { ClientConnection } from "../../src/mcp/request.ts";
import { FakeClock, pass, turns } from "../helpers/fake-clock.ts";

/** A request on a way that never says that an answer has left: none comes for what was taken back. */
function ask(backlog: Backlog, results = new ResultRoom(new FakeClock(), 64 * 1024 * 1024)) {
  const [stop, closed, left] = [new AbortController(), new AbortController(), Promise.withResolvers<boolean>()];
  const request = {
    id: 1,
    outbound: { backlog, whenLeft: () => left.promise },
    signal: stop.signal,
    connection: { closed: closed.signal } as ClientConnection,
  };
  const lose = () => {
    closed.abort();
    stop.abort();
    left.resolve(false);
  };
  return { place: new BacklogPlace(request, results), cancel: () => stop.abort(), lose };
}

test("a request that is taken back while it waits for room leaves none taken, and nobody waits for its answer to leave", async () => {
  const backlog = new Backlog(100);
  const [first, second, third] = [ask(backlog), ask(backlog), ask(backlog)];
  await first.place.take(100);
  const waiting = [second.place.take(100), third.place.take(100)];
  second.cancel();
  first.cancel();
  expect(await first.place.whenLeft()).toBe(true);
  await Promise.all(waiting);
  expect(await second.place.whenLeft(), "nobody wants it").toBe(true);
  expect(backlog.hasRoom(1), "the third has its room").toBe(false);
  const left = third.place.whenLeft();
  third.lose();
  expect(await left, "nobody was there to take it").toBe(false);
  expect(backlog.isEmpty).toBe(true);
});

test("a request that was taken back does not wait for room, so that nobody asks for it again and again", async () => {
  const full = new Backlog(100);
  await full.take(100);
  const { place, cancel } = ask(full);
  const data = { text: "x".repeat(100_000) };
  const waiting = place.wait(data);
  expect(waiting).toBeInstanceOf(Promise);
  cancel();
  await waiting;
  expect(place.wait(data)).toBeUndefined();
  const late = ask(full);
  late.cancel();
  await late.place.take(100);
  expect(late.place.wait(data)).toBeUndefined();
});

/** A server's room, and connections that take it. `parts` holds what each client has not taken. */
function openRoom() {
  const clock = new FakeClock();
  const results = new ResultRoom(clock, 300);
  const closed: string[] = [];
  const parts: Record<string, number | undefined> = {};
  const take = (name: string, bytes: number) => {
    const released = Promise.withResolvers<() => void>();
    const outbound = {
      backlog: new Backlog(),
      whenLeft: () => Promise.resolve(true),
      get untakenPart() {
        return parts[name];
      },
      closeSlow: () => {
        closed.push(name);
        void released.promise.then((giveBack) => giveBack());
      },
    };
    const taken = results.take(bytes, outbound, new AbortController().signal);
    void taken.then(released.resolve);
    return taken;
  };
  return { clock, results, closed, parts, take };
}

test("while others wait for room, the connection that reads slowest is closed, and its room goes to the next", async () => {
  const { clock, results, closed, parts, take } = openRoom();
  await take("slow", 20);
  await take("fast", 80);
  Object.assign(parts, { slow: 3, fast: 0 });
  // A result counts three times: as it is, as JSON, and as what is sent.
  expect(results.hasRoom(1)).toBe(false);
  await pass(clock, 10_000);
  expect(closed, "nobody waits").toEqual([]);
  const next = take("next", 20);
  await pass(clock, 1_000);
  parts.fast = 1;
  await pass(clock, 900);
  expect(closed).toEqual([]);
  await pass(clock, 100);
  expect(closed).toEqual(["slow"]);
  await next;
});

test("no connection is closed whose answer is not written yet, or whose client takes parts", async () => {
  const { clock, closed, parts, take } = openRoom();
  await take("one", 100);
  void take("next", 20);
  await pass(clock, 10_000);
  for (parts.one = 0; parts.one < 10; parts.one++) await pass(clock, 1_500);
  expect(closed).toEqual([]);
  await pass(clock, 2_500);
  expect(closed).toEqual(["one"]);
});

test("results that only go to the disk are written out one after the other where there is no room for two", async () => {
  const results = new ResultRoom(new FakeClock(), 300);
  const [first, second] = [ask(new Backlog(100), results), ask(new Backlog(100), results)];
  await first.place.enterAside(100);
  let isWritten = false;
  const waiting = second.place.enterAside(100).then(() => (isWritten = true));
  await turns();
  expect(isWritten).toBe(false);
  first.place.leaveAside();
  await waiting;
  second.place.leaveAside();
  expect(results.hasRoom(100)).toBe(true);
});

test("a call that becomes a task in the moment when room is granted leaves none taken", async () => {
  const results = new ResultRoom(new FakeClock(), 300);
  const [first, second] = [ask(new Backlog(100), results), ask(new Backlog(100), results)];
  await first.place.enterAside(100);
  const waiting = second.place.enterAside(100);
  first.place.leaveAside();
  second.place.leaveUnlessUsed();
  await waiting;
  expect(results.hasRoom(100)).toBe(true);
});
