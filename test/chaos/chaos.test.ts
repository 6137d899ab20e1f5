import { expect, test } from "vitest";
import { isLong, rounds } from "../helpers/long.ts";
import { type ChaosOptions, runChaos, summarize } from "./driver.ts";

const given = Number(process.env.MEANWHILE_CHAOS_SECONDS) || undefined;
const seconds = given ?? 240;
const timeout = seconds * 1000 + 240_000;
/**
 * Unless it is told for how long, it goes on until so many were killed, and one at every place; the time is only the
 * guard.
 */
const untilKilled = (kills: number) => (given === undefined ? kills : Number.POSITIVE_INFINITY);
const places = [
  "after-insert",
  "before-ack",
  "after-claim",
  "mid-run",
  "before-settle",
  "after-settle",
  "before-notify",
  "random",
];

async function survives(options: Pick<ChaosOptions, "kills" | "places" | "store">) {
  const report = await runChaos({ ...options, seconds, seed: 20_260_728 });
  process.stdout.write(summarize(report));
  const { lost, changed, double, other } = report;
  expect({ lost, changed, double, other }).toEqual({ lost: [], changed: [], double: [], other: [] });
  return report;
}

test("kill -9 at every named step and at any moment: nothing is lost, nothing changes, nothing is done twice", {
  timeout,
}, async () => {
  const report = await survives({ kills: untilKilled(rounds(8, 45)), places });
  expect([...report.kills.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(rounds(8, 40));
  expect([...report.kills.keys()]).toEqual(expect.arrayContaining(places));
});

test("nodes and workers are killed, their queue is emptied, their database stops and crashes: nothing is lost, nothing changes, nothing is done twice", {
  timeout,
}, async () => {
  const report = await survives({ store: "postgres", kills: untilKilled(rounds(6, 45)), places: isLong ? places : [] });
  expect([...report.upsets.keys()].toSorted()).toEqual([
    "connections cut",
    "database crashed",
    "database stopped",
    "queue emptied",
  ]);
});
