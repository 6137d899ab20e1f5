import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { describe, expect, test } from "vitest";
import { toSarif } from "../../../src/diagnose/formats/sarif-report.ts";
import type { Report } from "../../../src/diagnose/report/report.ts";
import { checks } from "../../../src/diagnose/suites/index.ts";
import { sample, samples, unspoken } from "../../fixtures/diagnose/reports/samples.ts";

interface Result {
  readonly ruleId: string;
  readonly ruleIndex: number;
  readonly level: string;
  readonly message: { readonly text: string };
  readonly locations: readonly { readonly physicalLocation: { readonly artifactLocation: { readonly uri: string } } }[];
  readonly partialFingerprints: Readonly<Record<string, string>>;
}

interface Rule {
  readonly id: string;
  readonly shortDescription: { readonly text: string };
  readonly fullDescription: { readonly text: string };
  readonly help: { readonly text: string; readonly markdown: string };
  readonly properties: Readonly<Record<string, unknown>>;
}

interface Run {
  readonly tool: { readonly driver: { readonly rules: readonly Rule[] } };
  readonly invocations: readonly {
    readonly executionSuccessful: boolean;
    readonly toolExecutionNotifications: readonly { readonly message: { text: string } }[];
  }[];
  readonly results: readonly Result[];
  readonly properties: { readonly score: unknown };
}

const runOf = (report: Report) => (JSON.parse(toSarif(report)) as { runs: [Run] }).runs[0];
const uriOf = (report: Report) => runOf(report).results[0]?.locations[0]?.physicalLocation.artifactLocation.uri;

describe("against the schema of SARIF 2.1.0", () => {
  const validate = compileSchema();

  test.each(samples)("the %s report is valid", (name) => {
    expect(validate(JSON.parse(toSarif(sample(name)))), JSON.stringify(validate.errors?.slice(0, 3))).toBe(true);
  });

  test("the schema would notice a wrong level", () => {
    expect(validate(JSON.parse(toSarif(sample("bad")).replace('"level": "error"', '"level": "blocker"')))).toBe(false);
  });
});

test("each check is a rule, and each result points at its own", () => {
  const { tool, results } = runOf(sample("bad"));
  const { rules } = tool.driver;
  expect(rules.map(({ id }) => id)).toEqual(sample("bad").checks.map(({ id }) => id));
  expect(results.length).toBe(sample("bad").findings.length);
  for (const { ruleId, ruleIndex } of results) expect(rules[ruleIndex]?.id).toBe(ruleId);
  expect(rules.find(({ id }) => id === "security/error-leak")?.properties).toEqual({
    tags: ["mcp", "security"],
    "security-severity": "7.5",
  });
});

test("a rule says why it matters and what to change, also where nothing was found", () => {
  const report = sample("good");
  const known = {
    ...report,
    checks: [{ ...report.checks[0], id: "protocol/stdout" }],
    findings: [],
  } as unknown as Report;
  const [rule] = runOf(known).tool.driver.rules;
  const check = checks.find(({ id }) => id === "protocol/stdout");
  expect(rule?.fullDescription.text).toBe(check?.why);
  expect(rule?.help.text.startsWith(check?.remedy ?? "-")).toBe(true);
  expect(rule?.help.text).not.toContain(rule?.shortDescription.text);
  // A check of another version: what its finding says.
  const [old] = sample("bad").findings;
  expect(
    runOf(sample("bad")).tool.driver.rules.find(({ id }) => id === "progress/rate")?.fullDescription.text,
  ).not.toBe("");
  expect(
    runOf({ ...sample("bad"), checks: [], findings: [{ ...old, check: "protocol/old" } as Report["findings"][number]] })
      .tool.driver.rules[0]?.help.text,
  ).toContain(old?.remedy);
});

