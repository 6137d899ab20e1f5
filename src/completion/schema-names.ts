import type { JsonSchema } from "../command/schema.ts";
import { type Path, valueAt } from "./references.ts";
import { accepts, textOf, typeOf } from "./schema-accepts.ts";
import {
  type Branch,
  branchesOf,
  describes,
  itemIn,
  listedIn,
  listOf,
  mapOf,
  propertyIn,
  type SchemaView,
  spend,
  toOneSchema,
} from "./schema-branches.ts";
import type { Candidate } from "./schema-values.ts";

/** The names of an object's properties that are not there yet, the required ones first; `a.b` looks inside `a`. */
export function namesOf(view: SchemaView, branches: readonly Branch[], partial: string, given: unknown): Candidate[] {
  const objects = matching(
    view,
    branches.filter((branch) => describes(branch, "object")),
    given,
  );
  if (objects.length === 0) return [];
  const inner = innerNamesOf(view, objects, partial, given);
  const required = new Set(objects.flatMap((branch) => branch.flatMap((schema) => listOf(schema, "required"))));
  const isThere = (name: string) => typeof given === "object" && given !== null && Object.hasOwn(given, name);
  const first: Candidate[] = [];
  const rest: Candidate[] = [];
  for (const branch of objects) {
    for (const candidate of ownNamesOf(view, branch))
      if (!isThere(candidate.text)) (required.has(candidate.text) ? first : rest).push(candidate);
  }
  const own = [...first, ...rest];
  return inner.length === 0 ? own : [...own.filter(({ text }) => text.startsWith(partial)), ...inner];
}

function ownNamesOf(view: SchemaView, branch: Branch): Candidate[] {
  const names = new Map<string, Candidate>();
  for (const schema of branch) {
    for (const [name, described] of Object.entries(mapOf(schema, "properties"))) {
      if (described === false || names.has(name)) continue;
      names.set(name, { text: name, about: described, isMade: false });
    }
  }
  spend(view, names.size);
  const rules = branch.map((schema) => schema.propertyNames).filter((rule) => rule !== undefined);
  if (rules.length === 0) return [...names.values()];
  // A record's keys are in the rule for its names.
  for (const rule of rules) {
    for (const inner of branchesOf(view, rule)) {
      for (const { value } of listedIn(inner) ?? [])
        if (typeof value === "string" && !names.has(value)) names.set(value, { text: value, isMade: false });
    }
  }
  return [...names.values()].filter(({ text }) => rules.every((rule) => accepts(view, rule, text)));
}

/** `options.fo` → the names inside `options`, written out; `pages[0].ti` → those of an item. */
function innerNamesOf(view: SchemaView, objects: readonly Branch[], partial: string, given: unknown): Candidate[] {
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
    const schema = isPossible ? propertyOf(view, objects, name) : undefined;
    if (schema === undefined) continue;
    const place = separator === "." ? { head: `${name}.`, steps: [name] as Path } : indexAt(partial, name);
    if (place === undefined) continue;
    const { head, steps } = place;
    const target = steps.length === 1 ? schema : itemOf(view, schema, steps[1] as number);
    if (target === undefined) continue;
    const inside = namesOf(view, branchesOf(view, target), partial.slice(head.length), valueAt(given, steps));
    found.push(...inside.map((candidate) => ({ ...candidate, text: head + candidate.text })));
  }
  return found;
}

function indexAt(partial: string, name: string): { head: string; steps: Path } | undefined {
  const index = /^\[(\d{1,9})\]\./.exec(partial.slice(name.length));
  return index === null ? undefined : { head: name + index[0], steps: [name, Number(index[1])] };
}

/** Where the values that are there decide between alternatives, only the ones they leave open. */
function matching(view: SchemaView, objects: readonly Branch[], given: unknown): readonly Branch[] {
  if (objects.length < 2 || typeof given !== "object" || given === null) return objects;
  const isOpen = (branch: Branch) =>
    Object.entries(given).every(([name, value]) =>
      (propertyIn(view, branch, name) ?? []).every((described) => {
        const listed =
          typeof described === "object" && described !== null ? listedIn([described as JsonSchema]) : undefined;
        return listed === undefined || listed.some((one) => textOf(one.value) === textOf(value));
      }),
    );
  const open = objects.filter(isOpen);
  return open.length === 0 ? objects : open;
}

/** The schema of one argument, by its path; undefined when the schema has no such place. */
export function schemaAt(view: SchemaView, schema: unknown, path: Path, given: unknown): unknown {
  let current = schema;
  for (const [index, step] of path.entries()) {
    if (current === undefined) return undefined;
    if (typeof step === "number") current = itemOf(view, current, step);
    else
      current = propertyOf(
        view,
        matching(view, branchesOf(view, current), withoutPath(valueAt(given, path.slice(0, index)), step)),
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

function propertyOf(view: SchemaView, branches: readonly Branch[], name: string): unknown {
  const ways = branches.map((branch) => propertyIn(view, branch, name)).filter((way) => way !== undefined);
  return ways.length === 0 ? undefined : toOneSchema(ways);
}

function itemOf(view: SchemaView, schema: unknown, index: number): unknown {
  const ways = branchesOf(view, schema)
    .map((branch) => itemIn(branch, index))
    .filter((way) => way !== undefined);
  return ways.length === 0 ? undefined : toOneSchema(ways);
}
