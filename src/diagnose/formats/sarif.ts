import { toTimestamp } from "../../clock.ts";
import type { Severity } from "../check.ts";
import type { CheckResult, Finding, Report } from "../report.ts";
import { linesOf, oneLine, shorten } from "./inert.ts";
import { prose } from "./markdown-text.ts";
import { toPlainJson } from "./plain-json.ts";

/**
 * SARIF 2.1.0, for code scanning. A rule is a check, a result is a finding, and a check that could not be finished is a notification:
 * no result of it means nothing.
 */

const schema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";
const levels: Readonly<Record<Severity, "error" | "warning" | "note">> = { blocker: "error", major: "error", minor: "warning", info: "note" };
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
        tool: { driver: { name: "meanwhile diagnose", version: plain(report.madeBy.version), rules: ids.map((id) => toRule(id, report)) } },
        automationDetails: { id: `meanwhile-diagnose/${location.uri}/` },
        invocations: [toInvocation(report, indexes)],
        results: report.findings.map((finding) => toResult(finding, indexes.get(finding.check) ?? 0, location)),
        properties: { score: report.score, target: report.target, suites: report.suites, isFull: report.isFull },
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
  return {
    id: plain(id),
    name: toName(id),
    shortDescription: { text: message(question) },
    fullDescription: { text: message(finding?.why ?? question) },
    help:
      finding === undefined
        ? { text: message(question), markdown: prose(question) }
        : { text: message(`${finding.remedy} (${finding.source})`), markdown: `${prose(finding.remedy)}\n\n${prose(finding.why)}\n\n${prose(finding.source)}` },
    defaultConfiguration: { level: levels[severity] },
    properties: { tags: ["mcp", plain(suite)], ...(suite === "security" && { "security-severity": securityScores[severity] }) },
  };
}

function toResult(finding: Finding, ruleIndex: number, location: { readonly uri: string }): unknown {
  const { id, check, severity, subject, title, why, remedy, evidence } = finding;
  return {
    ruleId: plain(check),
    ruleIndex,
    level: levels[severity],
    message: { text: message(`${title} ${why} ${remedy}`), markdown: `${prose(title)}\n\n${prose(why)}\n\n${prose(remedy)}` },
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

function toInvocation({ startedAt, durationMs, checks, incomplete }: Report, indexes: ReadonlyMap<string, number>): unknown {
  const startedMs = Date.parse(startedAt);
  const times = Number.isNaN(startedMs) ? {} : { startTimeUtc: toTimestamp(startedMs), endTimeUtc: toTimestamp(startedMs + durationMs) };
  const unfinished = checks.filter(({ outcome }) => outcome === "unfinished").map((check) => toNotification(check, indexes.get(check.id) ?? 0));
  const early = incomplete === undefined ? [] : [{ level: "error", message: { text: message(incomplete) } }];
  return { executionSuccessful: incomplete === undefined, ...times, toolExecutionNotifications: [...early, ...unfinished] };
}

function toNotification({ id, question, note }: CheckResult, index: number): unknown {
  return {
    level: "warning",
    message: { text: message(`${question} This could not be finished${note === undefined ? "." : `: ${note}`}`) },
    associatedRule: { id: plain(id), index },
  };
}

/** The URL without its query; a command line as a relative address, because code scanning shows nothing without a file. */
function toLocation({ target }: Report): { readonly uri: string } {
  const name = plain(target.name);
  const url = target.transport === "http" && URL.canParse(name) ? new URL(name) : undefined;
  if (url === undefined) return { uri: encodeURIComponent(name) || "server" };
  url.search = "";
  url.hash = "";
  url.username = "";
  url.password = "";
  return { uri: url.href };
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
