import { flag, operand, toOffer } from "../completion/grammar.ts";
import { jsonFlag } from "../flags.ts";
import type { Verb, VerbGroup } from "../verb.ts";

type UpstreamVerb = keyof typeof import("../daemons/control-upstreams.ts").subverbs;

const name = (shown: string) =>
  operand(
    shown,
    async (_typed, _given, known) => toOffer((await known.findUpstreams()).map((value) => ({ value }))),
    "what it is called",
  );

const run =
  (verb: UpstreamVerb): Verb["run"] =>
  async (typed) => {
    const { controlUpstreams } = await import("../daemons/control-upstreams.ts");
    return await controlUpstreams(verb, typed);
  };

export const verb: VerbGroup = {
  usual: "status",
  verbs: {
    status: {
      line: "status [name] [--json]",
      description: "the servers that stand behind this project, and behind every daemon of this home",
      flags: [jsonFlag],
      operands: [name("[name]")],
      run: run("status"),
    },
    login: {
      line: "login <name>",
      description: "sign in to it, where it wants a token; what runs already needs no restart",
      flags: [],
      operands: [name("<name>")],
      run: run("login"),
    },
    restart: {
      line: "restart <name>",
      description: "close its connections; the next call starts it again",
      flags: [],
      operands: [name("<name>")],
      run: run("restart"),
    },
    logs: {
      line: "logs <name> [--follow]",
      description: "what it has written to its stderr",
      flags: [flag("--follow", "go on printing what is written")],
      operands: [name("<name>")],
      run: run("logs"),
    },
  },
};
