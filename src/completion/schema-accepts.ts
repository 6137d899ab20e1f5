import type { JsonSchema } from "../command/schema.ts";
import {
  itemSchemas,
  listOf,
  mapOf,
  patternOf,
  resolveRef,
  type SchemaView,
  spend,
  toSchema,
} from "./schema-branches.ts";

/**
 * Whether a value is valid against a schema, as draft 2020-12 has it, for the few values a completion looks at.
 * Not ajv: compiling a schema takes it longer than the whole answer may take, and it hands third-party patterns to
 * RegExp. `format` is an annotation. A keyword that would need to know what other keywords looked at (unevaluated…)
 * lets no object or list pass.
 */
export function accepts(
  view: SchemaView,
  schema: unknown,
  value: unknown,
  depth = 0,
  followed: readonly unknown[] = [],
): boolean {
  if (typeof schema === "boolean") return schema;
  if (depth > MAX_DEPTH) spend(view, Number.POSITIVE_INFINITY);
  spend(view);
  const current = toSchema(schema);
  return (
    hasType(current, value) &&
    isListed(view, current, value) &&
    (typeof value !== "string" || acceptsText(view, current, value)) &&
    (typeof value !== "number" || acceptsNumber(current, value)) &&
    (typeof value !== "object" || value === null || acceptsInside(view, current, value, depth)) &&
    acceptsCombined(view, current, value, depth, followed)
  );
}

