import { isUpstreamName, toUpstreamName } from "../../project/upstream-name.ts";
import { headerVariable, isHeaderVariable, urlVariable } from "../../project/wrap-variables.ts";
import { entryStoreVariable } from "../launch.ts";
import type { EntryServer } from "./entry-server.ts";

/** What is said behind `wrap`, and in variables where it is nobody's business. */
export interface WrapWords {
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Variables of the host's own that the words refer to. */
  readonly needed: readonly string[];
}

/**
 * How a server is put behind us. A command line can be read by everybody on the machine, and some hosts put variables
 * of theirs into it, so that headers, and an address that may hold a key, stand in variables of the entry.
 */
export function toWrapWords(name: string, server: Exclude<EntryServer, { kind: "none" }>): WrapWords {
  const named = ["--name", isUpstreamName(name) ? name : toUpstreamName(name)];
  if (server.kind === "command") return { words: [...named, "--", ...server.words], env: {}, needed: [] };
  const { url, isSse, headers, references } = server;
  const isOpen = isOpenUrl(url);
  const words = [
    ...named,
    ...(isOpen ? ["--url", url] : []),
    ...(isSse ? ["--transport", "sse"] : []),
    ...Object.entries(references).flatMap(([header, value]) => ["--header", `${header}: ${value}`]),
  ];
  const said = Object.entries(headers).map(([header, value], index) => [
    headerVariable(index + 1),
    `${header}: ${value}`,
  ]);
  const env = { ...(!isOpen && { [urlVariable()]: url }), ...Object.fromEntries(said) };
  return { words, env, needed: variablesIn(Object.values(references)) };
}

/** True where an address holds nothing but a place: no query, no user, nothing that looks like a key. */
export function isOpenUrl(url: string): boolean {
  if (/[${}]/.test(url) || !URL.canParse(url)) return false;
  const { username, password, search, hash, pathname } = new URL(url);
  const isKey = (part: string) => part.length >= 20 && /\d/.test(part);
  return [username, password, search, hash].every((part) => part === "") && !pathname.split("/").some(isKey);
}

function variablesIn(texts: readonly string[]): string[] {
  return texts.flatMap((text) => [...text.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string));
}

/** What stood there before, out of what stands behind `wrap` now; undefined where that is not said. */
export function fromWrapWords(
  words: readonly string[],
  env: Readonly<Record<string, string>>,
): Exclude<EntryServer, { kind: "none" }> | undefined {
  const dashes = words.indexOf("--");
  if (dashes >= 0) return words.length === dashes + 1 ? undefined : { kind: "command", words: words.slice(dashes + 1) };
  const url = valuesOf(words, "--url")[0] ?? env[urlVariable()];
  if (url === undefined) return undefined;
  const own = Object.entries(env).filter(([name]) => isHeaderVariable(name));
  return {
    kind: "url",
    url,
    isSse: valuesOf(words, "--transport").includes("sse"),
    headers: Object.fromEntries(own.map(([, text]) => splitHeader(text))),
    references: Object.fromEntries(valuesOf(words, "--header").map(splitHeader)),
  };
}

function splitHeader(text: string): [name: string, value: string] {
  const at = text.indexOf(":");
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
}

function valuesOf(words: readonly string[], flag: string): string[] {
  return words.flatMap((word, index) =>
    word === flag ? (words[index + 1] ?? []) : word.startsWith(`${flag}=`) ? word.slice(flag.length + 1) : [],
  );
}

/**
 * The variables of an entry that are not ours. `own` are those of earlier versions, which wrote the home and the store
 * under names that the entry may have had before: they are ours only with these values.
 */
export function withoutOurVariables(
  env: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>> = {},
): Record<string, string> {
  const isOurs = ([name, value]: readonly [string, string]) =>
    name === urlVariable() || isHeaderVariable(name) || name === entryStoreVariable() || own[name] === value;
  return Object.fromEntries(Object.entries(env).filter((pair) => !isOurs(pair)));
}
