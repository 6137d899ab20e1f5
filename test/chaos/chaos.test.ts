import { expect, test } from "vitest";
import { runChaos, summarize } from "./driver.ts";

const seconds = Number(process.env.MEANWHILE_CHAOS_SECONDS) || 25;

test("kill -9 at every named step and at any moment: nothing is lost, nothing changes, nothing is done twice", {
  timeout: seconds * 1000 + 180_000,
}, async () => {
  const report = await runChaos({ kills: Number.POSITIVE_INFINITY, seconds, seed: 20_260_728 });
  process.stdout.write(summarize(report));
  const { lost, changed, double, other } = report;
  expect({ lost, changed, double, other }).toEqual({ lost: [], changed: [], double: [], other: [] });
  const kills = [...report.kills.values()].reduce((sum, count) => sum + count, 0);
  expect(kills).toBeGreaterThanOrEqual(40);
  expect([...report.kills.keys()]).toEqual(
    expect.arrayContaining(["after-insert", "before-ack", "after-claim", "mid-run", "before-settle", "after-settle", "before-notify", "random"]),
  );
});
