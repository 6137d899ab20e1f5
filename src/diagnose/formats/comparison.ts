import { cut, wrap } from "../../screen/width.ts";
import type { Comparison, FindingChange, Side } from "../report/compare-reports.ts";
import type { Finding } from "../report/report.ts";
import { countWords } from "./groups.ts";
import { oneLine, shorten } from "./inert.ts";
import { code, prose, table } from "./markdown-text.ts";
import { toPlainJson } from "./plain-json.ts";
import { paintSeverity, type TerminalOptions, type TerminalPage, toPage } from "./terminal-report.ts";

const firstLook = "its check came to no answer before";

/** What changed, for a terminal; what is worse comes first. */
export function comparisonToTerminal(comparison: Comparison, options: TerminalOptions = {}): string {
  const page = toPage(options);
  const { colors, width } = page;
  const { new: fresh, worse, unseen, gone, better, warnings } = comparison;
  const quiet = quietOf(comparison).flatMap(({ check, before, why }) =>
    hanging("  ", `${check} (${before} before): ${why}`, width),
  );
  const sections: readonly (readonly [title: string, lines: readonly string[]])[] = [
    ["New", fresh.flatMap((finding) => drawFinding(finding, page, finding.isFirstLook ? firstLook : undefined))],
    ["Worse", worse.flatMap((change) => drawChange(change, page))],
    ["Not looked at any more", [...unseen.flatMap(({ finding, why }) => drawFinding(finding, page, why)), ...quiet]],
    ["Better", better.flatMap((change) => drawChange(change, page))],
    ["Gone", gone.flatMap((finding) => drawFinding(finding, page))],
  ];
  const parts = [
    drawHead(comparison, page),
    warnings.flatMap((warning) => hanging("! ", warning, width).map(colors.yellow)),
    ...sections.map(([title, lines]) => (lines.length === 0 ? [] : [colors.bold(title), ...lines])),
    [summaryOf(comparison)],
  ];
  return `${parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n")}\n`;
}

export function comparisonToJson(comparison: Comparison): string {
  return toPlainJson(comparison);
}

/** What changed, for a comment of a pull request. */
export function comparisonToMarkdown(comparison: Comparison): string {
  const { before, after, points, warnings, new: fresh, worse, unseen, gone, better } = comparison;
  const row = ({ severity, title, id }: Finding, note = "") => [severity, prose(title), code(id), prose(note)];
  const change = ({ finding, before: was }: FindingChange) => row(finding, `${was} before`);
  const part = (title: string, rows: readonly string[][]) =>
    rows.length === 0
      ? []
      : [
          `### ${title}`,
          table(["Severity", "Finding", "Id", "Note"], rows.slice(0, 100)),
          ...(rows.length > 100 ? [`_and ${rows.length - 100} more_`] : []),
        ];
  const blocks = [
    `## ${headline(before, after, points)}`,
    `${nameOf(before, code)} → ${nameOf(after, code)}`,
    ...warnings.map((warning) => `> ${prose(warning)}`),
    ...part(
      "New",
      fresh.map((finding) => row(finding, finding.isFirstLook ? firstLook : "")),
    ),
    ...part("Worse", worse.map(change)),
    ...part("Not looked at any more", [
      ...unseen.map(({ finding, why }) => row(finding, why)),
      ...quietOf(comparison).map(({ check, before: was, why }) => ["–", `It ${was} before.`, code(check), prose(why)]),
    ]),
    ...part("Better", better.map(change)),
    ...part(
      "Gone",
      gone.map((finding) => row(finding)),
    ),
    summaryOf(comparison),
  ];
  return `${blocks.join("\n\n")}\n`;
}

function drawHead({ before, after, points }: Comparison, { colors, width }: TerminalPage): string[] {
  const paint = points === undefined || points === 0 ? colors.dim : points < 0 ? colors.red : colors.green;
  const isSame = nameOf(before) === nameOf(after);
  return [
    ...wrap(isSame ? nameOf(after) : `${nameOf(before)} → ${nameOf(after)}`, width).map(colors.bold),
    `${scoreIn(before)} → ${colors.bold(scoreIn(after))}${points === undefined ? "" : `  ${paint(`${signed(points)} points`)}`}`,
  ];
}

function headline(before: Side, after: Side, points: number | undefined): string {
  if (before.score === undefined || after.score === undefined || points === undefined)
    return `${scoreIn(before)} → ${scoreIn(after)}`;
  return `${before.score.points} → ${after.score.points} of 100 (${signed(points)}), grade ${before.score.grade} → ${after.score.grade}`;
}

function scoreIn({ score }: Side): string {
  return score === undefined ? "no grade" : `${score.points} ${score.grade}`;
}

function nameOf({ target, server }: Side, draw: (text: string) => string = clean): string {
  return server === undefined ? draw(target) : draw(`${server.name} ${server.version}`);
}

function signed(points: number): string {
  return points < 0 ? `−${-points}` : points > 0 ? `+${points}` : "±0";
}

function drawFinding({ severity, id, title }: Finding, { colors, width }: TerminalPage, note?: string): string[] {
  return [
    `  ${paintSeverity(severity, colors)}  ${colors.dim(cut(clean(id), width - severity.length - 6))}`,
    ...hanging("    ", title, width),
    ...(note === undefined ? [] : hanging("    ", `(${note})`, width).map(colors.dim)),
  ];
}

function drawChange({ finding, before }: FindingChange, page: TerminalPage): string[] {
  return drawFinding(finding, page, `${before} before`);
}

function hanging(first: string, text: string, width: number): string[] {
  return wrap(clean(text), width - first.length).map(
    (line, at) => `${at === 0 ? first : " ".repeat(first.length)}${line}`,
  );
}

/** Checks that came to an answer before and to none now, without those whose findings are listed. */
function quietOf({ unjudged, unseen }: Comparison): Comparison["unjudged"] {
  return unjudged.filter(({ check }) => !unseen.some(({ finding }) => finding.check === check));
}

function summaryOf({ new: fresh, gone, worse, better, same, unseen, unjudged }: Comparison): string {
  if (fresh.length + gone.length + worse.length + better.length + unjudged.length === 0)
    return `Nothing changed: ${countWords(same, "finding")} in both.`;
  const counts = [
    `${fresh.length} new`,
    `${worse.length} worse`,
    `${better.length} better`,
    `${gone.length} gone`,
    `${same} the same`,
  ];
  return `${[...counts, ...(unseen.length > 0 ? [`${unseen.length} not looked at any more`] : []), ...(unjudged.length > 0 ? [`${countWords(unjudged.length, "check")} without an answer now`] : [])].join(", ")}.`;
}

function clean(text: string): string {
  return shorten(oneLine(text), 1_000);
}
