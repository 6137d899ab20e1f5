import { thisProgram } from "../../program/program.ts";
import { hosts } from "../../setup/hosts/index.ts";
import { choices, flag, operand } from "../completion/grammar.ts";
import { projectFlags } from "../flags.ts";
import type { Verb } from "../verb.ts";

const hostNames = hosts.map(({ id }) => id);

/** An author's program stands in front of nobody's servers. */
const wrapFlags = [
  flag(
    "--wrap",
    "put servers that the hosts have already behind this one: those named, those of a host or file, or --all; a project's file that git tracks only when it is named",
  ),
  flag("--unwrap", "bring entries back as they were before --wrap"),
];

export const verb: Verb = {
  description: "Add this server to MCP hosts, or take it away again; without a host, list them and change nothing",
  get flags() {
    return [
      flag("--all", "every host that is installed; with --remove, every one that has the entry"),
      flag("--project", "the project's file in this folder, to be shared, in place of your own"),
      flag("--remove", "take the entry away"),
      ...(thisProgram.authors === undefined ? wrapFlags : []),
      flag(
        "--replace",
        "put the entry in place of one that setup did not write; nothing of that one is kept but a backup",
      ),
      flag("--dry-run", "print what would change as a diff, and change nothing"),
      flag("--name <name>", `what the hosts call it (default: the name in the config, or ${thisProgram.name})`),
      flag("--env <name=value>", "a variable for the commands, such as a key; may be given several times", {
        isRepeatable: true,
      }),
      ...projectFlags(),
    ];
  },
  operands: [
    operand(
      "[hosts...]",
      choices(...hostNames),
      `${hostNames.join(", ")}; with --wrap also names of entries, and a project's .mcp.json`,
    ),
  ],
  async run(typed) {
    if (typed.options.wrap === true || typed.options.unwrap === true) {
      const { wrapEntries } = await import("../setup/wrap-entries.ts");
      return await wrapEntries(typed);
    }
    const { setUp } = await import("../setup/set-up.ts");
    return await setUp(typed);
  },
};
