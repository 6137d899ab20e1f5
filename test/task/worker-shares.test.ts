import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { anonymousKey } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { FairQueue, Turns, whoIsFull } from "../../src/task/shares.ts";
import { Worker } from "../../src/task/worker.ts";
import { openEngine } from "../helpers/engine.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { moving, turns } from "../helpers/in-memory.ts";

/**
 * A worker as a server has one, for commands that go on until they are told to end, and the order in which they began.
 */
function setUp(concurrency?: number) {
  const clock = new FakeClock();
  const began: { readonly caller: string; readonly end: () => void }[] = [];
  const order: string[] = [];
  const input = z.object({ caller: z.string() });
  const run = ({ caller }: { caller: string }) =>
    new Promise<object>((resolve) => {
      order.push(caller);
      began.push({ caller, end: () => resolve({}) });
    });
  const commands = {
    hold: defineCommand({ summary: "Goes on until it is told to end", input, run }),
    watch: defineCommand({ summary: "Never ends by itself", input, estimate: () => Number.POSITIVE_INFINITY, run }),
  };
  const find = (name: string) => ({
    toolName: name,
    command: commands[name as keyof typeof commands],
    path: [name],
    file: "",
  });
  const { store, history, engine, facts } = openEngine(clock);
  const worker = new Worker({ ...facts, find, ...(concurrency !== undefined && { concurrency }) });
  worker.start();
  onTestFinished(async () => {
    for (const { end } of began) end();
    await moving(clock, worker.stop(0));
    await history.flush();
    await store.close();
  });
  const create = async (caller: string, count: number, name: keyof typeof commands = "hold") => {
    for (let made = 0; made < count; made++)
      await engine.create({ entry: find(name), input: { caller }, caller, reason: "test", isNew: true });
    await turns(20);
  };
  const runningOf = (caller: string) => began.filter((one) => one.caller === caller).length;
  /** Ends the oldest run of this caller that goes on. */
  const endOne = async (caller: string) => {
    const at = began.findIndex((one) => one.caller === caller);
    began.splice(at, 1)[0]?.end();
    await turns(20);
  };
  return { began, order, create, runningOf, endOne };
}

test("one caller alone has all places, and the first tasks of another start at once although none of them ends", async () => {
  const { create, runningOf, endOne } = setUp();
  await create("local:ada", 50);
  expect(runningOf("local:ada")).toBe(16);
  await create("local:bob", 50);
  expect([runningOf("local:ada"), runningOf("local:bob")]).toEqual([16, 4]);
  for (let ended = 0; ended < 10; ended++) await endOne("local:ada");
  // Places beyond the sixteen go first; then who has fewest gets what becomes free.
  expect([runningOf("local:ada"), runningOf("local:bob")]).toEqual([8, 8]);
});

test("however many wait, callers who cannot be told apart have half of the places together", async () => {
  const { create, runningOf } = setUp();
  await create(anonymousKey, 100);
  expect(runningOf(anonymousKey)).toBe(8);
  await create("local", 100);
  expect([runningOf(anonymousKey), runningOf("local")]).toEqual([8, 8]);
});

test("however many callers there are, there are no more than twice as many places, the last of them for who has none", async () => {
  const { began, create } = setUp();
  for (let n = 0; n < 20; n++) await create(`local:caller-${n}`, 10);
  expect(began).toHaveLength(32);
  expect(new Set(began.map(({ caller }) => caller)).size).toBe(12);
});

test("with one place callers take turns, however much one of them has queued before", async () => {
  const { began, order, create } = setUp(1);
  await create("local:ada", 4);
  await create("local:bob", 3);
  await create("local:carl", 2);
  while (began.length > 0) {
    began.shift()?.end();
    await turns(20);
  }
  expect(order).toEqual([
    "local:ada",
    "local:bob",
    "local:carl",
    "local:ada",
    "local:bob",
    "local:carl",
    "local:ada",
    "local:bob",
    "local:ada",
  ]);
});

test("endless tasks take none of the ordinary places, and have few of their own", async () => {
  const { create, runningOf } = setUp();
  await create(anonymousKey, 20, "watch");
  expect(runningOf(anonymousKey)).toBe(4);
  await create("local:ada", 20, "watch");
  expect(runningOf("local:ada")).toBe(12);
  await create("local:bob", 3, "watch");
  expect(runningOf("local:bob")).toBe(2);
  await create("local:ada", 16);
  expect(runningOf("local:ada")).toBe(12 + 16);
  await create(anonymousKey, 16);
  expect(runningOf(anonymousKey)).toBe(4 + 4);
});

test("who waits for a child process gets one before who has one already, and who has none is not kept out", async () => {
  const queue = new FairQueue({ total: 2, anonymous: 1, guaranteed: 1 });
  const inside: string[] = [];
  const leave = new Map<string, () => void>();
  const enter = (caller: string, name: string) =>
    void queue.enter(caller).then((out) => {
      inside.push(name);
      leave.set(name, out);
    });
  enter(anonymousKey, "s1");
  enter(anonymousKey, "s2");
  enter("ada", "a1");
  enter("ada", "a2");
  enter("bob", "b1");
  await turns();
  expect(inside).toEqual(["s1", "a1", "b1"]);
  leave.get("b1")?.();
  leave.get("s1")?.();
  await turns();
  expect(inside).toEqual(["s1", "a1", "b1", "s2"]);
  leave.get("a1")?.();
  await turns();
  expect(inside.at(-1)).toBe("a2");
});

test("who is full", () => {
  const limits = { total: 8, each: 6, anonymous: 4, guaranteed: 2 };
  const full = (held: Record<string, number>) => whoIsFull(new Map(Object.entries(held)), limits);
  expect(full({})).toEqual([]);
  expect(full({ ada: 5, bob: 1 })).toEqual([]);
  expect(full({ ada: 6, bob: 1 })).toEqual(["ada"]);
  expect(full({ anonymous: 4, bob: 1 })).toEqual(["anonymous"]);
  expect(full({ ada: 6, bob: 2, carl: 1 })).toEqual(["ada", "bob"]);
  expect(full({ ada: 6, bob: 5, carl: 1 })).toEqual(["ada", "bob", "carl"]);
  expect(full({ ada: 6, bob: 6, carl: 4 })).toBe("everybody");
});

test("turns: who runs least, then who was served longest ago; who was never served comes before all", () => {
  const order = new Turns();
  for (const caller of ["ada", "bob", "carl", "ada"]) order.serve(caller);
  const sorted = order.order(new Map([["bob", 1]])).toSorted(([, a], [, b]) => a - b);
  expect(sorted.map(([caller]) => caller)).toEqual(["carl", "ada", "bob"]);
  expect(sorted.every(([, turn]) => turn > 0)).toBe(true);
});
