import { pad, widthOf } from "../../screen/width.ts";
import type { Terminal } from "../terminal.ts";

/** What was done, and below it what to type next, in columns. */
export function tellNext(
  { colors, say }: Pick<Terminal, "colors" | "say">,
  done: string,
  steps: readonly (readonly [what: string, line: string])[],
): void {
  const width = Math.max(...steps.map(([what]) => widthOf(what))) + 3;
  const lines = steps.map(([what, line]) => `  ${pad(what, width)}${line}\n`);
  say(`${colors.green("✓")} ${done}\n${lines.join("")}`);
}
