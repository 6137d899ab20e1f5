import { CommandError } from "../errors.ts";
import { asker } from "./ask.ts";
import { anonymous } from "./caller.ts";
import {
  type Answer,
  type CommandContext,
  type CommandLogLevel,
  type Question,
  type Root,
  unknownOrigin,
} from "./context.ts";
import type { Relay } from "./foreign.ts";
import { isDeclared, refuseRequest, toForeignAnswer, toQuestion } from "./foreign-question.ts";
import type { Recorder } from "./recorder.ts";
import { toJson } from "./result-json.ts";
import type { RunOptions } from "./run.ts";

/** What a run has for whoever works in it. */
interface ContextTerms {
  readonly signal: AbortSignal;
  readonly ask: (question: Question, signal: AbortSignal) => Promise<Answer>;
}

/** What a command's `run()` is given. */
export function createContext(options: RunOptions, record: Recorder, run: ContextTerms): CommandContext {
  const { signal, ask } = run;
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
    ask: asker((question) => ask(question, signal)),
    roots: () => askRoots(options, run),
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

const listRoots = { method: "roots/list", params: {} };

/** A client that cannot tell, or does not, has none. */
async function askRoots({ origin = unknownOrigin }: RunOptions, run: ContextTerms): Promise<readonly Root[]> {
  const { signal, ask } = run;
  if (!isDeclared(listRoots, origin)) return [];
  const answer = await ask(toQuestion(listRoots), signal).catch((error: unknown) => {
    if (signal.aborted) throw error;
    return undefined;
  });
  const { roots } = answer?.action === "accept" ? answer.content : {};
  return (Array.isArray(roots) ? roots : []).flatMap((root: unknown) => {
    const { uri, name } = (root ?? {}) as { uri?: unknown; name?: unknown };
    return typeof uri === "string" ? [{ uri, ...(typeof name === "string" && { name }) }] : [];
  });
}

/** The step under which it is kept what a call leaves behind; a server that works on one has no steps of its own. */
const leftBehind = "left behind";

/** What a server is given that works on a call in the place of `run()`; `onCutShort` hears of an ask that was stopped. */
export function createRelay(options: RunOptions, run: ContextTerms, onCutShort: () => void): Relay {
  const { door, steps, caller = anonymous, origin = unknownOrigin, attempt = 1 } = options;
  const { signal, ask } = run;
  const left = steps?.get(leftBehind);
  return {
    signal,
    caller,
    origin,
    attempt,
    isTask: door.isTask === true,
    progress: (report) => door.progress?.(report),
    notify: (method, params) => door.notify?.(method, params),
    hangUp: door.hangUp,
    becomesTask: () => door.becomesTask?.(),
    leftBehind: left === undefined ? undefined : JSON.parse(JSON.parse(left)),
    async leave(state, { isSafe }) {
      // As text: what another server has sent may be something that no database takes as JSON.
      await steps?.keep(leftBehind, JSON.stringify(toJson(state, "what is left behind")), { isSafe });
    },
    async ask(request, { key, signal: wanted } = {}) {
      refuseRequest(request, { name: options.name, origin });
      const either = wanted === undefined ? signal : AbortSignal.any([signal, wanted]);
      const answer = await ask(toQuestion(request, key), either).catch((error: unknown) => {
        if (signal.aborted) onCutShort();
        throw error;
      });
      return toForeignAnswer(request, answer);
    },
  };
}
