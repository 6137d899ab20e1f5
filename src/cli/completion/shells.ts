import type { Suggestion } from "../../command/command.ts";
import { cut } from "../../screen/width.ts";
import { clean } from "../terminal.ts";
import type { Completed } from "./grammar.ts";
import { bashEscapable, fishEscapable, type Line, type Quote, readLine } from "./line.ts";

/**
 * Ours because no library says as much: the 232 lines here and in the three scripts quote a value as its shell needs it
 * at that place, hand typed words over as data, and leave files and folders to the shell. `@bomb.sh/tab` 0.0.22 (800
 * lines of scripts) runs what was typed through `eval`, tears values apart at blanks in bash, and takes no value that
 * comes with a promise; `@pnpm/tabtab` 0.5.4 and `omelette` 0.4.17 quote nothing and know no folders.
 */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

export function isShell(word: string | undefined): word is Shell {
  return shells.includes(word as Shell);
}

/**
 * What a shell's script hands over. bash: its word breaks, then the line; the others: the words, the last one being
 * typed.
 */
export function readShell(shell: Shell, words: readonly string[]): Line {
  const [first = "", second = ""] = words;
  if (shell === "bash") {
    const line = readLine(second, { escapable: bashEscapable, breaks: first });
    return { ...line, words: line.words.slice(1) };
  }
  const current = words.at(-1) ?? "";
  const plain = { words: words.slice(0, -1), current, kept: 0, quote: undefined, isRedirection: false };
  // fish gives whole words without their quotes, but the one being typed as it stands.
  return shell === "zsh"
    ? plain
    : { ...plain, current: readLine(current, { escapable: fishEscapable, breaks: "" }).current };
}

const maxDescription = 100;

/**
 * The answer as the shell's script reads it. The first line says what follows: `values`, `files` or `folders`; with `
 * =` behind it, they are about the part of the word behind its first `=`. Then a value a line: for bash as it is to be
 * inserted, for zsh and fish with a tab and its description, as they quote it themselves.
 */
export function toAnswer(shell: Shell, { before, offer }: Completed, line: Line): string {
  const isBehindEquals = shell === "zsh" && before !== "";
  const heading = `${offer.kind}${isBehindEquals ? " =" : ""}`;
  if (offer.kind !== "values") return `${heading}\n`;
  const lines = offer.suggestions
    .filter(({ value }) => isOneLine(value))
    .flatMap((suggestion) => toLine(shell, before, suggestion, line));
  return [heading, ...new Set(lines)].map((text) => `${text}\n`).join("");
}

function toLine(shell: Shell, before: string, { value, description }: Suggestion, line: Line): string[] {
  if (shell === "bash") {
    const word = `${before}${value}`;
    return word.startsWith(line.current.slice(0, line.kept)) ? [quote(word.slice(line.kept), line)] : [];
  }
  const text = cut(clean(description ?? "").trim(), maxDescription);
  return [`${shell === "fish" ? before : ""}${value}${text === "" ? "" : `\t${text}`}`];
}

/** What holds a line break, a tab or worse cannot be typed, and would not be shown as it is. */
function isOneLine(value: string): boolean {
  return value !== "" && clean(value) === value;
}

/** As bash has to read it, at the place where it is inserted. */
function quote(text: string, line: Line): string {
  if (line.quote !== undefined) return quoteInside(text, line.quote);
  return text.replace(/[^A-Za-z0-9_@%+=:,./^\u{80}-\u{10ffff}-]/gu, "\\$&");
}

/** readline closes the quote behind a whole value, unless it seems to be closed. */
function quoteInside(text: string, kind: Quote): string {
  const quoted = kind === "'" ? text.replaceAll("'", "'\\''") : text.replace(/["\\$`]/g, "\\$&");
  return quoted.endsWith(kind) ? `${quoted}${kind}` : quoted;
}
