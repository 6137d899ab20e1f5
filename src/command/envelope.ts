import type { LogLine } from "./context.ts";
import type { Outcome, RunMessage } from "./outcome.ts";
import type { JsonSchema } from "./schema.ts";

/** The one shape every command answers in, at every door. */
export interface Envelope {
  readonly success: boolean;
  /** The command's output; `{}` on failure. */
  readonly data: unknown;
  readonly messages: readonly RunMessage[];
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
      messages: { type: "array" },
    },
    required: ["success", "data", "messages"],
    // References such as #/$defs/Page point at the root, so definitions move up with the wrapping.
    ...($defs === undefined ? {} : { $defs }),
  };
}

/**
 * What stands in for the output while a slow call goes on as a job. Every tool lists all of this, so it says no more
 * than a reader needs.
 */
const handle: JsonSchema = { required: ["job_id", "status"] };

/** What a failure holds. */
const emptyObject: JsonSchema = { maxProperties: 0 };
