import { expect, test } from "vitest";
import { findLimit } from "../../scripts/simulate/limit.mjs";
import { type Costs, simulate } from "../../scripts/simulate/model.mjs";
import { Events, GroupCommit, randomOf, Servers, Slots } from "../../scripts/simulate/stations.mjs";

/** Next to nothing of anything. */
const light: Costs = {
  createMs: 0.01,
  claimMs: 0.01,
  settleMs: 0.01,
  commitMs: 0.01,
  noticeMs: 0.001,
  lockMs: 0.001,
  hearMs: 0.0001,
  nodeMs: 0.01,
  nodeHearMs: 0.0001,
  lookMs: 0.1,
  lookOfWorkerMs: 0.0001,
};
const terms = { cores: 4, pool: 8, places: 1_000 };

/** How long who comes stays on average, where one comes a millisecond at `rate` and one server serves one. */
function meanStay(count: number, rate: number): number {
  const random = randomOf(7);
  const draw = (mean: number) => -Math.log(1 - random()) * mean;
  const events = new Events();
  const servers = new Servers(events, count, { from: 0, to: Number.POSITIVE_INFINITY });
  let [stayed, total] = [0, 0];
  const come = () => {
    const at = events.now;
    servers.serve(draw(1), () => {
      stayed += 1;
      total += events.now - at;
    });
    events.after(draw(1 / rate), come);
  };
  events.after(0, come);
  events.runUntil(400_000);
  return total / stayed;
}

test("who comes at random to one server, or two, stays as long as theory says", () => {
  expect(meanStay(1, 0.7) / (1 / (1 - 0.7))).toBeCloseTo(1, 1);
  expect(meanStay(2, 1.4) / (1 / (1 - 0.7 ** 2))).toBeCloseTo(1, 1);
});

test("events come in the order of their time, and those of one time in the order in which they were made", () => {
  const events = new Events();
  const seen: string[] = [];
  for (const [ms, name] of [
    [3, "c"],
    [1, "a"],
    [2, "b"],
    [3, "d"],
    [9, "late"],
  ] as const)
    events.after(ms, () => seen.push(`${name} at ${events.now}`));
  events.runUntil(5);
  expect(seen).toEqual(["a at 1", "b at 2", "c at 3", "d at 3"]);
});

test("who comes while the disk is written waits for the next time, with all the others", () => {
  const events = new Events();
  const disk = new GroupCommit(events, () => 10, { from: 0, to: 100 });
  const done: number[] = [];
  for (const ms of [0, 1, 2, 9]) events.after(ms, () => disk.commit(() => done.push(events.now)));
  events.runUntil(100);
  expect(done).toEqual([10, 20, 20, 20]);
  expect(disk.busy).toBeCloseTo(0.2);
});

test("a place is given to who waits longest, who is told so", () => {
  const events = new Events();
  const slots = new Slots(events, 1, { from: 0, to: 10 });
  const seen: string[] = [];
  for (const name of ["first", "second", "third"])
    slots.take((release, hasWaited) => {
      seen.push(`${name} at ${events.now}${hasWaited ? ", waited" : ""}`);
      events.after(2, release);
    });
  events.runUntil(10);
  expect(seen).toEqual(["first at 0", "second at 2, waited", "third at 4, waited"]);
  expect(slots.busy).toBeCloseTo(0.6);
});

test("one seed gives the same figures each time, and another one others", () => {
  const run = (seed: number) =>
    simulate({ nodes: 5, tasksPerSecond: 200, runMs: 50, costs: light, terms, seconds: 10, seed });
  expect(run(3)).toEqual(run(3));
  expect(run(4).p99).not.toBe(run(3).p99);
});

test("as many are held as come in the time that each is held, and all that come are done", () => {
  const { held, heldMs, perSecond } = simulate({
    nodes: 10,
    tasksPerSecond: 500,
    runMs: 200,
    costs: light,
    terms,
    seconds: 60,
    seed: 1,
  });
  expect(perSecond / 500).toBeCloseTo(1, 1);
  expect(heldMs).toBeGreaterThan(190);
  expect(held / ((perSecond * heldMs) / 1000)).toBeCloseTo(1, 1);
});

test.each([
  ["processor", { createMs: 2, settleMs: 2 }, {}],
  ["processor", { hearMs: 3 }, {}],
  ["processor", { lookOfWorkerMs: 1_200 }, {}],
  ["disk", { commitMs: 20 }, { pool: 50 }],
  ["lock", { lockMs: 4 }, { cores: 16, pool: 50 }],
  ["pool", { createMs: 3, settleMs: 3 }, { cores: 16, pool: 1 }],
  ["places", {}, { places: 2 }],
  ["node", { nodeMs: 5 }, {}],
  ["node", { nodeHearMs: 5 }, {}],
] as const)("where it must be the %s that fills up first, it is found (%j)", (expected, dear, few) => {
  const { first, limit, tasksPerSecond } = findLimit({
    nodes: 4,
    runMs: 100,
    costs: { ...light, ...dear },
    terms: { ...terms, ...few },
    seed: 1,
  });
  expect(first).toBe(expected);
  expect(tasksPerSecond).toBeGreaterThan(1);
  expect(Math.max(...Object.values(limit.busy))).toBeLessThanOrEqual(0.95);
});

test("what every node hears costs more the more nodes there are, and what each looks for more the more of them hold a task", () => {
  const costs = { ...light, lookOfWorkerMs: 0.05 };
  const spent = (nodes: number, runMs: number) =>
    simulate({ nodes, tasksPerSecond: 100, runMs, costs, terms, seconds: 20, seed: 1 }).spent;
  expect(spent(200, 100).notices / spent(20, 100).notices).toBeGreaterThan(4);
  expect(spent(200, 2_000).looks).toBeGreaterThan(spent(200, 10).looks * 2);
});
