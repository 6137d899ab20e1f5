import { formatDuration } from "../../clock.ts";
import { cut, pad, wrap } from "../../screen/width.ts";
import type { Evidence, Severity } from "../check.ts";
import type { CheckResult, Finding, Report } from "../report/report.ts";
import { hasScore, whyNoScore } from "../report/score.ts";
import { groupSkipped } from "../report/skipped.ts";
import { countUntested } from "../report/untested.ts";
import {
  countBySuite,
  countWords,
  type FindingGroup,
  groupFindings,
  outcomes,
  tellCalls,
  tellFindings,
  tellNothing,
  tellSkipped,
  tellUncalled,
} from "./groups.ts";
import { linesOf, oneLine, shorten } from "./inert.ts";
import { matrixOf } from "./matrix.ts";
import { drawMatrix } from "./terminal-matrix.ts";

/** The few colours we use, as picocolors has them. */
export interface Colors {
  readonly bold: (text: string) => string;
  readonly cyan: (text: string) => string;
  readonly dim: (text: string) => string;
  readonly green: (text: string) => string;
  readonly red: (text: string) => string;
  readonly yellow: (text: string) => string;
}

export interface TerminalOptions {
  readonly colors?: Colors;
  /** Columns. Default: 80. */
  readonly width?: number;
  /** True: every finding and all its evidence. */
  readonly isFull?: boolean;
}

const same = (text: string) => text;
const noColors: Colors = { bold: same, cyan: same, dim: same, green: same, red: same, yellow: same };

/** Narrower than this nothing can be laid out. */
const minWidth = 48;
const maxText = 1_000;
const shownPerGroup = 3;
const shownEvidence = 2;
const evidenceLines = 4;

export interface TerminalPage {
  readonly colors: Colors;
  readonly width: number;
  readonly isFull: boolean;
}

export function toPage(options: TerminalOptions): TerminalPage {
  return {
    colors: options.colors ?? noColors,
    width: Math.max(minWidth, options.width ?? 80),
    isFull: options.isFull ?? false,
  };
}

