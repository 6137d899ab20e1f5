import path from "node:path";
import { closest } from "../../command/suggest.ts";
import { Exit, UsageError } from "../../errors.ts";
import { thisProgram } from "../../program/program.ts";
import { bash } from "../completion/bash.ts";
import { fish } from "../completion/fish.ts";
import { choices, operand } from "../completion/grammar.ts";
import { isShell, type Shell, shells } from "../completion/shells.ts";
import { zsh } from "../completion/zsh.ts";
import type { Verb } from "../verb.ts";

const scripts: Readonly<Record<Shell, (name: string, id: string) => string>> = { bash, zsh, fish };

export const verb: Verb = {
  description: "Print the script that makes your shell complete commands, flags, values and task ids",
  flags: [],
  operands: [operand("[shell]", choices(...shells), shells.join(", "))],
  get notes() {
    return `
Install it once:
  bash   echo 'eval "$(${thisProgram.name} completion bash)"' >> ~/.bashrc
  zsh    echo 'eval "$(${thisProgram.name} completion zsh)"' >> ~/.zshrc
  fish   ${thisProgram.name} completion fish > ~/.config/fish/completions/${thisProgram.name}.fish

It holds in shells that are opened afterwards.
`;
  },
  async run({ operands: [wanted], terminal, context }) {
    if (!isShell(wanted)) throw new UsageError(whichShell(wanted, context.env.SHELL));
    // A hyphen is no letter of a variable.
    terminal.print(scripts[wanted](thisProgram.name, thisProgram.name.replaceAll("-", "_")));
    return Exit.Ok;
  },
};

function whichShell(word: string | undefined, ownShell = ""): string {
  const known = `there are ${shells.map((shell) => `\`${thisProgram.name} completion ${shell}\``).join(", ")}.\n  See: ${thisProgram.name} completion --help`;
  if (word !== undefined) {
    const guess = closest(word, shells);
    return `${word} is not a shell I can complete${guess === undefined ? "" : `; did you mean ${guess}?`}: ${known}`;
  }
  const own = path.basename(ownShell);
  return `Say for which shell${isShell(own) ? ` (yours seems to be ${own})` : ""}; ${known}`;
}
