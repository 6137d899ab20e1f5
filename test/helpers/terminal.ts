import { createColors } from "picocolors";
import { main } from "../../src/cli/main.ts";
import type { Terminal } from "../../src/cli/terminal.ts";
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

/** Types a line in a terminal that is not there; whoever would read or run a project's code is told so. */
export async function typeHere(
  words: readonly string[],
  more: Partial<Terminal> = {},
): Promise<{ readonly code: number; readonly printed: string; readonly said: string }> {
  const { terminal, printed, said } = openTerminalHere(more);
  const code = await main({ words, terminal, ...noProject });
  return { code, printed: printed(), said: said() };
}
