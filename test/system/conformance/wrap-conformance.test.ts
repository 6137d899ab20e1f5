import { expect, test } from "vitest";
import { runConformanceThroughWrap } from "../../../scripts/conformance.mjs";

/** `wrap --http --allow-anonymous -- meanwhile -C examples/everything serve --in-process`, judged as a server of its own. */
const timeout = 400_000;
/** The referee waits only so long for an answer, and a busy machine may be later: what fails twice has failed. */
const retry = 1;

test("official conformance through wrap, 2026-07-28: 0 failed, all 44 checks of tasks-* among the passed", {
  timeout,
  retry,
}, async () => {
  const { failed, scenarios } = await runConformanceThroughWrap("2026-07-28");
  expect(scenarios.filter((scenario) => scenario.failed > 0)).toEqual([]);
  expect({ failed, scenarios: scenarios.length }).toEqual({ failed: 0, scenarios: 50 });
  const passed = (list: typeof scenarios) => list.reduce((sum, scenario) => sum + scenario.passed, 0);
  const isTasks = ({ name }: { name: string }) => name.startsWith("tasks-");
  expect(passed(scenarios.filter(isTasks))).toBe(44);
  expect(passed(scenarios.filter((scenario) => !isTasks(scenario)))).toBeGreaterThanOrEqual(151);
});
