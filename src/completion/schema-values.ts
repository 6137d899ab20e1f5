import type { JsonSchema } from "../command/schema.ts";
import { findFormat } from "./formats.ts";
import { few, numbersOf } from "./numbers.ts";
import { sampleCount } from "./pattern-texts.ts";
import { isReference, resolveReference } from "./references.ts";
import { accepts, isCountable, textOf } from "./schema-accepts.ts";
import {
  type Branch,
  branchesOf,
  describes,
  itemIn,
  listedIn,
  listOf,
  numbersIn,
  patternOf,
  type SchemaView,
  spend,
  toOneSchema,
} from "./schema-branches.ts";
import { namesOf } from "./schema-names.ts";

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
export interface CandidateRequest {
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
export function candidatesOf(view: SchemaView, schema: unknown, request: CandidateRequest, given: unknown): Candidates {
  const values = valuesOf(view, schema, request);
  const branches = branchesOf(view, schema);
  const lists = branches.filter((branch) => describes(branch, "array"));
  const items = lists.length === 0 ? none : itemsOf(view, lists, request, Array.isArray(given) ? given : []);
  const names = namesOf(view, branches, request.partial, given);
  return join([values, items, { items: names, isSampled: view.isCut }]);
}

const none: Candidates = { items: [], isSampled: false };

function join(all: readonly Candidates[]): Candidates {
  const seen = new Map<string, Candidate>();
  for (const { items } of all) for (const item of items) if (!seen.has(item.text)) seen.set(item.text, item);
  return { items: [...seen.values()], isSampled: all.some(({ isSampled }) => isSampled) };
}

/** The values of a schema that have a text of their own; each is valid against it. */
function valuesOf(view: SchemaView, schema: unknown, request: CandidateRequest): Candidates {
  const found: Candidate[] = [];
  const tried = new Set<unknown>();
  let isSampled = false;
  const offer: Offer = (value, { about, isMade = false } = {}) => {
    if (tried.has(value)) return;
    tried.add(value);
    if (isCountable(value) && accepts(view, schema, value)) found.push({ text: textOf(value), about, isMade });
  };
  for (const branch of branchesOf(view, schema)) {
    const listed = listedIn(branch);
    if (listed !== undefined) for (const { value, about } of listed) offer(value, { about });
    else {
      for (const value of authoredIn(branch, request)) offer(value);
      isSampled = offerByType(view, branch, request, offer) || isSampled;
    }
  }
  return join([{ items: found, isSampled }]);
}

/** What a candidate is, in words. */
export function describe({ about }: Candidate): string | undefined {
  const { title, description } = (about ?? {}) as JsonSchema;
  return typeof description === "string" ? description : typeof title === "string" ? title : undefined;
}

/** `default` and `examples`, and what they point at when they are references. */
function* authoredIn(branch: Branch, request: CandidateRequest): Generator<unknown> {
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
function offerByType(view: SchemaView, branch: Branch, request: CandidateRequest, offer: Offer): boolean {
  let isSampled = false;
  if (describes(branch, "boolean")) for (const value of [true, false]) offer(value);
  if (describes(branch, "number")) isSampled = offerNumbers(branch, request, offer);
  if (describes(branch, "string")) isSampled = offerTexts(view, branch, request, offer) || isSampled;
  if (describes(branch, "null")) offer(null);
  return isSampled;
}

function offerNumbers(branch: Branch, request: CandidateRequest, offer: Offer): boolean {
  const isInteger = branch.some(
    (schema) => [schema.type].flat().includes("integer") && ![schema.type].flat().includes("number"),
  );
  const { values, isAll } = numbersOf(branch, isInteger, request.partial);
  for (const value of values) offer(Object.is(value, -0) ? 0 : value, { isMade: !isAll });
  return !isAll && values.length > 0;
}

function offerTexts(view: SchemaView, branch: Branch, request: CandidateRequest, offer: Offer): boolean {
  const limits = {
    minLength: Math.max(0, ...numbersIn(branch, "minLength")),
    maxLength: Math.min(Number.POSITIVE_INFINITY, ...numbersIn(branch, "maxLength")),
  };
  const { partial } = request;
  const sources = branch.map((schema) => schema.pattern).filter((pattern) => typeof pattern === "string");
  const patterns = sources.map((source) => patternOf(view, source));
  const formats = branch.map((schema) => findFormat(schema.format)).filter((format) => format !== undefined);
  const isOfFormats = (text: string) =>
    formats.every((format) => patternOf(view, format.shape).matches(text, view) === true);
  const fits = (text: string) => {
    spend(view);
    return patterns.every((pattern) => pattern.matches(text, view) === true);
  };
  const made = new Set<string>();
  let isSampled = false;
  for (const format of formats) {
    const texts = format.samples(request.today, partial).filter((text) => text.startsWith(partial));
    const more =
      partial === "" || texts.length >= 3
        ? []
        : patternOf(view, format.shape).make({ partial, ...limits, few: sampleCount }, view).texts;
    for (const text of [...texts, ...more]) if (fits(text)) made.add(text);
    isSampled = true;
  }
  if (made.size === 0) {
    for (const pattern of patterns) {
      spend(view);
      // A pattern with few texts is as good as an enum: they are found by letters as well.
      const all = pattern.make({ partial: "", ...limits, few }, view);
      const continued = all.isAll || partial === "" ? all : pattern.make({ partial, ...limits, few }, view);
      const fitting = continued.texts.filter((text) => isOfFormats(text) && fits(text));
      if (all.isAll) for (const text of fitting) offer(text);
      else for (const text of fitting.filter(Boolean)) made.add(text);
      isSampled ||= !continued.isAll;
    }
  }
  for (const text of made) offer(text, { isMade: true });
  return isSampled;
}

/** The items that a list could get next: where they are unique, those it has are left out. */
function itemsOf(
  view: SchemaView,
  lists: readonly Branch[],
  request: CandidateRequest,
  given: readonly unknown[],
): Candidates {
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
      .filter((value) => isCountable(value) && accepts(view, schema, value))
      .map((value) => ({ text: textOf(value), isMade: false }));
    const values = valuesOf(view, schema, request);
    const isUnique = branch.some((list) => list.uniqueItems === true);
    const taken = new Set(isUnique ? given.map(textOf) : []);
    found.push({
      items: [...values.items, ...examples].filter(({ text }) => !taken.has(text)),
      isSampled: values.isSampled,
    });
  }
  return join(found);
}
