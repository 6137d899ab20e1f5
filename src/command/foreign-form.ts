import type { JsonObject } from "./foreign.ts";
import type { JsonSchema } from "./schema.ts";

/**
 * A form that somebody else's server asks to be filled in, as our doors show it and answers are checked against it. Of
 * its fields only what the specification knows of forms is left: a pattern, say, could keep us busy for ever.
 */
export function toForm(requested: unknown): JsonSchema {
  const { properties, required } = fieldsOf(requested);
  const fields = Object.entries(fieldsOf(properties)).map(([name, field]) => [name, toField(field)]);
  const names = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  return {
    type: "object",
    properties: Object.fromEntries(fields),
    ...(names.length > 0 && { required: names }),
  };
}

export const noFields: JsonSchema = { type: "object", properties: {} };

/** What a field may say of itself, each with what it has to be. */
const words: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) => ["string", "number", "integer", "boolean", "array"].includes(value as string),
  title: isText,
  description: isText,
  format: isText,
  const: isPlain,
  default: (value) => isPlain(value) || isListOf(value, isPlain),
  enum: (value) => isListOf(value, isPlain),
  enumNames: (value) => isListOf(value, isText),
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minimum: Number.isFinite,
  maximum: Number.isFinite,
};

function toField(field: unknown): JsonSchema {
  const { items, oneOf, anyOf, ...own } = fieldsOf(field);
  const kept = Object.entries(own).filter(
    ([word, value]) => Object.hasOwn(words, word) && words[word]?.(value) === true,
  );
  return {
    ...Object.fromEntries(kept),
    ...(isObject(items) && { items: toField(items) }),
    ...(isChoices(oneOf) && { oneOf: oneOf.map(toField) }),
    ...(isChoices(anyOf) && { anyOf: anyOf.map(toField) }),
  };
}

function isChoices(value: unknown): value is readonly JsonObject[] {
  return isListOf(value, (choice) => isObject(choice) && isPlain(choice.const));
}

function isListOf(value: unknown, fits: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(fits);
}

function isText(value: unknown): boolean {
  return typeof value === "string";
}

function isPlain(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function fieldsOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
