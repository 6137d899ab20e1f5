import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { severities } from "../../../src/diagnose/check.ts";
import { hasScore, reaches, scoreOf, severityRank, whyUnrun } from "../../../src/diagnose/report/score.ts";

const found = (check: string, severity: (typeof severities)[number]) => ({ check, severity });
const passed = { id: "protocol/x", outcome: "passed" } as const;
const unfinished = { id: "protocol/y", outcome: "unfinished" } as const;

describe("points", () => {
  test("a blocker costs 30, a major 10, a minor 3, an info nothing", () => {
    const findings = [found("a", "blocker"), found("b", "major"), found("c", "minor"), found("d", "info")];
    expect(scoreOf(findings, [passed])).toMatchObject({
      points: 57,
      lost: [{ points: 30 }, { points: 10 }, { points: 3 }],
    });
  });

  test("a check costs once, at its worst finding", () => {
    const findings = [found("a", "minor"), found("a", "major"), found("a", "minor"), found("a", "info")];
    expect(scoreOf(findings, [passed])).toMatchObject({
      points: 90,
      lost: [{ check: "a", severity: "major", points: 10 }],
    });
  });

  test("there are no points below 0", () => {
    const findings = ["a", "b", "c", "d"].map((check) => found(check, "blocker"));
    expect(scoreOf(findings, [passed])).toMatchObject({
      points: 0,
      grade: "F",
      explanation: expect.stringContaining("so 0"),
    });
  });

  test("where no check came to an answer there is no praise", () => {
    expect(scoreOf([], [unfinished])).toMatchObject({
      points: null,
      grade: null,
      explanation: "None of 1 check came to an answer, so there is nothing to score.",
    });
    expect(scoreOf([], [])).toMatchObject({ points: null, grade: null });
  });
});

describe("grades", () => {
  test.each([
    [["minor", "minor", "minor"], 91, "A"],
    [["major"], 90, "B"],
    [["major", "minor"], 87, "B"],
    [["major", "major"], 80, "B"],
    [["major", "major", "minor", "minor"], 74, "C"],
    [["blocker"], 70, "C"],
    [["blocker", "major", "minor"], 57, "D"],
    [["blocker", "blocker", "minor"], 37, "F"],
  ] as const)("%j leave %i points: %s", (list, points, grade) => {
    const findings = list.map((severity, at) => found(`check-${at}`, severity));
    expect(scoreOf(findings, [passed])).toMatchObject({ points, grade });
  });
});

describe("the explanation", () => {
  test("adds up, and says what a blocker allows", () => {
    const findings = [found("a", "blocker"), found("b", "major"), found("c", "major")];
    expect(scoreOf(findings, [passed]).explanation).toBe(
      "100 − 30 (1 check with a blocker) − 20 (2 checks with a major) = 50; a blocker allows no better than C.",
    );
  });

  test("counts checks, however many findings they have, and says what a major allows", () => {
    const findings = [found("a", "major"), found("a", "major"), found("b", "minor")];
    expect(scoreOf(findings, [passed]).explanation).toBe(
      "100 − 10 (1 check with a major) − 3 (1 check with a minor) = 87; a major allows no better than B.",
    );
  });

  test("names checks that could not be finished", () => {
    const most = Array.from({ length: 8 }, () => passed);
    expect(scoreOf([], [...most, unfinished, unfinished])).toMatchObject({
      grade: "A",
      explanation:
        "100: no check found anything that costs points; 2 checks could not be finished and count for nothing.",
    });
    expect(scoreOf([], [passed, unfinished]).explanation).toContain(
      "1 check could not be finished and counts for nothing",
    );
  });

  test("of a server whose checks were mostly left open nobody says the best", () => {
    expect(scoreOf([], [passed, passed, passed, unfinished])).toMatchObject({
      points: 100,
      grade: "B",
      explanation: expect.stringContaining("no better than B"),
    });
  });
});

