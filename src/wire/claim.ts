import { ProtocolError, requestErrors } from "../errors.ts";
import { isObject, type Json } from "./json.ts";
import { metaKeys } from "./request-envelope.ts";
import { isModern, modernRevision } from "./revisions.ts";

/** What is wrong with what a request of 2026-07-28 says about who asks. */
interface EnvelopeIssue {
  readonly key: string;
  readonly problem: string;
}

export const logLevels = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"] as const;

/** True for a request that says which revision it speaks: one of 2026-07-28 or later, or one that tries to be. */
export function hasClaim(meta: Json): boolean {
  return Object.hasOwn(meta, metaKeys.revision);
}

function issueOf(meta: Json): EnvelopeIssue | undefined {
  const issue = (key: string, problem: string) => ({ key, problem });
  const {
    [metaKeys.revision]: revision,
    [metaKeys.clientCapabilities]: capabilities,
    [metaKeys.clientInfo]: info,
    [metaKeys.logLevel]: level,
  } = meta;
  if (revision === undefined) return issue(metaKeys.revision, "missing");
  if (capabilities === undefined) return issue(metaKeys.clientCapabilities, "missing");
  if (typeof revision !== "string") return issue(metaKeys.revision, "expected a text");
  if (!isObject(capabilities)) return issue(metaKeys.clientCapabilities, "expected an object");
  if (info !== undefined && (!isObject(info) || typeof info.name !== "string" || typeof info.version !== "string"))
    return issue(metaKeys.clientInfo, "expected an object with name and version");
  if (level !== undefined && !logLevels.some((known) => known === level))
    return issue(metaKeys.logLevel, `expected one of ${logLevels.join(", ")}`);
  return undefined;
}

/** True when a request says, and says it well, that it is of 2026-07-28 or later. */
export function isModernClaim(meta: Json): boolean {
  return hasClaim(meta) && issueOf(meta) === undefined && isModern(meta[metaKeys.revision] as string);
}

/** Throws what a request is refused with that says amiss who asks. */
export function refuseIssue(meta: Json): void {
  const issue = issueOf(meta);
  if (issue !== undefined) throw toIssueError(issue);
}

export function toIssueError(issue: EnvelopeIssue): ProtocolError {
  const text = `Invalid _meta envelope for protocol revision ${modernRevision}: ${issue.key}: ${issue.problem}`;
  return new ProtocolError(requestErrors.params.code, text, { envelope: issue });
}
