import { expect, test } from "vitest";
import { judgeEmbedded, lostBy } from "../../scripts/check-embed.mjs";

const timeout = 300_000;
/** The referee waits only so long for an answer, and a busy machine may be later: what fails twice has failed. */
const retry = 1;

test.concurrent.each([
  ["everything", "factory"],
  ["everything", "one"],
  ["v1", "factory"],
  ["v1", "one"],
  ["v2", "factory"],
  ["v2", "one"],
] as const)(
  "official conformance, 2025-11-25: %s wrapped as %s fails nothing that it passes unwrapped",
  { timeout, retry },
  async (server, how) => {
    const wrapped = await judgeEmbedded(server, how, "2025-11-25");
    const plain = await judgeEmbedded(server, "plain", "2025-11-25");
    expect(lostBy(wrapped, plain)).toEqual([]);
    expect(wrapped.scenarios.length).toBe(plain.scenarios.length);
    expect(plain.passed).toBeGreaterThanOrEqual(67);
  },
);
