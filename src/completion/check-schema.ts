import type { AnySchemaObject, ValidateFunction } from "ajv";
import { CompletionFailed } from "./completion-failed.ts";

/** Longer values are cut in messages. */
const maxShownCharacters = 60;
const types = "array, boolean, integer, null, number, object, string";

/** Schemas that passed the check. A schema may be large, and a caller completes from the same one many times. */
const checked = new WeakSet<object>();

/**
 * Throws `CompletionFailed` for a value that is no JSON Schema of drafts 04 to 2020-12. A schema is checked by the rules
 * of all of them, whatever its `$schema` says, as schemas in use mix them. The engine itself ignores keywords that
 * it cannot use, because upstreams list such schemas: a program that passes one has made a mistake.
 */
export async function checkSchema(schema: unknown): Promise<void> {
  if (typeof schema === "object" && schema !== null && checked.has(schema)) return;
  const reason = refuseValue(schema) ?? (await refuseKeywords(schema as AnySchemaObject));
  if (reason !== undefined) throw new CompletionFailed("schema", reason);
  checked.add(schema as object);
}

/** Says why a value cannot be a schema, whatever its fields are; undefined when it can be one. */
function refuseValue(value: unknown): string | undefined {
  const vendor = vendorOf(value);
  if (vendor !== undefined) {
    const cure = vendor === "zod" ? "z.toJSONSchema(schema)" : "the JSON Schema that its library makes of it";
    return `the schema is one of ${vendor}, not a JSON Schema; pass ${cure}.`;
  }
  return isPlainObject(value)
    ? undefined
    : `${show(value)} is not a JSON Schema; pass an object such as { type: "string" }.`;
}

/** The library that a Standard Schema is of. What `z.toJSONSchema` returns has the mark of one as a hidden field. */
function vendorOf(value: unknown): string | undefined {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  const standard = (value as { readonly "~standard"?: { readonly vendor?: unknown } })["~standard"];
  const isHidden = isPlainObject(value) && !Object.keys(value).includes("~standard");
  return standard === undefined || isHidden ? undefined : String(standard.vendor ?? "a schema library");
}

/** True for an object literal of any realm: Jest and `node:vm` have an `Object` of their own. */
function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** Says which keyword has a value that no draft allows; undefined when all are allowed. */
async function refuseKeywords(schema: AnySchemaObject): Promise<string | undefined> {
  loading ??= loadCheck();
  const check = await loading;
  try {
    if (check(schema) === true) return undefined;
  } catch (error) {
    // Nested too deep, or a circle: the engine counts its steps and says so.
    if (error instanceof RangeError) return undefined;
    throw error;
  }
  // Where a keyword takes a schema or a list of them, the error that is further inside names the cause.
  const paths = (check.errors ?? []).map(({ instancePath }) => instancePath.split("/").slice(1));
  const names = (paths.toSorted((a, b) => b.length - a.length)[0] ?? []).map((name) =>
    name.replaceAll("~1", "/").replaceAll("~0", "~"),
  );
  const value = names.reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], schema);
  const cure = names.slice(-2).includes("type") ? `; types are ${types}` : "";
  return `\`${names.join(".")}\` is ${show(value)}, which JSON Schema does not allow there${cure}.`;
}

let loading: Promise<ValidateFunction> | undefined;

async function loadCheck(): Promise<ValidateFunction> {
  const { Ajv } = await import("ajv");
  const ajv = new Ajv({ strict: false, validateFormats: false, logger: false });
  const draft07 = ajv.getSchema(draft07Id)?.schema as AnySchemaObject;
  return ajv.compile({ ...draft07, $id: "meanwhile:any-draft", properties: { ...draft07.properties, ...otherDrafts } });
}

const draft07Id = "http://json-schema.org/draft-07/schema";
const schema = { $ref: "#" };
const schemas = { $ref: "#/definitions/schemaArray" };
const schemaMap = { type: "object", additionalProperties: schema };
const numberOrFlag = { type: ["number", "boolean"] };
const count = { $ref: "#/definitions/nonNegativeInteger" };

/** What drafts 04, 2019-09 and 2020-12 have besides draft-07. No name has two meanings that exclude each other. */
const otherDrafts = {
  id: { type: "string" },
  ...{ exclusiveMinimum: numberOrFlag, exclusiveMaximum: numberOrFlag },
  ...{ $defs: schemaMap, dependentSchemas: schemaMap },
  ...{ prefixItems: schemas, unevaluatedItems: schema, unevaluatedProperties: schema, contentSchema: schema },
  ...{ minContains: count, maxContains: count },
  dependentRequired: { type: "object", additionalProperties: { $ref: "#/definitions/stringArray" } },
};

/** A value in a message: as JSON, or the kind of it where JSON does not show that. */
function show(value: unknown): string {
  const isInstance = typeof value === "object" && value !== null && !Array.isArray(value) && !isPlainObject(value);
  const kind = isInstance ? value.constructor.name : typeof value === "function" ? "function" : undefined;
  const text = kind === undefined ? (toJson(value) ?? String(value)) : `a ${kind}`;
  return text.length <= maxShownCharacters ? text : `${text.slice(0, maxShownCharacters)}…`;
}

/** Undefined for what JSON cannot hold: a BigInt, a circle. */
function toJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return undefined;
  }
}
