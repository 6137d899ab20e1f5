import type { StandardJSONSchemaV1, StandardSchemaV1 } from "@standard-schema/spec";

/** A JSON Schema object of draft 2020-12, as tools/list carries it. */
export type JsonSchema = { readonly [key: string]: unknown };

/** Any schema library that speaks Standard Schema; zod is the documented one. */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;
export type InferInput<S extends Schema> = StandardSchemaV1.InferInput<S>;
export type InferOutput<S extends Schema> = StandardSchemaV1.InferOutput<S>;

/** One thing wrong with a value: where, and what to do about it. */
export interface Issue {
  /** Dotted path of the field, e.g. `pages[2].title`; empty for the whole value. */
  readonly field: string;
  readonly text: string;
}

export type Validated<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly issues: readonly Issue[] };

const ownVendor = "meanwhile";

/**
 * Checks a value against a schema; gives the parsed value or what is wrong with it, field by field. At once, when the
 * schema can.
 */
export function validate<S extends Schema>(
  schema: S,
  value: unknown,
): Validated<InferOutput<S>> | Promise<Validated<InferOutput<S>>> {
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then(toValidated<S>) : toValidated<S>(result);
}

function toValidated<S extends Schema>(result: StandardSchemaV1.Result<unknown>): Validated<InferOutput<S>> {
  if (result.issues === undefined) return { ok: true, value: result.value as InferOutput<S> };
  return { ok: false, issues: result.issues.map((issue) => toIssue(issue)) };
}

function toIssue(issue: StandardSchemaV1.Issue): Issue {
  let field = "";
  for (const part of issue.path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    field += typeof key === "number" ? `[${key}]` : field === "" ? String(key) : `.${String(key)}`;
  }
  return { field, text: issue.message };
}

/** The JSON Schema of a schema's input or output side. Throws when its library cannot tell. */
export function toJsonSchema(schema: Schema, side: "input" | "output"): JsonSchema {
  const standard = schema["~standard"] as StandardSchemaV1.Props & Partial<StandardJSONSchemaV1.Props>;
  if (standard.jsonSchema === undefined) {
    throw new TypeError(
      `the ${side} schema (${standard.vendor}) cannot describe itself as JSON Schema; use zod 4.2 or newer, or jsonSchema({ … })`,
    );
  }
  let described: JsonSchema;
  try {
    described = standard.jsonSchema[side]({ target: "draft-2020-12" });
  } catch (cause) {
    throw new TypeError(
      `the ${side} schema cannot be described as JSON Schema: ${(cause as Error).message.split("\n")[0]}; use types that JSON has, e.g. z.iso.datetime() for a date`,
      { cause },
    );
  }
  // Libraries name the draft in every schema; it is the protocol's default. What an author wrote stays as written.
  if (standard.vendor === ownVendor) return described;
  const { $schema: _draft, ...withoutDraft } = described;
  return withoutNoise(withoutDraft, side) as JsonSchema;
}

/** Keywords whose values are data, not schemas. */
const dataKeywords: ReadonlySet<string> = new Set(["default", "const", "enum", "examples", "required"]);

/**
 * Leaves out what a library writes into every schema and nobody reads: the bounds of whole numbers that JavaScript can
 * hold, and that an output holds no other fields than those it names. Clients pay for each tool's schema whenever they
 * list the tools.
 */
function withoutNoise(value: unknown, side: "input" | "output"): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutNoise(item, side));
  if (typeof value !== "object" || value === null) return value;
  const isNoise = ([keyword, content]: [string, unknown]) =>
    (keyword === "minimum" && content === Number.MIN_SAFE_INTEGER) ||
    (keyword === "maximum" && content === Number.MAX_SAFE_INTEGER) ||
    (keyword === "additionalProperties" && content === false && side === "output");
  const entries = Object.entries(value).filter((entry) => !isNoise(entry));
  return Object.fromEntries(
    entries.map(([keyword, content]) => [keyword, dataKeywords.has(keyword) ? content : withoutNoise(content, side)]),
  );
}

/**
 * Turns a JSON Schema written elsewhere into a schema for `input` or `output`, checked by ajv.
 * Defaults are filled in; values are not coerced.
 */
export function jsonSchema<T = unknown>(schema: JsonSchema): Schema<T> & StandardJSONSchemaV1<T> {
  let check: Promise<AjvCheck> | undefined;
  return {
    "~standard": {
      version: 1,
      vendor: ownVendor,
      jsonSchema: { input: () => ({ ...schema }), output: () => ({ ...schema }) },
      async validate(value) {
        check ??= compile(schema);
        const validateValue = await check;
        const copy: unknown = value === undefined ? undefined : structuredClone(value);
        if (validateValue(copy)) return { value: copy as T };
        return {
          issues: (validateValue.errors ?? []).map((error) => ({ message: ajvSentence(error), path: ajvPath(error) })),
        };
      },
    },
  };
}

type AjvError = { instancePath: string; keyword: string; message?: string; params: Record<string, unknown> };
type AjvCheck = ((value: unknown) => boolean) & { errors?: AjvError[] | null };

async function compile(schema: JsonSchema): Promise<AjvCheck> {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const ajv = new Ajv2020({ allErrors: true, useDefaults: true, strict: false, validateFormats: false, logger: false });
  return ajv.compile(schema) as unknown as AjvCheck;
}

function ajvPath(error: AjvError): (string | number)[] {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"))
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part));
  const extra = error.params.missingProperty ?? error.params.additionalProperty;
  return typeof extra === "string" ? [...path, extra] : path;
}

function ajvSentence(error: AjvError): string {
  if (error.keyword === "required") return "is required";
  if (error.keyword === "additionalProperties") return "is not a known argument";
  if (error.keyword === "enum")
    return `must be one of ${(error.params.allowedValues as unknown[]).map((value) => JSON.stringify(value)).join(", ")}`;
  return error.message ?? `fails ${error.keyword}`;
}

const flatTypes = new Set(["string", "number", "integer", "boolean"]);

/** The JSON Schema of an answer: a flat object, because that is all a form can show. */
export function toFlatSchema(schema: Schema): JsonSchema {
  const described = toJsonSchema(schema, "input");
  const properties = Object.entries((described.properties ?? {}) as Record<string, JsonSchema>);
  const isListOfChoices = (field: JsonSchema) =>
    field.type === "array" &&
    typeof field.items === "object" &&
    field.items !== null &&
    ("enum" in field.items || "anyOf" in field.items);
  const isFlat = (field: JsonSchema) =>
    flatTypes.has(field.type as string) || field.oneOf !== undefined || isListOfChoices(field);
  const deep = properties.find(([, field]) => !isFlat(field))?.[0];
  if (described.type !== "object" || deep !== undefined) {
    throw new TypeError(
      `ask() takes a flat object of texts, numbers, booleans and enums${deep === undefined ? "" : `; \`${deep}\` is something else`}.`,
    );
  }
  return described;
}
