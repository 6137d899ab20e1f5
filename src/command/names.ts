import { thisProgram } from "../program/program.ts";

/** What a command may be called, wherever it comes from. */

export const maxToolNameLength = 64;
const wordPattern = /^[A-Za-z][A-Za-z0-9_-]*$/;

/** Words that are ours: a domain of that name could never be reached. */
export const reservedDomains: ReadonlySet<string> = new Set(
  "serve call tasks tools stats hosts diagnose compare setup daemon token completion init new wrap upstreams worker store keys help task".split(
    " ",
  ),
);

/** The MCP tool's name for the words typed in a terminal, without a prefix. */
export function toToolName(words: readonly string[]): string {
  return words.join("_").replaceAll("-", "_");
}

/** Where a name comes from, for the cure. */
interface NameOrigin {
  /** What is to be renamed where the first word is ours. */
  readonly domain: string;
  /** What is to be shortened. */
  readonly whole: string;
}

/** Says why a command cannot be called this; undefined when it can. */
export function problemOfName(words: readonly string[], origin: NameOrigin): string | undefined {
  const bad = words.find((word) => !wordPattern.test(word));
  if (bad !== undefined) return `the name "${bad}" must start with a letter and hold only letters, digits, - and _`;
  if (reservedDomains.has(words[0] ?? ""))
    return `"${words[0]}" is a word of ${thisProgram.title}'s own; rename ${origin.domain}`;
  return problemOfLength(toToolName(words), origin.whole);
}

function problemOfLength(toolName: string, shortened: string): string | undefined {
  if (toolName.length <= maxToolNameLength) return undefined;
  return `its tool name ${toolName} has ${toolName.length} characters, at most ${maxToolNameLength} are allowed; shorten ${shortened}`;
}

/** What a command of this name is called as a tool; what its own server lists has no prefix of ours. */
export function servedName(
  { toolName, isListedByServer }: { readonly toolName: string; readonly isListedByServer?: boolean },
  prefix: string,
): string {
  return prefix === "" || isListedByServer === true ? toolName : `${prefix}_${toolName}`;
}

interface Named {
  readonly toolName: string;
  readonly problem?: string;
}

/** The same with a prefix in front of its tool name, and what is wrong with that. */
export function withPrefix<T extends Named>(named: T, prefix: string): T {
  if (prefix === "") return named;
  const toolName = `${prefix}_${named.toolName}`;
  const problem = named.problem ?? problemOfLength(toolName, "toolPrefix or the name");
  return { ...named, toolName, ...(problem !== undefined && { problem }) };
}
