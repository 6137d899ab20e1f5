import { flag } from "../completion/grammar.ts";
import { serveFlags, serveWith } from "../entries/serve-with.ts";
import { projectFlags } from "../flags.ts";
import { toProjectFlags, type Verb } from "../verb.ts";

export const verb: Verb = {
  description: "Serve the commands to MCP clients: over stdio, or over HTTP with --http",
  get flags() {
    return [
      ...serveFlags,
      flag("--no-work", "HTTP that answers clients and runs nothing: workers on the same store do (see: worker)"),
      ...projectFlags(),
    ];
  },
  retired: {
    "--require-token":
      "is no flag any more, because HTTP asks for the token by itself; leave it out (--allow-anonymous lets callers in without one).",
  },
  run: async (typed) => await serveWith(toProjectFlags(typed), typed),
};
