import { expect, test } from "vitest";
import { rounds } from "../helpers/long.ts";
import { runChaos, summarize } from "./driver.ts";

const given = Number(process.env.MEANWHILE_CHAOS_SECONDS) || undefined;
const seconds = given ?? 240;
/**
 * Unless it is told for how long, it goes on until so many were killed, and one at every place; the time is only the
 * guard.
 */
const kills = given === undefined ? rounds(8, 45) : Number.POSITIVE_INFINITY;
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

test("kill -9 at every named step and at any moment: nothing is lost, nothing changes, nothing is done twice", {
  timeout: seconds * 1000 + 240_000,
}, async () => {
  const report = await runChaos({ kills, places, seconds, seed: 20_260_728 });
  process.stdout.write(summarize(report));
  const { lost, changed, double, other } = report;
  expect({ lost, changed, double, other }).toEqual({ lost: [], changed: [], double: [], other: [] });
  expect([...report.kills.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(rounds(8, 40));
  expect([...report.kills.keys()]).toEqual(expect.arrayContaining(places));
});
