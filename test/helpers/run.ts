import { systemClock } from "../../src/clock.ts";
import { localUser } from "../../src/command/caller.ts";
import type { Command } from "../../src/command/command.ts";
import type { Door, Origin } from "../../src/command/context.ts";
import type { Outcome } from "../../src/command/outcome.ts";
import { type RunOptions, runCommand } from "../../src/command/run.ts";

const inTerminal: Origin = { door: "terminal", folder: process.cwd() };

/** Runs a command with nobody watching, unless a door is given. */
export async function run(
  command: Command,
  input?: unknown,
  options: Partial<RunOptions> & { door?: Door } = {},
): Promise<Outcome> {
  const facts = {
    name: "test",
    clock: systemClock,
    home: "/home",
    config: {},
    door: {},
    caller: localUser,
    origin: inTerminal,
  } as const;
  return await runCommand(command, input, { ...facts, ...options });
}
