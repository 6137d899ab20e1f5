import fc from "fast-check";
import { createColors } from "picocolors";
import { describe, expect, test } from "vitest";
import {
  comparisonToJson,
  comparisonToMarkdown,
  comparisonToTerminal,
} from "../../../src/diagnose/formats/comparison.ts";
import { toHtml } from "../../../src/diagnose/formats/html-report.ts";
import { toJson } from "../../../src/diagnose/formats/json-report.ts";
import { toMarkdown } from "../../../src/diagnose/formats/markdown-report.ts";
import { toSarif } from "../../../src/diagnose/formats/sarif-report.ts";
import { toTerminal } from "../../../src/diagnose/formats/terminal-report.ts";
import { compareReports } from "../../../src/diagnose/report/compare-reports.ts";
import type { Report } from "../../../src/diagnose/report/report.ts";
import { sample } from "../../fixtures/diagnose/reports/samples.ts";

const bad = sample("bad");

describe("whatever a report says stays a text", () => {
  const marks =
    "< > \" ' & ` ``` ~~~ | \\ # * - $ % {0} ![ ]( @me #1 <!-- --> ]]> </details> </style> </script> onload=x javascript: word".split(
      " ",
    );
  const links = ["<script>alert(1)</script>", "[x](javascript:y)", "https://evil.example", " ", "\n", "\r", "\t"];
  const signals = [
    "\u0000",
    "\u0007",
    "\u001b[31m",
    "\u001b]0;x\u0007",
    "\u007f",
    "\u009b31m",
    "\u2028",
    "\ud800",
    "\ue000",
  ];
  const unseen = ["\u202e", "\u2066", "\u200b", "\u061c", "\ufeff", "\u{e0041}"];
  const parts = [...marks, ...links, ...signals, ...unseen];
  const nasty = fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 8 }).map((chosen) => chosen.join(""));
  const obeyed = /[^\P{Cc}\n]|[\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;
  const everywhere = (check: (report: Report) => void) =>
    fc.assert(
      fc.property(nasty, (text) => {
        check(replaceTexts(bad, text) as Report);
      }),
      { seed: 11, numRuns: 40 },
    );

  test("no format lets out what a terminal or a viewer would obey", () => {
    everywhere((report) => {
      const comparison = compareReports(bad, report);
      const colored = toTerminal(report, { colors: createColors(true) }).replaceAll(/\u001b\[\d+m/g, "");
      const texts = [
        toTerminal(report, { isFull: true }),
        colored,
        toMarkdown(report),
        toHtml(report),
        toSarif(report),
        toJson(report),
      ];
      const compared = [
        comparisonToTerminal(comparison),
        comparisonToMarkdown(comparison),
        comparisonToJson(comparison),
      ];
      for (const text of [...texts, ...compared]) expect(obeyed.exec(text)).toBeNull();
    });
  });

  test("JSON keeps it all the same", () => {
    everywhere((report) => expect(JSON.parse(toJson(report))).toEqual(JSON.parse(JSON.stringify(report))));
  });

  test("a page has only its own tags and attributes", () => {
    everywhere((report) => {
      const page = toHtml(report).replace(/<style>[\s\S]*?<\/style>/, "");
      expect((page.match(/<[^>]*>?/g) ?? []).filter((tag) => !ownTag.test(tag))).toEqual([]);
    });
  });

  test("Markdown has only its own tags, headings and table cells", () => {
    everywhere((report) => {
      for (const line of withoutFences(toMarkdown(report))) {
        expect(line.replaceAll(/<\/?(?:details|summary|sub)>/g, "")).not.toContain("<");
        if (line.startsWith("#"))
          expect(line).toMatch(/^(## Diagnosis: (?:\d+ of 100|no grade)|### (⛔|🔴|🟡|🔵|Hosts$|Suites$|Skipped$))/);
        if (line.startsWith("|")) expect([4, 5, 6]).toContain(line.replaceAll("\\|", "").split("|").length - 1);
      }
    });
  });
});

const ownTag =
  /^<(?:!doctype html|\/?(?:html|head|body|title|style|a|nav|ul|li|main|section|h1|h2|h3|header|footer|div|p|dl|dt|dd|code|pre|span|strong|time|figure|figcaption|svg|circle|text|article|details|summary|table|thead|tbody|tr|th|td|br|meta)(?: (?:lang|charset|http-equiv|content|name|class|href|id|aria-[a-z]+|role|viewBox|cx|cy|r|x|y|stroke-dasharray|transform|style|datetime|scope|data-label|title)="[^"<>]*")*\/?)>$/;

/** The lines outside of blocks of code. */
function withoutFences(text: string): string[] {
  let fence: string | undefined;
  return text.split("\n").filter((line) => {
    const [marks] = /^`{3,}/.exec(line) ?? [];
    if (fence === undefined && marks !== undefined) fence = marks;
    else if (fence !== undefined && line === fence) fence = undefined;
    else return fence === undefined;
    return false;
  });
}

/** Every free text of a report becomes this one; ids stay apart, so that findings still belong to their checks. */
function replaceTexts(value: unknown, text: string, key = ""): unknown {
  const kept = [
    "schema",
    "version",
    "severity",
    "outcome",
    "suite",
    "suites",
    "kind",
    "state",
    "transport",
    "grade",
    "startedAt",
  ];
  if (kept.includes(key)) return value;
  if (typeof value === "string") return key === "id" || key === "check" ? `${value}${text}` : text;
  if (Array.isArray(value)) return value.map((item) => replaceTexts(item, text));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, replaceTexts(item, text, name)]));
}