/** What a person wants to know first, in a terminal: the score, what is wrong and what to change. */
export function toTerminal(report: Report, options: TerminalOptions = {}): string {
  const page = toPage(options);
  const parts = [
    drawHeadline(report, page),
    drawHead(report, page),
    drawFindings(report, page),
    drawUncalled(report, page),
    ...drawMatrices(report, page),
    drawSuites(report, page),
    drawSkipped(report, page),
    drawEnd(report, page),
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

/** A named call that failed, or a slow tool that was not tested. */
function drawHeadline({ headline }: Report, { colors, width }: TerminalPage): string[] {
  if (headline === undefined) return [];
  return indent(wrap(text(headline), width - 2), "✗ ", "  ").map((line) => colors.bold(colors.red(line)));
}

function drawHead(report: Report, page: TerminalPage): string[] {
  const { target, isFull, durationMs, incomplete } = report;
  const { colors, width } = page;
  const called = tellCalls(report);
  const name = target.server === undefined ? target.name : `${target.server.name} ${target.server.version}`;
  const facts = [
    target.transport,
    // Of a server that nobody could speak to, nothing is known.
    ...(target.revisions.length === 0
      ? []
      : [
          target.revisions.join(", "),
          target.tasks.length === 0 ? "no tasks" : `tasks ${target.tasks.join(", ")}`,
          `${target.tools} ${target.tools === 1 ? "tool" : "tools"}`,
        ]),
    `${isFull ? "all checks" : "quick checks"} in ${formatDuration(durationMs)}`,
  ];
  return [
    ...paragraph(name, width).map(colors.bold),
    ...(target.server === undefined ? [] : paragraph(target.name, width).map(colors.dim)),
    ...paragraph(facts.join(" · "), width).map(colors.dim),
    ...(called === undefined ? [] : paragraph(called, width).map(colors.dim)),
    "",
    ...(hasScore(report)
      ? hang(
          `${report.score.points} of 100  ${report.score.grade}`,
          scoreColor(report, colors),
          oneLine(report.score.explanation),
          width,
        )
      : hang("no grade", scoreColor(report, colors), oneLine(whyNoScore(report)), width)),
    ...(incomplete === undefined ? [] : hang("! Incomplete", colors.yellow, oneLine(incomplete), width)),
  ];
}

function scoreColor(report: Report, colors: Colors): (text: string) => string {
  const { grade } = report.score;
  const paint = !hasScore(report)
    ? colors.yellow
    : grade === "A" || grade === "B"
      ? colors.green
      : grade === "F"
        ? colors.red
        : colors.yellow;
  return (text) => colors.bold(paint(text));
}

const signs: Readonly<Record<Severity, string>> = { blocker: "✗", major: "▲", minor: "●", info: "·" };

export function paintSeverity(severity: Severity, colors: Colors): string {
  const text = `${signs[severity]} ${severity}`;
  if (severity === "blocker") return colors.bold(colors.red(text));
  if (severity === "major") return colors.red(text);
  return severity === "minor" ? colors.yellow(text) : colors.cyan(text);
}

function drawFindings(report: Report, page: TerminalPage): string[] {
  const { colors } = page;
  if (report.findings.length > 0)
    return groupFindings(report.findings).flatMap((group, at) => [
      ...(at === 0 ? [] : [""]),
      ...drawGroup(group, page),
    ]);
  const { text: nothing, isFine } = tellNothing(report);
  return [isFine ? colors.green(`✓ ${nothing}`) : colors.yellow(`! ${nothing}`)];
}

function drawUncalled(report: Report, { colors }: TerminalPage): string[] {
  const uncalled = tellUncalled(report);
  return uncalled === undefined ? [] : [colors.yellow(`! ${uncalled}`)];
}

function drawGroup(group: FindingGroup, page: TerminalPage): string[] {
  const { colors, width, isFull } = page;
  const shown = isFull
    ? group.findings
    : group.findings.slice(0, group.findings.length === shownPerGroup + 1 ? shownPerGroup + 1 : shownPerGroup);
  const rest = group.findings.slice(shown.length);
  const [only] = group.findings;
  const subject = group.findings.length === 1 && only?.subject !== undefined ? ` · ${only.subject}` : "";
  return [
    `${paintSeverity(group.severity, colors)}  ${colors.dim(cut(text(`${group.check}${subject}`), width - group.severity.length - 4))}`,
    ...shown.flatMap((finding) => drawFinding(finding, page)),
    ...(rest.length === 0
      ? []
      : [colors.dim(`  ${cut(text(`and ${rest.length} more: ${namesOf(rest)}`), width - 2)}`)]),
    ...indent(paragraph(group.why, width - 2), "  "),
    ...indent(wrap(`→ ${text(group.remedy)}`, width - 4), "  ", "    ").map((line) => colors.green(line)),
  ];
}

function drawFinding({ title, evidence }: Finding, { colors, width, isFull }: TerminalPage): string[] {
  const shown = isFull ? evidence : evidence.slice(0, shownEvidence);
  const seen = shown.flatMap((piece) => (isFull ? drawWhole(piece, width - 4) : drawBriefly(piece, width - 4)));
  return [...indent(wrap(text(title), width - 2), "  ").map(colors.bold), ...indent(seen, "    ").map(colors.dim)];
}

function drawWhole({ kind, text: seen }: Evidence, room: number): string[] {
  return linesOf(shorten(seen, maxText * 4)).flatMap((line, at) => wrap(at === 0 ? `${kind}: ${line}` : line, room));
}

/** A few lines of it. Of what a server printed the end is shown: there it says why it left. */
function drawBriefly({ kind, text: seen }: Evidence, room: number): string[] {
  const words = linesOf(shorten(seen, maxText * 4)).join(" ");
  if (words === "") return [];
  const lines = wrap(`${kind}: ${words}`, room);
  if (lines.length <= evidenceLines) return lines;
  if (kind === "printed") return [`${kind}: …`, ...wrap(words, room).slice(1 - evidenceLines)];
  return [...lines.slice(0, evidenceLines - 1), cut(lines.slice(evidenceLines - 1).join(" "), room)];
}

function namesOf(findings: readonly Finding[]): string {
  return findings.map(({ subject, title }) => subject ?? title).join(", ");
}

function drawMatrices({ checks }: Report, page: TerminalPage): string[][] {
  return checks.flatMap((check) => {
    const matrix = matrixOf(check);
    return matrix === undefined ? [] : [drawMatrix(matrix, page)];
  });
}

function drawSuites(report: Report, page: TerminalPage): string[] {
  const { colors } = page;
  const rows = countBySuite(report);
  if (rows.length === 0) return [];
  const looks = { passed: colors.green, failed: colors.red, skipped: colors.dim, unfinished: colors.yellow };
  const nameWidth = Math.max(...rows.map(({ suite }) => suite.length)) + 2;
  const lines = rows.map(({ suite, counts }) => {
    const cells = outcomes
      .filter((outcome) => counts[outcome] > 0)
      .map((outcome) => looks[outcome](`${counts[outcome]} ${outcome}`));
    return `  ${pad(suite, nameWidth)}${cells.join(colors.dim(", ")) || colors.dim("not asked")}`;
  });
  return [colors.bold("Suites"), ...lines, ...drawUnfinished(report.checks, page)];
}

/** What was not asked, by the reason. */
function drawSkipped({ checks }: Report, { colors, width, isFull }: TerminalPage): string[] {
  const groups = groupSkipped(checks);
  const count = tellSkipped(checks);
  if (count === undefined) return [];
  const room = String(groups[0]?.count ?? 0).length;
  return [
    colors.bold("Skipped"),
    ...groups.flatMap(({ why, count: number, checks: ids }) => {
      const names = isFull ? ` (${ids.join(", ")})` : "";
      const lines = wrap(text(`${why}${names}`), width - room - 4);
      return lines.map((line, at) =>
        colors.dim(`  ${at === 0 ? String(number).padStart(room) : " ".repeat(room)}  ${line}`),
      );
    }),
  ];
}

/** Checks that ended early, together where they have the same reason. */
function drawUnfinished(checks: readonly CheckResult[], { width, isFull }: TerminalPage): string[] {
  const byReason = new Map<string, string[]>();
  for (const { id, note, outcome } of checks) {
    if (outcome !== "unfinished") continue;
    const reason = text(note ?? "");
    byReason.set(reason, [...(byReason.get(reason) ?? []), text(id)]);
  }
  return [...byReason].flatMap(([reason, ids]) => {
    const shown =
      isFull || ids.length <= shownPerGroup + 1
        ? ids
        : [...ids.slice(0, shownPerGroup), `${ids.length - shownPerGroup} more`];
    return indent(
      wrap(`! Not finished: ${shown.join(", ")}${reason === "" ? "." : `. ${reason}`}`, width - 4),
      "  ",
      "    ",
    );
  });
}

/** The last line is the one that is still on the screen. */
function drawEnd(report: Report, { colors, width }: TerminalPage): string[] {
  const { findings, checks } = report;
  const skipped = tellSkipped(checks);
  const unfinished = checks.filter(({ outcome }) => outcome === "unfinished").length;
  const untested = countUntested(findings);
  const counts = [
    tellFindings(findings),
    ...(untested === undefined ? [] : [untested]),
    ...(unfinished > 0 ? [`${countWords(unfinished, "check")} not finished`] : []),
    ...(skipped === undefined ? [] : [skipped]),
  ];
  const label = hasScore(report) ? `${report.score.grade}  ${report.score.points} of 100` : "no grade";
  return hang(label, scoreColor(report, colors), counts.join("; "), width);
}

/** A label that is painted, and a text beside it whose further lines begin below its first letter. */
function hang(label: string, paint: (text: string) => string, words: string, width: number): string[] {
  const [first = "", ...rest] = wrap(shorten(words, maxText), width - label.length - 3);
  return [`${paint(label)}   ${first}`, ...rest.map((line) => `${" ".repeat(label.length + 3)}${line}`)];
}

function text(raw: string): string {
  return shorten(oneLine(raw), maxText);
}

function paragraph(raw: string, width: number): string[] {
  return wrap(text(raw), width);
}

function indent(lines: readonly string[], first: string, others = first): string[] {
  return lines.map((line, at) => `${at === 0 ? first : others}${line}`);
}
