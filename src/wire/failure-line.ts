import { stripVTControlCharacters } from "node:util";

/**
 * Finds the line of a program's stderr that says why the program ended. The last line is often something else: Node ends
 * a stack trace with its version, Go with `exit status 2`, npm with the path of a log.
 */

/** The first line of an error as runtimes print it: Node, Python, Java, Go, Rust, and tools that write `error: …`. */
const errorHead =
  /^(?:Uncaught |Caused by: |Exception in thread \S+ )?(?:[\w$]+\.)*[\w$]*(?:Error|Exception)\b(?: \[\w+\])?: *\S|^panic: \S|^(?:fatal|error)(?:\[\w+\])?: *\S/i;

/** An explanation that npm prints; its codes and paths come before it. */
const npmError = /^npm (?:error|ERR!) (?!code |errno |syscall |path |dest |A complete log|\s*\/)(?=.*\w)/;

const errorWord = /\b(?:error|fatal|failed|cannot|could not|missing|not found|no such|denied|required|invalid)\b/i;

/** Lines that never say why: stack frames, source positions, brackets, hints and versions. */
const noise = [
  /^\s+(?:at|File) /,
  /^\s+(?:code|errno|syscall|requireStack): /,
  /^[\s^~{}[\](),;]*$/,
  /^Node\.js v\d/,
  /^\(Use `node /,
  /^node:internal\//,
  /^note: run with /,
  /^goroutine \d+ /,
  /^exit status \d+$/,
  /^npm (?:notice|warn|error|ERR!)/i,
];

/** The line that says why, without the space around it; empty for an empty text. */
export function failureLine(text: string): string {
  const lines = stripVTControlCharacters(text)
    .split("\n")
    .map((line) => line.trimEnd())
    .filter((line) => line !== "");
  const found =
    lines.findLast((line) => errorHead.test(line)) ??
    lines.find((line) => npmError.test(line)) ??
    findPlain(lines.filter((line) => !noise.some((pattern) => pattern.test(line)))) ??
    lines.at(-1);
  return (found ?? "").trim();
}

/** Of lines that nobody has marked as an error: the last with a word for one, else the last. */
function findPlain(lines: readonly string[]): string | undefined {
  return lines.findLast((line) => errorWord.test(line)) ?? lines.at(-1);
}
