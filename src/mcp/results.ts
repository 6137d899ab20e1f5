import { type Clock, toTimestamp } from "../clock.ts";
import { type Caller, isKnown } from "../command/caller.ts";
import type { Command } from "../command/command.ts";
import { toEnvelope, toEnvelopeText } from "../command/envelope.ts";
import type { JsonObject } from "../command/foreign.ts";
import type { Outcome, RunMessage } from "../command/outcome.ts";
import { thisProgram } from "../program/program.ts";
import type { CallEnding } from "../task/call-request.ts";
import { fieldsOf } from "../wire/json.ts";
import type { Result } from "./request.ts";

export interface AboutCall {
  readonly withLog: boolean;
  readonly progressToken: string | number | undefined;
  readonly taskId?: string | undefined;
  /** A sentence to put among the messages. */
  readonly note?: RunMessage | undefined;
  /** See `ErrorTerms`. */
  readonly hasOwnSchema?: boolean;
}

type Called = Pick<Command, "envelope" | "foreign" | "outputSchema">;

/** For which tool an error result is made, and for whom. */
interface ErrorTerms {
  readonly command: Called;
  /**
   * The client was listed the output schemas of other servers' tools as they are. It checks the `structuredContent` of
   * errors against them too, so that an error of such a tool is text alone.
   */
  readonly hasOwnSchema: boolean;
}

/** Whether a client would refuse an envelope of ours as the result of this tool. */
function refusesEnvelope({ command, hasOwnSchema }: Partial<ErrorTerms>): boolean {
  return hasOwnSchema === true && command?.foreign !== undefined && command.outputSchema !== undefined;
}

/** An outcome as tools/call answers it; somebody else's result word for word. Of a command that is gone only its envelope is left. */
export function toCallResult(given: Outcome, command: Called | undefined, about: AboutCall): Result {
  if (given.ending !== "cancelled" && given.foreign !== undefined) return passedOn(given.foreign, about);
  const outcome = about.note === undefined ? given : { ...given, messages: [...given.messages, about.note] };
  const envelope = toEnvelope(outcome, about.withLog);
  const call = {
    durationMs: outcome.durationMs,
    ...(about.progressToken !== undefined && { progressToken: about.progressToken }),
    ...(about.taskId !== undefined && { taskId: about.taskId }),
    ...(outcome.attempts !== undefined && { attempts: outcome.attempts }),
  };
  const _meta = { "meanwhile/call": call };
  if (outcome.ending === "completed" && outcome.content !== undefined)
    return { content: outcome.content, _meta } as Result;
  if (outcome.ending === "completed" && command?.envelope === false) {
    return {
      content: [{ type: "text", text: typeof outcome.data === "string" ? outcome.data : outcome.json }],
      structuredContent: outcome.data,
      _meta,
    } as Result;
  }
  if (command !== undefined && refusesEnvelope({ command, hasOwnSchema: about.hasOwnSchema === true })) {
    const text = outcome.messages.map((message) => message.text).join("\n");
    return { content: [{ type: "text", text }], isError: true, _meta } as Result;
  }
  const content = [{ type: "text", text: toEnvelopeText(outcome, envelope) }];
  return { content, structuredContent: envelope, ...(!envelope.success && { isError: true }), _meta } as Result;
}

/** The result of somebody else's tool: ours is only what the client could not know otherwise. */
function passedOn(result: JsonObject, { taskId, note }: AboutCall): Result {
  if (taskId === undefined && note === undefined) return result;
  const theirs = fieldsOf(result._meta);
  const call = { ...(taskId !== undefined && { taskId }), ...(note !== undefined && { note: note.text }) };
  return { ...result, _meta: { ...theirs, "meanwhile/call": call } };
}

/** A tool result that says no, in one sentence. */
export function errorResult(text: string, clock: Clock, terms: Partial<ErrorTerms> = {}): Result {
  if (refusesEnvelope(terms)) return { content: [{ type: "text", text }], isError: true };
  const messages = [{ type: "error", text, timestamp: toTimestamp(clock.now()) }];
  return {
    content: [{ type: "text", text }],
    structuredContent: { success: false, data: {}, messages },
    isError: true,
  } as Result;
}

/** What a client is told whose call goes on without it, as a task or as nothing. */
export function whereItWent(left: CallEnding & { kind: "left" }, toolName: string, caller: Caller): string {
  const { taskId, isSafe } = left;
  // The tasks of callers who cannot be told apart are not in the terminal's list.
  const typed = isKnown(caller) ? thisProgram.typed(`tasks result ${taskId}`) : undefined;
  const where = typed === undefined ? "." : `; get its result with: ${typed}`;
  if (taskId !== undefined) return `The server is stopping. ${toolName} goes on as task ${taskId}${where}`;
  const advice = isSafe
    ? "so it was ended; call again"
    : "so its outcome will not be known here; check what it has done before you call again";
  return `The server is stopping, and ${toolName} could not be made a task, ${advice}.`;
}

/** The error for a call whose host would give up before the task store responds. */
export function describeUnstored(toolName: string, hasStarted: boolean): string {
  return hasStarted
    ? `${toolName} was started, but the task store does not respond. Do not call it again now: you find it among your tasks as soon as the store is back.`
    : `${toolName} was not started, because the task store does not respond. Call it again later.`;
}

/** The error for the second part of a call, whose answers did not reach the task store before the host would give up. */
export function describeUntaken(toolName: string): string {
  return `${toolName} did not get the answers, because the task store does not respond. Call it again later.`;
}
