import { UsageError } from "../../errors.ts";

/** Where a server is, as typed. */
export type ServerTarget =
  | { readonly kind: "own" }
  | { readonly kind: "url"; readonly url: string }
  | { readonly kind: "socket"; readonly socket: string }
  | { readonly kind: "command"; readonly command: string; readonly args: readonly string[] };

/** Reads a target in one word: a URL, a socket, `.` for this project's own server, or a command line. */
export function readTarget(text: string): ServerTarget {
  if (text.trim() === "")
    throw new UsageError(
      "The target is empty; give a URL, a socket, a command line in quotes, or . for this project's own server.",
    );
  if (text === ".") return { kind: "own" };
  if (/^https?:/i.test(text)) return { kind: "url", url: checkUrl(text) };
  if (text.startsWith("unix:")) return toSocket(text.slice("unix:".length));
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(text)?.[1];
  if (scheme !== undefined)
    throw new UsageError(
      `The target cannot begin with ${scheme}://; a server is reached by http://, https:// or unix:.`,
    );
  const words = splitWords(text);
  if (words.length === 1 && words[0]?.endsWith(".sock")) return toSocket(words[0]);
  return toCommand(words);
}

/** A target of several words, as they stand behind `--`. */
export function toCommand(words: readonly string[]): ServerTarget {
  const [command, ...args] = words;
  if (command === undefined || command === "")
    throw new UsageError("The server's command is empty; it is the program to start, then its arguments.");
  return { kind: "command", command, args };
}

function toSocket(socket: string): ServerTarget {
  if (socket === "") throw new UsageError("unix: needs the path of a socket, e.g. unix:/run/server.sock.");
  return { kind: "socket", socket };
}

function checkUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null) throw new UsageError("The target is not a URL that can be read; it looks like https://host/mcp.");
  // Not shown: what stands there is a secret.
  if (url.username !== "" || url.password !== "")
    throw new UsageError(
      "The target holds a user name or password; name the variable that holds a token instead: --token-env NAME.",
    );
  return text;
}

/** The words of a command line: quotes and backslashes are taken away, and nothing else means anything. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const letter = text.charAt(at);
    const next = text.charAt(at + 1);
    const isEscape = letter === "\\" && (quote === "" || (quote === '"' && (next === '"' || next === "\\")));
    if (isEscape) {
      if (next === "")
        throw new UsageError(
          "The command line of the target ends with a backslash; it has to stand before the character it protects.",
        );
      word = `${word ?? ""}${next}`;
      at++;
    } else if (letter === quote) quote = "";
    else if (quote !== "") word += letter;
    else if (letter === "'" || letter === '"') {
      quote = letter;
      word ??= "";
    } else if (/\s/.test(letter)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = `${word ?? ""}${letter}`;
  }
  if (quote !== "") throw new UsageError(`The command line of the target has a ${quote} that is never closed.`);
  return word === undefined ? words : [...words, word];
}

/** A target as it may be shown: what follows the `?` of a URL may be a secret. */
export function describeTarget(target: ServerTarget): string {
  switch (target.kind) {
    case "own":
      return ".";
    case "url": {
      const { origin, pathname, search } = new URL(target.url);
      return `${origin}${pathname}${search === "" ? "" : "?…"}`;
    }
    case "socket":
      return `unix:${target.socket}`;
    case "command":
      return [target.command, ...target.args].map(quoteWord).join(" ");
  }
}

/** A word as a shell takes it. */
export function quoteWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
