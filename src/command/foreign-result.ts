import { nextTurn } from "../clock.ts";
import { type JsonObject, withoutReservedMeta } from "./foreign.ts";
import type { Outcome } from "./outcome.ts";
import type { Recorder } from "./recorder.ts";
import { isHeavyTurn, toJson } from "./result-json.ts";
import type { RunOptions } from "./run.ts";

interface AnsweredBy {
  readonly options: RunOptions;
  readonly record: Recorder;
}

/** The result of a tool of another server as an outcome, unchecked and unchanged but for the reserved `_meta` keys. */
export function toForeignOutcome(given: JsonObject, by: AnsweredBy): Outcome | Promise<Outcome> {
  const result = withoutReservedMeta(given);
  const room = roomFor(result, by.options);
  return room === undefined ? toOutcome(result, by) : writeLater(room, result, by);
}

async function writeLater(first: Promise<unknown>, result: JsonObject, by: AnsweredBy): Promise<Outcome> {
  by.record.hasReturned();
  for (let room: Promise<unknown> | undefined = first; room !== undefined; room = roomFor(result, by.options))
    await room;
  return toOutcome(result, by);
}

function roomFor(result: JsonObject, { door }: RunOptions): Promise<unknown> | undefined {
  return isHeavyTurn() ? nextTurn() : door.room?.(result);
}

function toOutcome(result: JsonObject, { options, record }: AnsweredBy): Outcome {
  const json = toJson(result, options.name);
  if (result.isError !== true) return record.completed({ data: {}, json, foreign: result }, undefined);
  const text = textIn(result);
  const sentence = text === "" ? `${options.name} said no.` : text;
  return record.failed("command", cut(sentence), undefined, { foreign: result });
}

/** What a result says in words, all of it; empty when it says nothing. */
export function textIn({ content }: JsonObject): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.flatMap((block) => {
    const { type, text } = (block ?? {}) as { type?: unknown; text?: unknown };
    return type === "text" && typeof text === "string" ? [text] : [];
  });
  return texts.join("\n").trim();
}

/** The whole text is in the result; beside it a line is enough, and it is not kept twice. */
const maxSentence = 500;

/** No store and no screen has to bear what only the result may hold. */
function cut(text: string): string {
  const line = text.length <= maxSentence ? text : `${text.slice(0, maxSentence)}…`;
  return line.toWellFormed().replaceAll("\0", "\u{fffd}");
}
