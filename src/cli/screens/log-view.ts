import { cleanLines } from "../../screen/clean.ts";
import { clean, type Terminal } from "../terminal.ts";

/** A line that never ends is shown in pieces of this size. */
const maxLine = 1024 * 1024;

/** Takes a log as it comes, in pieces, and gives its lines as people read them. */
export class LogView {
  readonly #colors: Terminal["colors"];
  #rest = "";

  constructor(colors: Terminal["colors"]) {
    this.#colors = colors;
  }

  take(text: string): string {
    const lines = `${this.#rest}${text}`.split("\n");
    const rest = lines.pop() ?? "";
    const isEndless = rest.length > maxLine;
    this.#rest = isEndless ? "" : rest;
    return [...lines, ...(isEndless ? [rest] : [])].map((line) => `${readableLine(line, this.#colors)}\n`).join("");
  }

  /** The last line, where nobody has ended it. */
  end(): string {
    return this.#rest === "" ? "" : this.take("\n");
  }
}

const levels: Readonly<Record<number, { readonly name: string; readonly color: "dim" | "cyan" | "yellow" | "red" }>> = {
  20: { name: "debug", color: "dim" },
  30: { name: "info ", color: "cyan" },
  40: { name: "warn ", color: "yellow" },
  50: { name: "error", color: "red" },
};

/**
 * Time, level, message, then the facts; what is no line of our log, as the last words of a process are not, stays as it
 * is.
 */
export function readableLine(line: string, colors: Terminal["colors"]): string {
  const { level, time, msg, error, ...facts } = parseLine(line) ?? {};
  const known = typeof level === "number" ? levels[level] : undefined;
  if (known === undefined || typeof time !== "string" || typeof msg !== "string") return cleanLines(line);
  const extras = Object.entries(facts).map(([key, value]) =>
    colors.dim(clean(`${key}=${typeof value === "string" ? value : JSON.stringify(value)}`)),
  );
  const at = time.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d).*$/, "$1 $2");
  const words = [`${colors.dim(clean(at))} ${colors[known.color](known.name)} ${clean(msg)}`, ...extras].join("  ");
  return [words, ...stackLines(error)].join("\n");
}

function parseLine(line: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(line);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)
      ? (parsed as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function stackLines(error: unknown): string[] {
  const { stack, message } = (typeof error === "object" && error !== null ? error : {}) as {
    readonly stack?: unknown;
    readonly message?: unknown;
  };
  const text = [stack, message, error].find((one) => typeof one === "string" && one !== "");
  return typeof text === "string"
    ? cleanLines(text)
        .split("\n")
        .map((line) => `    ${line}`)
    : [];
}
