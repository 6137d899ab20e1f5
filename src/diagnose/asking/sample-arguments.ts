import { fieldsOf, isObject, type Json, listOf, numberOf, textOf } from "../../wire/json.ts";

/**
 * Arguments that fit a tool's schema, as harmless as can be: defaults and examples first, then the smallest that is
 * allowed.
 */
export function sampleArguments(schema: Json): Json | undefined {
  const value = sample({ type: "object", ...schema }, 0);
  return isObject(value) ? value : undefined;
}

const maxDepth = 5;
const maxItems = 3;
/** What a schema may ask for as the shortest text; a hostile one asks for gigabytes. */
const maxText = 10_000;

function sample(schema: unknown, depth: number): unknown {
  if (!isObject(schema) || depth > maxDepth) return undefined;
  if (schema.default !== undefined) return schema.default;
  if (schema.const !== undefined) return schema.const;
  const [first] = [...listOf(schema.examples), ...listOf(schema.enum)];
  if (first !== undefined) return first;
  const [choice] = [...listOf(schema.anyOf), ...listOf(schema.oneOf)];
  if (choice !== undefined) return sample(choice, depth + 1);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "object":
      return sampleObject(schema, depth);
    case "array":
      if ((numberOf(schema.minItems) ?? 0) > maxItems) return undefined;
      return Array.from({ length: numberOf(schema.minItems) ?? 0 }, () => sample(schema.items, depth + 1));
    case "integer":
    case "number":
      return numberOf(schema.minimum) ?? numberOf(schema.maximum) ?? 1;
    case "boolean":
      return false;
    case "null":
      return null;
    default:
      return sampleText(schema);
  }
}

function sampleObject(schema: Json, depth: number): Json | undefined {
  const properties = fieldsOf(schema.properties);
  const found = new Map<string, unknown>();
  // Each name once: a list of a million repetitions, level upon level, would never be done.
  for (const name of new Set(listOf(schema.required))) {
    if (typeof name !== "string" || !Object.hasOwn(properties, name)) return undefined;
    const value = sample(properties[name], depth + 1);
    if (value === undefined) return undefined;
    found.set(name, value);
  }
  return Object.fromEntries(found);
}

function sampleText(schema: Json): string | undefined {
  if (textOf(schema.pattern) !== undefined) return undefined;
  const format = textOf(schema.format);
  if (format === "date") return "2026-01-01";
  if (format === "date-time") return "2026-01-01T00:00:00Z";
  if (format === "email") return "nobody@example.com";
  if (format === "uri" || format === "url") return "https://example.com/";
  if (format !== undefined) return undefined;
  const shortest = numberOf(schema.minLength) ?? 0;
  if (shortest > maxText) return undefined;
  return "test".padEnd(shortest, "x").slice(0, numberOf(schema.maxLength) ?? maxText);
}
