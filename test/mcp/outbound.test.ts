import { expect, test } from "vitest";
import { Backlog, BacklogPlace } from "../../src/mcp/outbound.ts";
import type { ClientConnection } from "../../src/mcp/request.ts";

/** A request on a way that never says that an answer has left: none comes for what was taken back. */
function ask(backlog: Backlog) {
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
  return { place: new BacklogPlace(request), cancel: () => stop.abort(), lose };
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
