import { CommandError } from "../errors.ts";
import { keepBuiltins, restoreBuiltins } from "./builtins.ts";
import { endedNames, type Run, running } from "./running.ts";

/** Built-ins that everything in this process shares were changed, and by whom, as far as that is known. */
export interface Harm {
  /** The commands that ran meanwhile. */
  readonly names: readonly string[];
  readonly changes: readonly string[];
}

let onHarm: ((harm: Harm) => void) | undefined;

/**
 * Restores the built-ins whenever a command has changed them, fails that command, and calls `report`, until the returned
 * function is called.
 */
export function guardBuiltins(report: (harm: Harm) => void): () => void {
  keepBuiltins();
  onHarm = report;
  return () => {
    if (onHarm === report) onHarm = undefined;
  };
}

/** Looks for changes that nobody has noticed yet, more thoroughly than is done around each run. */
export function inspectBuiltins(): void {
  // What is seen at a glance was seen at the end of every run: whoever did it is still at it.
  checkBuiltins(allRunning);
  const ended = () => [...endedNames].map((name): Run => ({ name, fail: () => undefined }));
  checkBuiltins(() => [...running, ...ended()], true);
}

export const allRunning = (): readonly Run[] => [...running];

/** Who may have done it is asked only when the built-ins are in order again. One suspect is the culprit, and fails. */
export function checkBuiltins(suspects: () => readonly Run[], isThorough = false): void {
  if (onHarm === undefined) return;
  const changes = restoreBuiltins(isThorough);
  if (changes.length === 0) return;
  const found = suspects();
  const names = [...new Set(found.map(({ name }) => name))];
  const sentence = `changed what every command shares: ${changes.join(", ")}. That was undone; leave the built-ins alone, or set isolation: "process".`;
  if (names.length === 1) for (const run of found) run.fail(new CommandError(`${run.name} ${sentence}`));
  onHarm({ names, changes });
}
