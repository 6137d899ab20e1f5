import type { HostLimit } from "./profiles.ts";

/** How long a call may stay open with a host. */
export interface Budget {
  /** A plain handle is given then. */
  readonly handleAfterMs: number;
  /**
   * How long storing the handle may take. Then an error is sent in its place, because the task store does not respond.
   * Undefined where the host has no hard limit.
   */
  readonly graceMs: number | undefined;
  /** Progress is sent at least this often, so that the host goes on waiting. */
  readonly heartbeatMs: number | undefined;
  /** Why not longer: `codex-mcp-client cuts calls after 300 s`. */
  readonly why: string;
}

const maxMarginMs = 15_000;
const minGraceMs = 1_000;

/** What a host's limit means for one call. Without a progress token every limit is hard. */
export function budgetOf(
  limit: HostLimit & { readonly host: string },
  hasProgressToken: boolean,
  keepInlineMs = 600_000,
): Budget {
  const { limitMs } = limit;
  const kept = {
    handleAfterMs: keepInlineMs,
    graceMs: undefined,
    heartbeatMs: undefined,
    why: `calls are kept open for ${toSeconds(keepInlineMs)} at most`,
  };
  if (limitMs === undefined) return kept;
  if (limit.isExtended && hasProgressToken) return { ...kept, heartbeatMs: Math.floor(limitMs / 3) };
  const handleAfterMs = limitMs - Math.min(limitMs / 4, maxMarginMs);
  if (handleAfterMs > keepInlineMs) return kept;
  const graceMs = Math.max((limitMs - handleAfterMs) / 2, minGraceMs);
  return { handleAfterMs, graceMs, heartbeatMs: undefined, why: cut(limit, limitMs) };
}

/** How long after its arrival a request gets at least an error; undefined where the host has no hard limit. */
export function lastAnswerMs({ handleAfterMs, graceMs }: Budget): number | undefined {
  return graceMs === undefined ? undefined : handleAfterMs + graceMs;
}

/** A duration in the one unit that hosts' settings are written in: `300 s`, `0.5 s`. */
export function toSeconds(ms: number): string {
  return `${ms < 10_000 ? Math.round(ms / 100) / 10 : Math.round(ms / 1000)} s`;
}

function cut(
  { host, isExtended, isAssumed, isLearned }: HostLimit & { readonly host: string },
  limitMs: number,
): string {
  const cuts = isAssumed ? "is taken to cut calls" : isLearned ? "was seen to cut calls" : "cuts calls";
  const untilProgress = isExtended ? " without progress, and this one has no progress token" : "";
  return `${host} ${cuts} after ${toSeconds(limitMs)}${untilProgress}`;
}
