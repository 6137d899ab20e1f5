import type { JsonSchema } from "../../command/schema.ts";
import { closest } from "../../command/suggest.ts";
import { messageOf, UsageError } from "../../errors.ts";
import { type Parameter, readValue, toParameters } from "../arguments.ts";
import { clean } from "../terminal.ts";

type Arguments = Record<string, unknown>;

/**
 * A tool's arguments: `key=value` words, read with its schema, over what was given as JSON. Throws a UsageError that
 * names the word.
 */
export function readArguments(
  words: readonly string[],
  listed: JsonSchema,
  given: Readonly<Arguments> = {},
): Arguments {
  const { schema, parameters } = readSchema(listed);
  const typed: Arguments = {};
  for (const word of words) {
    const [, key, value = ""] = /^([^=]+)=(.*)$/s.exec(word) ?? [];
    if (key === undefined) throw new UsageError(`"${clean(word)}" is no argument; write it as key=value.`);
    put(typed, { key, value, parameter: parameters.get(key) }, parameters, schema);
  }
  const input = { ...given, ...typed };
  refuseMissing([...parameters.values()], input);
  return input;
}

/** A schema that makes no sense here is left to its server, which then gets whatever was typed. */
function readSchema(schema: JsonSchema): { schema: JsonSchema; parameters: ReadonlyMap<string, Parameter> } {
  try {
    return { schema, parameters: new Map(toParameters(schema).map((parameter) => [parameter.name, parameter])) };
  } catch {
    return { schema: {}, parameters: new Map() };
  }
}

/** `--args '{…}'`. */
export function readJsonArguments(text: string): Arguments {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`--args is not JSON: ${messageOf(cause)}`, { cause });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed))
    throw new UsageError("--args must be one JSON object with the arguments.");
  return parsed as Arguments;
}

interface Pair {
  readonly key: string;
  readonly value: string;
  readonly parameter: Parameter | undefined;
}

function put(typed: Arguments, pair: Pair, parameters: ReadonlyMap<string, Parameter>, schema: JsonSchema): void {
  const { key, value, parameter } = pair;
  const isGiven = Object.hasOwn(typed, key);
  if (parameter?.isList === true)
    define(typed, key, [...(isGiven ? (typed[key] as unknown[]) : []), ...readItems(value, parameter)]);
  else if (isGiven) throw new UsageError(`${clean(key)} is given twice, and takes one value.`);
  else if (parameter !== undefined) define(typed, key, checked(readValue(value, parameter.schema), value, parameter));
  else putUnlisted(typed, pair, parameters, schema);
}

/** A field of an argument that is an object, or an argument that the schema does not name. */
function putUnlisted(
  typed: Arguments,
  { key, value }: Pair,
  parameters: ReadonlyMap<string, Parameter>,
  schema: JsonSchema,
): void {
  const [outer = "", ...inner] = key.split(".");
  const object = parameters.get(outer);
  const isNested =
    inner.length > 0 &&
    inner.every((part) => part !== "") &&
    (object === undefined ? isOpen(schema) : object.valueWord === "json");
  if (isNested) nest(typed, [outer, ...inner], readNested(value, object?.schema, inner));
  else if (isOpen(schema)) define(typed, key, readAny(value));
  else throw new UsageError(unknownKey(key, parameters));
}

/** Keys come from outside: `__proto__` is a key like any other. */
function define(target: Arguments, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Several values one by one, or all of them as JSON. */
function readItems(text: string, parameter: Parameter): unknown[] {
  const items = (parameter.schema.items ?? {}) as JsonSchema;
  const all = text.trimStart().startsWith("[") ? readAny(text) : undefined;
  return Array.isArray(all) ? all : [checked(readValue(text, items), text, { ...parameter, schema: items })];
}

/** What can be told to be wrong at a glance is not sent; everything else is for the server to judge. */
function checked(value: unknown, text: string, { name, schema, choices }: Parameter): unknown {
  const type = typeof schema.type === "string" ? schema.type : "";
  const shown = `${clean(name)} must be`;
  const not = `not "${clean(text)}".`;
  if (choices !== undefined && !choices.includes(text)) {
    const guess = closest(text, choices);
    throw new UsageError(
      `${shown} one of ${clean(choices.join(", "))}, ${not}${guess === undefined ? "" : ` Did you mean ${clean(guess)}?`}`,
    );
  }
  if (Array.isArray(schema.enum)) return schema.enum.find((choice) => String(choice) === text) as unknown;
  if ((type === "number" || type === "integer") && typeof value !== "number")
    throw new UsageError(`${shown} a number, ${not}`);
  if (type === "integer" && !Number.isInteger(value)) throw new UsageError(`${shown} a whole number, ${not}`);
  if (type === "boolean" && typeof value !== "boolean") throw new UsageError(`${shown} true or false, ${not}`);
  if (type === "object" && (typeof value !== "object" || value === null || Array.isArray(value)))
    throw new UsageError(
      `${shown} a JSON object, ${not} Its fields can be given one by one: ${clean(name)}.field=value.`,
    );
  return value;
}

/** A value that no schema tells about is JSON where it can be, and text otherwise. */
function readAny(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function readNested(text: string, schema: JsonSchema | undefined, path: readonly string[]): unknown {
  let found: JsonSchema | undefined = schema;
  for (const part of path) {
    const properties = (found?.properties ?? {}) as Record<string, JsonSchema>;
    found = Object.hasOwn(properties, part) ? properties[part] : undefined;
  }
  return found === undefined ? readAny(text) : readValue(text, found);
}

function nest(typed: Arguments, path: readonly string[], value: unknown): void {
  const key = clean(path.join("."));
  let inside = typed;
  for (const part of path.slice(0, -1)) {
    const next = Object.hasOwn(inside, part) ? inside[part] : {};
    if (typeof next !== "object" || next === null || Array.isArray(next))
      throw new UsageError(`${key} does not fit what was given before it.`);
    define(inside, part, next);
    inside = next as Arguments;
  }
  const last = path.at(-1) ?? "";
  if (Object.hasOwn(inside, last)) throw new UsageError(`${key} is given twice, and takes one value.`);
  define(inside, last, value);
}

/** Says by itself that it takes more than it lists. */
function isOpen(schema: JsonSchema): boolean {
  const { additionalProperties: more } = schema;
  if (more === true || (typeof more === "object" && more !== null)) return true;
  if (more === false) return false;
  return (
    schema.properties === undefined ||
    ["patternProperties", "anyOf", "oneOf", "allOf", "$ref"].some((keyword) => schema[keyword] !== undefined)
  );
}

function unknownKey(key: string, parameters: ReadonlyMap<string, Parameter>): string {
  const known = [...parameters.keys()];
  if (known.length === 0) return `There is no argument ${clean(key)}; this tool takes none.`;
  const guess = closest(key, known);
  return `There is no argument ${clean(key)}; ${guess === undefined ? `there are ${clean(known.join(", "))}.` : `did you mean ${clean(guess)}?`}`;
}

function refuseMissing(parameters: readonly Parameter[], input: Readonly<Arguments>): void {
  const missing = parameters.filter(
    ({ name, isRequired, defaultValue }) => isRequired && defaultValue === undefined && !Object.hasOwn(input, name),
  );
  if (missing.length === 0) return;
  const described = missing.map(({ name, description }) =>
    description === "" ? clean(name) : `${clean(name)} (${clean(description).replace(/\.$/, "")})`,
  );
  const example = missing.map(({ name }) => `${clean(name)}=…`).join(" ");
  throw new UsageError(`Missing ${described.join(" and ")}; add ${example}`);
}
