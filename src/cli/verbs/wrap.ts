import path from "node:path";
import { CommandError, UsageError } from "../../errors.ts";
import { headerVariable, readWrapVariables, urlVariable } from "../../project/wrap-variables.ts";
import { prefixes, shares, toWrap, transports, type WrapSaid } from "../../project/wrap-words.ts";
import type { ReadServers } from "../../setup/servers-file.ts";
import { system } from "../../system/system.ts";
import { choices, files, flag } from "../completion/grammar.ts";
import { serveFlags, serveWith } from "../entries/serve-with.ts";
import type { TypedVerb, Verb } from "../verb.ts";

const repeated = { isRepeatable: true };

export const verb: Verb = {
  description: "Serve any MCP server's tools as durable ones: behind a command, a URL, or a host's config file",
  usage: "[options] [-- <command> [args...]]",
  takesServer: true,
  flags: [
    flag("--url <url>", "the server's address, in place of a command"),
    flag(
      "--header <header>",
      "'Name: value', sent with every request; a secret by its variable; may be repeated",
      repeated,
    ),
    flag("--transport <kind>", "http or sse, the transport of 2024-11-05 (default: found out)", {
      values: choices(...transports),
    }),
    flag("--from <file>", "the servers of a host's config file, as mcp.json", { values: files }),
    flag("--login", "sign in to the server, which wants a token, and leave"),
    flag("--name <name>", "what the server is called (default: by its package or host)"),
    flag("--share <who>", "who shares one server: session (default), caller or all", { values: choices(...shares) }),
    flag("--prefix <when>", "the server's name in front of tools: always, collision or never", {
      values: choices(...prefixes),
    }),
    flag("--allow <tool>", "only these tools; * stands for any letters; may be repeated", repeated),
    flag("--deny <tool>", "not these tools; may be repeated", repeated),
    flag("--rerun <tool>", "may be run again after a crash, whatever it says; may be repeated", repeated),
    flag("--long <tool>", "is expected to take long; may be repeated", repeated),
    flag("--time-limit <seconds>", "no call may take longer; a person's time does not count"),
    ...serveFlags,
  ],
  notes: `
Behind -- stands what the host ran before, word by word. A secret of a header is not typed, since everybody could
read it: 'Authorization: Bearer \${TOKEN}' in single quotes, or 'Authorization: file:/path'.
An entry of a host says the address and headers in its variables too: ${urlVariable()}, and ${headerVariable(1)} and so
on, each 'Name: value'.
`,
  async run(typed) {
    const { options, flags, server, terminal, context } = typed;
    if (flags.commands !== undefined || flags.bundled !== undefined)
      throw new UsageError(
        "wrap serves nothing but the server that it wraps: leave out --commands and --bundled, or name it in `upstreams` of a config.",
      );
    const said: WrapSaid = { ...options, server, variables: readWrapVariables(context.env) };
    const { servers, skipped = [] } = await readFrom(options.from as string | undefined, typed);
    const leftOut = Object.fromEntries(skipped.map(({ name, why }) => [name, why]));
    const wrap = { ...toWrap(said, context.cwd, servers), ...(skipped.length > 0 && { leftOut }) };
    if (options.login === true) {
      const { signInToUpstreams } = await import("../daemons/sign-in-upstreams.ts");
      const { openHome } = await import("../../paths.ts");
      return await signInToUpstreams({ ...wrap, home: openHome(context.env), terminal, context });
    }
    return await serveWith({ wrap }, typed);
  },
};

async function readFrom(file: string | undefined, { terminal, context }: TypedVerb): Promise<Partial<ReadServers>> {
  if (file === undefined) return {};
  const { readServers } = await import("../../setup/servers-file.ts");
  const refusal = system.refusalOfProjectFile(path.resolve(context.cwd, file));
  if (refusal !== undefined) throw new CommandError(refusal);
  const read = readServers(file);
  for (const { name, why } of read.skipped) terminal.say(`! ${name} of ${file} is left out: ${why}\n`);
  return read;
}
