import { toTimestamp } from "../../clock.ts";
import type { Severity } from "../check.ts";
import type { CheckResult, Finding, Report } from "../report/report.ts";
import { hasScore, whyNoScore } from "../report/score.ts";
import { groupSkipped } from "../report/skipped.ts";
import { checks as ourChecks } from "../suites/index.ts";
import { countWords } from "./groups.ts";
import { linesOf, oneLine, shorten } from "./inert.ts";
import { prose } from "./markdown-text.ts";
import { toPlainJson } from "./plain-json.ts";

/**
 * SARIF 2.1.0, for code scanning. A rule is a check, a result is a finding, and a check that could not be finished is a
 * notification: no result of it means nothing.
 */

const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const levels: Readonly<Record<Severity, "error" | "warning" | "note">> = {
  blocker: "error",
  major: "error",
  minor: "warning",
  info: "note",
};
/** How GitHub ranks what is tagged as security: above 9 critical, above 7 high, above 4 medium. */
const securityScores: Readonly<Record<Severity, string>> = { blocker: "9.1", major: "7.5", minor: "4.5", info: "1.0" };

export function toSarif(report: Report): string {
  const ids = [...new Set([...report.checks.map(({ id }) => id), ...report.findings.map(({ check }) => check)])];
  const indexes = new Map(ids.map((id, at) => [id, at]));
  const location = toLocation(report);
  return toPlainJson({
    $schema: schema,
    version: "2.1.0",
    runs: [
      {
        tool: {
          driver: {
            name: "meanwhile diagnose",
            version: plain(report.madeBy.version),
            rules: ids.map((id) => toRule(id, report)),
          },
        },
        automationDetails: { id: `meanwhile-diagnose/${location.uri}/` },
        invocations: [toInvocation(report, indexes)],
        results: report.findings.map((finding) => toResult(finding, indexes.get(finding.check) ?? 0, location)),
        properties: {
          score: hasScore(report) ? report.score : "no grade",
          calls: report.calls,
          target: report.target,
          suites: report.suites,
          isFull: report.isFull,
        },
      },
    ],
  });
}

function toRule(id: string, { checks, findings }: Report): unknown {
  const check = checks.find((item) => item.id === id);
  const finding = findings.find((item) => item.check === id);
  const severity = check?.severity ?? finding?.severity ?? "info";
  const suite = check?.suite ?? finding?.suite ?? "";
  const question = check?.question ?? finding?.title ?? id;
  // A finding's remedy may be about one tool, so the check's own texts come first; a report of another version may have
  // checks we do not know.
  const texts = ourChecks.find((item) => item.id === id) ?? finding ?? { why: question, remedy: question, source: "" };
  const help = [...new Set([texts.remedy, texts.why, texts.source])].filter((text) => text !== "");
  return {
    id: plain(id),
    name: toName(id),
    shortDescription: { text: message(question) },
    fullDescription: { text: message(texts.why) },
    help: { text: message(help.map(ended).join(" ")), markdown: help.map(prose).join("\n\n") },
    defaultConfiguration: { level: levels[severity] },
    properties: {
      tags: ["mcp", plain(suite)],
      ...(suite === "security" && { "security-severity": securityScores[severity] }),
    },
  };
}

function toResult(finding: Finding, ruleIndex: number, location: { readonly uri: string }): unknown {
  const { id, check, severity, subject, title, why, remedy, evidence } = finding;
  return {
    ruleId: plain(check),
    ruleIndex,
    level: levels[severity],
    message: {
      text: message([title, why, remedy].map(ended).join(" ")),
      markdown: `${prose(title)}\n\n${prose(why)}\n\n${prose(remedy)}`,
    },
    locations: [
      {
        physicalLocation: { artifactLocation: { uri: location.uri }, region: { startLine: 1 } },
        ...(subject !== undefined && { logicalLocations: [{ name: plain(subject), fullyQualifiedName: plain(id) }] }),
      },
    ],
    partialFingerprints: { "meanwhile/finding": id },
    properties: { severity, evidence: evidence.map(({ kind, text }) => ({ kind, text: linesOf(text).join("\n") })) },
  };
}

function toInvocation(
  { startedAt, durationMs, checks, incomplete, headline, ...report }: Report,
  indexes: ReadonlyMap<string, number>,
): unknown {
  const startedMs = Date.parse(startedAt);
  const times = Number.isNaN(startedMs)
    ? {}
    : { startTimeUtc: toTimestamp(startedMs), endTimeUtc: toTimestamp(startedMs + durationMs) };
  const unfinished = checks
    .filter(({ outcome }) => outcome === "unfinished")
    .map((check) => toNotification(check, indexes.get(check.id) ?? 0));
  const told = hasScore({ ...report, checks }) ? undefined : whyNoScore(report);
  const early = [headline, incomplete].flatMap((one) =>
    one === undefined ? [] : [{ level: "error", message: { text: message(one) } }],
  );
  const ungraded = told === undefined ? [] : [{ level: "warning", message: { text: message(told) } }];
  return {
    executionSuccessful: incomplete === undefined,
    ...times,
    toolExecutionNotifications: [...early, ...ungraded, ...unfinished, ...skippedIn(checks)],
  };
}

/** What was not asked: one note a reason. */
function skippedIn(checks: readonly CheckResult[]): unknown[] {
  return groupSkipped(checks).map(({ why, count, checks: ids }) => ({
    level: "note",
    message: { text: message(`${countWords(count, "check")} skipped: ${why}`) },
    properties: { checks: ids.map(plain) },
  }));
}

function toNotification({ id, question, note }: CheckResult, index: number): unknown {
  return {
    level: "warning",
    message: { text: message(`${question} This could not be finished${note === undefined ? "." : `: ${note}`}`) },
    associatedRule: { id: plain(id), index },
  };
}

/** As a sentence, so that the next one does not run into it. */
function ended(text: string): string {
  return /[.!?…:]["'”’)`]*\s*$/.test(text) ? text : `${text}.`;
}

/**
 * Code scanning shows nothing without a file and refuses addresses with a scheme, so both are relative: the URL without
 * its scheme and query (a colon in the first part would be taken for the end of a scheme), or the command line as one
 * word.
 */
function toLocation({ target }: Report): { readonly uri: string } {
  const name = plain(target.name);
  const url = target.transport === "http" && URL.canParse(name) ? new URL(name) : undefined;
  if (url === undefined) return { uri: encodeURIComponent(name) || "server" };
  return { uri: `${encodeURIComponent(url.host)}${url.pathname === "/" ? "" : url.pathname}` };
}

/** `protocol/unknown-method` → `ProtocolUnknownMethod` */
function toName(id: string): string {
  const words = plain(id).match(/[A-Za-z0-9]+/g) ?? ["Check"];
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
}

function plain(text: string): string {
  return shorten(oneLine(text), 1_000);
}

/** In a message brackets make links and braces take arguments (SARIF 2.1.0, 3.11.5 and 3.11.6), so both are escaped. */
function message(text: string): string {
  return plain(text)
    .replaceAll(/[\\[\]]/g, "\\$&")
    .replaceAll(/[{}]/g, "$&$&");
}
