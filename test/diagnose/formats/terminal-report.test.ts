import { describe, expect, test } from "vitest";
import { toHtml } from "../../../src/diagnose/formats/html-report.ts";
import { readReport, toJson } from "../../../src/diagnose/formats/json-report.ts";
import { toMarkdown } from "../../../src/diagnose/formats/markdown-report.ts";
import { toSarif } from "../../../src/diagnose/formats/sarif-report.ts";
import { toTerminal } from "../../../src/diagnose/formats/terminal-report.ts";
import type { Finding, Report } from "../../../src/diagnose/report/report.ts";
import { wrap } from "../../../src/screen/width.ts";
import { sample, unspoken, withAlike, withMatrix } from "../../fixtures/diagnose/reports/samples.ts";

const [good, bad, hostile] = [sample("good"), sample("bad"), sample("hostile")];

describe("in a terminal", () => {
  test("the score comes first, then what is wrong and what to change, worst first, then the suites", () => {
    const text = toTerminal(bad);
    const order = [
      "archive-tools 0.4.1",
      "21 of 100  F   100 − 30 (1 check with a blocker) − 40 (4 checks with a major)",
      "! Incomplete   The time of 60 s ran out",
      "✗ blocker  protocol/stdout",
      "  It prints lines that are no messages on its standard output.\n    printed: Server listening on stdio\n",
      "  → Write logs with console.error",
      "▲ major  protocol/unknown-method",
      "● minor  progress/rate",
      "· info  protocol/newest-revision",
      "  protocol     4 passed, 3 failed, 1 unfinished",
      "\nSkipped\n  2  The server declares no tasks.\n  1  The server declares no completions.\n",
      "F  21 of 100   22 findings: 1 blocker, 17 majors, 3 minors, 1 info; 2 checks not\n               finished; 3 checks were skipped\n",
    ].map((part) => text.indexOf(part));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).not.toContain(-1);
  });

  test("a finding shows two pieces of evidence, with --full all of them", () => {
    expect(toTerminal(bad)).not.toContain("41 lines in 12 calls");
    expect(toTerminal(bad, { isFull: true })).toContain("measured: 41 lines in 12 calls");
  });

  test("evidence takes up to four lines; of what a server printed the end is shown", () => {
    const [first] = bad.findings;
    const words = Array.from({ length: 120 }, (_, at) => `word${at}`).join(" ");
    const withEvidence = (kind: "printed" | "received", text: string) =>
      ({ ...bad, findings: [{ ...first, evidence: [{ kind, text }] }] }) as Report;
    const linesOf = (report: Report) =>
      toTerminal(report)
        .split("\n")
        .filter((line) => /word\d|: …/.test(line));
    const received = linesOf(withEvidence("received", words));
    expect(received).toHaveLength(4);
    expect(received[0]).toMatch(/^ {4}received: word0 word1 /);
    expect(received.at(-1)).toMatch(/…$/);
    const printed = linesOf(withEvidence("printed", words));
    expect(printed).toHaveLength(4);
    expect(printed[0]).toBe("    printed: …");
    expect(printed.at(-1)).toMatch(/word119$/);
    const two = linesOf(withEvidence("received", words.slice(0, 129)));
    expect(two.join(" ").replaceAll(/ +/g, " ").trim()).toBe(`received: ${words.slice(0, 129)}`);
  });

  test("of many findings with one cure some are shown, the others are counted, with --full all are shown", () => {
    expect(toTerminal(bad)).toContain("and 11 more: rebuild_index@Kilo CLI, ");
    expect(toTerminal(bad, { isFull: true })).toContain("Claude Desktop cuts `print` after 60 s.");
    expect(toTerminal(bad, { isFull: true })).not.toContain("more:");
  });

  test("a check that could not be finished is named with its reason, many with the same are counted", () => {
    expect(toTerminal(bad, { width: 120 })).toContain(
      "! Not finished: protocol/cancellation. Ended after 10 s: the server",
    );
    const late = {
      ...bad,
      checks: bad.checks.map((check) => ({ ...check, outcome: "unfinished" as const, note: "The time ran out." })),
    };
    const few =
      "  ! Not finished: protocol/handshake, protocol/newest-revision, protocol/unknown-method, 17 more. The time ran out.\n";
    expect(toTerminal(late, { width: 120 })).toContain(few);
    expect(toTerminal(late, { isFull: true })).toContain("hosts/slow-call. The time ran out.\n");
  });

  test("hosts and tools are a table; with many tools it shows those that fare worst and counts the others", () => {
    expect(toTerminal(bad)).toContain("  Cline CLI             ✗ at 60 s       ✗ at 60 s       ✗ at 60 s\n");
    const wide = toTerminal(withMatrix(good, 40));
    expect(wide).toMatch(/\n {2}3\d more tools did not fit here; --out <folder> writes them all\n/);
    expect(wide).toContain("\n  ✗ is cut, or cannot be called  ~ survives with progress  ? not known\n  ✓ survives\n");
  });

  test("a cell that is wider than its column takes several lines, and no line is wider than the terminal", () => {
    const cells = (text: string, quick = "answers quickly") => [
      { state: "ok", text: quick },
      { state: "unknown", text },
    ];
    const rows = [
      { name: "Copilot for JetBrains", cells: cells("if slow cut there at 30 s (not called here)") },
      { name: "Other", cells: cells("lives while progress comes at least every 1800 s") },
      { name: "Long", cells: cells(Array.from({ length: 40 }, (_, at) => `word${at}`).join(" "), "waits") },
    ];
    const matrix = { columns: ["list_things", "build_report"], rows };
    const check = { ...(good.checks.at(-1) as Report["checks"][number]), data: { matrix } };
    const text = toTerminal({ ...good, checks: [check] }, { width: 80 });
    const table = text.slice(text.indexOf("\nHosts\n") + 1, text.indexOf("  ? not known"));
    expect(table.split("\n")).toEqual([
      "Hosts",
      "                         build_report                      list_things",
      "  Copilot for JetBrains  ? if slow cut there at 30 s       ✓ answers quickly",
      "  Other                  ? lives while progress comes at   ✓ answers quickly",
      "                           least every 1800 s",
      "  Long                   ? word0 word1 word2 word3 word4   ✓ waits",
      "                           word5 word6 word7 word8 word9",
      "                           word10 word11 word12 word13 w…",
      "",
    ]);
  });

  test("tools that fare alike are one column, and one line where every host says the same of them", () => {
    expect(toTerminal(bad)).toContain("\n  echo: ✓ everywhere (13 hosts): 40 ms\n");
    const alike = toTerminal(withAlike({ ...good, checks: good.checks.slice(0, 1) }, 36));
    expect(alike).toContain("\nHosts\n  36 tools: ✓ everywhere (3 hosts): gets a handle in time\n\nSuites\n");
    const check = bad.checks.at(-1) as Report["checks"][number];
    const { columns, rows } = (
      check.data as { matrix: { columns: string[]; rows: { name: string; cells: unknown[] }[] } }
    ).matrix;
    const twins = {
      columns: [...columns, "print_too"],
      rows: rows.map(({ name, cells }) => ({ name, cells: [...cells, cells[columns.indexOf("print")]] })),
    };
    const report = {
      ...bad,
      checks: bad.checks.map((one) => (one === check ? { ...one, data: { matrix: twins } } : one)),
    };
    expect(toTerminal(report)).toContain("\n  2 tools like print: print_too\n");
    expect(toHtml(report)).toContain("<summary>2 tools like print</summary><p>print, print_too</p>");
    expect(toMarkdown(report)).toContain("\n\n`2 tools like print`: `print_too`\n");
  });

  test("a tool that the user named comes first, and tools that were left out are counted", () => {
    const named = withMatrix(good, 40);
    const check = named.checks.at(-1) as Report["checks"][number];
    const matrix = { ...(check.data?.matrix as object), named: ["tool_39"], leftOut: 7 };
    const text = toTerminal({ ...named, checks: [{ ...check, data: { matrix } }] });
    expect(text).toMatch(/\nHosts\n +tool_39 /);
    expect(text).toContain("  7 more tools were left out: of a server with so many only those that matter\n");
  });

  test("what is no matrix is left out, and of a thousand tools the worst are shown", () => {
    const withData = (matrix: unknown): Report => ({
      ...good,
      checks: good.checks.map((check) => ({ ...check, data: { matrix } })),
    });
    for (const matrix of [null, 7, {}, { columns: [], rows: [] }, { columns: ["a"], rows: 1 }])
      expect(toTerminal(withData(matrix))).not.toContain("\nHosts\n");
    const odd = toTerminal(
      withData({ columns: ["a", 1], rows: [null, { name: {}, cells: [null, { state: "ok", text: [] }] }] }),
    );
    expect(odd).toContain("\nHosts\n");
    expect(toHtml(withMatrix(good, 1_000))).toContain('<p class="source">800 more tools are in the JSON report.</p>');
    expect(toMarkdown(withMatrix(good, 1_000), { maxLength: 1e6 })).toContain(
      "_800 more tools are in the JSON report._",
    );
  });

  test("nothing that is wrong, and nothing that was answered, are two things", () => {
    const fine = { ...good, findings: [] };
    const open = {
      ...fine,
      checks: fine.checks.map((check, at) => (at === 0 ? ({ ...check, outcome: "unfinished" } as const) : check)),
    };
    const finished = open.checks.filter(({ outcome }) => outcome === "passed" || outcome === "failed").length;
    const some = `Nothing was found in the ${finished} checks that were finished.`;
    for (const draw of [toTerminal, toMarkdown, toHtml]) {
      expect(draw(fine)).toContain("Nothing is wrong.");
      expect(draw({ ...fine, checks: [] })).toContain("No check came to an answer, so nothing is known.");
      expect(draw(open)).toContain(some);
      expect(draw(open)).not.toContain("Nothing is wrong");
      expect(draw({ ...fine, incomplete: "The time ran out." })).not.toContain("Nothing is wrong");
    }
  });

  test("a report without findings says that no tool was called", () => {
    const uncalled = { ...good, findings: [], calls: [] };
    const named = { ...uncalled, calls: [{ tool: "print", isNamed: true, outcome: "not called" as const }] };
    for (const draw of [toTerminal, toMarkdown, toHtml]) {
      for (const report of [uncalled, named]) {
        expect(draw(report)).toMatch(
          /Nothing was found, and no tool was called: name one with --tool (<|&lt;)name(>|&gt;)\./,
        );
        expect(draw(report)).not.toContain("Nothing is wrong");
      }
      expect(draw({ ...uncalled, target: { ...good.target, tools: 0 } })).toContain(
        "Nothing was found, and no tool was called: the server lists none.",
      );
    }
  });

  test("the last line names the slow tools that were not tested", () => {
    const [finding] = bad.findings;
    const of = (...subjects: string[]) =>
      toTerminal(
        { ...bad, findings: subjects.map((subject) => ({ ...finding, subject, isUntested: true }) as Finding) },
        { width: 200 },
      );
    expect(of("a")).toContain("; not tested: a; ");
    expect(of("a", "b", "c")).toContain("; not tested: a, b and c; ");
    expect(of("a", "b", "c", "d", "e")).toContain("; not tested: a, b, c and 2 more; ");
  });

  test("where no tool was called one line says what to do", () => {
    const line = "No tool was called: name your slow one with --tool";
    const skip = (suite: "hosts" | "progress" | "security", note: string) => {
      const [first] = good.checks;
      return {
        ...good,
        checks: [...good.checks, { ...first, id: `${suite}/x`, suite, outcome: "skipped", note }],
      } as Report;
    };
    const uncalled = skip("hosts", "No tool was called: name your slow one with --tool <name>.");
    expect(toTerminal(uncalled)).toContain(`\n! ${line} <name>\n`);
    for (const draw of [toMarkdown, toHtml]) expect(draw(uncalled).split(line).length).toBeGreaterThan(2);
    expect(toTerminal(skip("progress", "No tool says that it only reads (readOnlyHint), …"))).toContain(line);
    for (const report of [
      good,
      skip("progress", "No tool that was called sends progress."),
      skip("security", "No tool says that it only reads."),
    ])
      expect(toTerminal(report)).not.toContain(line);
  });

  test("a server that could not be spoken to has no grade, in no format", () => {
    const report = unspoken(bad);
    expect(toTerminal(report)).toMatch(
      /\nno grade {3}The server could not be spoken to, so there is no grade\.\n[\s\S]*\nno grade {3}1 finding: 1 blocker; 19 checks were skipped\n$/,
    );
    expect(toMarkdown(report)).toMatch(/^## Diagnosis: no grade\n/);
    expect(toHtml(report)).toContain("<title>archive-tools: no grade</title>");
    expect(toHtml(report)).toContain('aria-label="no grade"');
    for (const draw of [toTerminal, toMarkdown, toHtml])
      expect(draw(report)).not.toMatch(/\b0 of 100|[Gg]rade (?:<strong>)?F/);
  });

  test("a call that the user named and that failed is the first line, in every format", () => {
    const headline = "print, which you named, failed: Error: there is no printer.";
    const report: Report = { headline, ...bad };
    expect(toTerminal(report)).toMatch(new RegExp(`^✗ ${headline}\n\narchive-tools`));
    expect(toMarkdown(report)).toMatch(new RegExp(`^\\*\\*✗ ${headline}\\*\\*\n\n## Diagnosis`));
    expect(toJson(report)).toMatch(new RegExp(`^{\n {2}"headline": "${headline}",\n`));
    expect(toHtml(report)).toContain(
      `<header class="top">\n<p class="headline" role="note"><strong>✗</strong> ${headline}</p>\n`,
    );
    expect(toSarif(report).indexOf(headline)).toBeGreaterThan(-1);
    expect(toSarif(report).indexOf(headline)).toBeLessThan(toSarif(report).indexOf("The time of 60 s ran out"));
  });

  test("what was skipped is counted with its reasons, in every format", () => {
    const count = "3 checks were skipped; they say nothing about the server.";
    expect(toMarkdown(bad)).toContain(
      `### Skipped\n\n${count}\n\n| Checks | Why | Which |\n| --- | --- | --- |\n| 2 | The server declares no tasks. |`,
    );
    expect(toHtml(bad)).toContain(`<h2 id="skipped-title">Skipped</h2>\n<p>${count}</p>`);
    expect(toHtml(bad)).toContain("<summary>2 checks: The server declares no tasks.</summary>");
    expect(toSarif(bad)).toContain('"text": "2 checks skipped: The server declares no tasks."');
    expect(toTerminal(bad, { isFull: true })).toContain("  1  The server declares no completions. (completion/");
    const { checks } = good;
    const all = { ...good, checks: checks.filter(({ outcome }) => outcome !== "skipped") };
    for (const draw of [toTerminal, toMarkdown, toHtml, toSarif])
      expect(draw(all)).not.toMatch(/### Skipped|id="skipped|\nSkipped\n|checks? skipped:|were skipped/);
  });

  test("what was called is counted", () => {
    const calls = [
      { tool: "print", isNamed: true, outcome: "succeeded" },
      { tool: "export_archive", isNamed: false, outcome: "failed", note: "Error: no" },
      { tool: "echo", isNamed: false, outcome: "task" },
    ] as const;
    const line = "3 of 4 tools called: 1 succeeded, 1 became a task, 1 failed";
    for (const draw of [toTerminal, toMarkdown, toHtml]) expect(draw({ ...bad, calls })).toContain(line);
    expect(toTerminal({ ...bad, calls: [] })).toContain("none of 4 tools called");
    expect(readReport(toJson({ ...bad, calls }), "a.json").calls).toEqual(calls);
  });

  test.each([48, 60, 64, 80, 120])("no line is wider than %i columns", (width) => {
    for (const report of [good, bad, hostile, withMatrix(bad, 40)])
      for (const isFull of [false, true])
        for (const line of toTerminal(report, { width, isFull }).split("\n"))
          expect(Array.from(line).length, line).toBeLessThanOrEqual(width);
  });

  test("letters that take two places are counted as such", () => {
    expect(wrap("日本語 日本語 日本語", 9)).toEqual(["日本語", "日本語", "日本語"]);
    expect(wrap("日本語", 1)).toEqual(["日", "本", "語"]);
  });
});
