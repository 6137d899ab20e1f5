import { type DestinationStream, type Logger as Pino, pino, stdSerializers, stdTimeFunctions } from "pino";

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

/** Opens the log on stderr: readable lines on a terminal, JSON lines elsewhere. */
export function openLog(options: { level: LogLevel; isTerminal: boolean; write: (text: string) => void }): Logger {
  const destination: DestinationStream = { write: options.isTerminal ? (line) => options.write(toReadableLine(line)) : options.write };
  const log: Pino = pino({ level: options.level, base: null, timestamp: stdTimeFunctions.isoTime, serializers: { error: stdSerializers.err } }, destination);
  return {
    debug: (text, facts) => log.debug(facts ?? {}, text),
    info: (text, facts) => log.info(facts ?? {}, text),
    warn: (text, facts) => log.warn(facts ?? {}, text),
    error: (text, facts) => log.error(facts ?? {}, text),
  };
}

const levelNames: Record<number, string> = { 20: "debug", 30: "info ", 40: "warn ", 50: "error" };

function toReadableLine(line: string): string {
  const { level, time, msg, error, ...facts } = JSON.parse(line) as { level: number; time: string; msg: string; error?: { stack?: string } };
  const extras = Object.entries(facts).map(([key, value]) => `${key}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const stack = error?.stack ? `\n${error.stack.replace(/^/gm, "    ")}` : "";
  return `${time.slice(11, 23)} ${levelNames[level] ?? level} ${[msg, ...extras].join("  ")}${stack}\n`;
}
