import { appendFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { CatalogEntry } from "../../src/command/catalog.ts";
import { type Command, defineCommand } from "../../src/command/command.ts";
import type { CommandContext } from "../../src/command/context.ts";
import { type JsonObject, type Relay, toForeignCommand } from "../../src/command/foreign.ts";
import deaf from "./deaf.ts";
import isolated from "./isolated.ts";
import poison from "./poison.ts";

/** One line a command leaves behind. Appended, never rewritten, so that it survives whatever kills the process. */
export interface RunLine {
  readonly key: string;
  /** Equals the fence of its claim, because in chaos nothing is ever given back. */
  readonly attempt: number;
  readonly pid: number;
  readonly what: "start" | "finish" | "step" | "kept";
  readonly step?: string;
}

function note(task: CommandContext, line: Omit<RunLine, "attempt" | "pid">): void {
  appendFileSync(
    path.join(task.home, "runs.jsonl"),
    `${JSON.stringify({ ...line, attempt: task.attempt, pid: process.pid })}\n`,
  );
}

const input = z.object({ key: z.string(), ms: z.number() });
type Input = z.infer<typeof input>;
const anything = z.object({}).loose();

/** Works for a while, saying how far it is. */
async function work({ key, ms }: Input, task: CommandContext): Promise<{ key: string; attempt: number; pid: number }> {
  note(task, { key, what: "start" });
  for (let done = 0; done < 4; done++) {
    task.progress({ done, total: 4 });
    await wait(ms / 4, undefined, { signal: task.signal });
  }
  note(task, { key, what: "finish" });
  return { key, attempt: task.attempt, pid: process.pid };
}

/** Says once where it stands, and works on for ever; who finds that is done. */
async function takeUp(given: unknown, { leftBehind, leave, signal, attempt }: Relay): Promise<JsonObject> {
  if (leftBehind !== undefined) return { content: [], structuredContent: { attempt, leftBehind } };
  const { isSafe } = given as { isSafe: boolean };
  await leave({ said: "first" }, { isSafe: !isSafe });
  await leave({ said: "last" }, { isSafe });
  return await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

const commands = {
  safe: defineCommand({ summary: "May run again", input, idempotent: true, run: work }),
  unsafe: defineCommand({ summary: "Must not run twice", input, run: work }),
  flaky: defineCommand({
    summary: "Fails the first time",
    input,
    retry: { attempts: 3, backoff: 0.05 },
    async run(given, task) {
      const done = await work(given, task);
      if (task.attempt < 2) throw new Error("not yet");
      return done;
    },
  }),
  steps: defineCommand({
    summary: "Works in steps",
    input,
    idempotent: true,
    async run({ key, ms }, task) {
      note(task, { key, what: "start" });
      const ranIn: number[] = [];
      for (const step of ["one", "two", "three"]) {
        const attempt = await task.step(step, async () => {
          note(task, { key, what: "step", step });
          task.progress(step);
          await wait(ms / 3, undefined, { signal: task.signal });
          return task.attempt;
        });
        note(task, { key, what: "kept", step });
        ranIn.push(attempt);
      }
      note(task, { key, what: "finish" });
      return { key, attempt: task.attempt, pid: process.pid, ranIn };
    },
  }),
  asks: defineCommand({
    summary: "Asks a question",
    input,
    idempotent: true,
    async run({ key }, task) {
      note(task, { key, what: "start" });
      const { colour } = await task.ask(`Which colour for ${key}?`, z.object({ colour: z.string() }));
      note(task, { key, what: "finish" });
      return { key, attempt: task.attempt, pid: process.pid, colour };
    },
  }),
  blocks: defineCommand({
    summary: "Blocks the event loop",
    input,
    run({ key, ms }, task) {
      note(task, { key, what: "start" });
      const end = Date.now() + ms;
      while (Date.now() < end);
      note(task, { key, what: "finish" });
      return { key, attempt: task.attempt, pid: process.pid };
    },
  }),
  isolated,
  poison,
  poisonUnsafe: defineCommand({
    summary: "Ends its process, and must not run twice",
    input: anything,
    isolation: "process",
    run: () => ({}),
  }),
  deaf,
  takenUp: toForeignCommand(
    { listing: { name: "takenUp" }, saysWhenSafe: true, call: takeUp },
    {},
    defineCommand as Parameters<typeof toForeignCommand>[2],
  ),
} satisfies Record<string, Command>;

export type Kind = keyof typeof commands;

/** Isolated commands have a file of their own, named like them; the others are never loaded from theirs. */
export function entryOf(kind: string): CatalogEntry | undefined {
  if (!Object.hasOwn(commands, kind)) return undefined;
  return {
    command: commands[kind as Kind],
    toolName: kind,
    path: [kind],
    file: path.join(import.meta.dirname, `${kind.replace("Unsafe", "")}.ts`),
  };
}
