import { closeSync, ftruncateSync, mkdirSync, openSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { comparisonToMarkdown, comparisonToTerminal } from "../../../src/diagnose/formats/comparison.ts";
import { toJson } from "../../../src/diagnose/formats/json-report.ts";
import { compareReports, failsAt } from "../../../src/diagnose/report/compare-reports.ts";
import type { CheckResult, Finding, Report } from "../../../src/diagnose/report/report.ts";
import { sample, sampleFile, unspoken } from "../../fixtures/diagnose/reports/samples.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { typeHere } from "../../helpers/terminal.ts";

const bad = sample("bad");
const idsOf = (findings: readonly Finding[]) => findings.map(({ id }) => id);
const without = (report: Report, id: string): Report => ({
  ...report,
  findings: report.findings.filter((finding) => finding.id !== id),
});
const ended = (report: Report, id: string, outcome: CheckResult["outcome"], note?: string): Report => ({
  ...report,
  checks: report.checks.map((check) =>
    check.id === id ? { ...check, outcome, ...(note !== undefined && { note }) } : check,
  ),
});
const weighed = (report: Report, id: string, severity: Finding["severity"]): Report => ({
  ...report,
  findings: report.findings.map((finding) => (finding.id === id ? { ...finding, severity } : finding)),
});

describe("two reports", () => {
  test("that are equal differ in nothing", () => {
    expect(compareReports(bad, bad)).toMatchObject({
      points: 0,
      new: [],
      gone: [],
      worse: [],
      better: [],
      unseen: [],
      unjudged: [],
      same: 22,
    });
    expect(compareReports(sample("good"), sample("good"))).toMatchObject({ same: 1, warnings: [] });
  });

  test("a finding whose check looked again and passed is gone, the other way round it is new", () => {
    const fixed = ended(without(bad, "protocol/stdout"), "protocol/stdout", "passed");
    expect(idsOf(compareReports(bad, fixed).gone)).toEqual(["protocol/stdout"]);
    const { new: fresh, gone } = compareReports(fixed, bad);
    expect(fresh).toMatchObject([{ id: "protocol/stdout", isFirstLook: false }]);
    expect(gone).toEqual([]);
  });

  test.each(["skipped", "unfinished"] as const)(
    "a finding whose check is %s now is not gone: nobody looked",
    (outcome) => {
      const { gone, unseen, unjudged } = compareReports(
        bad,
        ended(without(bad, "protocol/stdout"), "protocol/stdout", outcome, "The time ran out."),
      );
      expect(gone).toEqual([]);
      expect(unseen).toMatchObject([{ finding: { id: "protocol/stdout" }, why: "The time ran out." }]);
      expect(unjudged).toEqual([
        { check: "protocol/stdout", before: "failed", after: outcome, why: "The time ran out." },
      ]);
    },
  );

  test("a check that is not in the second report at all was not looked at either", () => {
    const smaller = {
      ...without(bad, "protocol/stdout"),
      checks: bad.checks.filter(({ id }) => id !== "protocol/stdout"),
    };
    expect(compareReports(bad, smaller)).toMatchObject({
      gone: [],
      unseen: [{ finding: { id: "protocol/stdout" } }],
      unjudged: [{ after: "missing" }],
    });
  });

  test("a check that passed and came to no answer now is told of, though nothing was found before", () => {
    const comparison = compareReports(bad, ended(bad, "protocol/ids", "unfinished"));
    expect(comparison).toMatchObject({
      unseen: [],
      unjudged: [{ check: "protocol/ids", before: "passed", after: "unfinished" }],
    });
    expect(comparisonToTerminal(comparison)).toContain("  protocol/ids (passed before): It could not be finished.\n");
    expect(comparisonToMarkdown(comparison)).toContain(
      "| – | It passed before. | `protocol/ids` | It could not be finished. |",
    );
    expect(comparisonToTerminal(comparison)).not.toContain("Nothing changed");
  });

  test("what is found where nobody looked before is new, and says so", () => {
    const before = ended(without(bad, "protocol/stdout"), "protocol/stdout", "skipped");
    expect(compareReports(before, bad).new).toMatchObject([{ id: "protocol/stdout", isFirstLook: true }]);
  });

  test("the same finding may weigh more or less than before", () => {
    const heavier = weighed(bad, "progress/rate", "major");
    expect(compareReports(bad, heavier)).toMatchObject({
      worse: [{ finding: { id: "progress/rate", severity: "major" }, before: "minor" }],
      better: [],
      same: 21,
    });
    expect(compareReports(heavier, bad)).toMatchObject({
      better: [{ finding: { id: "progress/rate", severity: "minor" }, before: "major" }],
      worse: [],
    });
  });

  test("a title that differs makes no difference: a figure in it may change each time", () => {
    const other = {
      ...bad,
      findings: bad.findings.map((finding) => ({ ...finding, title: `${finding.title} (17 ms)` })),
    };
    expect(compareReports(bad, other)).toMatchObject({ new: [], gone: [], same: 22 });
  });

  test("a finding that is there twice is not lost", () => {
    const twice = { ...bad, findings: [...bad.findings, bad.findings[0] as Finding] };
    expect(compareReports(bad, twice)).toMatchObject({ new: [{ id: "protocol/stdout" }], same: 22 });
  });

  test("what makes them hard to compare is said", () => {
    const other: Report = {
      ...bad,
      target: { ...bad.target, name: "node other.js" },
      suites: ["protocol"],
      isFull: false,
      madeBy: { name: "meanwhile", version: "0.9.0" },
      startedAt: "2020-01-01T00:00:00.000Z",
    };
    expect(compareReports(bad, other).warnings).toEqual([
      `The reports are of different targets: ${bad.target.name} and node other.js.`,
      "The second report leaves out tasks, progress, completion, security, performance, hosts.",
      "Only the first report was made with --full.",
      "They were made by different versions of Meanwhile, 0.1.0 and 0.9.0; a new finding may be a new check.",
      `The first report is incomplete: ${bad.incomplete}`,
      `The second report is incomplete: ${bad.incomplete}`,
      "The first report is the newer one; the older one comes first.",
    ]);
  });
});

test("a server that could not be spoken to has no points to compare", () => {
  const comparison = compareReports(bad, unspoken(bad));
  expect(comparison.points).toBeUndefined();
  expect(comparisonToTerminal(comparison)).toContain("\n21 F → no grade\n");
  expect(comparisonToMarkdown(comparison)).toMatch(/^## 21 F → no grade\n/);
  expect(comparisonToTerminal(compareReports(unspoken(bad), bad))).toContain("\nno grade → 21 F\n");
});

test("a limit fails at its own change and at those before it", () => {
  const fewer = ended(without(bad, "protocol/stdout"), "protocol/stdout", "passed");
  const cases = {
    new: compareReports(fewer, bad),
    worse: compareReports(bad, weighed(bad, "progress/rate", "blocker")),
    unjudged: compareReports(bad, ended(bad, "protocol/ids", "unfinished")),
    better: compareReports(bad, fewer),
    empty: compareReports(bad, { ...bad, findings: [] }),
  };
  const failing = (limit: Parameters<typeof failsAt>[1]) =>
    Object.entries(cases).flatMap(([name, comparison]) => (failsAt(comparison, limit) ? [name] : []));
  expect(failing("new")).toEqual(["new"]);
  expect(failing("worse")).toEqual(["new", "worse"]);
  expect(failing("unjudged")).toEqual(["new", "worse", "unjudged"]);
  expect(failing("any-finding")).toEqual(["new", "worse", "unjudged", "better"]);
});

describe("meanwhile compare", () => {
  test("prints what is new, worse, not looked at, better and gone, with the points", async () => {
    const after = weighed(
      ended(without(bad, "security/error-leak"), "security/error-leak", "passed"),
      "progress/rate",
      "major",
    );
    const folder = writeFiles(temporaryFolder(), {
      "after.json": toJson({ ...after, score: { ...bad.score, points: 31 } }),
    });
    const { code, printed } = await type(sampleFile("bad"), path.join(folder, "after.json"));
    expect(code).toBe(0);
    expect(printed).toContain("archive-tools 0.4.1\n21 F → 31 F  +10 points\n");
    expect(printed).toMatch(
      /\nWorse\n {2}▲ major {2}progress\/rate\n {4}Progress comes 48 times a second\.\n {4}\(minor before\)\n/,
    );
    expect(printed).toMatch(/\nGone\n {2}▲ major {2}security\/error-leak\n/);
    expect(printed).toMatch(/0 new, 1 worse, 0 better, 1 gone, 20 the same\.\n$/);
  });

  test("as JSON and as Markdown", async () => {
    const { printed } = await type(sampleFile("good"), sampleFile("bad"), "--format", "json");
    expect(JSON.parse(printed)).toEqual(JSON.parse(JSON.stringify(compareReports(sample("good"), bad))));
    expect((await type(sampleFile("good"), sampleFile("bad"), "--format", "markdown")).printed).toMatch(
      /^## 100 → 21 of 100 \(−79\), grade A → F\n/,
    );
  });

  test("exits 1 when something is new or worse, and only if that was asked", async () => {
    expect((await type(sampleFile("good"), sampleFile("bad"))).code).toBe(0);
    expect((await type(sampleFile("good"), sampleFile("bad"), "--fail-on", "worse")).code).toBe(1);
    expect((await type(sampleFile("bad"), sampleFile("bad"), "--fail-on", "worse")).code).toBe(0);
    expect((await type(sampleFile("bad"), sampleFile("bad"), "--fail-on", "any-finding")).code).toBe(1);
  });

  test("--help says what each limit means", async () => {
    const { code, printed } = await type("--help");
    expect(code).toBe(0);
    for (const limit of ["new ", "worse ", "unjudged ", "any-finding "]) expect(printed).toContain(`  ${limit}`);
  });

  test.each([
    [
      [],
      "No diagnosis was kept yet; `meanwhile diagnose` keeps one, or give two reports: `meanwhile compare before.json after.json`.",
    ],
    [["a.json"], "Give two reports, the older one first: `meanwhile compare before.json after.json`."],
    [["a.json", "b.json", "--fail-on", "bad"], '--fail-on is one of new, worse, unjudged, any-finding, not "bad".'],
    [["a.json", "b.json", "--format", "html"], '--format is one of terminal, json, markdown, not "html".'],
    [["a.json", "b.json", "c.json"], "See: meanwhile compare --help"],
  ])("%j: wrong words exit 2", async (words, sentence) => {
    vi.stubEnv("MEANWHILE_HOME", temporaryFolder());
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await type(...words)).toMatchObject({ code: 2, printed: "", said: expect.stringContaining(sentence) });
  });

  test("a file that cannot be read exits 2 with one sentence that names it", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "text.json": "hello",
      "other.json": "{}",
      "newer.json": toJson({ ...bad, version: 2 as 1 }),
    });
    mkdirSync(path.join(folder, "reports"));
    const huge = openSync(path.join(folder, "huge.json"), "w");
    ftruncateSync(huge, 100 * 1024 ** 2);
    closeSync(huge);
    const expected = {
      "missing.json": "cannot be read: there is no such file.",
      reports: "cannot be read: it is a folder; give the JSON report in it.",
      "text.json": "is not JSON; a report is what `meanwhile diagnose … --format json` writes.",
      "other.json": "is no report of a diagnosis; `meanwhile diagnose … --format json` writes one.",
      "newer.json": "is a report of version 2, made by Meanwhile 0.1.0; this one reads version 1: update Meanwhile.",
      "huge.json":
        "is longer than 32 MB, and no report is; give the file that `meanwhile diagnose … --format json` wrote.",
    };
    for (const [name, sentence] of Object.entries(expected)) {
      const file = path.join(folder, name);
      expect(await type(sampleFile("bad"), file)).toEqual({ code: 2, printed: "", said: `✗ ${file} ${sentence}\n` });
    }
  });
});

const type = (...words: string[]) => typeHere(["compare", ...words]);
