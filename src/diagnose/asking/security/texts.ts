import { isObject, type Json, textOf } from "../../../wire/json.ts";
import type { Facts } from "../facts.ts";

/** A text of the server's that a model or a person gets to read. */
interface OwnText {
  /** `tool read_clock` */
  readonly of: string;
  /** `inputSchema.properties.zone.description` */
  readonly at: string;
  readonly text: string;
}

const maxTexts = 20_000;
const maxText = 20_000;

/**
 * Everything a server says of itself and its offers, wherever it stands: names, descriptions, schemas, prompts,
 * resources, instructions.
 */
export function textsOf(facts: Facts): OwnText[] {
  const found: OwnText[] = [];
  for (const era of [facts.modern, facts.legacy]) {
    if (era === undefined) continue;
    if (era.instructions !== undefined) add(found, { of: "the server", at: "instructions", text: era.instructions });
    walk(found, { of: "the server", at: "serverInfo" }, era.serverInfo);
  }
  for (const { name, json } of facts.tools) walk(found, { of: `tool ${name}`, at: "" }, json);
  for (const [kind, items] of [
    ["prompt", facts.prompts],
    ["resource", facts.resources],
  ] as const)
    for (const item of items ?? []) walk(found, { of: `${kind} ${textOf(item.name) ?? ""}`, at: "" }, item);
  return found;
}

/** What icons and the like hold is not read as text. */
const notRead = new Set(["icons", "src", "mimeType", "blob", "$schema", "$id", "$ref"]);

function walk(found: OwnText[], { of, at }: Omit<OwnText, "text">, value: unknown): void {
  if (typeof value === "string") add(found, { of, at, text: value });
  const entries = Array.isArray(value)
    ? value.map((item, index): [string, unknown] => [String(index), item])
    : isObject(value)
      ? Object.entries(value)
      : [];
  for (const [key, inner] of entries) {
    if (notRead.has(key)) continue;
    // Names of arguments are read too.
    if (!Array.isArray(value))
      add(found, { of, at: at === "" ? "a field's name" : `a field's name in ${at}`, text: key });
    walk(found, { of, at: at === "" ? key : `${at}.${key}` }, inner);
  }
}

function add(found: OwnText[], { of, at, text }: OwnText): void {
  if (found.length < maxTexts && text !== "")
    found.push({ of: of.slice(0, 200), at: at.slice(0, 200), text: text.slice(0, maxText) });
}

/** The properties of a tool's input, those of objects within it included. */
export function argumentsOf(schema: Json, depth = 0): { readonly name: string; readonly schema: Json }[] {
  const { properties } = schema;
  if (!isObject(properties) || depth > 5) return [];
  return Object.entries(properties).flatMap(([name, inner]) => {
    if (!isObject(inner)) return [];
    const item = isObject(inner.items) ? inner.items : undefined;
    return [{ name, schema: item ?? inner }, ...argumentsOf(item ?? inner, depth + 1)];
  });
}

/** No more findings of one kind than anybody reads. */
export const maxFaults = 20;
