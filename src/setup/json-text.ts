import { isDeepStrictEqual } from "node:util";
import { createScanner, type Node, type ParseError, parseTree, printParseErrorCode } from "jsonc-parser";
import { CommandError } from "../errors.ts";
import { Nesting } from "./nesting.ts";
import type { TextFormat } from "./text-format.ts";

/**
 * JSON, with comments and trailing commas where a host allows them. Everything outside the keys in question keeps its
 * bytes, which jsonc-parser's own edits do not see to: with them the files of five of ten hosts are not what they were.
 */
export const jsonText: TextFormat = {
  read(text) {
    checkNesting(text);
    const root = parseRoot(text);
    return root === undefined ? {} : (toValue(root) as Record<string, unknown>);
  },
  set: (text, keys, value) => setAt(text, keys, value),
  remove: (text, keys) => removeAt(text, keys),
  spanOf: (text, keys) => {
    const node = findNode(text, keys);
    return node === undefined ? { from: 0, to: text.length } : { from: node.offset, to: endOf(node) };
  },
  nothing: "{}\n",
};

function findNode(text: string, keys: readonly string[]): Node | undefined {
  return keys.reduce<Node | undefined>(
    (object, key) => (object?.type === "object" ? propertyOf(object, key)?.children?.[1] : undefined),
    parseRoot(text),
  );
}

/** Before anything calls itself once a level. */
function checkNesting(text: string): void {
  const scanner = createScanner(text, true);
  const nesting = new Nesting();
  while (scanner.getPosition() < text.length) {
    scanner.scan();
    const sign = text[scanner.getTokenOffset()] ?? " ";
    if ("{[".includes(sign)) nesting.enter();
    if ("}]".includes(sign)) nesting.leave();
  }
}

/** The outermost object; nothing when there are only blanks and comments. Throws what a person can act on. */
function parseRoot(text: string): Node | undefined {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  const [first] = errors;
  if (first !== undefined) throw new CommandError(`${placeOf(text, first.offset)}: ${wordsFor(first)}`);
  if (root !== undefined && root.type !== "object")
    throw new CommandError(`${placeOf(text, root.offset)}: an object { … } was expected`);
  return root;
}

function wordsFor(error: ParseError): string {
  return printParseErrorCode(error.error)
    .replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .toLowerCase();
}

function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split("\n");
  return `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}`;
}

/** Plain values; a key given twice counts as its last, as hosts take it. */
function toValue(node: Node): unknown {
  if (node.type === "array") return (node.children ?? []).map(toValue);
  if (node.type !== "object") return node.value;
  const pairs = (node.children ?? []).map(
    (property) => [keyOf(property), toValue(property.children?.[1] as Node)] as const,
  );
  return Object.fromEntries(pairs);
}

const keyOf = (property: Node) => property.children?.[0]?.value as string;
const endOf = (node: Node) => node.offset + node.length;
const propertyOf = (object: Node, key: string) => object.children?.findLast((property) => keyOf(property) === key);

function setAt(text: string, keys: readonly string[], value: unknown): string {
  const style = styleOf(text);
  let object = parseRoot(text);
  if (object === undefined)
    return `${text}${isLineOpen(text) ? style.eol : ""}${render(nest(keys, value), style, "")}${style.eol}`;
  for (const [depth, key] of keys.entries()) {
    const found: Node | undefined = propertyOf(object, key)?.children?.[1];
    if (found === undefined) return insert(text, object, key, nest(keys.slice(depth + 1), value), style);
    if (depth === keys.length - 1) return replace(text, found, value, style);
    if (found.type !== "object") throw new CommandError(`${placeOf(text, found.offset)}: "${key}" is not an object`);
    object = found;
  }
  return text;
}

function nest(keys: readonly string[], value: unknown): unknown {
  return keys.reduceRight((inner, key) => ({ [key]: inner }), value);
}

function isLineOpen(text: string): boolean {
  return text !== "" && !text.endsWith("\n");
}

interface Style {
  readonly eol: string;
  /** One step of indentation. */
  readonly step: string;
  /** The whole file stands on one line. */
  readonly isOneLine: boolean;
  readonly afterColon: string;
}

function styleOf(text: string): Style {
  const root = parseRoot(text);
  const first = root?.children?.[0];
  const step = first === undefined ? "" : indentAt(text, first.offset);
  return {
    eol: /\r?\n/.exec(text)?.[0] ?? "\n",
    step: step === "" || step === undefined ? "  " : step,
    isOneLine: first !== undefined && !text.trim().includes("\n"),
    afterColon: first === undefined || /":\s/.test(text) ? " " : "",
  };
}

/** The blanks in front of what is first on its line; nothing when something else stands before it. */
function indentAt(text: string, offset: number): string | undefined {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  const before = text.slice(lineStart, offset);
  return /^[ \t]*$/.test(before) ? before : undefined;
}

function lineIndent(text: string, offset: number): string {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(lineStart))?.[0] ?? "";
}

function render(value: unknown, style: Style, indent: string): string {
  return JSON.stringify(value, null, style.step).replaceAll("\n", `${style.eol}${indent}`);
}

