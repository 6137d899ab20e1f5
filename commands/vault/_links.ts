/** How a link is written: `[[note]]`, `![[note]]` or `![](file)`, `[text](note.md)`. */
export type LinkKind = "wiki" | "embed" | "markdown";

export interface Link {
  readonly kind: LinkKind;
  /** As written, decoded: a note's name, a path, or an address. */
  readonly target: string;
  /** True when the target is a path from the note's own folder, as in `[text](../note.md)`. */
  readonly isPath: boolean;
  readonly heading: string;
  readonly alias: string;
  readonly line: number;
}

/** A link, and where its target is written: from here up to there, heading included. */
export interface PlacedLink extends Link {
  readonly span: readonly [from: number, to: number];
}

/** Longer targets are no links but something else in brackets. */
const maxTarget = 2_000;
/** As in CommonMark: deeper parentheses belong to something else. */
const maxParentheses = 32;
const definition = /^ {0,3}\[(?!\^)((?:[^[\]\\]|\\.){1,300})\]:[ \t]*(\S.*)$/;

/** Every link of a text whose code has been masked, in order of appearance. One pass: no text can make it slow. */
export function findLinks(text: string): PlacedLink[] {
  const links: PlacedLink[] = [];
  /** Opening brackets that wait for their partner: true for `![`. */
  let open: { readonly at: number; readonly isEmbed: boolean }[] = [];
  let line = 1;
  /** The next `]]`: looked for once, however many `[[` come before it. */
  let close = 0;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "\n") {
      line++;
      const rest = text.slice(at + 1, endOfLine(text, at + 1));
      if (rest.trim() === "") open = [];
      else addDefinition(links, rest, { line, from: at + 1 });
    } else if (character === "\\") at++;
    else if (character === "[") {
      if (text[at + 1] === "[" && close !== -1 && close < at + 2) close = text.indexOf("]]", at + 2);
      const wiki = text[at + 1] === "[" ? readWiki(text, at, close, line) : undefined;
      if (wiki !== undefined) {
        links.push(wiki.link);
        at = wiki.end - 1;
      } else open.push({ at, isEmbed: text[at - 1] === "!" });
    } else if (character === "]") {
      const partner = open.pop();
      const destination = partner !== undefined && text[at + 1] === "(" ? readDestination(text, at + 2) : undefined;
      if (partner === undefined || destination === undefined) continue;
      const alias = text.slice(partner.at + 1, at).slice(0, maxTarget);
      links.push(
        toLink({
          kind: partner.isEmbed ? "embed" : "markdown",
          written: destination.target,
          alias,
          line,
          from: destination.from,
        }),
      );
      at = destination.end - 1;
    }
  }
  if (definition.test(text.slice(0, endOfLine(text, 0))))
    addDefinition(links, text.slice(0, endOfLine(text, 0)), { line: 1, from: 0 });
  return links.sort((a, b) => a.line - b.line);
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end === -1 ? text.length : end;
}

/** `[[note#heading|alias]]`, on one line; in a table the bar is written `\|`. */
function readWiki(text: string, at: number, end: number, line: number): { link: PlacedLink; end: number } | undefined {
  const from = at + 2;
  if (end === -1 || end - from > maxTarget) return undefined;
  const inside = text.slice(from, end);
  if (inside.trim() === "" || /[\n[\]]/.test(inside)) return undefined;
  const bar = inside.search(/\\?\|/);
  const before = bar === -1 ? inside : inside.slice(0, bar);
  const written = before.trim();
  const begin = from + before.length - before.trimStart().length;
  const alias =
    bar === -1
      ? ""
      : inside
          .slice(bar)
          .replace(/^\\?\|/, "")
          .trim();
  const hash = written.indexOf("#");
  const target = (hash === -1 ? written : written.slice(0, hash)).trim();
  const heading = hash === -1 ? "" : written.slice(hash + 1).trim();
  if (target === "" && heading === "") return undefined;
  const kind = text[at - 1] === "!" ? "embed" : "wiki";
  return {
    link: { kind, target, isPath: false, heading, alias, line, span: [begin, begin + written.length] },
    end: end + 2,
  };
}

/**
 * The destination of an inline link, from behind its `(`: in angle brackets, or up to a space or the closing
 * parenthesis.
 */
function readDestination(text: string, from: number): { target: string; from: number; end: number } | undefined {
  const space = /[ \t]*/y;
  space.lastIndex = from;
  space.test(text);
  const start = space.lastIndex;
  const angle = /<([^<>\n]*)>/y;
  angle.lastIndex = start;
  const inAngles = angle.exec(text);
  const target = inAngles === null ? readBare(text, start) : (inAngles[1] as string);
  if (target === undefined || target.length > maxTarget) return undefined;
  // Spaces are taken once: two runs of them side by side could be shared out in as many ways as there are spaces.
  const tail = /[ \t]*(?:(?:"[^"\n]*"|'[^'\n]*'|\([^()\n]*\))[ \t]*)?\)/y;
  tail.lastIndex = inAngles === null ? start + target.length : angle.lastIndex;
  return tail.test(text) && target !== ""
    ? { target, from: inAngles === null ? start : start + 1, end: tail.lastIndex }
    : undefined;
}

/** Parentheses inside a bare destination must be in pairs. */
function readBare(text: string, start: number): string | undefined {
  let depth = 0;
  for (let at = start; at < text.length && at - start <= maxTarget; at++) {
    const character = text[at] as string;
    if (character === "(" && ++depth > maxParentheses) return undefined;
    if (character === "(") continue;
    if (character === ")" && depth-- === 0) return text.slice(start, at);
    else if (/\s/.test(character)) return depth === 0 ? text.slice(start, at) : undefined;
    else if (character === "\\") at++;
  }
  return undefined;
}

/** `[name]: target` on a line of its own is one link, however often the name is used. */
function addDefinition(links: PlacedLink[], text: string, { line, from }: { line: number; from: number }): void {
  const trimmed = text.trimEnd();
  const [, alias = "", rest = ""] = definition.exec(trimmed) ?? [];
  const inAngles = /^<([^<>]*)>/.exec(rest)?.[1];
  const written = inAngles ?? /^\S+/.exec(rest)?.[0] ?? "";
  const begin = from + trimmed.length - rest.length + (inAngles === undefined ? 0 : 1);
  if (written !== "") links.push(toLink({ kind: "markdown", written, alias, line, from: begin }));
}

/** A link as it is written, with its place. */
interface Written {
  readonly kind: LinkKind;
  readonly written: string;
  readonly alias: string;
  readonly line: number;
  readonly from: number;
}

function toLink({ kind, written, alias, line, from }: Written): PlacedLink {
  const span = [from, from + written.length] as const;
  const plain = written.replaceAll(/\\([!-/:-@[-`{-~])/g, "$1");
  if (isAddress(plain)) return { kind, target: plain, isPath: true, heading: "", alias, line, span };
  const hash = plain.indexOf("#");
  const target = decode(hash === -1 ? plain : plain.slice(0, hash));
  return { kind, target, isPath: true, heading: hash === -1 ? "" : decode(plain.slice(hash + 1)), alias, line, span };
}

/** True for what leads out of the vault: https:, mailto:, //host. A Windows drive is no scheme. */
export function isAddress(target: string): boolean {
  return /^(?:[a-z][a-z0-9+.-]+:|\/\/)/i.test(target);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
