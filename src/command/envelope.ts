import type { LogLine } from "./context.ts";
import type { Message, Outcome } from "./run.ts";
import type { JsonSchema } from "./schema.ts";

/** The one shape every command answers in, at every door. */
export interface Envelope {
  readonly success: boolean;
  /** The command's output; `{}` on failure. */
  readonly data: unknown;
  readonly messages: readonly Message[];
  readonly log?: readonly LogLine[];
}

/** Wraps an outcome; `withLog` adds the lines the command logged. */
export function toEnvelope(outcome: Outcome, withLog: boolean): Envelope {
  const success = outcome.ending === "completed";
  const envelope: Envelope = { success, data: success ? outcome.data : {}, messages: outcome.messages };
  return withLog ? { ...envelope, log: outcome.log } : envelope;
}

/** An envelope as JSON text, without serializing the data a second time. */
export function toEnvelopeText(outcome: Outcome, envelope: Envelope): string {
  const data = outcome.ending === "completed" ? outcome.json : "{}";
  const log = envelope.log === undefined ? "" : `,"log":${JSON.stringify(envelope.log)}`;
  return `{"success":${envelope.success},"data":${data},"messages":${JSON.stringify(envelope.messages)}${log}}`;
}

/** The JSON Schema of a command's envelope, around the schema of its output. */
export function envelopeSchema(output: JsonSchema): JsonSchema {
  const { $defs, ...data } = output;
  return {
    type: "object",
    properties: {
      success: { type: "boolean" },
      data: { anyOf: [data, handle, emptyObject] },
      messages: { type: "array", items: messageSchema },
      log: { type: "array", items: { type: "object" } },
    },
    required: ["success", "data", "messages"],
    // References such as #/$defs/Page point at the root, so definitions move up with the wrapping.
    ...($defs === undefined ? {} : { $defs }),
  };
}

/** What stands in for the output while a slow call goes on as a job. */
const handle: JsonSchema = {
  type: "object",
  properties: { job_id: { type: "string" }, status: { type: "string" }, next_action: { type: "object" } },
  required: ["job_id", "status"],
  description: "A job that goes on by itself: follow next_action for its result",
};

const emptyObject: JsonSchema = { type: "object", maxProperties: 0, description: "Empty when success is false" };

const messageSchema: JsonSchema = {
  type: "object",
  properties: {
    type: { type: "string", enum: ["error", "warning", "info", "status", "success"] },
    text: { type: "string" },
    timestamp: { type: "string" },
    details: {},
  },
  required: ["type", "text", "timestamp"],
};
