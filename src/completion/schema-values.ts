import type { JsonSchema } from "../command/schema.ts";
import { findFormat } from "./formats.ts";
import { few, numbersOf } from "./numbers.ts";
import { sampleCount } from "./pattern.ts";
import { isReference, type Path, resolveReference, valueAt } from "./references.ts";
import { accepts, isCountable, typeOf } from "./schema-accepts.ts";
import {
  type Branch,
  branchesOf,
  itemIn,
  listOf,
  mapOf,
  patternOf,
  propertyIn,
  type Scope,
  spend,
  toOneSchema,
} from "./schema-branches.ts";

/** Something to offer. */
export interface Candidate {
  readonly text: string;
  /** The schema that says what it is, or what an author's completer said. */
  readonly about?: unknown;
  /** It was made for what was typed, so it is offered for that alone, never for something that merely looks like it. */
  readonly isMade: boolean;
}

export interface Candidates {
  readonly items: readonly Candidate[];
  /** More would fit than was looked up: a wide range, a pattern with many texts. */
  readonly isSampled: boolean;
}

/** What was typed, and what is known beside it. */
export interface Request {
  readonly partial: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly context: Readonly<Record<string, unknown>>;
  /** The day, as 2026-07-28. */
  readonly today: string;
}

/** At most this many values are in one answer. */
export const maxValues = 100;

/**
 * What can stand at a place: values of its schema, items of a list, or the names of an object's properties. `given` is
 * what stands there already.
 */
export function candidatesOf(scope: Scope, schema: unknown, request: Request, given: unknown): Candidates {
  const values = valuesOf(scope, schema, request);
  const branches = branchesOf(scope, schema);
  const lists = branches.filter((branch) => describes(branch, "array"));
  const items = lists.length === 0 ? none : itemsOf(scope, lists, request, Array.isArray(given) ? given : []);
  const names = namesOf(scope, branches, request.partial, given);
  return join([values, items, { items: names, isSampled: scope.isCut }]);
}

const none: Candidates = { items: [], isSampled: false };

function join(all: readonly Candidates[]): Candidates {
  const seen = new Map<string, Candidate>();
  for (const { items } of all) for (const item of items) if (!seen.has(item.text)) seen.set(item.text, item);
  return { items: [...seen.values()], isSampled: all.some(({ isSampled }) => isSampled) };
}

/** The values of a schema that have a text of their own; each is valid against it. */
function valuesOf(scope: Scope, schema: unknown, request: Request): Candidates {
  const found: Candidate[] = [];
  const tried = new Set<unknown>();
  let isSampled = false;
  const offer: Offer = (value, { about, isMade = false } = {}) => {
    if (tried.has(value)) return;
    tried.add(value);
    if (isCountable(value) && accepts(scope, schema, value)) found.push({ text: textOf(value), about, isMade });
  };
  for (const branch of branchesOf(scope, schema)) {
    const listed = listedIn(branch);
    if (listed !== undefined) for (const { value, about } of listed) offer(value, { about });
    else {
      for (const value of authoredIn(branch, request)) offer(value);
      isSampled = offerByType(scope, branch, request, offer) || isSampled;
    }
  }
  return join([{ items: found, isSampled }]);
}

/** Texts stay as they are; anything else is written as JSON. */
function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The values of `const` and `enum`, which leave no others. */
function listedIn(branch: Branch): { value: unknown; about?: JsonSchema }[] | undefined {
  const constant = branch.find((schema) => schema.const !== undefined);
  if (constant !== undefined) return [{ value: constant.const, about: constant }];
  const choice = branch.find((schema) => schema.enum !== undefined);
  return choice && listOf(choice, "enum").map((value) => ({ value }));
}

/** What a candidate is, in words. */
export function describe({ about }: Candidate): string | undefined {
  const { title, description } = (about ?? {}) as JsonSchema;
  return typeof description === "string" ? description : typeof title === "string" ? title : undefined;
}

/** `default` and `examples`, and what they point at when they are references. */
function* authoredIn(branch: Branch, request: Request): Generator<unknown> {
  for (const schema of branch) {
    const written = [...(schema.default === undefined ? [] : [schema.default]), ...listOf(schema, "examples")];
    for (const value of written) {
      const resolved = isReference(value) ? resolveReference(value, request.arguments, request.context) : undefined;
      if (resolved?.ok === true) yield* plain(resolved.value);
      yield* plain(value);
    }
  }
}

/** An object or a list as a whole has no text to complete, and an empty text completes nothing. */
function plain(value: unknown): unknown[] {
  return value === "" || (typeof value === "object" && value !== null) ? [] : [value];
}

type Offer = (value: unknown, how?: { about?: JsonSchema | undefined; isMade?: boolean }) => void;

/** True when it only sampled. */
function offerByType(scope: Scope, branch: Branch, request: Request, offer: Offer): boolean {
  let isSampled = false;
  if (describes(branch, "boolean")) for (const value of [true, false]) offer(value);
  if (describes(branch, "number")) isSampled = offerNumbers(branch, request, offer);
  if (describes(branch, "string")) isSampled = offerTexts(scope, branch, request, offer) || isSampled;
  if (describes(branch, "null")) offer(null);
  return isSampled;
}

