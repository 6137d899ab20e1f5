import { builtInScopes } from "../../auth/rights.ts";
import { thisProgram } from "../../program/program.ts";
import { choices, commaList, flag, operand, toOffer, unknown } from "../completion/grammar.ts";
import { jsonFlag } from "../flags.ts";
import type { Verb, VerbGroup } from "../verb.ts";

type KeyVerb = keyof typeof import("../store/manage-keys.ts").subverbs;

const run =
  (name: KeyVerb): Verb["run"] =>
  async (typed) => {
    const { subverbs } = await import("../store/manage-keys.ts");
    return await subverbs[name](typed);
  };

const name = operand("<name>", async (_, given, known) =>
  toOffer(given.has("name") ? [] : (await known.findKeys()).map((value) => ({ value }))),
);

export const verb: VerbGroup = {
  usual: "list",
  verbs: {
    list: {
      line: "list [--json]",
      description: "the keys of this project: scopes, tools, when they expire, last use",
      flags: [jsonFlag],
      run: run("list"),
    },
    add: {
      line: "add <name> [--scopes s] [--commands p] [--expires d] [--json]",
      description: "add a key, and print it this once",
      flags: [
        flag("--scopes <scopes>", `what it may do, separated by commas; default: ${builtInScopes.call}`, {
          values: commaList(...Object.values(builtInScopes)),
        }),
        flag("--commands <patterns>", "the tools it may call, such as report_*, separated by commas; default: all", {
          values: async (_, _given, known) => toOffer(await known.tools.list()),
        }),
        flag("--expires <duration>", "when it expires, such as 90d or 12h; default: never", {
          values: choices("7d", "30d", "90d", "365d"),
        }),
        jsonFlag,
      ],
      operands: [operand("<name>", unknown, "who will use it, such as ci")],
      run: run("add"),
    },
    rotate: {
      line: "rotate <name> [--overlap d] [--json]",
      description: "give a key a new secret, and print it this once; its tasks stay",
      flags: [
        flag("--overlap <duration>", "how long the secret before stays valid; default: 24h", {
          values: choices("0", "1h", "24h", "7d"),
        }),
        jsonFlag,
      ],
      operands: [name],
      run: run("rotate"),
    },
    revoke: {
      line: "revoke <name> [--json]",
      description: "remove a key; servers refuse it within 5 s",
      flags: [jsonFlag],
      operands: [name],
      run: run("revoke"),
    },
  },
  get notes() {
    return `
A key lets a client call this project over HTTP: Authorization: Bearer <key>.
Each key is a caller of its own, with its own tasks.
${projectNotes()}
${builtInScopes.read.padEnd(19)}lists tools, and reads its own tasks
${builtInScopes.call.padEnd(19)}calls tools too
${builtInScopes.metrics.padEnd(19)}nothing yet: kept for /metrics and the reasons of /readyz
${builtInScopes.admin.padEnd(19)}all of this, and calls the bundled commands
`;
  },
};

function projectNotes(): string {
  if (thisProgram.authors !== undefined) return "";
  return `Each set of --commands, --bundled and config file is a project with keys of its own.
Give the options of the server before keys: ${thisProgram.name} --bundled keys add ci
`;
}
