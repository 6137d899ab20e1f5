import { toToolAliases } from "./aliases.ts";
import type { CatalogEntry } from "./catalog.ts";
import { clash } from "./clashes.ts";
import { type Command, isCommand } from "./command.ts";
import { problemOfName, toToolName, withPrefix } from "./names.ts";
import type { CommandSource } from "./source.ts";

interface CodeOptions {
  readonly toolPrefix?: string;
  /** What the list is called in a sentence. */
  readonly name?: string;
}

/** Commands that are handed over in code. Throws one sentence for what cannot be served, and where in the list it is. */
export function commandsOf(commands: readonly Command[], options: CodeOptions = {}): CommandSource {
  const { toolPrefix = "", name = "the commands in code" } = options;
  const known = new Map<string, number>();
  const entries = commands.map((command: unknown, at) => {
    const entry = toEntry(command, at, toolPrefix);
    const other = known.get(entry.toolName);
    if (other !== undefined) throw clash(describeDouble(commands, other, at));
    known.set(entry.toolName, at);
    return entry;
  });
  return fixedSource(name, entries);
}

/** A source that stays as it is. */
export function fixedSource(name: string, entries: readonly CatalogEntry[]): CommandSource {
  const byName = new Map(entries.map((entry) => [entry.toolName, entry]));
  return {
    name,
    entries,
    problems: [],
    trouble: undefined,
    get: (toolName) => byName.get(toolName),
    onChange: () => () => {},
    close() {},
  };
}

function toEntry(command: unknown, at: number, prefix: string): CatalogEntry {
  const place = `\`commands\`, number ${at + 1}`;
  if (!isCommand(command)) throw new TypeError(`${place}, is not a command; make it with defineCommand({ … })`);
  const which = `${place} (${command.summary})`;
  if (command.name === undefined)
    throw new TypeError(`${which}, has no name; add its words to defineCommand, e.g. name: "report build"`);
  if (command.isolation === "process")
    throw new TypeError(
      `${which}, has isolation: "process", and a process of its own can only load a file; put it in a folder of commands, or take \`isolation\` out`,
    );
  const path = command.name.split(" ");
  const problem = problemOfName(path, { domain: "the command", whole: "the name" });
  const named = withPrefix({ toolName: toToolName(path), ...(problem !== undefined && { problem }) }, prefix);
  if (named.problem !== undefined) throw new TypeError(`${which}, cannot be served: ${named.problem}`);
  const { toolName } = named;
  if (command.aliases?.some((alias) => alias.name === toToolName(path)))
    throw new TypeError(`${which}, has its own name among its \`aliases\`; take it out`);
  const aliases = toToolAliases(command.aliases ?? [], toolName, prefix);
  if (typeof aliases === "string") throw new TypeError(`${which}, cannot be served: ${aliases}`);
  return { toolName, path, file: "", command, ...(aliases.length > 0 && { aliases }) };
}

function describeDouble(commands: readonly Command[], first: number, second: number): string {
  const [one, other] = [first, second].map((at) => `number ${at + 1} (${commands[at]?.summary})`);
  const name = commands[second]?.name ?? "";
  return `\`commands\`: ${one} and ${other} are both called "${name}"; rename one.`;
}
