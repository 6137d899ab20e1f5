import path from "node:path";
import { closest } from "../../command/suggest.ts";
import { Exit, type ExitCode, UsageError } from "../../errors.ts";
import { bash } from "../completion/bash.ts";
import { fish } from "../completion/fish.ts";
import { isShell, type Shell, shells } from "../completion/shells.ts";
import { zsh } from "../completion/zsh.ts";
import { printHelp } from "../screens/layout.ts";
import type { VerbCall } from "../main.ts";
import { parseVerb } from "../verb.ts";

const scripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };

export async function run(call: VerbCall): Promise<ExitCode> {
  const parsed = parseVerb(
    "completion",
    "Print the script that makes your shell complete commands, flags, values and task ids",
    call.words,
    (program) => {
      program.argument("[shell]", shells.join(", "));
    },
  );
  if ("help" in parsed) {
    printHelp(`${parsed.help}\n${install}`, call.terminal);
    return Exit.Ok;
  }
  const [wanted] = parsed.operands;
  if (!isShell(wanted)) throw new UsageError(whichShell(wanted));
  call.terminal.print(scripts[wanted]);
  return Exit.Ok;
}

const install = `Install it once:
  bash   echo 'eval "$(meanwhile completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(meanwhile completion zsh)"' >> ~/.zshrc
  fish   meanwhile completion fish > ~/.config/fish/completions/meanwhile.fish

It holds in shells that are opened afterwards.
`;

function whichShell(word: string | undefined): string {
  const known = `there are ${shells.map((shell) => `\`meanwhile completion ${shell}\``).join(", ")}.\n  See: meanwhile completion --help`;
  if (word !== undefined) {
    const guess = closest(word, shells);
    return `${word} is not a shell I can complete${guess === undefined ? "" : `; did you mean ${guess}?`}: ${known}`;
  }
  const own = path.basename(process.env.SHELL ?? "");
  return `Say for which shell${isShell(own) ? ` (yours seems to be ${own})` : ""}; ${known}`;
}
