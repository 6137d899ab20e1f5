/**
 * `$.field`, `$.a.b[0]`: a value taken from the arguments, or from the context when the arguments do not have it.
 * A reference names own fields of plain objects and places of lists, nothing else: no prototypes, no lengths, no
 * letters of a text.
 */

export type Resolved =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: "not_found" | "invalid_reference" };

type Values = Readonly<Record<string, unknown>>;
export type Path = readonly (string | number)[];

const MAX_REFERENCE_CHARACTERS = 1024;
const MAX_CONTEXT_DEPTH = 64;
const neverFields = new Set(["__proto__", "constructor", "prototype"]);

/** The value a reference leads to: in the arguments first, then in the context. */
export function resolveReference(reference: string, args: Values, context: Values = {}): Resolved {
  const path = isReference(reference) ? parsePath(reference.slice(2)) : undefined;
  if (path === undefined) return { ok: false, error: "invalid_reference" };
  for (const values of [args, context]) {
    const value = valueAt(values, path);
    if (value !== undefined) return { ok: true, value };
  }
  return { ok: false, error: "not_found" };
}

/**
 * The context with every reference in it replaced by its value; one that leads nowhere stays as written.
 * One step only: a value that came from the arguments is the caller's text, whatever it looks like.
 */
export function resolveContext(args: Values, context: Values): Record<string, unknown> {
  return resolveWithin(context, 0) as Record<string, unknown>;

  function resolveWithin(value: unknown, depth: number): unknown {
    if (typeof value === "string") {
      const resolved = isReference(value) ? resolveReference(value, args, context) : undefined;
      return resolved?.ok === true ? resolved.value : value;
    }
    if (depth === MAX_CONTEXT_DEPTH) return value;
    if (Array.isArray(value)) return value.map((item) => resolveWithin(item, depth + 1));
    if (!isPlain(value)) return value;
    // fromEntries defines each field, so that one called __proto__ is only that.
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolveWithin(item, depth + 1)]));
  }
}

/** True for a text that means to be a reference. */
export function isReference(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("$.");
}

/** `a.b[0]` as ["a", "b", 0]; undefined when it is no path. */
export function parsePath(text: string): Path | undefined {
  if (text.length > MAX_REFERENCE_CHARACTERS) return undefined;
  const path: (string | number)[] = [];
  const step = /\.?([^.[\]]+)|\[(0|[1-9]\d{0,8})\]/y;
  while (step.lastIndex < text.length) {
    const isFirst = path.length === 0;
    const match = step.exec(text);
    if (match === null) return undefined;
    const [whole, name, index] = match;
    const hasDot = whole.startsWith(".");
    // The first name has no dot, every other one has.
    if (name === undefined ? isFirst : hasDot === isFirst) return undefined;
    path.push(name ?? Number(index));
  }
  return path.length === 0 ? undefined : path;
}

/** What lies at a path; undefined when nothing does. */
export function valueAt(value: unknown, path: Path): unknown {
  let current = value;
  for (const step of path) {
    if (typeof step === "number") current = Array.isArray(current) ? current[step] : undefined;
    else
      current = isPlain(current) && !neverFields.has(step) && Object.hasOwn(current, step) ? current[step] : undefined;
  }
  return current;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
