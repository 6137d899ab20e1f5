import type { DescribedCommand } from "../command/command.ts";
import { thisProgram } from "../program/program.ts";
import { revisions } from "../wire/revisions.ts";
import { readParameters } from "./arguments.ts";
import { choices, type Flag, files, flag, folders } from "./completion/grammar.ts";

/** Flags of several verbs. One declaration is used for parsing, help and completion. */

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

/** False in an author's program, whose commands are fixed. */
const hasChoice = () => thisProgram.authors === undefined;

/** The flags that select the commands. */
export const projectFlags = (): readonly Flag[] => (hasChoice() ? [commands, ...bundled()] : []);

/** The flags that may come before the verb or command. */
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

/** Completions for the target of a call. */
export const targets = choices(".", "http://", "https://", "unix:/");

const repeated = { isRepeatable: true };

/** Headers for a server at a URL. */
export const headerFlags: readonly Flag[] = [
  flag("--header <header>", "'Name: value', sent with every request; may be given several times", repeated),
  flag("--token-env <name>", "the environment variable that holds the bearer token"),
];

/** The flags that say how to reach a target. */
export const reachFlags: readonly Flag[] = [
  ...headerFlags,
  flag("--revision <revision>", "speak this revision of the protocol and no other, e.g. 2025-11-25", {
    values: choices(...revisions),
  }),
];

/** The file for the images and files of a result. */
export const outFlag = flag("--out <file>", "write images and files of the result to this file; several get numbers", {
  values: files,
});

/** The flags for the arguments and for the output format. */
export const resultFlags: readonly Flag[] = [
  flag("--input <file>", "read the arguments from a JSON file, or - for standard input", { values: files }),
  flag("--json", "print the result as JSON"),
  flag("--yaml", "print the result as YAML"),
  flag("--quiet", "print nothing but the result"),
  outFlag,
];

/** True for a command with an argument `out`: its `--out` is the author's. */
export function hasOwnOut({ inputSchema, positional }: DescribedCommand): boolean {
  return readParameters(inputSchema, positional).some(({ word }) => `--${word}` === outFlag.word);
}

/** The flags of every command. `--out` is missing where the command has an argument of that name. */
export function commandFlags(command: DescribedCommand): readonly Flag[] {
  const { confirm } = command;
  return [
    ...resultFlags.filter((one) => one !== outFlag || !hasOwnOut(command)),
    flag("--async", "run as a task that outlives this terminal, and follow it"),
    flag("--detach", "run as a task, print its id and leave"),
    flag("--new", "as a task: start another run even if an equal one is live"),
    flag("--task-ttl <ms>", "as a task: how long its result is kept (default 24 h)"),
    ...(confirm === false ? [] : [flag("--yes", "go ahead without asking")]),
  ];
}
