import { localUser } from "../../command/caller.ts";
import { Exit, UsageError } from "../../errors.ts";
import { flag } from "../completion/grammar.ts";
import { jsonFlag, projectFlags, reachFlags, targets } from "../flags.ts";
import { printCaller } from "../screens/caller-view.ts";
import { isGiven, toProjectFlags, type Verb } from "../verb.ts";

export const verb: Verb = {
  description: `Print the caller that a server identifies you as: kind, ID, scopes and groups.

Without --target: the local user, as whom commands run in this terminal.`,
  get flags() {
    return [
      flag("--target <target>", "ask this server: a URL, a socket, a command line, or .", { values: targets }),
      ...reachFlags,
      jsonFlag,
      ...projectFlags(),
    ];
  },
  async run(typed) {
    const { options, terminal, context } = typed;
    const isJson = options.json === true;
    if (typeof options.target !== "string") {
      if (reachFlags.some(({ word }) => isGiven(word, options)))
        throw new UsageError("--header, --token-env and --revision say how to reach a server; name it with --target.");
      printCaller(localUser, { terminal, isJson });
      return Exit.Ok;
    }
    const [{ toReach, withClient }, { readTarget }] = await Promise.all([
      import("../remote/connect-target.ts"),
      import("../remote/server-target.ts"),
    ]);
    const reach = toReach({ target: readTarget(options.target), options, flags: toProjectFlags(typed), context });
    printCaller(await withClient({ reach, terminal }, ({ client }) => client.whoami()), { terminal, isJson });
    return Exit.Ok;
  },
};
