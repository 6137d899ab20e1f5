import { createRequire } from "node:module";
import type { DestinationStream, Logger as Pino } from "pino";
import { cleanLines } from "./screen/clean.ts";

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
  let opened: Pino | undefined;
  const least = logLevels.indexOf(options.level);
  const line = (level: LogLevel) => (text: string, facts?: object) => {
    if (logLevels.indexOf(level) < least) return;
    opened ??= openPino(options);
    opened[level](facts ?? {}, text);
  };
  return { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
}

/** Loaded with the first line that is written: most starts write none. */
function openPino({ level, isTerminal, write, facts }: LogOptions): Pino {
  const { pino, stdSerializers, stdTimeFunctions } = createRequire(import.meta.url)("pino") as typeof import("pino");
  const destination: DestinationStream = {
    write: isTerminal ? (line) => write(cleanLines(toReadableLine(line))) : write,
  };
  return pino(
    { level, base: facts ?? null, timestamp: stdTimeFunctions.isoTime, serializers: { error: stdSerializers.err } },
    destination,
  );
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
