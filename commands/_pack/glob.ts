import { CommandError } from "meanwhile";

const maxLength = 500;
/** `{a,b}{c,d}` stands for four patterns; more than this would be a mistake. */
const maxAlternatives = 64;
/**
 * Up to so many wildcards a regular expression is quick on any text; beyond, it can take ages: picomatch, which is one,
 * takes 5 s to find that sixty times `a` is not `*a*a*a*a*a*a*b`.
 */
const maxQuick = 2;

type Token =
  | { readonly kind: "one" | "many" | "all" | "folders" }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "class"; readonly source: string };

/**
 * Makes a test of a pattern: `*` and `?` within a name, `**` across folders, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before
 * what is meant as it is; case counts.
 */
export function compileGlob(pattern: string): (text: string) => boolean {
  if (pattern === "" || pattern.length > maxLength)
    throw new CommandError(`A pattern has 1 to ${maxLength} characters, not ${pattern.length}.`);
  const matchers = expand(pattern).map((simple) => compileSimple(tokensOf(simple), pattern));
  return (text) => matchers.some((matches) => matches(text));
}

/** A pattern with braces as patterns without. */
function expand(pattern: string): string[] {
  const open = /(?<!\\)(?:\\\\)*\{/.exec(pattern);
  if (open === null) return [pattern];
  const start = open.index + open[0].length - 1;
  const inside = readBraces(pattern, start);
  const rest = expand(pattern.slice(inside.end + 1));
  const all = inside.alternatives
    .flatMap((alternative) => expand(alternative))
    .flatMap((middle) => rest.map((end) => pattern.slice(0, start) + middle + end));
  if (all.length > maxAlternatives)
    throw new CommandError(`The pattern ${pattern} stands for more than ${maxAlternatives} patterns; make it simpler.`);
  return all;
}

/** The alternatives between a brace and the one that closes it. */
function readBraces(pattern: string, start: number): { alternatives: string[]; end: number } {
  const alternatives = [""];
  let depth = 1;
  for (let at = start + 1; at < pattern.length; at++) {
    const character = pattern[at] ?? "";
    depth += character === "{" ? 1 : character === "}" ? -1 : 0;
    if (depth === 0) return { alternatives, end: at };
    if (character === "," && depth === 1) alternatives.push("");
    else alternatives.push(`${alternatives.pop()}${character}${character === "\\" ? (pattern[++at] ?? "") : ""}`);
  }
  throw new CommandError(`The pattern ${pattern} does not close its brace; put \\ before it if it is meant as it is.`);
}

function tokensOf(pattern: string): Token[] {
  return (pattern.match(/\*\*\/|\*+|\?|\[!?[^\]/]+\]|\\.|[\s\S]/gu) ?? []).map((part): Token => {
    if (part === "**/") return { kind: "folders" };
    if (part.startsWith("**")) return { kind: "all" };
    if (part === "*") return { kind: "many" };
    if (part === "?") return { kind: "one" };
    if (part.length > 2 && part.startsWith("[")) return { kind: "class", source: classSource(part.slice(1, -1)) };
    return { kind: "text", text: part.length > 1 && part.startsWith("\\") ? part.slice(1) : part };
  });
}

function compileSimple(tokens: readonly Token[], pattern: string): (text: string) => boolean {
  const wildcards = tokens.filter(({ kind }) => kind === "many" || kind === "all" || kind === "folders").length;
  try {
    if (wildcards > maxQuick) return compileSlowly(tokens);
    const expression = new RegExp(`^${tokens.map(sourceOf).join("")}$`, "su");
    return (text) => expression.test(text);
  } catch (cause) {
    throw new CommandError(`The pattern ${pattern} has a bad range in its brackets; write e.g. [a-z].`, { cause });
  }
}

/** Follows all ways through the pattern at once, so that its time grows with the text and not with the ways. */
function compileSlowly(tokens: readonly Token[]): (text: string) => boolean {
  const singles = tokens.map((token) =>
    token.kind === "text" || token.kind === "class" || token.kind === "one"
      ? new RegExp(`^${sourceOf(token)}$`, "su")
      : undefined,
  );
  const enter = (places: Set<number>, from: number, isFolderStart: boolean) => {
    for (let at = from; ; at++) {
      places.add(at);
      const kind = tokens[at]?.kind;
      if (kind !== "many" && kind !== "all" && !(kind === "folders" && isFolderStart)) return;
    }
  };
  return (text) => {
    let places = new Set<number>();
    enter(places, 0, true);
    for (const character of text) {
      const next = new Set<number>();
      for (const at of places) {
        const kind = tokens[at]?.kind;
        if (kind === "all" || (kind === "many" && character !== "/")) enter(next, at, false);
        else if (kind === "folders") {
          next.add(at);
          if (character === "/") enter(next, at, true);
        } else if (singles[at]?.test(character)) enter(next, at + 1, tokens[at + 1]?.kind === "folders");
      }
      places = next;
    }
    return places.has(tokens.length);
  };
}

function sourceOf(token: Token): string {
  if (token.kind === "text") return token.text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
  if (token.kind === "class") return token.source;
  return { one: "[^/]", many: "[^/]*", all: ".*", folders: "(?:.*/)?" }[token.kind];
}

function classSource(inside: string): string {
  const isNegated = inside.startsWith("!");
  return `[${isNegated ? "^" : ""}${inside.slice(isNegated ? 1 : 0).replaceAll(/[\\^[]/g, "\\$&")}]`;
}
