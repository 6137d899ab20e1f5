import type { DestinationStream, Logger as Pino } from "pino";
import { systemClock, toTimestamp } from "./clock.ts";
import { cleanLines } from "./screen/clean.ts";
import { requireOwn } from "./system/own-module.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export const logLevels: readonly LogLevel[] = ["debug", "info", "warn", "error"];

/** The operator's log. Facts go beside the sentence, never into it; no secrets, no arguments. */
export interface Logger {
  debug(text: string, facts?: object): void;
  info(text: string, facts?: object): void;
  warn(text: string, facts?: object): void;
  error(text: string, facts?: object): void;
}

export const silentLog: Logger = { debug() {}, info() {}, warn() {}, error() {} };

export interface LogOptions {
  readonly level: LogLevel;
  readonly isTerminal: boolean;
  readonly write: (text: string) => void;
  /** Stand on every line. */
  readonly facts?: object;
}

/** Opens the log on stderr: readable lines on a terminal, JSON lines elsewhere. */
export function openLog(options: LogOptions): Logger {
  let opened: Pick<Pino, LogLevel> | undefined;
  const least = logLevels.indexOf(options.level);
  const line = (level: LogLevel) => (text: string, facts?: object) => {
    if (logLevels.indexOf(level) < least) return;
    opened ??= openLines(options);
    opened[level](facts ?? {}, text);
  };
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}

/** Loaded with the first line that is written: most starts write none. */
function openLines({ level, isTerminal, write, facts }: LogOptions): Pick<Pino, LogLevel> {
  const library = loadPino();
  if (library === undefined) return createLineLog({ isTerminal, write, facts: facts ?? {} });
  const { pino, stdSerializers, stdTimeFunctions } = library;
  const destination: DestinationStream = {
    write: isTerminal ? (line) => write(cleanLines(toReadableLine(line))) : write,
  };
  return pino(
    { level, base: facts ?? null, timestamp: stdTimeFunctions.isoTime, serializers: { error: stdSerializers.err } },
    destination,
  );
}

/** Undefined in a bundle: pino requires modules of Node in a way that a bundle of ES modules does not allow. */
function loadPino(): typeof import("pino") | undefined {
  try {
    return requireOwn("pino") as typeof import("pino");
  } catch {
    return undefined;
  }
}

/** Writes the same lines as pino. */
function createLineLog({ isTerminal, write, facts }: Omit<LogOptions, "level">): Pick<Pino, LogLevel> {
  const line = (level: number) => (given: object, msg: string) => {
    const { error, ...others } = given as { readonly error?: unknown };
    const shown = error instanceof Error ? { type: error.name, message: error.message, stack: error.stack } : error;
    const time = toTimestamp(systemClock.now());
    const text = toJsonLine({ level, time, ...facts, ...others, ...(error !== undefined && { error: shown }), msg });
    write(isTerminal ? cleanLines(toReadableLine(text)) : text);
  };
  return { debug: line(20), info: line(30), warn: line(40), error: line(50) } as Pick<Pino, LogLevel>;
}

/** What JSON cannot hold, such as a circle, is left out of the line. */
function toJsonLine({ level, time, msg, ...facts }: Record<string, unknown>): string {
  try {
    return `${JSON.stringify({ level, time, ...facts, msg })}\n`;
  } catch {
    return `${JSON.stringify({ level, time, msg })}\n`;
  }
}

const levelNames: Record<number, string> = { 20: "debug", 30: "info ", 40: "warn ", 50: "error" };

function toReadableLine(line: string): string {
  const { level, time, msg, error, ...facts } = JSON.parse(line) as {
    level: number;
    time: string;
    msg: string;
    error?: { stack?: string };
  };
  const extras = Object.entries(facts).map(
    ([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  const stack = error?.stack ? `\n${error.stack.replace(/^/gm, "    ")}` : "";
  return `${time.slice(11, 23)} ${levelNames[level] ?? level} ${[msg, ...extras].join("  ")}${stack}\n`;
}
