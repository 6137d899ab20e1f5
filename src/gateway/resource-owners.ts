import { fieldsOf, isObject, type Json, listOf, textOf } from "../wire/json.ts";

const maxLinks = 10_000;
const maxUriLetters = 2_048;

/** Whose the resources are that results have named: those that stand in no list. Named last, forgotten last. */
export class ResourceOwners {
  readonly #links = new Map<string, string>();

  /** Who named it last. */
  find(uri: string): string | undefined {
    return this.#links.get(uri);
  }

  /** Takes from a result what it names. */
  note(owner: string, result: Json): void {
    for (const uri of urisIn(result)) {
      this.#links.delete(uri);
      this.#links.set(uri, owner);
    }
    for (const oldest of this.#links.keys()) {
      if (this.#links.size <= maxLinks) return;
      this.#links.delete(oldest);
    }
  }
}

/** Links and resources of a tool's result, a prompt's messages or what was read. */
function urisIn({ content, contents, messages }: Json): string[] {
  const said = listOf(messages).flatMap((message) => {
    const inside = fieldsOf(message).content;
    return Array.isArray(inside) ? inside : [inside];
  });
  return [...listOf(content), ...listOf(contents), ...said].filter(isObject).flatMap((item) => {
    const uri = textOf(item.uri) ?? textOf(fieldsOf(item.resource).uri) ?? "";
    return uri === "" || uri.length > maxUriLetters ? [] : [uri];
  });
}

/** Whether an address could have been made from a template, by what stands between its variables. */
export function couldMatch(template: string, uri: string): boolean {
  const [first = "", ...others] = template.split(/\{[^{}]*\}/);
  const last = others.pop();
  if (last === undefined) return uri === template;
  if (!uri.startsWith(first)) return false;
  let at = first.length;
  for (const part of others) {
    const found = uri.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return uri.length - last.length >= at && uri.endsWith(last);
}
