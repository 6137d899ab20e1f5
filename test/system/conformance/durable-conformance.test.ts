import { expect, test } from "vitest";
import { judgeEmbedded, lostBy, tasksPassedBy } from "../../../scripts/check-embed.mjs";
import { casesOf, rounds } from "../../helpers/rounds.ts";

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
 * `npm run check:long` asks it anew.
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

test.concurrent.each(
  casesOf(
    [
      ["everything", "factory"],
      ["everything", "one"],
      ["v1", "factory"],
      ["v1", "one"],
      ["v2", "factory"],
      ["v2", "one"],
    ] as const,
    0,
  ),
)(
  "official conformance, 2025-11-25: %s wrapped as %s fails nothing that it passes unwrapped",
  {
    timeout,
    retry,
  },
  async (server, how) => {
    const wrapped = await judgeEmbedded(server, how, "2025-11-25");
    if (!rounds.everyCase) {
      const failing = wrapped.scenarios.filter(({ failed }) => failed > 0).map(({ name }) => name);
      expect(failing.filter((name) => !failedUnwrapped.includes(name))).toEqual([]);
      expect(wrapped.scenarios.length).toBe(33);
      expect(wrapped.passed).toBeGreaterThanOrEqual(67);
      return;
    }
    const plain = await judgeEmbedded(server, "plain", "2025-11-25");
    expect(lostBy(wrapped, plain)).toEqual([]);
    expect(wrapped.scenarios.length).toBe(plain.scenarios.length);
    expect(plain.passed).toBeGreaterThanOrEqual(67);
  },
);
