import { formatDuration } from "../../clock.ts";
import type { Severity } from "../check.ts";
import type { CheckResult, Finding, Report } from "../report/report.ts";
import { hasScore, whyNoScore } from "../report/score.ts";
import { groupSkipped } from "../report/skipped.ts";
import {
  countBySeverity,
  countBySuite,
  countWords,
  type FindingGroup,
  groupFindings,
  outcomes,
  tellCalls,
  tellNothing,
  tellSkipped,
  tellUncalled,
} from "./groups.ts";
import { code, fenced, prose, table } from "./markdown-text.ts";
import { briefly, cellLooks, type Matrix, matrixOf, statesIn, tellEverywhere, tellLeftOut, turned } from "./matrix.ts";

/** GitHub takes 65,536 characters in a comment; this leaves room for a line of one's own. */
const defaultMaxLength = 64_000;
const shownPerGroup = 10;
const maxColumns = 14;
const maxNames = 50;

const marks: Readonly<Record<Severity, string>> = { blocker: "⛔", major: "🔴", minor: "🟡", info: "🔵" };
const outcomeMarks: Readonly<Record<CheckResult["outcome"], string>> = {
  passed: "✓",
  failed: "✗",
  skipped: "–",
  unfinished: "!",
};

/** The report as a comment of a pull request; what does not fit into one is counted at its end. */
export function toMarkdown(report: Report, options: { readonly maxLength?: number } = {}): string {
  const groups = groupFindings(report.findings);
  const first = [drawHeadline(report), drawHead(report), drawSummary(report, groups)].filter((block) => block !== "");
  const rest = [
    ...groups.map(drawGroup),
    ...report.checks.flatMap(drawMatrices),
    drawSuites(report),
    drawSkipped(report),
    drawChecks(report),
  ].filter((block) => block !== "");
  return fitBlocks(first, rest, options.maxLength ?? defaultMaxLength);
}

function fitBlocks(first: readonly string[], rest: readonly string[], maxLength: number): string {
  const kept = [...first];
  let length = first.join("\n\n").length + 200;
  let left = 0;
  for (const block of rest) {
    if (length + block.length + 2 > maxLength) left += 1;
    else {
      kept.push(block);
      length += block.length + 2;
    }
  }
  if (left > 0)
    kept.push(`_${countWords(left, "section")} did not fit here; the JSON and HTML reports have everything._`);
  return `${kept.join("\n\n")}\n`;
}

function drawHeadline({ headline }: Report): string {
  return headline === undefined ? "" : `**✗ ${prose(headline)}**`;
}

function drawHead(report: Report): string {
  const { target, durationMs, isFull, incomplete, madeBy } = report;
  const called = tellCalls(report);
  const name = target.server === undefined ? "" : `${code(`${target.server.name} ${target.server.version}`)} at `;
  const facts = [
    target.transport,
    // Of a server that nobody could speak to, nothing is known.
    ...(target.revisions.length === 0
      ? []
      : [
          target.revisions.map(code).join(", "),
          target.tasks.length === 0 ? "no tasks" : `tasks ${target.tasks.map(code).join(", ")}`,
          `${target.tools} ${target.tools === 1 ? "tool" : "tools"}`,
        ]),
    ...(called === undefined ? [] : [called]),
    `${isFull ? "all checks" : "quick checks"} in ${formatDuration(durationMs)}`,
    `Meanwhile ${prose(madeBy.version)}`,
  ];
  return [
    `## Diagnosis: ${hasScore(report) ? `${report.score.points} of 100, grade ${report.score.grade}` : "no grade"}`,
    `${name}${code(target.name)}  \n${facts.join(" · ")}`,
    prose(hasScore(report) ? report.score.explanation : whyNoScore(report)),
    ...(incomplete === undefined ? [] : [`**Incomplete.** ${prose(incomplete)}`]),
  ].join("\n\n");
}

/** One line a group, worst first; at most as many as a person reads. */
function drawSummary(report: Report, groups: readonly FindingGroup[]): string {
  const uncalled = tellUncalled(report);
  const last = uncalled === undefined ? "" : `\n\n${prose(uncalled)}`;
  if (groups.length === 0) return `${tellNothing(report).text}${last}`;
  const counts = countBySeverity(groups.flatMap(({ findings }) => findings)).map(
    ({ severity, count }) => `${marks[severity]} ${countWords(count, severity)}`,
  );
  const rows = groups.slice(0, 50).map(({ severity, check, findings }) => {
    const [only] = findings;
    const title =
      findings.length === 1
        ? prose(only?.title ?? "")
        : `${prose(only?.title ?? "")} _and ${findings.length - 1} more_`;
    return [`${marks[severity]} ${severity}`, title, code(check)];
  });
  return `${countWords(report.findings.length, "finding")}: ${counts.join(" · ")}\n\n${table(["Severity", "Finding", "Check"], rows)}${last}`;
}

