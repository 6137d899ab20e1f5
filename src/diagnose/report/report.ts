import type { CalledTool } from "../asking/tool-calls.ts";
import type { Evidence, Severity, SuiteName } from "../check.ts";

/** The result of a diagnosis. JSON reports hold it; docs/diagnose.schema.json describes it. */
export interface Report {
  /** Set where a call that the user named did not succeed, or a slow tool was not tested. It is printed first. */
  readonly headline?: string;
  readonly schema: string;
  /** Grows when a field changes its meaning. */
  readonly version: 1;
  /** Which Meanwhile made it. */
  readonly madeBy: { readonly name: "meanwhile"; readonly version: string };
  readonly target: ReportTarget;
  readonly startedAt: string;
  readonly durationMs: number;
  readonly suites: readonly SuiteName[];
  readonly isFull: boolean;
  /** In the order of the suites, then of the checks. */
  readonly checks: readonly CheckResult[];
  /** Worst first, then in the order of the checks. */
  readonly findings: readonly Finding[];
  readonly score: Score;
  /** What became of calls of tools, those that the user named first; a call that is wrong on purpose is none. */
  readonly calls?: readonly CalledTool[];
  /** What was not asked, by the reason. */
  readonly skipped?: readonly SkippedChecks[];
  /** Set where the budget ran out or the server could not be reached: what that means for the report. */
  readonly incomplete?: string;
}

/** Checks that were not asked, all for the same reason. */
export interface SkippedChecks {
  readonly why: string;
  readonly count: number;
  /** Their ids. */
  readonly checks: readonly string[];
}

export interface ReportTarget {
  readonly transport: "http" | "stdio";
  /** The URL without its query, or the command line as a shell takes it; secrets are blanked. */
  readonly name: string;
  readonly server?: { readonly name: string; readonly version: string };
  /** Revisions it was seen to speak, newest first. */
  readonly revisions: readonly string[];
  /** Which generations of tasks it declares. */
  readonly tasks: readonly string[];
  readonly tools: number;
}

export interface CheckResult {
  readonly id: string;
  readonly suite: SuiteName;
  readonly question: string;
  readonly severity: Severity;
  readonly outcome: "passed" | "failed" | "skipped" | "unfinished";
  /** What was seen, why it was skipped, or what ended it early. */
  readonly note?: string;
  readonly durationMs: number;
  readonly evidence?: readonly Evidence[];
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface Finding {
  /**
   * The check's id, and its subject where there are several: `hosts/slow-call:print@Cline CLI`. Reports are compared by
   * it.
   */
  readonly id: string;
  readonly check: string;
  readonly suite: SuiteName;
  readonly severity: Severity;
  readonly subject?: string;
  readonly title: string;
  readonly why: string;
  readonly remedy: string;
  readonly source: string;
  readonly evidence: readonly Evidence[];
  /** True: the tool in `subject` says that it is slow, and no call of it was made. Then there is no grade. */
  readonly isUntested?: boolean;
}

/**
 * 100 minus what the findings cost, each check once, at its worst finding; null where nothing can be said of the server
 * as a whole.
 */
export interface Score {
  readonly points: number | null;
  readonly grade: "A" | "B" | "C" | "D" | "F" | null;
  /** What each costing check took away, worst first. */
  readonly lost: readonly { readonly check: string; readonly severity: Severity; readonly points: number }[];
  /** How the points came about, or why there are none, in one sentence. */
  readonly explanation: string;
}
