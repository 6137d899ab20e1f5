import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { writePrivately } from "../paths.ts";
import { fieldsOf, isObject, type Json } from "../wire/json.ts";
import type { UpstreamHello } from "./upstream-greeting.ts";
import { noLists, type UpstreamLists } from "./upstream-lists.ts";

/** What an upstream has said of itself, to a client that can do so much. */
export interface KnownUpstream {
  readonly hello: UpstreamHello;
  readonly lists: UpstreamLists;
}

/** More is not kept: such an upstream is asked each time. */
const maxBytes = 8 * 1024 * 1024;
const maxKinds = 8;

/**
 * What an upstream said when it was last asked, kept from one process to the next: clients are answered with it while
 * the upstream starts.
 */
export class UpstreamMemory {
  /** Undefined: it lasts as long as this process. */
  readonly #file: string | undefined;
  readonly #known: Map<string, KnownUpstream>;

  constructor(file: string | undefined) {
    this.#file = file;
    this.#known = new Map(file === undefined ? [] : read(file));
  }

  /** As it was told to clients of this kind. */
  find(kind: string): KnownUpstream | undefined {
    return this.#known.get(kind);
  }

  /** As it was last told to anybody. */
  get latest(): KnownUpstream | undefined {
    return [...this.#known.values()].at(-1);
  }

  /** Everything that it was heard to list, whoever was told. */
  get all(): readonly KnownUpstream[] {
    return [...this.#known.values()];
  }

  /** Keeps it; true when it is not what was kept before. */
  keep(kind: string, known: KnownUpstream): boolean {
    if (isDeepStrictEqual(this.#known.get(kind), known)) return false;
    this.#known.delete(kind);
    this.#known.set(kind, known);
    for (const oldest of [...this.#known.keys()].slice(0, -maxKinds)) this.#known.delete(oldest);
    this.#write();
    return true;
  }

  #write(): void {
    if (this.#file === undefined) return;
    try {
      const text = JSON.stringify(Object.fromEntries(this.#known));
      if (text.length <= maxBytes) writePrivately(this.#file, text);
    } catch {
      // Without it the upstream is asked again; an unusable home is reported by whoever needs it.
    }
  }
}

function read(file: string): (readonly [string, KnownUpstream])[] {
  try {
    const kept = fieldsOf(JSON.parse(readFileSync(file, "utf8")));
    return Object.entries(kept).flatMap(([kind, known]) => {
      const { hello, lists } = fieldsOf(known);
      if (!isObject(hello) || typeof hello.revision !== "string" || !isObject(lists)) return [];
      const whole = { ...noLists, ...lists } as UpstreamLists;
      return Object.values(whole).every(Array.isArray)
        ? [[kind, { hello: hello as unknown as UpstreamHello, lists: whole }]]
        : [];
    });
  } catch {
    return [];
  }
}

/** The tools that were not there before, are no longer, or say something else of themselves now. */
export function changedTools(before: readonly Json[], after: readonly Json[]): string[] {
  const old = new Map(before.map((tool) => [String(tool.name), tool]));
  const now = new Map(after.map((tool) => [String(tool.name), tool]));
  return [
    ...[...now].filter(([name, tool]) => !isDeepStrictEqual(old.get(name), tool)).map(([name]) => name),
    ...[...old.keys()].filter((name) => !now.has(name)),
  ];
}
