import { CommandError } from "../errors.ts";
import { asker } from "./ask.ts";
import { anonymous } from "./caller.ts";
import { type Answer, type CommandContext, type CommandLogLevel, type Question, unknownOrigin } from "./context.ts";
import type { Recorder } from "./recorder.ts";
import { toJson } from "./result-json.ts";
import type { RunOptions } from "./run.ts";

/** What a command's `run()` is given. */
export function createContext(options: RunOptions, record: Recorder, signal: AbortSignal): CommandContext {
  const { home, config, door, caller = anonymous, origin = unknownOrigin, attempt = 1 } = options;
  const line = (level: CommandLogLevel) => (text: string, details?: unknown) => record.line(level, text, details);
  let stepCounts: Map<string, number> | undefined;
  return {
    signal,
    home,
    config,
    caller,
    origin,
    attempt,
    log: { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") },
    announce: (text) => record.announce(text),
    progress: (report) => record.isOpen && door.progress?.(typeof report === "string" ? { message: report } : report),
    ask: asker((question) => askAt(options, question, signal)),
    step(name, work) {
      stepCounts ??= new Map();
      const count = (stepCounts.get(name) ?? 0) + 1;
      stepCounts.set(name, count);
      // The same name again, as in a loop, is another step.
      return doStep(options, count === 1 ? name : `${name}#${count}`, work);
    },
  };
}

async function doStep<T>({ steps }: RunOptions, key: string, work: () => T | Promise<T>): Promise<T> {
  const kept = steps?.get(key);
  if (kept !== undefined) return JSON.parse(kept) as T;
  const json = toJson((await work()) ?? null, `step ${key}`);
  await steps?.keep(key, json);
  // Remembered or fresh, a step gives the same value.
  return JSON.parse(json) as T;
}

/** Puts a question to whoever is at the run's door. */
export async function askAt({ door, name }: RunOptions, question: Question, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted();
  if (door.ask === undefined)
    throw new CommandError(
      `${name} asks «${question.message}», and ${door.whyNoAnswer ?? "nobody can be asked here"}.`,
    );
  return await door.ask(question, signal);
}
