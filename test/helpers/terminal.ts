import { EventEmitter } from "node:events";
import { createColors } from "picocolors";
import { dispatch } from "../../src/cli/dispatch.ts";
import type { ProcessContext } from "../../src/cli/process-context.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
import { system } from "../../src/system/system.ts";
import { noProject } from "./no-project.ts";

/** A terminal that is not there, where nobody can be asked: what was printed and what was said on it. */
export function openTerminalHere(more: Partial<Terminal> = {}) {
  let [printed, said] = ["", ""];
  const terminal: Terminal = {
    colors: createColors(false),
    isLive: false,
    canAsk: false,
    columns: 80,
    rows: 24,
    isDataShown: false,
    folder: process.cwd(),
    prompt: { input: process.stdin, output: process.stderr },
    print: (text) => (printed += text),
    say: (text) => (said += text),
    erase: () => (said += "\r\x1b[2K"),
    readInput: () => Promise.resolve(""),
    onInterrupt: () => () => {},
    leave: () => {},
    ...more,
  };
  return { terminal, printed: () => printed, said: () => said };
}

/** The context of this very process, for code that needs its folder and variables alone. */
export function contextHere(more: Partial<ProcessContext> = {}): ProcessContext {
  return {
    argv: [],
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    cwd: process.cwd(),
    platform: system.platform,
    exit: () => {},
    kill: () => {},
    signals: new EventEmitter(),
    nodeFile: process.execPath,
    nodeVersion: process.versions.node,
    guarded: process,
    startInBackground: () => {},
    ...more,
  };
}

/** Types a line in a terminal that is not there; whoever would read or run a project's code is told so. */
export async function typeHere(
  words: readonly string[],
  more: Partial<Terminal> = {},
): Promise<{ readonly code: number; readonly printed: string; readonly said: string }> {
  const { terminal, printed, said } = openTerminalHere(more);
  const code = await dispatch({
    ...{ words, terminal, context: contextHere(), ...noProject },
    hasPrinted: () => printed() !== "",
  });
  return { code, printed: printed(), said: said() };
}
