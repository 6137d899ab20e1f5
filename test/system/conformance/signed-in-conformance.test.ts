import { expect, test } from "vitest";
import { runConformanceSignedIn } from "../../../scripts/conformance.mjs";

/**
 * A server that asks for credentials is judged as one that does not. The suite sends no credential, so a proxy adds it.
 * `npm run conformance -- --signed-in` runs both revisions with both kinds of credential.
 */
const timeout = 300_000;
/** The referee waits only so long for an answer, and a busy machine may be later: what fails twice has failed. */
const retry = 1;

test("official conformance, requirements 2025-11-25, with an API key: 84 passed, 0 failed", {
  timeout,
  retry,
}, async () => {
  const { passed, failed, scenarios } = await runConformanceSignedIn("2025-11-25", "key");
  expect(scenarios.filter((scenario) => scenario.failed > 0)).toEqual([]);
  expect({ passed, failed, scenarios: scenarios.length }).toEqual({ passed: 84, failed: 0, scenarios: 33 });
});

/**
 * All scenarios have one caller here. This one repeats a call of another scenario, which waits for an answer, and joins
 * it: answers without a `requestState` count for a call that begins.
 */
const joins = "input-required-result-ignore-extra-params";

test("official conformance, requirements 2026-07-28, with an access token: 0 failed, all 44 checks of tasks-* passed", {
  timeout,
  retry,
}, async () => {
  const { failed, passed, scenarios } = await runConformanceSignedIn("2026-07-28", "token");
  expect(scenarios.filter((scenario) => scenario.failed > 0)).toEqual([]);
  expect({ failed, scenarios: scenarios.length }).toEqual({ failed: 0, scenarios: 50 });
  const ofTasks = scenarios.filter(({ name }) => name.startsWith("tasks-"));
  expect(ofTasks.reduce((sum, scenario) => sum + scenario.passed, 0)).toBe(44);
  expect(passed).toBeGreaterThanOrEqual(195);
  const warned = scenarios.filter(({ warnings }) => warnings.length > 0).map(({ name }) => name);
  expect(warned.filter((name) => name !== joins)).toEqual([]);
});
