import type { JsonSchema } from "../command/schema.ts";
import { CompletionFailed } from "./completion-failed.ts";
import { type Pattern, readPattern } from "./pattern.ts";

/** One completion's view of a schema: where its references point, and how much work is left. */
export interface SchemaView {
  readonly root: JsonSchema;
  readonly patterns: Map<string, Pattern>;
  left: number;
  /** Not every alternative was looked at. */
  isCut: boolean;
}

/** One way a value can satisfy a schema: the schemas that hold for it together. */
export type Branch = readonly JsonSchema[];

const MAX_WORK = 500_000;
const MAX_BRANCHES = 2000;
/** Alternatives of alternatives multiply, and soon only repeat each other. */
const MAX_PRODUCT = 200;
const MAX_DEPTH = 64;

export function openSchema(root: JsonSchema): SchemaView {
  return { root: toSchema(root), patterns: new Map(), left: MAX_WORK, isCut: false };
}

/** Notes work done; ends the completion of a schema that would take too much. */
export function spend(view: SchemaView, work = 1): void {
  view.left -= work;
  if (view.left < 0)
    throw new CompletionFailed("limit", "the schema is too large or nested too deep to complete from.");
}

/** A pattern of the schema; reading one is work as well. */
export function patternOf(view: SchemaView, source: string): Pattern {
  let pattern = view.patterns.get(source);
  if (pattern === undefined) {
    spend(view, 100 + 10 * source.length);
    pattern = readPattern(source);
    view.patterns.set(source, pattern);
  }
  return pattern;
}

/** Looks through references, allOf, anyOf, oneOf and if; a reference that leads back to itself adds nothing. */
export function branchesOf(view: SchemaView, schema: unknown, above: readonly unknown[] = []): Branch[] {
  if (schema === true) return [[]];
  if (schema === false || above.includes(schema)) return [];
  if (above.length >= MAX_DEPTH) spend(view, MAX_WORK);
  spend(view);
  const current = toSchema(schema);
  const within = [...above, schema];
  let branches: Branch[] = [[current]];
  const and = (others: Branch[]) => {
    branches = combine(view, branches, others);
  };
  if (current.$ref !== undefined) and(branchesOf(view, resolveRef(view, current.$ref), within));
  for (const part of listOf(current, "allOf")) and(branchesOf(view, part, within));
  for (const keyword of ["anyOf", "oneOf"] as const) {
    if (current[keyword] !== undefined)
      and(listOf(current, keyword).flatMap((option) => branchesOf(view, option, within)));
  }
  // Which side of an `if` a value falls on is checked when it is there: here both are possible.
  if (current.if !== undefined) {
    const sides = [{ allOf: [current.if, current.then ?? true] }, current.else ?? true];
    and(sides.flatMap((side) => branchesOf(view, side, within)));
  }
  return branches;
}

function combine(view: SchemaView, ones: readonly Branch[], others: readonly Branch[]): Branch[] {
  const combined: Branch[] = [];
  const limit = ones.length > 1 && others.length > 1 ? MAX_PRODUCT : MAX_BRANCHES;
  for (const one of ones) {
    for (const other of others) {
      if (combined.length >= limit) {
        view.isCut = true;
        return combined;
      }
      spend(view);
      combined.push([...one, ...other]);
    }
  }
  return combined;
}

/** The schema a `$ref` names: `#`, a pointer into the same document, or an `$anchor` of its `$defs`. */
export function resolveRef(view: SchemaView, reference: unknown): unknown {
  if (typeof reference !== "string" || !reference.startsWith("#")) throw unresolved(reference);
  const pointer = decodeFragment(reference.slice(1));
  if (pointer !== "" && !pointer.startsWith("/")) return findAnchor(view, pointer) ?? fail(unresolved(reference));
  let current: unknown = view.root;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, name)) throw unresolved(reference);
    current = (current as Record<string, unknown>)[name];
  }
  return current;
}

function decodeFragment(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}

function findAnchor(view: SchemaView, anchor: string): unknown {
  const definitions = Object.values(mapOf(view.root, "$defs"));
  spend(view, definitions.length);
  return definitions.find(
    (definition) =>
      isSchemaObject(definition) && (definition.$anchor === anchor || definition.$dynamicAnchor === anchor),
  );
}

function unresolved(reference: unknown): CompletionFailed {
  return new CompletionFailed("schema", `the schema refers to ${JSON.stringify(reference)}, which it does not hold.`);
}

/**
 * Every schema that the value of a property has to meet in this branch; undefined when the branch does not know the
 * property.
 */
