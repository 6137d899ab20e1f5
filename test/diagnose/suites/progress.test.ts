import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import type { Check } from "../../../src/diagnose/check.ts";
import type { DiagnosisTarget } from "../../../src/diagnose/diagnosis-target.ts";
import { progress } from "../../../src/diagnose/suites/progress/index.ts";
import { allBreaks, type Fixture, startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { askAll, askedOf, breaksOf, checkOf, findingsIn, outcomesIn, type Verdicts } from "../../helpers/suite.ts";

/** Four pages in 0.8 s; the check about silence wants a call of more than three seconds. */
const pages = [{ name: "read_slowly", arguments: { steps: 4, ms: 200 } }];
const longPages = [{ name: "read_slowly", arguments: { steps: 4, ms: 850 } }];
const isSilence = ({ id }: Check) => id === "progress/silence";
const allPassed = Object.fromEntries(progress.map(({ id }) => [id, "passed"]));
const find = (id: string) => progress.find((check) => check.id === id) as (typeof progress)[number];

// They mostly wait.
vi.setConfig({ maxConcurrency: 10 });

passTimeQuickly();

let good: Fixture;
let facts: Facts;

beforeAll(async () => {
  good = await startFixture();
  facts = await surveyed(reached(good.url));
});
afterAll(() => good.close());

async function askWithPages(asked: readonly Check[], target: DiagnosisTarget, known: Facts): Promise<Verdicts> {
  const [quick, slow] = await Promise.all([
    askAll(
      asked.filter((check) => !isSilence(check)),
      target,
      { facts: known, tools: pages },
    ),
    askAll(asked.filter(isSilence), target, { facts: known, tools: longPages, isFull: false }),
  ]);
  return { ...quick, ...slow };
}

describe("a server whose calls tell how far they are", () => {
  test.concurrent("passes everything over HTTP", async () => {
    expect(outcomesIn(await askWithPages(progress, reached(good.url), facts))).toEqual(allPassed);
  });

  test.concurrent("passes everything over stdio, in the older revision too", async () => {
    const older: Facts = { ...facts, transport: "stdio", modern: undefined };
    expect(outcomesIn(await askWithPages(progress, piped("server.mjs"), older))).toEqual(allPassed);
  });

  test.concurrent("is asked nothing when its tools are quick: the report says what to name", async () => {
    const quick = [{ name: "read_clock" }];
    const clockOnly = { ...facts, tools: facts.tools.filter(({ name }) => name === "read_clock") };
    const verdicts = await askAll(progress, reached(good.url), { facts: clockOnly, tools: quick });
    expect(new Set(Object.values(outcomesIn(verdicts)))).toEqual(new Set(["skipped"]));
    for (const verdict of Object.values(verdicts))
      expect(verdict).toHaveProperty("why", expect.stringMatching(/name a slow one with --tool and --args\.$/));
  });

  test.concurrent("is asked nothing when no tool says that it only reads", async () => {
    const writing = { ...facts, tools: facts.tools.map((tool) => ({ ...tool, annotations: {} })) };
    const verdicts = await askAll(progress, reached(good.url), { facts: writing });
    for (const verdict of Object.values(verdicts))
      expect(verdict).toHaveProperty("why", expect.stringMatching(/^No tool says that it only reads/));
  });

  test.concurrent("over HTTP in 2026-07-28 alone, what comes after a cancel cannot be heard, and is not judged", async () => {
    expect(
      await ask(find("progress/after-cancel"), reached(good.url), {
        facts: { ...facts, legacy: undefined },
        tools: pages,
      }),
    ).toMatchObject({
      outcome: "skipped",
      why: expect.stringContaining("Over HTTP it can be heard only in revisions before 2026-07-28"),
    });
  });
});

test.concurrent("a call that is answered after its cancel is told by protocol/cancellation, and not here again", async () => {
  const { url, close } = await startFixture({ breaks: ["protocol/cancellation"] });
  const verdict = await ask(find("progress/after-cancel"), reached(url), { facts, tools: pages });
  await close();
  expect(verdict).toEqual({
    outcome: "passed",
    note: "The call is not stopped by a cancel; see protocol/cancellation.",
  });
});

interface Expected {
  readonly title: string;
  readonly severity?: string;
  readonly subject?: string;
}

/** What each broken server is told. */
const expected: Readonly<Record<string, Expected>> = {
  "progress/token": { title: "Progress comes with another token than its call's" },
  "progress/token~text": { title: "Progress of a call whose token is a number comes with another one" },
  "progress/token~no-number": { title: "A call whose token is a number gets no progress" },
  "progress/uninvited": { title: "A call without a token gets progress" },
  "progress/shape": { title: "progress is no number" },
  "progress/shape~total": { title: "The total of progress is no number" },
  "progress/shape~message": { title: "The message of progress is no text" },
  "progress/increasing": { title: "progress goes back" },
  "progress/increasing~same": { title: "progress is sent again with the same value" },
  "progress/increasing~past": { title: "progress passes its total" },
  "progress/increasing~total": { severity: "info", title: "The total of progress changes during a call" },
  "progress/rate": { title: "Progress floods the client" },
  "progress/silence": { subject: "read_slowly", title: "read_slowly runs for seconds and sends no progress" },
  "progress/after-end": { title: "Progress comes after the call's answer" },
  "progress/after-cancel": { title: "A cancelled call goes on and still reports progress" },
  "progress/parallel": { title: "Two calls at the same time get each other's progress" },
};

describe("a server that is wrong in one way is told exactly that", () => {
  /** What a client of HTTP hangs up before, and what needs two calls in one conversation. */
  const isPiped = (name: string) => allBreaks[name]?.transport === "stdio";

  test.concurrent.each(breaksOf("progress"))("%s", async (name) => {
    const fixture = isPiped(name) ? undefined : await startFixture({ breaks: [name] });
    const target = fixture === undefined ? piped("server.mjs", "--break", name) : reached(fixture.url);
    const verdicts = await askWithPages(
      askedOf(name, progress),
      target,
      fixture === undefined ? { ...facts, transport: "stdio" } : facts,
    );
    await fixture?.close();
    expect(findingsIn(verdicts)).toEqual([{ id: checkOf(name), ...expected[name] }]);
  });

  test("and every check has such a server", () => {
    expect(new Set(breaksOf("progress").map(checkOf))).toEqual(new Set(progress.map(({ id }) => id)));
    expect(Object.keys(expected)).toEqual(breaksOf("progress"));
  });
});
