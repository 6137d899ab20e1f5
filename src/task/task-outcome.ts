import { toTimestamp } from "../clock.ts";
import type { Outcome } from "../command/outcome.ts";
import { CommandError, messageOf } from "../errors.ts";
import { checkStorable } from "./limits.ts";
import type { ProgressUpdate } from "./progress.ts";
import type { EndedTask, TaskOutcome, TaskProgress } from "./task.ts";
import { weigh } from "./weigh.ts";

/** A run that failed outside the command, in our own code or for want of a process. */
export function notRun(error: unknown): Outcome {
  return {
    ending: "failed",
    cause: "crash",
    message: `It could not be run: ${messageOf(error)}`,
    error,
    messages: [],
    log: [],
    durationMs: 0,
  };
}

/** The command is not there, or its file cannot be loaded: nothing was run. */
export class NotLoaded extends CommandError {}

export function notLoaded(message: string): Outcome {
  return {
    ending: "failed",
    cause: "command",
    message,
    error: new NotLoaded(message),
    messages: [],
    log: [],
    durationMs: 0,
  };
}

export function crashedOutcome(message: string): TaskOutcome {
  return { ending: "failed", cause: "interrupted", message, messages: [], log: [], durationMs: 0 };
}

export function toProgress({ value, total, percentage, message, context }: ProgressUpdate): TaskProgress {
  return {
    value,
    ...(total !== undefined && { total }),
    ...(percentage !== undefined && { percentage }),
    ...(message !== undefined && { message }),
    ...(context !== undefined && { context }),
  };
}

/** What a result weighs as JSON, near enough. */
export function sizeOf(outcome: Outcome | TaskOutcome): number {
  if (outcome.ending !== "completed") return 0;
  const blocks = (outcome.content ?? []) as readonly {
    text?: string;
    data?: string;
    resource?: { text?: string; blob?: string };
  }[];
  const inBlocks = blocks.reduce(
    (sum, { text, data, resource }) =>
      sum + lengthOf(text) + lengthOf(data) + lengthOf(resource?.text) + lengthOf(resource?.blob),
    0,
  );
  return inBlocks + ("json" in outcome ? outcome.json.length : weigh(outcome.data));
}

function lengthOf(text: string | undefined): number {
  return text?.length ?? 0;
}

/** An outcome as it is stored: neutral, without what only this process can hold. */
export function toTaskOutcome(outcome: Outcome, name: string): TaskOutcome {
  const { messages, log, durationMs } = outcome;
  const facts = { messages, log, durationMs };
  if (outcome.ending === "cancelled") return { ending: "cancelled", message: outcome.message, ...facts };
  if (outcome.ending === "failed")
    return {
      ending: "failed",
      cause: outcome.cause === "shutdown" || outcome.cause === "crash" ? "interrupted" : outcome.cause,
      message: outcome.message,
      ...(outcome.at !== undefined && { at: outcome.at }),
      ...(outcome.rpc !== undefined && { rpc: outcome.rpc }),
      ...facts,
    };
  try {
    checkStorable(outcome.json, name);
  } catch (error) {
    const text = error instanceof CommandError ? error.message : messageOf(error);
    return { ending: "failed", cause: "output", message: text, ...facts };
  }
  const { data, content, saidNo } = outcome;
  return {
    ending: "completed",
    data,
    ...(content !== undefined && { content }),
    ...(saidNo === true && { saidNo }),
    ...facts,
  };
}

/** How a task ended, as a run's outcome, for whoever answers with it. */
export function outcomeOf({ outcome, finishedAt }: EndedTask): Outcome {
  if (outcome.ending === "completed") return { ...outcome, json: JSON.stringify(outcome.data) };
  if (outcome.ending === "cancelled") return withSentence(outcome, finishedAt);
  return withSentence({ ...outcome, cause: outcome.cause === "interrupted" ? "crash" : outcome.cause }, finishedAt);
}

/** A run that was ended from outside has said nothing itself: the reason is then its last word. */
export function withSentence(outcome: Outcome, at: number): Outcome {
  if (outcome.ending === "completed" || outcome.messages.at(-1)?.type === "error") return outcome;
  return {
    ...outcome,
    messages: [...outcome.messages, { type: "error", text: outcome.message, timestamp: toTimestamp(at) }],
  };
}