test("title, reason and remedy are sentences of their own", () => {
  const [finding] = sample("bad").findings;
  const report = {
    ...sample("bad"),
    findings: [
      {
        ...finding,
        title: "It prints lines",
        why: "Hosts stop.",
        remedy: "Print elsewhere",
      } as Report["findings"][number],
    ],
  };
  expect(runOf(report).results[0]?.message.text).toBe("It prints lines. Hosts stop. Print elsewhere.");
});

test("a server that could not be spoken to has no grade", () => {
  expect(runOf(unspoken(sample("bad"))).properties.score).toBe("no grade");
});

test("blockers and majors are errors, minors warnings, infos notes", () => {
  const report = sample("bad");
  const levels = new Set(runOf(report).results.map(({ level }, at) => `${report.findings[at]?.severity} ${level}`));
  expect([...levels]).toEqual(["blocker error", "major error", "minor warning", "info note"]);
});

test("a finding is known again by its id", () => {
  const report = sample("bad");
  expect(runOf(report).results.map(({ partialFingerprints }) => partialFingerprints["meanwhile/finding"])).toEqual(
    report.findings.map(({ id }) => id),
  );
});

test("the place is relative: the URL without its scheme and query, or the command line as one address", () => {
  const report = sample("bad");
  const http = {
    ...report,
    target: { ...report.target, transport: "http", name: "https://me:secret@tools.example.org/mcp?token=1#x" },
  } as const;
  const at = (name: string) => uriOf({ ...http, target: { ...http.target, name } }) ?? "";
  expect(uriOf(http)).toBe("tools.example.org/mcp");
  expect(at("http://127.0.0.1:4000/a/mcp")).toBe("127.0.0.1%3A4000/a/mcp");
  expect(at("http://[::1]:4000/")).toBe("%5B%3A%3A1%5D%3A4000");
  // GitHub's code scanning takes no address with a scheme, and `localhost:4000/mcp` would be one.
  for (const name of ["https://a.example/mcp", "http://localhost:4000/mcp"])
    expect(new URL(at(name), "file:///repository/").href).toMatch(/^file:\/\/\/repository\//);
  expect(uriOf(report)).toBe("node%20build%2Fserver.js%20--data%20.%2Farchive%20--token%20%E2%80%A2%E2%80%A2%E2%80%A2");
  expect(uriOf({ ...report, target: { ...report.target, name: "" } })).toBe("server");
});

test("checks that could not be finished, and a diagnosis that ended early, are told of", () => {
  const [invocation] = runOf(sample("bad")).invocations;
  expect(invocation?.executionSuccessful).toBe(false);
  expect(invocation?.toolExecutionNotifications.map(({ message }) => message.text)).toEqual([
    "The time of 60 s ran out; one check was not run to its end.",
    expect.stringContaining("This could not be finished: Ended after 10 s"),
    expect.stringContaining("This could not be finished: Not run to its end"),
    "2 checks skipped: The server declares no tasks.",
    "1 check skipped: The server declares no completions.",
  ]);
  expect(runOf(sample("good")).invocations[0]).toMatchObject({
    executionSuccessful: true,
    toolExecutionNotifications: [{ level: "note" }, { level: "note" }],
  });
  expect(runOf(sample("good")).properties.score).toEqual(sample("good").score);
});

test("a message makes no link and takes no argument", () => {
  const texts = runOf(sample("hostile")).results.map(({ message }) => message.text);
  expect(texts[0]).toContain("\\[x\\](javascript:alert(5))");
  expect(texts[1]).toContain("{{0}} {{{{1}}}} \\[text\\](1)");
});

/**
 * The schema comes with Microsoft's matchers for Jest. It is written in draft-04, of which it uses nothing that later
 * drafts have changed but `id`.
 */
function compileSchema() {
  const file = createRequire(import.meta.url).resolve("@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json");
  const { $schema: _, id: __, ...schema } = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  // A pattern of the schema has a bracket too many, which only the old kind of regular expression forgives.
  const ajv = new Ajv({ strict: false, allErrors: true, unicodeRegExp: false });
  addFormats.default(ajv);
  return ajv.compile(schema);
}
