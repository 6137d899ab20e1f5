import type { JsonSchema } from "../../command/schema.ts";
import { clean } from "../../screen/clean.ts";

/** One field of a question, as a person is asked for it. */
export interface QuestionField {
  readonly name: string;
  readonly schema: JsonSchema;
  readonly isRequired: boolean;
}

/** The fields of a question, in their order. */
export function fieldsOf(schema: JsonSchema): QuestionField[] {
  const required = new Set((schema.required ?? []) as string[]);
  return Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>).map(([name, field]) => ({
    name,
    schema: field,
    isRequired: required.has(name),
  }));
}

/** What a person has to know before typing: the limits, and what Enter alone means. */
export function notesOf({ schema, isRequired }: QuestionField): string {
  const hasChoices = choicesOf(schema) !== undefined || schema.type === "boolean";
  const fallback = defaultOf(schema);
  const enter = fallback !== undefined ? `Enter takes ${fallback}` : isRequired ? "" : "Enter leaves it out";
  const notes = hasChoices ? [] : [limitsOf(schema), formats[String(schema.format)] ?? "", enter].filter(Boolean);
  return notes.length === 0 ? "" : ` (${notes.join("; ")})`;
}

const formats: Readonly<Record<string, string>> = {
  email: "an e-mail address",
  uri: "a URL",
  date: "a date, e.g. 2026-01-31",
  "date-time": "a time, e.g. 2026-01-31T12:00:00Z",
};

/** What Enter alone answers, as text; undefined where nothing is suggested. */
export function defaultOf(schema: JsonSchema): string | undefined {
  const value = schema.default;
  return ["string", "number", "boolean"].includes(typeof value) && value !== "" ? clean(String(value)) : undefined;
}

export function isNumberField({ type }: JsonSchema): boolean {
  return type === "number" || type === "integer";
}

function limitsOf(schema: JsonSchema): string {
  if (isNumberField(schema))
    return rangeOf(lowest(schema), highest(schema), schema.type === "integer" ? "a whole number" : "a number");
  const [least, most] = [schema.minLength, schema.maxLength].map(toNumber);
  // That one letter is needed goes without saying.
  return rangeOf((least ?? 0) > 1 ? least : undefined, most, "", " characters");
}

function rangeOf(least: number | undefined, most: number | undefined, kind: string, unit = ""): string {
  const range =
    least !== undefined && most !== undefined
      ? `${kind === "" ? "" : "from "}${least} to ${most}${unit}`
      : least !== undefined
        ? `at least ${least}${unit}`
        : most !== undefined
          ? `at most ${most}${unit}`
          : "";
  return [kind, range].filter(Boolean).join(" ");
}

/**
 * What a typed answer has against it, in a sentence; undefined when nothing. What the schema says beyond limits is left
 * to who asks.
 */
export function refuseText(text: string, field: QuestionField): string | undefined {
  const { schema, isRequired } = field;
  if (text === "") return isRequired && defaultOf(schema) === undefined ? "An answer is needed." : undefined;
  const isFine = isNumberField(schema) ? isInRange(text, schema) : hasLength(text, schema);
  if (isFine) return undefined;
  return `${limitsOf(schema).replace(/^./, (letter) => letter.toUpperCase())}, please.`;
}

function isInRange(text: string, schema: JsonSchema): boolean {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value) || (schema.type === "integer" && !Number.isInteger(value))) return false;
  return value >= (lowest(schema) ?? value) && value <= (highest(schema) ?? value);
}

function hasLength(text: string, { minLength, maxLength }: JsonSchema): boolean {
  const length = Array.from(text).length;
  return length >= (toNumber(minLength) ?? 0) && length <= (toNumber(maxLength) ?? length);
}

function lowest({ minimum }: JsonSchema): number | undefined {
  return toNumber(minimum);
}

function highest({ maximum }: JsonSchema): number | undefined {
  return toNumber(maximum);
}

/** A limit that no number can reach, as some schemas write down for every whole number, is none. */
function toNumber(limit: unknown): number | undefined {
  return typeof limit === "number" && Math.abs(limit) < Number.MAX_SAFE_INTEGER ? limit : undefined;
}

export interface Choice {
  readonly value: string;
  readonly label: string;
}

/** What can be chosen from; undefined where something is typed. */
export function choicesOf(field: JsonSchema): Choice[] | undefined {
  const from = field.type === "array" ? ((field.items ?? {}) as JsonSchema) : field;
  if (Array.isArray(from.enum))
    return from.enum.map((value) => ({ value: String(value), label: clean(String(value)) }));
  const titled = (from.oneOf ?? from.anyOf) as { const?: unknown; title?: string }[] | undefined;
  return titled?.map((item) => ({ value: String(item.const), label: clean(item.title ?? String(item.const)) }));
}
