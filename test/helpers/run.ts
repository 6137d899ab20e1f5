import { systemClock } from "../../src/clock.ts";
import type { Command } from "../../src/command/command.ts";
import type { Door } from "../../src/command/context.ts";
import { type Outcome, type RunOptions, runCommand } from "../../src/command/run.ts";

/** Runs a command with nobody watching, unless a door is given. */
export function run(command: Command, input?: unknown, options: Partial<RunOptions> & { door?: Door } = {}): Promise<Outcome> {
  return runCommand(command, input, { name: "test", clock: systemClock, home: "/home", config: {}, door: {}, ...options });
}