describe("no grade where most checks of a suite need a call that was not made", () => {
  const check = (
    id: string,
    outcome: "passed" | "skipped",
    note = "",
    severity: (typeof severities)[number] = "minor",
  ) => ({ id, suite: id.split("/")[0] as "progress", severity, outcome, note }) as const;
  const unrun = (id: string, severity?: (typeof severities)[number]) =>
    check(id, "skipped", "No tool that was called sends progress; name a slow one with --tool and --args.", severity);

  test("nine progress checks that were skipped for want of a slow tool leave no grade", () => {
    const nine = Array.from({ length: 9 }, (_, at) => unrun(`progress/${at}`));
    expect(whyUnrun([check("protocol/ping", "passed"), ...nine])).toBe(
      "None of the 9 progress checks ran, so there is no grade: they need a slow tool; name one with --tool <name> and --args, or leave them out with --suites.",
    );
    expect(whyUnrun([...nine, check("progress/rate", "passed")])).toMatch(/^9 of the 10 progress checks did not run, /);
  });

  test("checks that ran, that do not apply, that cost nothing and that need --full leave it", () => {
    expect(whyUnrun([unrun("progress/a"), check("progress/b", "passed")])).toBeUndefined();
    expect(whyUnrun([check("tasks/a", "skipped", "The server declares no tasks.")])).toBeUndefined();
    expect(whyUnrun([unrun("progress/a", "info")])).toBeUndefined();
    expect(
      whyUnrun([check("progress/a", "skipped", "It takes long, so it is asked with --full only.")]),
    ).toBeUndefined();
    expect(whyUnrun([])).toBeUndefined();
  });
});

test("more findings never give more points, and the order does not matter", () => {
  const finding = fc.record({
    check: fc.constantFrom("a", "b", "c", "d", "e"),
    severity: fc.constantFrom(...severities),
  });
  fc.assert(
    fc.property(fc.array(finding, { maxLength: 12 }), finding, (findings, more) => {
      const { points, lost, grade } = scoreOf(findings, [passed]);
      expect(scoreOf([...findings, more], [passed]).points).toBeLessThanOrEqual(points ?? Number.NaN);
      expect(scoreOf(findings.toReversed(), [passed]).points).toBe(points);
      expect(points).toBe(Math.max(0, 100 - lost.reduce((sum, item) => sum + item.points, 0)));
      if (findings.some(({ severity }) => severity === "blocker")) expect(["C", "D", "F"]).toContain(grade);
      if (findings.some(({ severity }) => severity === "major")) expect(grade).not.toBe("A");
    }),
    { seed: 7, numRuns: 200 },
  );
});

test("there is a score only where something else was judged than that the server does not answer", () => {
  const of = (findings: Parameters<typeof scoreOf>[0], checks: Parameters<typeof scoreOf>[1]) =>
    hasScore({ score: scoreOf(findings, checks), findings, checks });
  const failed = { id: "protocol/answers", outcome: "failed" } as const;
  const skipped = { id: "protocol/ping", outcome: "skipped" } as const;
  expect(of([], [])).toBe(false);
  expect(of([], [skipped, unfinished])).toBe(false);
  expect(of([found("protocol/answers", "blocker")], [failed, skipped])).toBe(false);
  expect(of([found("protocol/answers", "minor")], [failed, passed])).toBe(true);
  expect(of([found("protocol/x", "blocker")], [failed])).toBe(true);
  // Of a locked server a question or two can be judged; whoever made the report says that there is no grade.
  const none = {
    points: 0,
    grade: "F",
    lost: [],
    explanation: "The server could not be spoken to, so there is no grade.",
  } as const;
  expect(hasScore({ score: none, findings: [], checks: [passed] })).toBe(false);
});

test("a severity reaches a limit that is as bad or milder", () => {
  expect(severities.map(severityRank)).toEqual([0, 1, 2, 3]);
  expect(reaches("blocker", "major")).toBe(true);
  expect(reaches("major", "major")).toBe(true);
  expect(reaches("minor", "major")).toBe(false);
});
