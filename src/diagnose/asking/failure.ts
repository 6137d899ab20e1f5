import { isObject, type Json, listOf, textOf } from "../../wire/json.ts";
import { parseJson } from "../wire/bounded-json.ts";
import type { ProbeAnswer } from "../wire/probe-session.ts";

/**
 * How texts begin that tell of a failure: many servers answer with such a one and leave `isError` away. Bounded, so
 * that no text makes it slow.
 */
const failing =
  /^[^\p{L}\p{N}{[]{0,8}(?:(?!(?:no|without|there (?:was|is) no)\b)(?:[\w-]{1,30} ){0,2}[\w.]{0,60}(?:error|exception)\b ?(?:[:(\n]|- |$|(?:in|on|while|when|during|at|calling|executing|running|reading|opening|performing|occurred)\b)|(?:failed|unable|failure) to\b|(?:failed|failure|fatal|panic):|[^\n:]{1,120}: (?:error|exception) ?[-:] |Traceback \(most recent call last\))/iu;

/** Why a call did not succeed, in the server's own words where it has some; undefined for a result that is one. */
export function failureOf({ message, result, error, problem }: ProbeAnswer): string | undefined {
  if (message === undefined) return problem ?? "there was no answer";
  if (error !== undefined) return `error ${String(error.code)}: ${String(error.message)}`;
  return result === undefined ? "the answer has neither a result nor an error" : failureIn(result);
}

/** The same, of a tool's result: one that says so, or whose text does. */
export function failureIn(result: Json): string | undefined {
  const text = firstText(result);
  if (result.isError === true) return text ?? "isError: true";
  return text !== undefined && isErrorText(text) ? text : undefined;
}

/** True for a text that tells of a failure, whatever the fields around it say. */
export function isErrorText(text: string): boolean {
  if (failing.test(text.slice(0, 400).trimStart())) return true;
  const json = text.length < 20_000 && text.trimStart().startsWith("{") ? parseJson(text) : undefined;
  if (!isObject(json)) return false;
  const told = json.error;
  return (typeof told === "string" && told !== "") || (isObject(told) && textOf(told.message) !== undefined);
}

function firstText({ content }: Json): string | undefined {
  return listOf(content)
    .map((block) => (isObject(block) ? textOf(block.text) : undefined))
    .find((text) => text !== undefined && text.trim() !== "");
}
