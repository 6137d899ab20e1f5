import { expect, test } from "vitest";
import { IgnoredRequests } from "../../src/gateway/ignored-requests.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { turns } from "../helpers/in-memory.ts";

/** A server that was told to stop: it answers a ping or hangs, and others need it or not. */
function setUp({ answers = true, isIdle = true } = {}) {
  const clock = new FakeClock();
  const server = { ended: 0, isIdle, pings: 0 };
  const ignored = new IgnoredRequests({
    clock,
    isIdle: () => server.isIdle,
    isOver: () => server.ended > 0,
    ping: () => {
      server.pings += 1;
      return answers ? Promise.resolve() : new Promise(() => undefined);
    },
    end: () => {
      server.ended += 1;
    },
    cancelTask: () => undefined,
  });
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      clock.advance(1_000);
      await turns(2);
    }
  };
  return { server, ignored, pass };
}

test("12: one that obeys says nothing more, answers other things, and is left as it is", async () => {
  const { server, ignored, pass } = setUp();
  ignored.add(1, true);
  await pass(60);
  expect(server).toMatchObject({ ended: 0, pings: 1 });
});

test("12: one that still tells of what it was told to stop is ended, once nobody else needs it", async () => {
  const { server, ignored, pass } = setUp({ isIdle: false });
  ignored.add(1, true);
  ignored.heardOf(1);
  await pass(30);
  expect(server.ended).toBe(0);
  server.isIdle = true;
  await pass(10);
  expect(server.ended).toBe(1);
});

test("12: one of which something is heard long after is watched again", async () => {
  const { server, ignored, pass } = setUp();
  ignored.add(1, true);
  await pass(60);
  ignored.heardOf(1);
  await pass(9);
  expect(server.ended).toBe(0);
  await pass(2);
  expect(server.ended).toBe(1);
});

test("12: one that hangs is ended; at an address nobody can be", async () => {
  const hung = setUp({ answers: false });
  hung.ignored.add(1, true);
  await hung.pass(14);
  expect(hung.server.ended).toBe(0);
  await hung.pass(2);
  expect(hung.server.ended).toBe(1);
  const far = setUp({ answers: false });
  far.ignored.add(1, false);
  far.ignored.heardOf(1);
  await far.pass(60);
  expect(far.server).toMatchObject({ ended: 0, pings: 0 });
});

test("12: one that has answered is not watched any more", async () => {
  const { server, ignored, pass } = setUp({ answers: false });
  ignored.add(1, true);
  ignored.answered({ id: 1, result: {} });
  ignored.heardOf(1);
  await pass(60);
  expect(server).toMatchObject({ ended: 0, pings: 0 });
});
