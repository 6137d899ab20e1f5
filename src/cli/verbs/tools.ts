import { UsageError } from "../../errors.ts";
import { flag, operand } from "../completion/grammar.ts";
import { projectFlags, reachFlags, targets } from "../flags.ts";
import { readTarget, type ServerTarget, toCommand } from "../remote/server-target.ts";
import { isGiven, toProjectFlags, type Verb } from "../verb.ts";

export const verb: Verb = {
  description: `List the commands as MCP clients see them; exit 1 when a file could not be loaded.

With a target, list the tools of that server: a URL, a socket, a command line in
one word or behind --, or . for this project's own server.`,
  usage: "[target] [options]",
  get flags() {
    return [flag("--json", "print the whole list as JSON, schemas included"), ...projectFlags(), ...reachFlags];
  },
  operands: [operand("[target]", targets)],
  takesServer: true,
  async run(typed) {
    const { options, operands, server, terminal, context } = typed;
    const flags = toProjectFlags(typed);
    const isJson = options.json === true;
    const target = toTarget(operands[0], server);
    if (target !== undefined) {
      const { toReach } = await import("../remote/connect-target.ts");
      const { listRemoteTools } = await import("../remote/remote-tools.ts");
      return await listRemoteTools({ reach: toReach({ target, options, flags, context }), terminal }, isJson);
    }
    if (reachFlags.some(({ word }) => isGiven(word, options)))
      throw new UsageError("--header, --token-env and --revision say how to reach a server; give its target too.");
    await typed.protectStdout();
    const { listOwnTools } = await import("../own/own-tools.ts");
    return await listOwnTools({ flags, terminal, context, isJson });
  },
};

function toTarget(word: string | undefined, behind: readonly string[] | undefined): ServerTarget | undefined {
  if (behind === undefined) return word === undefined ? undefined : readTarget(word);
  if (word !== undefined)
    throw new UsageError("Behind -- stands the server's command line, so there is no target before it.");
  return toCommand(behind);
}
