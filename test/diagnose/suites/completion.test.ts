import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import { completion } from "../../../src/diagnose/suites/completion/index.ts";
import { type Fixture, startFixture } from "../../fixtures/diagnose/server.mjs";
import { piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { askAll, breaksOf, checkOf, findingsIn, outcomesIn } from "../../helpers/suite.ts";

passTimeQuickly();

let good: Fixture;
let facts: Facts;
let stdioFacts: Facts;

beforeAll(async () => {
  good = await startFixture();
  facts = await surveyed(reached(good.url));
  stdioFacts = { ...facts, transport: "stdio" };
});
afterAll(() => good.close());

const allPassed = Object.fromEntries(completion.map(({ id }) => [id, "passed"]));

describe("a server that completes as it should", () => {
  test("passes over HTTP", async () => {
    expect(outcomesIn(await askAll(completion, reached(good.url), { facts }))).toEqual(allPassed);
  });

  test("passes over stdio", async () => {
    expect(outcomesIn(await askAll(completion, piped("server.mjs"), { facts: stdioFacts }))).toEqual(allPassed);
  });

  test("is not asked for what it does not declare", async () => {
    const { url, close } = await startFixture({ breaks: ["completion/declared~unspoken"] });
    const { "completion/declared": _declared, ...others } = await askAll(completion, reached(url), {
      facts: await surveyed(reached(url)),
    });
    await close();
    for (const verdict of Object.values(others))
      expect(verdict).toEqual({ outcome: "skipped", why: "The server does not declare completions." });
  });
});

/** What each broken server is told. */
const expected: Readonly<Record<string, { readonly severity?: string; readonly title: string }>> = {
  "completion/declared": { title: "Completions are declared, but nothing can be completed" },
  "completion/declared~unspoken": {
    severity: "info",
    title: "completion/complete works, but the capability is not declared, so no host asks for it",
  },
  "completion/values": { title: "More than 100 suggestions are sent at once" },
  "completion/values~numbers": { title: "Some suggestions are no strings" },
  "completion/values~counts": {
    severity: "minor",
    title: "`hasMore` is false, though `total` counts more than were sent",
  },
  "completion/empty-prefix": { title: "A first letter brings suggestions, an empty value brings none" },
  "completion/unknown-names": { title: "Completing an unknown prompt is answered with an error other than −32602" },
  "completion/unknown-names~silent": { severity: "major", title: "Completing an unknown prompt is never answered" },
  "completion/unknown-names~made-up": { title: "An unknown prompt is completed as if there were one" },
  "completion/hostile-partials": {
    title: "Completing a pattern that explodes is not answered in 2 s, and nothing else is answered meanwhile",
  },
  "completion/hostile-partials~pattern": {
    severity: "minor",
    title: "Completing an open parenthesis ends in an internal error",
  },
};

describe("a server that is wrong in one way is told exactly that", () => {
  // A server that stands still must not stand still in this process.
  const isOutside = (name: string) => name === "completion/hostile-partials";

  test.concurrent.each(breaksOf("completion").filter((name) => !isOutside(name)))("%s", async (name) => {
    const { url, close } = await startFixture({ breaks: [name] });
    const found = findingsIn(await askAll(completion, reached(url), { facts: await surveyed(reached(url)) }));
    await close();
    expect(found).toEqual([{ id: checkOf(name), ...expected[name] }]);
  });

  test.concurrent.each(breaksOf("completion").filter(isOutside))("%s, over stdio", async (name) => {
    const found = findingsIn(await askAll(completion, piped("server.mjs", "--break", name), { facts: stdioFacts }));
    expect(found).toEqual([{ id: checkOf(name), ...expected[name] }]);
  });

  test("and every check has such a server", () => {
    expect(new Set(breaksOf("completion").map(checkOf))).toEqual(new Set(completion.map(({ id }) => id)));
    expect(Object.keys(expected)).toEqual(breaksOf("completion"));
  });
});
