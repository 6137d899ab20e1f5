import { formatDuration } from "../clock.ts";
import type { ContentBlock } from "./content.ts";
import type { LogLine } from "./context.ts";
import type { JsonObject } from "./foreign.ts";
import type { SourcePlace } from "./place.ts";

/** A host that waits `limitMs` for an answer, and had stopped waiting for this one. */
export interface GivenUpHost {
  readonly host: string;
  readonly limitMs: number;
}

export interface RunMessage {
  readonly type: "error" | "warning" | "info" | "status" | "success";
  readonly text: string;
  readonly timestamp: string;
  readonly details?: unknown;
}

/** How a run ended, in our own shape, which every door turns into its own. */
export type Outcome = RunRecord &
  (
    | ({ readonly ending: "completed" } & CompletedResult)
    | {
        readonly ending: "failed";
        readonly cause: FailureCause;
        readonly message: string;
        readonly error?: unknown;
        readonly at?: SourcePlace;
        readonly rpc?: RpcError;
        /** The result in which somebody else's tool says no, word for word. */
        readonly foreign?: JsonObject;
      }
    | { readonly ending: "cancelled"; readonly message: string }
  );

/** What a run that came to its end has given. */
export interface CompletedResult {
  readonly data: unknown;
  readonly json: string;
  readonly content?: readonly ContentBlock[];
  /** The result of somebody else's tool, word for word; `data` is what there is of it for a person. */
  readonly foreign?: JsonObject;
  /** The data is a no, which a person should not take for a yes. */
  readonly saidNo?: true;
}

export interface RunRecord {
  readonly messages: readonly RunMessage[];
  readonly log: readonly LogLine[];
  /** The sum of all attempts, without the time in which a person was asked. */
  readonly durationMs: number;
  /** Absent where there was one. */
  readonly attempts?: number;
  /** The longest time in which it blocked the event loop. Absent where none was longer than a second. */
  readonly blockedMs?: number;
  /** The host that had stopped waiting for the answer when a block ended. */
  readonly lateFor?: GivenUpHost;
}

/** A JSON-RPC error, for a command that ends in one. */
export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/**
 * `input`: the arguments were wrong. `command`: it said no. `output`: it broke its own promise. `crash`: its own
 * process died. `protocol`: it threw the SDK's ProtocolError.
 */
export type FailureCause = "input" | "command" | "output" | "timeout" | "shutdown" | "crash" | "protocol";

/** A completed run in one line: what `summarize` said, or that it is done. */
export function summaryLine(
  outcome: Pick<RunRecord, "messages" | "durationMs" | "attempts"> & { readonly saidNo?: true },
  name: string,
): string {
  const last = outcome.messages.at(-1);
  const isSummary = last !== undefined && (last.type === "success" || outcome.saidNo === true);
  return `${isSummary ? last.text : finished(name, outcome.durationMs)}${attemptsNote(outcome)}`;
}

/** The number of attempts, for the end of a sentence; empty where there was one. */
export function attemptsNote({ attempts = 1 }: Pick<RunRecord, "attempts">): string {
  return attempts === 1 ? "" : ` (${attempts} attempts)`;
}

/** What is said of a run whose author says nothing. */
export function finished(name: string, durationMs: number): string {
  return `${name} finished in ${formatDuration(durationMs)}`;
}