function renderOnOneLine(value: unknown, style: Style): string {
  if (style.afterColon === "") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((item) => renderOnOneLine(item, style)).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{ ${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}: ${renderOnOneLine(inner, style)}`)
    .join(", ")} }`;
}

function replace(text: string, node: Node, value: unknown, style: Style): string {
  if (isDeepStrictEqual(toValue(node), value)) return text;
  const isOneLine = style.isOneLine || (node.parent !== undefined && indentAt(text, node.parent.offset) === undefined);
  const rendered = isOneLine ? renderOnOneLine(value, style) : render(value, style, lineIndent(text, node.offset));
  return text.slice(0, node.offset) + rendered + text.slice(endOf(node));
}

function insert(text: string, object: Node, key: string, value: unknown, style: Style): string {
  const last = object.children?.at(-1);
  const base = lineIndent(text, object.offset);
  if (last === undefined) return insertFirst(text, object, { key, value, style, base });
  const indent = indentAt(text, last.offset);
  const isOneLine = style.isOneLine || indent === undefined;
  const body = isOneLine ? renderOnOneLine(value, style) : render(value, style, indent);
  const property = `${JSON.stringify(key)}:${isOneLine ? style.afterColon : " "}${body}`;
  const comma = commaAfter(text, last);
  const lead = isOneLine ? style.afterColon : `${style.eol}${indent}`;
  if (comma !== undefined)
    return splice(text, isOneLine ? comma + 1 : afterRemarks(text, comma + 1), `${lead}${property},`);
  // The comma belongs to the last property, the new one below what is said about it on its line.
  const at = isOneLine ? endOf(last) : afterRemarks(text, endOf(last));
  return splice(splice(text, at, `${lead}${property}`), endOf(last), ",");
}

function insertFirst(
  text: string,
  object: Node,
  given: { key: string; value: unknown; style: Style; base: string },
): string {
  const { key, value, style, base } = given;
  const inside = text.slice(object.offset + 1, endOf(object) - 1);
  if (style.isOneLine)
    return splice(
      text,
      object.offset + 1,
      `${JSON.stringify(key)}:${style.afterColon}${renderOnOneLine(value, style)}`,
    );
  const indent = `${base}${style.step}`;
  const kept = inside.trimEnd();
  const closing = inside.slice(kept.length).includes("\n") ? "" : `${style.eol}${base}`;
  return splice(
    text,
    object.offset + 1 + kept.length,
    `${style.eol}${indent}${JSON.stringify(key)}: ${render(value, style, indent)}${closing}`,
  );
}

function splice(text: string, at: number, added: string): string {
  return text.slice(0, at) + added + text.slice(at);
}

function cut(text: string, from: number, to: number): string {
  return text.slice(0, from) + text.slice(to);
}

/** Where the comma behind a property is. */
function commaAfter(text: string, property: Node): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(endOf(property));
  scanner.scan();
  return text[scanner.getTokenOffset()] === "," ? scanner.getTokenOffset() : undefined;
}

/** Behind the comments that stand on the rest of this line. */
function afterRemarks(text: string, from: number): number {
  const remarks = /^(?:[ \t]*(?:\/\/[^\r\n]*|\/\*(?:[^*\r\n]|\*(?!\/))*\*\/))*/.exec(text.slice(from))?.[0] ?? "";
  return from + remarks.length;
}

function removeAt(text: string, keys: readonly string[]): string {
  let object = parseRoot(text);
  for (const key of keys.slice(0, -1)) object = object && propertyOf(object, key)?.children?.[1];
  const property = object?.type === "object" ? propertyOf(object, keys.at(-1) ?? "") : undefined;
  if (object === undefined || property === undefined) return text;
  const without = removeProperty(text, object, property);
  return removeAt(without, keys);
}

function removeProperty(text: string, object: Node, property: Node): string {
  const all = object.children ?? [];
  const at = all.indexOf(property);
  const [before, after] = [all[at - 1], all[at + 1]];
  const comma = commaAfter(text, property);
  const from = startOf(text, property);
  if (before === undefined && after === undefined)
    return removeOnly(text, object, from, (comma ?? endOf(property) - 1) + 1);
  if (comma === undefined) {
    const earlier = before && commaAfter(text, before);
    const shorter = cut(text, from, endOf(property));
    return earlier === undefined ? shorter : cut(shorter, earlier, earlier + 1);
  }
  const isOwnLine = indentAt(text, property.offset) !== undefined;
  if (isOwnLine || before !== undefined) return cut(text, from, comma + 1);
  return cut(text, property.offset, comma + 1 + (/^[ \t]*/.exec(text.slice(comma + 1))?.[0].length ?? 0));
}

/** With the blanks in front of it, and the line end when it is first on its line. */
function startOf(text: string, property: Node): number {
  const blanks = /(?:\r?\n)?[ \t]*$/.exec(text.slice(0, property.offset))?.[0] ?? "";
  return property.offset - blanks.length;
}

/** What is left of the object are comments, or nothing. */
function removeOnly(text: string, object: Node, from: number, to: number): string {
  const inside = text.slice(object.offset + 1, from) + text.slice(to, endOf(object) - 1);
  const kept = inside.trim() === "" ? "" : inside;
  return text.slice(0, object.offset + 1) + kept + text.slice(endOf(object) - 1);
}
