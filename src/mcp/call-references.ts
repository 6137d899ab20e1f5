import { isReference, resolveReference } from "../completion/references.ts";
import { InputError } from "../errors.ts";

/** Arguments whose references are replaced by what they lead to: in the other arguments, then in the call's context. */
export function withReferences(input: unknown, context: unknown): unknown {
  if (typeof input !== "object" || input === null) return input;
  const values = Object.fromEntries(Object.entries(input).filter(([, value]) => !isReference(value)));
  const resolve = (name: string, value: unknown) => {
    if (!isReference(value)) return value;
    const resolved = resolveReference(value, values, (context ?? {}) as Record<string, unknown>);
    if (resolved.ok) return resolved.value;
    const why =
      resolved.error === "not_found"
        ? "is neither among the arguments nor in the context"
        : "is no reference; write $.field or $.a.b[0]";
    throw new InputError(`\`${name}\`: ${value.slice(0, 100)} ${why}.`);
  };
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, resolve(name, value)]));
}
