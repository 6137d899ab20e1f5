import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { writePrivately } from "../paths.ts";
import type { UpstreamPrefix } from "../project/upstream-config.ts";
import { fieldsOf, listOf } from "../wire/json.ts";

/** What has a name of its upstream's own, and one that clients know it by. */
export type NamedKind = "tool" | "prompt";

export interface NamedThing {
  readonly upstream: string;
  /** What its upstream calls it. */
  readonly own: string;
}

interface NamesOptions {
  /** Where the table is kept; undefined for nowhere. */
  readonly file: string | undefined;
  readonly upstreams: readonly string[];
  readonly prefix: UpstreamPrefix;
  /** One upstream and nothing else: all is called as it calls it. */
  readonly isVerbatim: boolean;
}

/** Model APIs take names of 64 letters, and hosts put `mcp__<server>__` in front: 16 letters for `meanwhile`. */
const maxLetters = 48;
const refused = /[^A-Za-z0-9_-]/g;
/** Beyond so many, the names that were given first are forgotten. */
const maxNames = 20_000;

/**
 * What the tools and prompts of several upstreams are called here. A name that was once given stays with what it was
 * given to, from one process to the next: the table is kept, and a call goes by it. No name is ever taken apart.
 */
export class UpstreamNames {
  readonly #options: NamesOptions;
  readonly #given = new Map<string, string>();
  readonly #owners = new Map<string, string>();
  #isOurs: (name: string) => boolean = () => false;
  #isUnwritten = false;

  constructor(options: NamesOptions) {
    this.#options = options;
    this.#adopt();
  }

  /** Names that are ours, now or later: what bears one is given another. */
  reserve(isOurs: (name: string) => boolean): void {
    this.#isOurs = isOurs;
  }

  /** What something is called here; undefined where its name is another's and it may have no prefix. */
  nameOf(kind: NamedKind, { upstream, own }: NamedThing): string | undefined {
    if (this.#options.isVerbatim) return own;
    const key = JSON.stringify([kind, upstream, own]);
    return this.#kept(key) ?? this.#give(key);
  }

  /** What bears a name here. */
  find(kind: NamedKind, name: string): NamedThing | undefined {
    const key = this.#owners.get(`${kind} ${name}`);
    if (key === undefined) return undefined;
    const [, upstream, own] = JSON.parse(key) as [string, string, string];
    return { upstream, own };
  }

  #kept(key: string): string | undefined {
    const name = this.#given.get(key);
    return name === undefined || this.#isOurs(name) ? undefined : name;
  }

  #give(key: string): string | undefined {
    if (this.#choose(key) === undefined) return undefined;
    if (!this.#isUnwritten) {
      // Another process may have given names since this one looked.
      this.#adopt();
      const theirs = this.#kept(key);
      if (theirs !== undefined) return theirs;
    }
    const name = this.#choose(key);
    if (name === undefined) return undefined;
    this.#set(key, name);
    if (!this.#isUnwritten) queueMicrotask(() => this.#write());
    this.#isUnwritten = true;
    return name;
  }

  #choose(key: string): string | undefined {
    const [kind, upstream, own] = JSON.parse(key) as [NamedKind, string, string];
    const plain = toName(own, key);
    const prefixed = toName(`${upstream}_${own}`, key);
    const { prefix } = this.#options;
    const wanted = { always: [prefixed], collision: [plain, prefixed], never: [plain] }[prefix];
    const free = wanted.find((name) => this.#isFree(kind, name));
    if (free !== undefined) return free;
    // Of one upstream, two names may be one when they are written as model APIs want them.
    if (prefix === "never" && this.find(kind, plain)?.upstream !== upstream) return undefined;
    for (let at = 0; ; at++) {
      const name = withHash(prefix === "never" ? plain : prefixed, `${key}${at}`);
      if (this.#isFree(kind, name)) return name;
    }
  }

  #isFree(kind: NamedKind, name: string): boolean {
    return !this.#isOurs(name) && !this.#owners.has(`${kind} ${name}`);
  }

  #set(key: string, name: string): void {
    const [kind] = JSON.parse(key) as [NamedKind];
    const before = this.#given.get(key);
    if (before !== undefined) this.#owners.delete(`${kind} ${before}`);
    this.#given.set(key, name);
    this.#owners.set(`${kind} ${name}`, key);
  }

  /** Takes over what was given elsewhere, or before. */
  #adopt(): void {
    const { file, upstreams, prefix } = this.#options;
    for (const { kind, upstream, own, name } of file === undefined ? [] : read(file, prefix)) {
      const key = JSON.stringify([kind, upstream, own]);
      if (upstreams.includes(upstream) && !this.#given.has(key) && !this.#owners.has(`${kind} ${name}`))
        this.#set(key, name);
    }
  }

  #write(): void {
    this.#isUnwritten = false;
    const { file, prefix } = this.#options;
    if (file === undefined) return;
    const names = [...this.#given].slice(-maxNames).map(([key, name]) => {
      const [kind, upstream, own] = JSON.parse(key) as [NamedKind, string, string];
      return { kind, upstream, own, name };
    });
    try {
      writePrivately(file, JSON.stringify({ prefix, names }));
    } catch {
      // As with what upstreams say: an unusable home is reported by whoever needs it.
    }
  }
}

function toName(words: string, key: string): string {
  const name = words.replaceAll(refused, "_");
  return name.length <= maxLetters ? name : withHash(name, key);
}

function withHash(name: string, key: string): string {
  const hash = createHash("sha256").update(key).digest("hex").slice(0, 8);
  return `${name.slice(0, maxLetters - hash.length - 1)}_${hash}`;
}

interface GivenName extends NamedThing {
  readonly kind: NamedKind;
  readonly name: string;
}

/** Names that were given by another rule do not count. */
function read(file: string, prefix: UpstreamPrefix): GivenName[] {
  try {
    const kept = fieldsOf(JSON.parse(readFileSync(file, "utf8")));
    if (kept.prefix !== prefix) return [];
    return listOf(kept.names).filter((one): one is GivenName => {
      const { kind, upstream, own, name } = fieldsOf(one);
      const isKind = kind === "tool" || kind === "prompt";
      return isKind && [upstream, own, name].every((text) => typeof text === "string");
    });
  } catch {
    return [];
  }
}