/** False for numbers past what is counted exactly: validators do not agree on what they are multiples of. */
export function isCountable(value: unknown): boolean {
  return typeof value !== "number" || Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

const MAX_DEPTH = 100;

type JsonType = "string" | "number" | "boolean" | "null" | "array" | "object";

export function typeOf(value: unknown): JsonType {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : (typeof value as JsonType);
}

function hasType(schema: JsonSchema, value: unknown): boolean {
  if (schema.type === undefined) return true;
  const types = [schema.type].flat();
  const type = typeOf(value);
  if (types.includes(type) || (type === "number" && Number.isInteger(value) && types.includes("integer"))) return true;
  return value === null && schema.nullable === true;
}

const plainMembers = new WeakMap<object, Set<unknown>>();

function isListed(view: SchemaView, schema: JsonSchema, value: unknown): boolean {
  if (schema.const !== undefined && !isEqual(view, schema.const, value)) return false;
  if (schema.enum === undefined) return true;
  const members = listOf(schema, "enum");
  if (typeof value === "object" && value !== null) return members.some((member) => isEqual(view, member, value));
  let plain = plainMembers.get(members);
  if (plain === undefined) {
    plain = new Set(members);
    plainMembers.set(members, plain);
  }
  return plain.has(value);
}

function acceptsText(view: SchemaView, schema: JsonSchema, text: string): boolean {
  if (schema.minLength !== undefined || schema.maxLength !== undefined) {
    const length = Array.from(text).length;
    if (length < numberOf(schema.minLength, 0) || length > numberOf(schema.maxLength, Number.POSITIVE_INFINITY))
      return false;
  }
  return typeof schema.pattern !== "string" || patternOf(view, schema.pattern).matches(text, view) !== false;
}

function acceptsNumber(schema: JsonSchema, value: number): boolean {
  if (
    value < numberOf(schema.minimum, Number.NEGATIVE_INFINITY) ||
    value > numberOf(schema.maximum, Number.POSITIVE_INFINITY)
  )
    return false;
  if (value <= numberOf(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY)) return false;
  if (value >= numberOf(schema.exclusiveMaximum, Number.POSITIVE_INFINITY)) return false;
  // In draft-04 `exclusiveMinimum: true` is about `minimum`.
  if (schema.exclusiveMinimum === true && value === schema.minimum) return false;
  if (schema.exclusiveMaximum === true && value === schema.maximum) return false;
  return typeof schema.multipleOf !== "number" || isMultiple(value, schema.multipleOf);
}

/** 0.3 is a multiple of 0.1, though 0.3 / 0.1 is not quite 3. */
function isMultiple(value: number, step: number): boolean {
  const times = value / step;
  return Number.isSafeInteger(Math.round(times)) && Math.abs(Math.round(times) - times) <= 1e-9;
}

function numberOf(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function acceptsInside(view: SchemaView, schema: JsonSchema, value: object, depth: number): boolean {
  if (schema.unevaluatedProperties !== undefined || schema.unevaluatedItems !== undefined) return false;
  return Array.isArray(value)
    ? acceptsList(view, schema, value, depth)
    : acceptsObject(view, schema, value as Record<string, unknown>, depth);
}

function acceptsList(view: SchemaView, schema: JsonSchema, items: readonly unknown[], depth: number): boolean {
  if (items.length < numberOf(schema.minItems, 0) || items.length > numberOf(schema.maxItems, Number.POSITIVE_INFINITY))
    return false;
  if (
    schema.uniqueItems === true &&
    items.some((item, index) => items.slice(0, index).some((other) => isEqual(view, item, other)))
  )
    return false;
  const { places, others = true } = itemSchemas(schema);
  if (
    !items.every((item, index) =>
      accepts(view, places[index] ?? (index < places.length ? true : others), item, depth + 1),
    )
  )
    return false;
  if (schema.contains === undefined) return true;
  const count = items.filter((item) => accepts(view, schema.contains, item, depth + 1)).length;
  return count >= numberOf(schema.minContains, 1) && count <= numberOf(schema.maxContains, Number.POSITIVE_INFINITY);
}

function acceptsObject(view: SchemaView, schema: JsonSchema, value: Record<string, unknown>, depth: number): boolean {
  const names = Object.keys(value);
  if (
    names.length < numberOf(schema.minProperties, 0) ||
    names.length > numberOf(schema.maxProperties, Number.POSITIVE_INFINITY)
  )
    return false;
  if (!listOf(schema, "required").every((name) => Object.hasOwn(value, String(name)))) return false;
  for (const [name, needed] of Object.entries(mapOf(schema, "dependentRequired"))) {
    if (
      Object.hasOwn(value, name) &&
      Array.isArray(needed) &&
      !needed.every((other) => Object.hasOwn(value, String(other)))
    )
      return false;
  }
  for (const [name, described] of Object.entries(mapOf(schema, "dependentSchemas"))) {
    if (Object.hasOwn(value, name) && !accepts(view, described, value, depth + 1)) return false;
  }
  const properties = mapOf(schema, "properties");
  const patterns = Object.entries(mapOf(schema, "patternProperties"));
  return names.every((name) => {
    const described = patterns
      .filter(([pattern]) => patternOf(view, pattern).matches(name, view) === true)
      .map(([, inner]) => inner);
    if (Object.hasOwn(properties, name)) described.push(properties[name]);
    if (described.length === 0) described.push(schema.additionalProperties ?? true);
    if (schema.propertyNames !== undefined && !accepts(view, schema.propertyNames, name, depth + 1)) return false;
    return described.every((inner) => accepts(view, inner, value[name], depth + 1));
  });
}

/**
 * `followed` are the references on the way to this schema for the same value: one that comes round again proves
 * nothing.
 */
function acceptsCombined(
  view: SchemaView,
  schema: JsonSchema,
  value: unknown,
  depth: number,
  followed: readonly unknown[],
): boolean {
  const fits = (inner: unknown) => accepts(view, inner, value, depth + 1, followed);
  if (schema.$ref !== undefined) {
    const target = resolveRef(view, schema.$ref);
    if (followed.includes(target) || !accepts(view, target, value, depth + 1, [...followed, target])) return false;
  }
  if (!listOf(schema, "allOf").every(fits)) return false;
  if (schema.anyOf !== undefined && !optionsFor(listOf(schema, "anyOf"), value).some(fits)) return false;
  if (schema.oneOf !== undefined && optionsFor(listOf(schema, "oneOf"), value).filter(fits).length !== 1) return false;
  if (schema.not !== undefined && fits(schema.not)) return false;
  if (schema.if === undefined) return true;
  return fits((fits(schema.if) ? schema.then : schema.else) ?? true);
}

const byConst = new WeakMap<object, Map<unknown, unknown[]> | undefined>();

/**
 * The alternatives worth trying: where each is one plain constant, as in a list of choices with titles, only those of
 * this value.
 */
function optionsFor(options: readonly unknown[], value: unknown): readonly unknown[] {
  if (!byConst.has(options)) byConst.set(options, indexByConst(options));
  const index = byConst.get(options);
  return index === undefined ? options : (index.get(value) ?? []);
}

function indexByConst(options: readonly unknown[]): Map<unknown, unknown[]> | undefined {
  const index = new Map<unknown, unknown[]>();
  for (const option of options) {
    const constant = typeof option === "object" && option !== null ? (option as JsonSchema).const : undefined;
    if (constant === undefined || (typeof constant === "object" && constant !== null)) return undefined;
    const same = index.get(constant);
    if (same === undefined) index.set(constant, [option]);
    else same.push(option);
  }
  return index;
}

function isEqual(view: SchemaView, a: unknown, b: unknown): boolean {
  spend(view);
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const names = Object.keys(a);
  if (names.length !== Object.keys(b).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(b, name) &&
      isEqual(view, (a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]),
  );
}

/** Texts stay as they are; anything else is written as JSON. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
