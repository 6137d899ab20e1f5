import { inspect } from "node:util";
import { systemClock } from "../../clock.ts";
import type { Door, Steps } from "../../command/context.ts";
import { loadEntry } from "../../command/load-entry.ts";
import { limitPrints, surviveCommands } from "../../command/process-guard.ts";
import { runCommand } from "../../command/run.ts";
import { currentRun } from "../../command/running.ts";
import { Cancelled, CommandError, Exit, ShuttingDown } from "../../errors.ts";
import { becomeAsTold } from "../../program/program.ts";
import { runVariable } from "../../system/child-environment.ts";
import { endStrays } from "../../system/strays.ts";
import { system } from "../../system/system.ts";
import { weigh, weighsLarge } from "../weigh.ts";
import type { FromIsolated, ToIsolated } from "./isolation.ts";

/** The child process of an isolated attempt: runs one command once, speaking to its parent alone, and ends with it. */
const stop = new AbortController();
const replies = new Map<number, PromiseWithResolvers<unknown>>();
let lastId = 0;

// Which program it belongs to decides where it looks, and what it calls itself.
becomeAsTold(process.argv.slice(2));

// The parent is gone, and with it whoever would end what the command has started.
const runName = process.env[runVariable];
process.on("disconnect", () => {
  if (runName !== undefined) endStrays(process.pid, `${runVariable}=${runName}`);
  system.killGroup(process.pid);
});
process.on("message", (message) => void hear(message as ToIsolated));
surviveCommands(process, { currentRun, onBug: () => process.exit(Exit.Internal) });
limitPrints(process, { clock: systemClock, who: () => currentRun()?.name });

async function hear(message: ToIsolated): Promise<void> {
  if (message.type === "run") await run(message);
  else if (message.type === "stop")
    stop.abort(message.reason === "shutdown" ? new ShuttingDown() : new Cancelled(message.message));
  else if (message.error !== undefined) replies.get(message.id)?.reject(new Error(message.error));
  else replies.get(message.id)?.resolve(message.value);
}

async function run({ entry, input, options }: ToIsolated & { type: "run" }): Promise<void> {
  const kept = new Map(options.steps);
  const steps: Steps = {
    get: (name) => kept.get(name),
    keep: async (name, json) => void (await request((id) => ({ type: "keep", id, name, json }))),
    all: () => [...kept],
  };
  let hasRoom = false;
  const door: Door = {
    announce: (text) => tell({ type: "announce", text }),
    progress: (report) => tell({ type: "progress", report }),
    log: (line) => tell({ type: "log", line }),
    ask: async (question) => (await request((id) => ({ type: "ask", id, question }))) as never,
    // The parent may have no memory for a large result, so this process holds it until then.
    room(data) {
      if (hasRoom || !weighsLarge(data)) return undefined;
      return request((id) => ({ type: "room", id, bytes: weigh(data) })).then(() => {
        hasRoom = true;
      });
    },
  };
  const loaded = await loadEntry(entry);
  if ("text" in loaded) return tell({ type: "notLoaded", text: loaded.text });
  const { home, config, caller, origin, isDebug, attempt } = options;
  const outcome = await runCommand(loaded.command, input, {
    name: entry.toolName,
    clock: systemClock,
    home,
    config,
    ...(caller !== undefined && { caller }),
    ...(origin !== undefined && { origin }),
    isDebug,
    attempt,
    steps,
    door,
    signals: [stop.signal],
  });
  const { error, ...sendable } = outcome as typeof outcome & { error?: unknown };
  const isUnexpected = error instanceof Error && !(error instanceof CommandError);
  tell({ type: "outcome", outcome: sendable as typeof outcome, ...(isUnexpected && { stack: inspect(error) }) });
}

function tell(message: FromIsolated): void {
  process.send?.(message);
}

function request(make: (id: number) => FromIsolated): Promise<unknown> {
  const id = ++lastId;
  const reply = Promise.withResolvers<unknown>();
  replies.set(id, reply);
  tell(make(id));
  return reply.promise.finally(() => replies.delete(id));
}
