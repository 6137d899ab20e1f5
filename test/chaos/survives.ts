import { expect } from "vitest";
import { rounds } from "../helpers/rounds.ts";
import { type ChaosOptions, type ChaosReport, runChaos, summarize } from "./driver.ts";

/** A run on a busy machine goes on until enough processes were killed. This limit only guards against hanging. */
const guardSeconds = 360;

/** For a test that calls `survives`: the run, and the work that is left after it. */
export const timeout = (guardSeconds + 240) * 1_000;

/** Where workers and producers are killed: at each named step, and at any moment. */
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

/**
 * Kills processes for the seconds of `rounds`, and on until one was killed at every place. Fails if a task was lost,
 * changed or done twice.
 */
export async function survives(options: Pick<ChaosOptions, "store"> = {}): Promise<ChaosReport> {
  const { chaosSeconds: leastSeconds, chaosKills: kills } = rounds;
  const leaseMs = 1_000;
  const report = await runChaos({
    ...options,
    ...{ kills, leastSeconds, leaseMs, places, seconds: guardSeconds, seed: 20_260_728 },
  });
  process.stdout.write(summarize(report));
  const { lost, changed, double, other } = report;
  expect({ lost, changed, double, other }).toEqual({ lost: [], changed: [], double: [], other: [] });
  expect([...report.kills.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(kills);
  expect([...report.kills.keys()]).toEqual(expect.arrayContaining(places));
  for (const count of Object.values(report.keySteps)) expect(count).toBeGreaterThan(0);
  return report;
}