export function propertyIn(view: SchemaView, branch: Branch, name: string): unknown[] | undefined {
  const found: unknown[] = [];
  spend(view, branch.length);
  for (const schema of branch) {
    const properties = mapOf(schema, "properties");
    const isNamed = Object.hasOwn(properties, name);
    if (isNamed) found.push(properties[name]);
    const byPattern = Object.entries(mapOf(schema, "patternProperties")).filter(
      ([pattern]) => patternOf(view, pattern).matches(name, view) === true,
    );
    found.push(...byPattern.map(([, described]) => described));
    if (
      !isNamed &&
      byPattern.length === 0 &&
      schema.additionalProperties !== undefined &&
      schema.additionalProperties !== false
    ) {
      found.push(schema.additionalProperties);
    }
  }
  return found.length === 0 ? undefined : found;
}

/** Every schema that an item of a list has to meet in this branch; undefined when nothing is said about it. */
export function itemIn(branch: Branch, index: number): unknown[] | undefined {
  const found: unknown[] = [];
  for (const schema of branch) {
    const { places, others } = itemSchemas(schema);
    const described = index < places.length ? places[index] : others;
    if (described !== undefined) found.push(described);
  }
  return found.length === 0 ? undefined : found;
}

/** The schemas of a list's first items, and of the others. Before 2020-12 they are `items` and `additionalItems`. */
export function itemSchemas(schema: JsonSchema): { readonly places: readonly unknown[]; readonly others: unknown } {
  return Array.isArray(schema.items)
    ? { places: schema.items, others: schema.additionalItems }
    : { places: listOf(schema, "prefixItems"), others: schema.items };
}

/** The values of `const` and `enum`, which leave no others. */
export function listedIn(branch: Branch): { value: unknown; about?: JsonSchema }[] | undefined {
  const constant = branch.find((schema) => schema.const !== undefined);
  if (constant !== undefined) return [{ value: constant.const, about: constant }];
  const choice = branch.find((schema) => schema.enum !== undefined);
  return choice && listOf(choice, "enum").map((value) => ({ value }));
}

// What a keyword is about, for schemas that do not name their type.
const hints: Readonly<Record<string, readonly string[]>> = {
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  string: ["pattern", "format", "minLength", "maxLength"],
  array: ["items", "prefixItems"],
  object: ["properties", "required", "propertyNames"],
};

/** True when a branch is about values of this type: it says so, or it has the keywords and names no type. */
export function describes(
  branch: Branch,
  type: "boolean" | "number" | "string" | "null" | "array" | "object",
): boolean {
  const typed = branch.filter((schema) => schema.type !== undefined);
  if (typed.length === 0)
    return (hints[type] ?? []).some((keyword) => branch.some((schema) => schema[keyword] !== undefined));
  return typed.every((schema) => {
    const types = [schema.type].flat();
    return (
      types.includes(type) ||
      (type === "number" && types.includes("integer")) ||
      (type === "null" && schema.nullable === true)
    );
  });
}

export function numbersIn(branch: Branch, keyword: string): number[] {
  return branch.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
}

/** One schema for what holds together in each way, and any one way out of several. */
export function toOneSchema(ways: readonly (readonly unknown[])[]): unknown {
  const schemas = ways.map((together) => (together.length === 1 ? together[0] : { allOf: together }));
  const distinct = [...new Set(schemas)];
  return distinct.length === 1 ? distinct[0] : { anyOf: distinct };
}

/** A schema object; what is none is the author's mistake, and said so. */
export function toSchema(value: unknown): JsonSchema {
  if (isSchemaObject(value)) return value;
  throw new CompletionFailed("schema", `${JSON.stringify(value) ?? String(value)} is not a JSON Schema.`);
}

function isSchemaObject(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A keyword that holds a list; empty when the schema does not have it. */
export function listOf(schema: JsonSchema, keyword: string): readonly unknown[] {
  const value = schema[keyword];
  if (value === undefined) return [];
  if (Array.isArray(value)) return value;
  throw new CompletionFailed("schema", `\`${keyword}\` must be a list in a JSON Schema.`);
}

/** A keyword that holds an object; empty when the schema does not have it. */
export function mapOf(schema: JsonSchema, keyword: string): Readonly<Record<string, unknown>> {
  const value = schema[keyword];
  if (value === undefined) return {};
  if (isSchemaObject(value)) return value;
  throw new CompletionFailed("schema", `\`${keyword}\` must be an object in a JSON Schema.`);
}

/** Throws in an expression. */
function fail(error: Error): never {
  throw error;
}
