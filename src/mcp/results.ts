import { type Clock, toTimestamp } from "../clock.ts";
import type { Command } from "../command/command.ts";
import { toEnvelope, toEnvelopeText } from "../command/envelope.ts";
import type { RunMessage, Outcome } from "../command/run.ts";
import type { Result } from "./request.ts";

export interface AboutCall {
  readonly withLog: boolean;
  readonly progressToken: string | number | undefined;
  readonly taskId?: string | undefined;
  /** A sentence to put among the messages. */
  readonly note?: RunMessage | undefined;
}

/** An outcome as tools/call answers it. Of a command that is gone only its envelope is left. */
export function toCallResult(given: Outcome, command: Pick<Command, "envelope"> | undefined, about: AboutCall): Result {
  const outcome = about.note === undefined ? given : { ...given, messages: [...given.messages, about.note] };
  const envelope = toEnvelope(outcome, about.withLog);
  const call = {
    durationMs: outcome.durationMs,
    ...(about.progressToken !== undefined && { progressToken: about.progressToken }),
    ...(about.taskId !== undefined && { taskId: about.taskId }),
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
  const content = [{ type: "text", text: toEnvelopeText(outcome, envelope) }];
  return { content, structuredContent: envelope, ...(!envelope.success && { isError: true }), _meta } as Result;
}

/** A tool result that says no, in one sentence. */
export function errorResult(text: string, clock: Clock): Result {
  const messages = [{ type: "error", text, timestamp: toTimestamp(clock.now()) }];
  return {
    content: [{ type: "text", text }],
    structuredContent: { success: false, data: {}, messages },
    isError: true,
  } as Result;
}
