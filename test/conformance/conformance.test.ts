import { expect, test } from "vitest";
import { runConformance } from "../../scripts/conformance.mjs";

/** A run takes up to a minute; the script's own limits end it before this. */
const timeout = 300_000;

test("official conformance, requirements 2025-11-25: 84 passed, 0 failed", { timeout }, async () => {
  const { passed, failed, scenarios } = await runConformance("2025-11-25");
  expect(scenarios.filter((scenario) => scenario.failed > 0)).toEqual([]);
  expect({ passed, failed, scenarios: scenarios.length }).toEqual({ passed: 84, failed: 0, scenarios: 33 });
});

test("official conformance, requirements 2026-07-28: no failure outside tasks-*", { timeout }, async () => {
  const { scenarios } = await runConformance("2026-07-28");
  const required = scenarios.filter(({ name }) => !name.startsWith("tasks-"));
  expect(required.filter((scenario) => scenario.failed > 0)).toEqual([]);
  expect(required).toHaveLength(40);
  // A scenario that gives up early has no failures either.
  expect(required.reduce((sum, { passed }) => sum + passed, 0)).toBeGreaterThanOrEqual(151);
});
