import { Exit } from "../../errors.ts";
import { type Home, openHome } from "../../paths.ts";
import { flag } from "../completion/grammar.ts";
import { clean } from "../terminal.ts";
import type { TypedVerb, Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Print the token that makes an HTTP caller the local user: Authorization: Bearer <token>",
  flags: [flag("--reset", "make a new one; tasks stay yours, and running servers take it at their next request")],
  async run(typed) {
    const { terminal, context, options } = typed;
    const { readToken } = await import("../../runtime/home-token.ts");
    const home = openHome(context.env);
    if (options.reset === true) await reset(home, typed);
    terminal.print(`${readToken(home)}\n`);
    return Exit.Ok;
  },
};

/** Makes a new token, and names what still sends the old one. */
async function reset(home: Home, { terminal, context }: TypedVerb): Promise<void> {
  const [{ resetToken }, { findTokenSenders }, { SetupRecord }, { thisMachine }] = await Promise.all([
    import("../../runtime/reset-token.ts"),
    import("../../setup/find-token.ts"),
    import("../../setup/setup-record.ts"),
    import("../setup/set-up.ts"),
  ]);
  const { earlier } = resetToken(home);
  const { green, yellow } = terminal.colors;
  terminal.say(
    `${green("✓")} This home has a new token, and its tasks stay. On other nodes of this server, replace ${clean(home.tokenFile)} and ${clean(home.idFile)} by copies of these files.\n`,
  );
  const senders = findTokenSenders(earlier, thisMachine(context), new SetupRecord(home));
  if (senders.length === 0) return;
  terminal.say(`${yellow("!")} These still send the old token, and are refused with 401 until you change them:\n`);
  for (const { file, entry, script } of senders)
    terminal.say(
      `  ${clean(entry)} in ${clean(file)}${script === undefined ? "" : `, by the script ${clean(script)}`}\n`,
    );
}