// What a keyword is about, for schemas that do not name their type.
const hints: Readonly<Record<string, readonly string[]>> = {
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  string: ["pattern", "format", "minLength", "maxLength"],
  array: ["items", "prefixItems"],
  object: ["properties", "required", "propertyNames"],
};

/** True when a branch is about values of this type: it says so, or it has the keywords and names no type. */
function describes(branch: Branch, type: "boolean" | "number" | "string" | "null" | "array" | "object"): boolean {
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

function offerNumbers(branch: Branch, request: Request, offer: Offer): boolean {
  const isInteger = branch.some(
    (schema) => [schema.type].flat().includes("integer") && ![schema.type].flat().includes("number"),
  );
  const { values, isAll } = numbersOf(branch, isInteger, request.partial);
  for (const value of values) offer(Object.is(value, -0) ? 0 : value, { isMade: !isAll });
  return !isAll && values.length > 0;
}

function offerTexts(scope: Scope, branch: Branch, request: Request, offer: Offer): boolean {
  const limits = {
    minLength: Math.max(0, ...numbersIn(branch, "minLength")),
    maxLength: Math.min(Number.POSITIVE_INFINITY, ...numbersIn(branch, "maxLength")),
  };
  const { partial } = request;
  const sources = branch.map((schema) => schema.pattern).filter((pattern) => typeof pattern === "string");
  const patterns = sources.map((source) => patternOf(scope, source));
  const formats = branch.map((schema) => findFormat(schema.format)).filter((format) => format !== undefined);
  const isOfFormats = (text: string) =>
    formats.every((format) => patternOf(scope, format.shape).matches(text, scope) === true);
  const fits = (text: string) => {
    spend(scope);
    return patterns.every((pattern) => pattern.matches(text, scope) === true);
  };
  const made = new Set<string>();
  let isSampled = false;
  for (const format of formats) {
    const texts = format.samples(request.today, partial).filter((text) => text.startsWith(partial));
    const more =
      partial === "" || texts.length >= 3
        ? []
        : patternOf(scope, format.shape).make({ partial, ...limits, few: sampleCount }, scope).texts;
    for (const text of [...texts, ...more]) if (fits(text)) made.add(text);
    isSampled = true;
  }
  if (made.size === 0) {
    for (const pattern of patterns) {
      spend(scope);
      // A pattern with few texts is as good as an enum: they are found by letters as well.
      const all = pattern.make({ partial: "", ...limits, few }, scope);
      const continued = all.isAll || partial === "" ? all : pattern.make({ partial, ...limits, few }, scope);
      const fitting = continued.texts.filter((text) => isOfFormats(text) && fits(text));
      if (all.isAll) for (const text of fitting) offer(text);
      else for (const text of fitting.filter(Boolean)) made.add(text);
      isSampled ||= !continued.isAll;
    }
  }
  for (const text of made) offer(text, { isMade: true });
  return isSampled;
}

function numbersIn(branch: Branch, keyword: string): number[] {
  return branch.map((schema) => schema[keyword]).filter((value) => typeof value === "number");
}

/** The items that a list could get next: where they are unique, those it has are left out. */
function itemsOf(scope: Scope, lists: readonly Branch[], request: Request, given: readonly unknown[]): Candidates {
  const found: Candidates[] = [];
  for (const branch of lists) {
    if (given.length >= Math.min(Number.POSITIVE_INFINITY, ...numbersIn(branch, "maxItems"))) continue;
    const item = itemIn(branch, given.length);
    if (item === undefined) continue;
    const schema = toOneSchema([item]);
    // Items that an author shows in an example of the whole list are examples of an item.
    const shown = branch
      .flatMap((list) => [list.default, ...listOf(list, "examples")])
      .flatMap((list) => (Array.isArray(list) ? list.flatMap(plain) : []));
    const examples = shown
      .filter((value) => isCountable(value) && accepts(scope, schema, value))
      .map((value) => ({ text: textOf(value), isMade: false }));
    const values = valuesOf(scope, schema, request);
    const isUnique = branch.some((list) => list.uniqueItems === true);
    const taken = new Set(isUnique ? given.map(textOf) : []);
    found.push({
      items: [...values.items, ...examples].filter(({ text }) => !taken.has(text)),
      isSampled: values.isSampled,
    });
  }
  return join(found);
}

/** The names of an object's properties that are not there yet, the required ones first; `a.b` looks inside `a`. */
function namesOf(scope: Scope, branches: readonly Branch[], partial: string, given: unknown): Candidate[] {
  const objects = matching(
    scope,
    branches.filter((branch) => describes(branch, "object")),
    given,
  );
  if (objects.length === 0) return [];
  const inner = innerNamesOf(scope, objects, partial, given);
  const required = new Set(objects.flatMap((branch) => branch.flatMap((schema) => listOf(schema, "required"))));
  const isThere = (name: string) => typeof given === "object" && given !== null && Object.hasOwn(given, name);
  const first: Candidate[] = [];
  const rest: Candidate[] = [];
  for (const branch of objects) {
    for (const candidate of ownNamesOf(scope, branch))
      if (!isThere(candidate.text)) (required.has(candidate.text) ? first : rest).push(candidate);
  }
  const own = [...first, ...rest];
  return inner.length === 0 ? own : [...own.filter(({ text }) => text.startsWith(partial)), ...inner];
}

function ownNamesOf(scope: Scope, branch: Branch): Candidate[] {
  const names = new Map<string, Candidate>();
  for (const schema of branch) {
    for (const [name, described] of Object.entries(mapOf(schema, "properties"))) {
      if (described === false || names.has(name)) continue;
      names.set(name, { text: name, about: described, isMade: false });
    }
  }
  spend(scope, names.size);
  const rules = branch.map((schema) => schema.propertyNames).filter((rule) => rule !== undefined);
  if (rules.length === 0) return [...names.values()];
  // A record's keys are in the rule for its names.
  for (const rule of rules) {
    for (const inner of branchesOf(scope, rule)) {
      for (const { value } of listedIn(inner) ?? [])
        if (typeof value === "string" && !names.has(value)) names.set(value, { text: value, isMade: false });
    }
  }
  return [...names.values()].filter(({ text }) => rules.every((rule) => accepts(scope, rule, text)));
}

/** `options.fo` → the names inside `options`, written out; `pages[0].ti` → those of an item. */
function innerNamesOf(scope: Scope, objects: readonly Branch[], partial: string, given: unknown): Candidate[] {
  const found: Candidate[] = [];
  const declared = (name: string) =>
    objects.some((branch) => branch.some((schema) => Object.hasOwn(mapOf(schema, "properties"), name)));
  let isFirst = true;
  for (const { 0: separator, index } of partial.matchAll(/[.[]/g)) {
    const name = partial.slice(0, index);
    // A name that the schema leaves open ends at the first separator: trying them all would double the work at every
    // level.
    const isPossible = isFirst || declared(name);
    isFirst = false;
    const schema = isPossible ? propertyOf(scope, objects, name) : undefined;
    if (schema === undefined) continue;
    const place = separator === "." ? { head: `${name}.`, steps: [name] as Path } : indexAt(partial, name);
    if (place === undefined) continue;
    const { head, steps } = place;
    const target = steps.length === 1 ? schema : itemOf(scope, schema, steps[1] as number);
    if (target === undefined) continue;
    const inside = namesOf(scope, branchesOf(scope, target), partial.slice(head.length), valueAt(given, steps));
    found.push(...inside.map((candidate) => ({ ...candidate, text: head + candidate.text })));
  }
  return found;
}

function indexAt(partial: string, name: string): { head: string; steps: Path } | undefined {
  const index = /^\[(\d{1,9})\]\./.exec(partial.slice(name.length));
  return index === null ? undefined : { head: name + index[0], steps: [name, Number(index[1])] };
}

/** Where the values that are there decide between alternatives, only the ones they leave open. */
function matching(scope: Scope, objects: readonly Branch[], given: unknown): readonly Branch[] {
  if (objects.length < 2 || typeof given !== "object" || given === null) return objects;
  const isOpen = (branch: Branch) =>
    Object.entries(given).every(([name, value]) =>
      (propertyIn(scope, branch, name) ?? []).every((described) => {
        const listed =
          typeof described === "object" && described !== null ? listedIn([described as JsonSchema]) : undefined;
        return listed === undefined || listed.some((one) => textOf(one.value) === textOf(value));
      }),
    );
  const open = objects.filter(isOpen);
  return open.length === 0 ? objects : open;
}

/** The schema of one argument, by its path; undefined when the schema has no such place. */
export function schemaAt(scope: Scope, schema: unknown, path: Path, given: unknown): unknown {
  let current = schema;
  for (const [index, step] of path.entries()) {
    if (current === undefined) return undefined;
    if (typeof step === "number") current = itemOf(scope, current, step);
    else
      current = propertyOf(
        scope,
        matching(scope, branchesOf(scope, current), withoutPath(valueAt(given, path.slice(0, index)), step)),
        step,
      );
  }
  return current;
}

/** What is being completed says nothing about which alternative is meant. */
function withoutPath(given: unknown, name: string): unknown {
  if (typeOf(given) !== "object") return undefined;
  return Object.fromEntries(Object.entries(given as object).filter(([other]) => other !== name));
}

function propertyOf(scope: Scope, branches: readonly Branch[], name: string): unknown {
  const ways = branches.map((branch) => propertyIn(scope, branch, name)).filter((way) => way !== undefined);
  return ways.length === 0 ? undefined : toOneSchema(ways);
}

function itemOf(scope: Scope, schema: unknown, index: number): unknown {
  const ways = branchesOf(scope, schema)
    .map((branch) => itemIn(branch, index))
    .filter((way) => way !== undefined);
  return ways.length === 0 ? undefined : toOneSchema(ways);
}
