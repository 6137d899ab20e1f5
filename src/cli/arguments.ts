import type { JsonSchema } from "../command/schema.ts";

/** One property of a command's input, as typed on a command line. */
export interface Parameter {
  /** The property's name in the input. */
  readonly name: string;
  readonly place: "positional" | "flag";
  /** With dashes: quarter, dry-run. A clash with a flag of ours is avoided by `arg-`. */
  readonly word: string;
  readonly schema: JsonSchema;
  readonly description: string;
  readonly isRequired: boolean;
  readonly isList: boolean;
  readonly isSwitch: boolean;
  /** What help calls its value. */
  readonly valueWord: "number" | "json" | "value";
  readonly choices: readonly string[] | undefined;
  readonly defaultValue: unknown;
}

const ownFlags = new Set([
  "json",
  "yaml",
  "quiet",
  "input",
  "help",
  "yes",
  "no-color",
  "timeout",
  "async",
  "detach",
  "wait",
  "new",
  "task-ttl",
]);

/**
 * Required properties without a default are positional, in their order, and then those that are `named` so; everything
 * else is a flag.
 */
export function toParameters(schema: JsonSchema, named: readonly string[] = []): Parameter[] {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const required = new Set((schema.required ?? []) as string[]);
  const all = withOwnWords(
    properties.map(([name, described]) => toParameter(name, resolve(described, schema), required.has(name))),
  );
  const parameters = placeNamed(all, named);
  // Only the last positional can take several values.
  const positional = parameters.filter((parameter) => parameter.place === "positional");
  return parameters.map((parameter) =>
    parameter.isList && parameter.place === "positional" && parameter !== positional.at(-1)
      ? { ...parameter, place: "flag" }
      : parameter,
  );
}

/** The same of a schema that may be anybody's: one that makes no sense here has none. */
export function readParameters(schema: JsonSchema, named: readonly string[] = []): Parameter[] {
  try {
    return toParameters(schema, named);
  } catch {
    return [];
  }
}

/**
 * An optional argument that stands without its name comes behind the required ones. A switch has no value to stand
 * there.
 */
function placeNamed(parameters: readonly Parameter[], named: readonly string[]): readonly Parameter[] {
  const isNamed = ({ name, place, isSwitch }: Parameter) => place === "flag" && !isSwitch && named.includes(name);
  const placed = parameters.filter(isNamed).sort((a, b) => named.indexOf(a.name) - named.indexOf(b.name));
  return [
    ...parameters.filter((parameter) => !isNamed(parameter)),
    ...placed.map((parameter) => ({ ...parameter, place: "positional" as const })),
  ];
}

function toParameter(name: string, schema: JsonSchema, isRequired: boolean): Parameter {
  const word = toWord(name);
  const types = typesOf(schema);
  const isSwitch = types.has("boolean") && types.size === 1;
  const isList = types.has("array") && types.size === 1;
  const isPositional = isRequired && schema.default === undefined && !isSwitch && !types.has("object");
  const items = isList ? ((schema.items ?? {}) as JsonSchema) : schema;
  return {
    name,
    place: isPositional ? "positional" : "flag",
    word,
    schema,
    description: typeof schema.description === "string" ? schema.description : "",
    isRequired,
    isList,
    isSwitch,
    valueWord: types.has("object") ? "json" : types.has("number") || types.has("integer") ? "number" : "value",
    choices: Array.isArray(items.enum) ? items.enum.map(String) : undefined,
    defaultValue: schema.default,
  };
}

/** What `--no-x` does, from what x does. */
export function describeOff(description: string): string {
  if (description === "") return "";
  // An acronym keeps its letters.
  return `turn off: ${/^.[A-Z]/.test(description) ? description : description.charAt(0).toLowerCase() + description.slice(1)}`;
}

/**
 * Two properties must not share a flag, and `--no-x` means that x is off: such words get `arg-` in front, as often as
 * it takes.
 */
function withOwnWords(parameters: readonly Parameter[]): Parameter[] {
  const taken = new Set(ownFlags);
  return parameters.map((parameter) => {
    let { word } = parameter;
    while (taken.has(word) || word.startsWith("no-")) word = `arg-${word}`;
    taken.add(word).add(`no-${word}`);
    return { ...parameter, word };
  });
}

function toWord(name: string): string {
  const word = name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .toLowerCase();
  return word === "" ? "arg" : word;
}

/** Follows one reference, and looks through "or null". */
function resolve(schema: JsonSchema, root: JsonSchema): JsonSchema {
  const reference = typeof schema.$ref === "string" ? /^#\/\$defs\/(.+)$/.exec(schema.$ref)?.[1] : undefined;
  if (reference !== undefined)
    return { ...(root.$defs as Record<string, JsonSchema> | undefined)?.[reference], ...schema };
  const alternatives = schema.anyOf as JsonSchema[] | undefined;
  const others = alternatives?.filter((alternative) => alternative.type !== "null");
  if (others?.length === 1) return { ...others[0], ...schema };
  return schema;
}

function typesOf(schema: JsonSchema): Set<string> {
  const types = new Set<string>();
  for (const type of [schema.type].flat()) if (typeof type === "string" && type !== "null") types.add(type);
  if (types.size === 0)
    for (const alternative of (schema.anyOf ?? schema.oneOf ?? []) as JsonSchema[])
      for (const type of typesOf(alternative)) types.add(type);
  return types;
}

/** Reads a typed word as its schema would have it; what does not fit stays text, for the schema to refuse by name. */
export function readValue(text: string, schema: JsonSchema): unknown {
  const types = typesOf(schema);
  if (types.size === 0 || (types.size === 1 && types.has("string"))) return text;
  const isNumber = (types.has("number") || types.has("integer")) && text.trim() !== "" && Number.isFinite(Number(text));
  if (isNumber) return Number(text);
  if (types.has("boolean") && (text === "true" || text === "false")) return text === "true";
  if (types.has("object") || types.has("array")) return readJson(text);
  return text;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