function drawGroup({ severity, check, why, remedy, source, findings }: FindingGroup): string {
  const [only] = findings;
  const shown = findings.slice(0, shownPerGroup);
  const more = findings.length - shown.length;
  return [
    `### ${marks[severity]} ${findings.length === 1 ? prose(only?.title ?? "") : `${code(check)}: ${findings.length} findings`}`,
    ...(findings.length === 1 && only?.subject !== undefined ? [`**Where:** ${code(only.subject)}`] : []),
    `**Why it matters:** ${prose(why)}`,
    `**What to change:** ${prose(remedy)}`,
    ...shown.flatMap((finding) => drawFinding(finding, findings.length > 1)),
    ...(more > 0 ? [`_and ${more} more_`] : []),
    `<sub>${code(check)} · ${prose(source)}</sub>`,
  ].join("\n\n");
}

function drawFinding({ title, subject, evidence }: Finding, isTitled: boolean): string[] {
  const seen = evidence.filter(({ text }) => text.trim() !== "").map(({ kind, text }) => `${kind}:\n\n${fenced(text)}`);
  const name = subject === undefined ? "" : ` (${code(subject)})`;
  return isTitled ? [`**·** ${prose(title)}${name}`, ...seen] : seen;
}

function drawMatrices(check: CheckResult): string[] {
  const found = matrixOf(check);
  if (found === undefined) return [];
  const matrix = found.columns.length > maxColumns && found.columns.length > found.rows.length ? turned(found) : found;
  const rows = matrix.rows.map(({ name, cells }) => [
    code(name),
    ...cells.map(({ state, text }) => `${cellLooks[state].sign} ${prose(briefly(text))}`.trim()),
  ]);
  const drawn = found.columns.length === 0 ? [] : [legendOf(matrix), table([" ", ...matrix.columns.map(code)], rows)];
  return [["### Hosts", ...drawn, ...tellRest(found)].join("\n\n")];
}

/** What stands below the table, or instead of it. */
function tellRest(matrix: Matrix): string[] {
  const list = (tools: readonly string[]) =>
    `${tools.slice(0, maxNames).map(code).join(", ")}${tools.length > maxNames ? ", …" : ""}`;
  const left = tellLeftOut(matrix);
  return [
    ...matrix.shared.map(({ name, tools }) => `${code(name)}: ${list(tools.slice(1))}`),
    ...matrix.everywhere.map(
      (one) => `${tellEverywhere(one, prose)}${one.tools.length > 1 ? `. Tools: ${list(one.tools)}` : ""}`,
    ),
    ...(matrix.hidden === 0 ? [] : [`_${matrix.hidden} more tools are in the JSON report._`]),
    ...(left === undefined ? [] : [left]),
  ];
}

function legendOf(matrix: Matrix): string {
  return statesIn(matrix)
    .map((state) => `${cellLooks[state].sign} ${cellLooks[state].meaning}`)
    .join(" · ");
}

function drawSuites(report: Report): string {
  const rows = countBySuite(report).map(({ suite, counts }) => [
    suite,
    ...outcomes.map((outcome) => (counts[outcome] === 0 ? "" : String(counts[outcome]))),
  ]);
  return rows.length === 0 ? "" : `### Suites\n\n${table(["Suite", ...outcomes], rows)}`;
}

/** What was not asked, by the reason. */
function drawSkipped({ checks }: Report): string {
  const rows = groupSkipped(checks).map(({ why, count, checks: ids }) => [
    String(count),
    prose(why),
    ids.map(code).join(", "),
  ]);
  return rows.length === 0
    ? ""
    : `### Skipped\n\n${tellSkipped(checks)}; they say nothing about the server.\n\n${table(["Checks", "Why", "Which"], rows)}`;
}

function drawChecks({ checks }: Report): string {
  if (checks.length === 0) return "";
  const rows = checks.map(({ id, question, outcome, note }) => [
    `${outcomeMarks[outcome]} ${outcome}`,
    code(id),
    prose(question),
    note === undefined ? "" : prose(note),
  ]);
  return `<details><summary>All ${countWords(checks.length, "check")}</summary>\n\n${table(["Outcome", "Check", "Question", "Note"], rows)}\n\n</details>`;
}
