import { expect } from "vitest";
import { isLong, rounds } from "../helpers/long.ts";
import { type ChaosOptions, type ChaosReport, runChaos, summarize } from "./driver.ts";

const given = Number(process.env.MEANWHILE_CHAOS_SECONDS) || undefined;
/** The time is only a guard: every day it goes on for two minutes, beside all other tests, in check:long until so many were killed. */
const seconds = given ?? 360;
const times = given === undefined && !isLong ? { leastSeconds: 120, restMs: 10_000 } : {};
const leastKills = rounds(20, 45);

/** For a test that calls `survives`. */
export const timeout = seconds * 1000 + 240_000;

/** Where workers and producers are killed. */
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

/** Processes are killed at every place, and nothing is lost, changed or done twice. */
export async function survives(options: Pick<ChaosOptions, "store"> = {}): Promise<ChaosReport> {
  const kills = given === undefined ? leastKills : Number.POSITIVE_INFINITY;
  const report = await runChaos({ ...options, ...times, kills, places, seconds, seed: 20_260_728 });
  process.stdout.write(summarize(report));
  const { lost, changed, double, other } = report;
  expect({ lost, changed, double, other }).toEqual({ lost: [], changed: [], double: [], other: [] });
  expect([...report.kills.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(leastKills);
  expect([...report.kills.keys()]).toEqual(expect.arrayContaining(places));
  return report;
}
