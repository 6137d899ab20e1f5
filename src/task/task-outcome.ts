import { toTimestamp } from "../clock.ts";
import type { JsonObject } from "../command/foreign.ts";
import type { Outcome } from "../command/outcome.ts";
import { toJson } from "../command/result-json.ts";
import { CommandError, messageOf } from "../errors.ts";
import { checkStorable } from "./limits.ts";
import type { ProgressUpdate } from "./progress.ts";
import { type EndedTask, type TaskOutcome, type TaskProgress, waitedMs } from "./task.ts";
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
  if (outcome.ending === "cancelled") return 0;
  if (outcome.foreign !== undefined) return "json" in outcome ? outcome.json.length : lengthOfForeign(outcome.foreign);
  if (outcome.ending === "failed") return 0;
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

function lengthOfForeign(foreign: JsonObject | string): number {
  return typeof foreign === "string" ? foreign.length : weigh(foreign);
}

function lengthOf(text: string | undefined): number {
  return text?.length ?? 0;
}

/** An outcome as it is stored: neutral, without what only this process can hold. */
export function toTaskOutcome(outcome: Outcome, name: string): TaskOutcome {
  const { messages, log, durationMs, attempts, blockedMs, lateFor } = outcome;
  const facts = {
    messages,
    log,
    durationMs,
    ...(attempts !== undefined && { attempts }),
    ...(blockedMs !== undefined && { blockedMs }),
    ...(lateFor !== undefined && { lateFor }),
  };
  if (outcome.ending === "cancelled") return { ending: "cancelled", message: outcome.message, ...facts };
  const refusal = refuseUnstorable(outcome, name);
  if (refusal !== undefined)
    return {
      ending: "failed",
      cause: "output",
      message: refusal,
      ...facts,
      // What a tool said that cannot be kept is not the last word.
      ...(outcome.ending === "failed" && { messages: [] }),
    };
  if (outcome.ending === "failed")
    return {
      ending: "failed",
      cause: outcome.cause === "shutdown" || outcome.cause === "crash" ? "interrupted" : outcome.cause,
      message: outcome.message,
      ...(outcome.at !== undefined && { at: outcome.at }),
      ...(outcome.rpc !== undefined && { rpc: outcome.rpc }),
      ...(outcome.foreign !== undefined && { foreign: JSON.stringify(outcome.foreign) }),
      ...facts,
    };
  const { data, content, foreign, saidNo } = outcome;
  return {
    ending: "completed",
    data,
    ...(content !== undefined && { content }),
    ...(foreign !== undefined && { foreign: outcome.json }),
    ...(saidNo === true && { saidNo }),
    ...facts,
  };
}

/** Why a result cannot be kept; undefined when it can. */
function refuseUnstorable(outcome: Exclude<Outcome, { ending: "cancelled" }>, name: string): string | undefined {
  // What somebody else's tool says is kept as a text, in which nothing has to be understood.
  if (outcome.foreign !== undefined) return undefined;
  try {
    checkStorable(outcome.ending === "completed" ? outcome.json : toJson(outcome.rpc ?? {}, name), name);
    return undefined;
  } catch (error) {
    return error instanceof CommandError ? error.message : messageOf(error);
  }
}

/** How a task ended, as a run's outcome, for whoever answers with it. */
export function outcomeOf(task: EndedTask): Outcome {
  const { outcome, finishedAt } = task;
  if (outcome.ending === "cancelled") return withSentence({ ...outcome, durationMs: ranMs(task) }, finishedAt);
  const { foreign: text, ...own } = outcome;
  const foreign = text === undefined ? {} : { foreign: JSON.parse(text) as JsonObject };
  if (own.ending === "completed") return { ...own, ...foreign, json: text ?? JSON.stringify(own.data) };
  const cause = own.cause === "interrupted" ? ("crash" as const) : own.cause;
  return withSentence({ ...own, ...foreign, cause }, finishedAt);
}

/** How long a cancelled task ran, at most: the store counts the time in which a person was asked, too. */
function ranMs({ outcome, startedAt, finishedAt, questions }: EndedTask): number {
  if (startedAt === undefined) return outcome.durationMs;
  const asked = questions.filter(({ askedAt }) => askedAt >= startedAt);
  const atMost = finishedAt - startedAt - waitedMs({ questions: asked }, finishedAt);
  return Math.max(0, Math.min(outcome.durationMs, atMost));
}

/** A run that was ended from outside has said nothing itself: the reason is then its last word. */
export function withSentence(outcome: Outcome, at: number): Outcome {
  if (outcome.ending === "completed" || outcome.messages.at(-1)?.type === "error") return outcome;
  return {
    ...outcome,
    messages: [...outcome.messages, { type: "error", text: outcome.message, timestamp: toTimestamp(at) }],
  };
}
