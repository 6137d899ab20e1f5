import type { Json } from "../../wire/json.ts";

/**
 * What is known of a server before it is checked. It travels between processes, so it is plain data, bounded and
 * redacted where it is shown.
 */
export interface Facts {
  readonly transport: "http" | "stdio";
  /** 2026-07-28, when the server speaks it. */
  readonly modern: EraFacts | undefined;
  /** The revision agreed on by `initialize`, when the server speaks one. */
  readonly legacy: EraFacts | undefined;
  /** At most 1,000. */
  readonly tools: readonly SurveyedTool[];
  /** As they were sent, at most 200 of each (templates count as resources); left out where they are not declared. */
  readonly prompts?: readonly Json[];
  readonly resources?: readonly Json[];
  /** Set when the list could not be read to its end. */
  readonly toolsProblem?: string;
  /** Why the server could not be spoken to in either way. */
  readonly problem?: string;
  /** The path on the same origin that a redirect leads to; everything is asked there. */
  readonly movedTo?: string;
  /** It wants credentials that we do not have (401 or 403). */
  readonly isLocked: boolean;
}

export interface EraFacts {
  readonly revision: string;
  readonly serverInfo: Json;
  readonly capabilities: Json;
  readonly instructions?: string;
  /** From sending the first message (or starting the server) to its answer. */
  readonly startMs: number;
}

export interface SurveyedTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: Json;
  readonly annotations: Json;
  /** `execution.taskSupport` of 2025-11-25. */
  readonly taskSupport: string | undefined;
  /** Meanwhile lists it, and sees to it that it is answered in time. */
  readonly isBehindMeanwhile?: boolean;
  /** As it was sent, when it is not too large. */
  readonly json: Json;
}
