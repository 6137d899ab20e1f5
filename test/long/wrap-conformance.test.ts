import { expect, test } from "vitest";
import { runConformanceThroughWrap } from "../../scripts/conformance.mjs";

/** `wrap --http --allow-anonymous -- meanwhile -C examples/everything serve --in-process`, judged as a server of its own. */
const timeout = 400_000;
/** The referee waits only so long for an answer, and a busy machine may be later: what fails twice has failed. */
const retry = 1;

test("official conformance through wrap, 2025-11-25: 84 passed, 0 failed", { timeout, retry }, async () => {
  const { passed, failed, scenarios } = await runConformanceThroughWrap("2025-11-25");
  expect(scenarios.filter((scenario) => scenario.failed > 0)).toEqual([]);
  expect({ passed, failed, scenarios: scenarios.length }).toEqual({ passed: 84, failed: 0, scenarios: 33 });
});
