import { expect, test } from "vitest";
import { judgeEmbedded, tasksPassedBy } from "../../../scripts/check-embed.mjs";
import { casesOf } from "../../helpers/rounds.ts";

/** Servers made with an SDK, wrapped by one line. `npm run check:embed` has all of them, and says more. */
const timeout = 300_000;
/** The referee waits only so long for an answer, and a busy machine may be later: what fails twice has failed. */
const retry = 1;

/**
 * What tools that know no questions of 2026-07-28 cannot have: their questions are named by us, a prompt asks nothing,
 * and no tool says for itself what its client lacks.
 */
const beyondThem = [
  "input-required-result-basic-elicitation",
  "input-required-result-capability-check",
  "input-required-result-non-tool-request",
  "json-schema-2020-12",
  "server-stateless",
];

test.concurrent.each(
  casesOf(
    [
      ["v1", "factory"],
      ["v2", "one"],
      ["v1", "one"],
      ["v2", "factory"],
    ] as const,
    1,
  ),
)(
  "official conformance, 2026-07-28: a server of SDK %s wrapped as %s passes all 44 checks of tasks-*",
  {
    timeout,
    retry,
  },
  async (server, how) => {
    const report = await judgeEmbedded(server, how, "2026-07-28");
    expect(tasksPassedBy(report)).toBe(44);
    const failing = report.scenarios.filter(({ failed }) => failed > 0).map(({ name }) => name);
    expect(failing.filter((name) => !beyondThem.includes(name))).toEqual([]);
  },
);

/**
 * What server-everything fails by itself: it has none of the prompts, resources and schemas that the suite asks for.
 * test/long/durable-conformance.test.ts runs it unwrapped beside it.
 */
const failedUnwrapped = [
  "completion-complete",
  "resources-read-text",
  "resources-read-binary",
  "resources-templates-read",
  "prompts-get-simple",
  "prompts-get-with-args",
  "prompts-get-embedded-resource",
  "prompts-get-with-image",
  "dns-rebinding-protection",
  "json-schema-2020-12",
];

test("official conformance, 2025-11-25: everything wrapped as factory fails nothing that it passes unwrapped", {
  timeout,
  retry,
}, async () => {
  const { scenarios, passed } = await judgeEmbedded("everything", "factory", "2025-11-25");
  const failing = scenarios.filter(({ failed }) => failed > 0).map(({ name }) => name);
  expect(failing.filter((name) => !failedUnwrapped.includes(name))).toEqual([]);
  expect(scenarios.length).toBe(33);
  expect(passed).toBeGreaterThanOrEqual(67);
});
