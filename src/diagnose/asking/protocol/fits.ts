import { fieldsOf, isObject, listOf } from "../../../wire/json.ts";

const maxDepth = 20;

/**
 * Where a value does not fit a JSON Schema, in words; undefined where nothing is known to be wrong. Only plain keywords
 * are looked at.
 */
export function misfit(schema: unknown, value: unknown, at = "structuredContent", depth = 0): string | undefined {
  if (!isObject(schema) || depth > maxDepth) return undefined;
  const types = [schema.type].flat().filter((type) => typeof type === "string");
  if (types.length > 0 && !types.some((type) => isOf(type, value))) return `${at} is not of type ${types.join(" or ")}`;
  if (Array.isArray(schema.enum) && !schema.enum.some((item) => isSame(item, value)))
    return `${at} is none of the values of its enum`;
  if (schema.const !== undefined && !isSame(schema.const, value)) return `${at} is not its const`;
  if (Array.isArray(value))
    return firstOf(
      value.slice(0, 100).map((item, index) => () => misfit(schema.items, item, `${at}[${index}]`, depth + 1)),
    );
  if (!isObject(value)) return undefined;
  const properties = fieldsOf(schema.properties);
  const missing = listOf(schema.required)
    .filter((name) => typeof name === "string")
    .find((name) => !Object.hasOwn(value, name));
  if (missing !== undefined) return `${at}.${missing} is missing`;
  const extra =
    schema.additionalProperties === false && schema.patternProperties === undefined
      ? Object.keys(value).find((name) => !Object.hasOwn(properties, name))
      : undefined;
  if (extra !== undefined) return `${at}.${extra} is not in the schema`;
  return firstOf(
    Object.entries(properties).map(
      ([name, inner]) =>
        () =>
          Object.hasOwn(value, name) ? misfit(inner, value[name], `${at}.${name}`, depth + 1) : undefined,
    ),
  );
}

function firstOf(looks: readonly (() => string | undefined)[]): string | undefined {
  for (const look of looks) {
    const found = look();
    if (found !== undefined) return found;
  }
  return undefined;
}

function isOf(type: string, value: unknown): boolean {
  switch (type) {
    case "object":
      return isObject(value);
    case "array":
      return Array.isArray(value);
    case "null":
      return value === null;
    case "integer":
      return Number.isInteger(value);
    case "number":
    case "string":
    case "boolean":
      return typeof value === type;
    default:
      return true;
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
