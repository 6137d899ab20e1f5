import { Exit, type ExitCode } from "../../errors.ts";
import { openHome } from "../../paths.ts";
import { readToken } from "../../serve.ts";
import { printHelp } from "../screens/layout.ts";
import type { VerbCall } from "../main.ts";
import { parseVerb } from "../verb.ts";

export async function run(call: VerbCall): Promise<ExitCode> {
  const program = parseVerb(
    "token",
    "Print the token that makes an HTTP caller the local user: Authorization: Bearer <token>",
    call.words,
  );
  if ("help" in program) printHelp(program.help, call.terminal);
  else call.terminal.print(`${readToken(openHome(process.env))}\n`);
  return Exit.Ok;
}
