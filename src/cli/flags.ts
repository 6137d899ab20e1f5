import type { DescribedCommand } from "../command/command.ts";
import { thisProgram } from "../program/program.ts";
import { revisions } from "../wire/revisions.ts";
import { choices, type Flag, files, flag, folders } from "./completion/grammar.ts";

/** Flags that stand in more than one place. Each is said once: what is read, what help shows and what is completed. */

export const helpFlag = flag("--help", "show this help");
export const jsonFlag = flag("--json", "print as JSON");

const commands = flag("--commands <folder>", "a folder of commands; may be given several times", {
  values: folders,
  isRepeatable: true,
});
const bundled = () => [
  flag("--bundled", `also the commands that come with ${thisProgram.title}, beside the project's own`),
  flag("--no-bundled", `without the commands that come with ${thisProgram.title}`),
];

/** An author's program has its own commands and no others, so that nothing is to be said about them. */
const hasChoice = () => thisProgram.authors === undefined;

/** Which commands are meant. */
export const projectFlags = (): readonly Flag[] => (hasChoice() ? [commands, ...bundled()] : []);

/** What may stand before the verb or command. */
export const globalFlags = (): readonly Flag[] => [
  ...(hasChoice()
    ? [
        flag("-C DIR", "as if started there; comes before everything else", { values: folders }),
        { ...commands, value: "DIR" },
        ...bundled(),
      ]
    : []),
  flag("--no-color", "no colours (also NO_COLOR=1)"),
  flag("--version", "print the version"),
];

/** Where a server is. */
export const targets = choices(".", "http://", "https://", "unix:/");

const repeated = { isRepeatable: true };

/** What is sent to a server that is reached by a URL. */
export const headerFlags: readonly Flag[] = [
  flag("--header <header>", "'Name: value', sent with every request; may be given several times", repeated),
  flag("--token-env <name>", "the environment variable that holds the bearer token"),
];

/** How a target is reached. */
export const reachFlags: readonly Flag[] = [
  ...headerFlags,
  flag("--revision <revision>", "speak this revision of the protocol and no other, e.g. 2025-11-25", {
    values: choices(...revisions),
  }),
];

/** Where the arguments come from, and how the result is printed. */
export const resultFlags: readonly Flag[] = [
  flag("--input <file>", "read the arguments from a JSON file, or - for standard input", { values: files }),
  flag("--json", "print the result as JSON"),
  flag("--yaml", "print the result as YAML"),
  flag("--quiet", "print nothing but the result"),
];

/** Those that every command has. */
export function commandFlags({ confirm }: DescribedCommand): readonly Flag[] {
  return [
    ...resultFlags,
    flag("--async", "run as a task that outlives this terminal, and follow it"),
    flag("--detach", "run as a task, print its id and leave"),
    flag("--new", "as a task: start another run even if an equal one is live"),
    flag("--task-ttl <ms>", "as a task: how long its result is kept (default 24 h)"),
    ...(confirm === false ? [] : [flag("--yes", "go ahead without asking")]),
  ];
}
