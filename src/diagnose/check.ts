import type { Probe } from "./asking/probe.ts";

/**
 * A check asks one question of a server and says what it saw. Each is one small file, has a stable id
 * (`suite/question`), and changes nothing in the server but what its question needs: tools are called only where they
 * are safe by their annotations or named by the user.
 */

export const suiteNames = ["protocol", "tasks", "progress", "completion", "security", "performance", "hosts"] as const;
export type SuiteName = (typeof suiteNames)[number];

/** Worst first. */
export const severities = ["blocker", "major", "minor", "info"] as const;
export type Severity = (typeof severities)[number];

export interface Check {
  /** `protocol/unknown-method`: never changes, because reports are compared by it. */
  readonly id: `${SuiteName}/${string}`;
  /** What is asked, in one sentence with a question mark. */
  readonly question: string;
  /** What a "no" weighs; a finding may say another. */
  readonly severity: Severity;
  /** What goes wrong for a user when the answer is no. */
  readonly why: string;
  /** What to change, in one or two sentences. */
  readonly remedy: string;
  /** Where the rule comes from: a section of the specification, or what was measured. */
  readonly source: string;
  /** Over which transport it makes sense. Default: both. */
  readonly transport?: "http" | "stdio";
  /** True: only with `--full`, because it takes long or calls tools often. */
  readonly isThorough?: boolean;
  /** True: also asked of a server that wants credentials we do not have, where nothing else can be. */
  readonly isForLocked?: boolean;
  /** True: it looks only at what is known before the first check, so it is asked first and takes no time. */
  readonly isStatic?: boolean;
  /**
   * True: it only sends requests that any client sends, so that its conversation may be shared with other such checks:
   * starting a server takes time.
   */
  readonly isGentle?: boolean;
  /** How long it may take. Default: 10 s. */
  readonly limitMs?: number;
  run(probe: Probe): Promise<Verdict>;
}

export type Verdict = Passed | Skipped | Failed;

export interface Passed {
  readonly outcome: "passed";
  /** What was seen, when it is worth a line. */
  readonly note?: string;
  readonly evidence?: readonly Evidence[];
  /** Figures and predictions for the report, by name. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface Skipped {
  readonly outcome: "skipped";
  /** Why the question makes no sense here, or what is needed to ask it. */
  readonly why: string;
  /** What is known all the same. */
  readonly data?: Readonly<Record<string, unknown>>;
}

export interface Failed {
  readonly outcome: "failed";
  readonly findings: readonly Fault[];
  readonly data?: Readonly<Record<string, unknown>>;
}

/** One thing that is wrong. */
export interface Fault {
  /** What it is about, where there are several: a tool, a host. */
  readonly subject?: string;
  /** One sentence: what the server does. */
  readonly title: string;
  readonly severity?: Severity;
  /** Instead of the check's. */
  readonly remedy?: string;
  /** True: the tool in `subject` says that it is slow, and no call of it was made. */
  readonly isUntested?: boolean;
  readonly evidence: readonly Evidence[];
}

/** What was seen, already redacted and printable. */
export interface Evidence {
  readonly kind: "sent" | "received" | "printed" | "measured";
  readonly text: string;
}

export function passed(note?: string, more: Omit<Passed, "outcome" | "note"> = {}): Passed {
  return { outcome: "passed", ...(note !== undefined && { note }), ...more };
}

export function skipped(why: string): Skipped {
  return { outcome: "skipped", why };
}

/** A single fault, or several. */
export function failed(faults: Fault | readonly Fault[], data?: Failed["data"]): Failed {
  const findings = Array.isArray(faults) ? (faults as readonly Fault[]) : [faults as Fault];
  return { outcome: "failed", findings, ...(data !== undefined && { data }) };
}
