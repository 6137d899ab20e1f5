import { InputError } from "../errors.ts";
import { maxToolNameLength } from "./names.ts";
import type { JsonSchema } from "./schema.ts";

/**
 * Other names a command answers to. They are looked up and never listed, so that a rename breaks nobody and costs no
 * model a word.
 */
export interface Alias {
  /** A tool name without the prefix; undefined: the command's own name, whose arguments have other names too. */
  readonly name: string | undefined;
  /** What this name's arguments are called here. */
  readonly arguments: Readonly<Record<string, string>>;
}

/** The same with the name as clients say it. */
export interface ToolAlias extends Alias {
  readonly name: string;
}

/** A tool and its other names. */
interface Named {
  readonly toolName: string;
  readonly aliases?: readonly ToolAlias[];
}

const namePattern = /^[A-Za-z][A-Za-z0-9_]*$/;
/** The tools that follow up a job, and whatever else may come of that kind. */
const reservedPattern = /^task(_|$)/;

/** Reads an author's `aliases`; throws a sentence that names what is wrong and the cure. */
export function readAliases(given: readonly unknown[], input: JsonSchema): Alias[] {
  const aliases = given.map((item) => readAlias(item, (input.properties ?? {}) as Record<string, unknown>));
  const names = aliases.map(({ name }) => name);
  const double = names.find((name, at) => names.indexOf(name) !== at);
  if (names.length !== new Set(names).size)
    throw new TypeError(`\`aliases\` names ${double ?? "the command itself"} twice; take one out`);
  return aliases;
}

function readAlias(item: unknown, properties: Readonly<Record<string, unknown>>): Alias {
  const {
    name,
    arguments: renamed = {},
    ...others
  } = typeof item === "string" ? { name: item } : ((item ?? {}) as Record<string, unknown>);
  const isEmpty = name === undefined && Object.keys(renamed as object).length === 0;
  if (typeof item === "number" || Array.isArray(item) || Object.keys(others).length > 0 || isEmpty)
    throw new TypeError(
      "`aliases`: each must be a tool name, or { name, arguments }, where `arguments` holds their names and ours",
    );
  if (name !== undefined && (typeof name !== "string" || !namePattern.test(name)))
    throw new TypeError(
      `\`aliases\`: ${JSON.stringify(name)} is no tool name; use letters, digits and _, a letter first`,
    );
  if (name !== undefined && reservedPattern.test(name))
    throw new TypeError(
      `\`aliases\`: ${name} clashes with the tools that follow up a task (task_result, task_status, …); take another name`,
    );
  return { name, arguments: readArguments(renamed, properties) };
}

function readArguments(given: unknown, properties: Readonly<Record<string, unknown>>): Record<string, string> {
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw new TypeError('`aliases`: `arguments` must be an object of names, e.g. { endpoint: "url" }');
  for (const [theirs, ours] of Object.entries(given)) {
    const known = Object.keys(properties).join(", ") || "none";
    if (typeof ours !== "string" || !Object.hasOwn(properties, ours))
      throw new TypeError(
        `\`aliases\`: ${theirs} stands for ${JSON.stringify(ours)}, which is no argument of this command; it has ${known}`,
      );
    if (Object.hasOwn(properties, theirs))
      throw new TypeError(`\`aliases\`: ${theirs} is an argument of this command already; take it out of the alias`);
  }
  return { ...(given as Record<string, string>) };
}

/** A command's aliases as clients say them; a sentence when one is too long for that. */
export function toToolAliases(
  given: readonly Alias[],
  toolName: string,
  prefix: string,
): readonly ToolAlias[] | string {
  const aliases = given.map((alias) => ({
    ...alias,
    name: alias.name === undefined ? toolName : prefix === "" ? alias.name : `${prefix}_${alias.name}`,
  }));
  const long = aliases.find(({ name }) => name.length > maxToolNameLength)?.name;
  if (long === undefined) return aliases;
  return `its alias ${long} has ${long.length} characters, at most ${maxToolNameLength} are allowed; shorten ${prefix === "" ? "it" : "toolPrefix or the alias"}`;
}

/** What each argument that was given under another name is called here, for a tool that was called by this name. */
function renamedArguments(entry: Named, calledAs: string): Readonly<Record<string, string>> {
  const counted = (entry.aliases ?? []).filter(({ name }) => name === entry.toolName || name === calledAs);
  return Object.assign({}, ...counted.map((alias) => alias.arguments));
}

/** An argument's own name. */
export function ownArgument(entry: Named, calledAs: string, argument: string): string {
  const renamed = renamedArguments(entry, calledAs);
  return (Object.hasOwn(renamed, argument) ? renamed[argument] : undefined) ?? argument;
}

/** A call's arguments by their own names; throws when one is given by two names. */
export function ownArguments(entry: Named, calledAs: string, given: unknown): unknown {
  if (
    entry.aliases === undefined ||
    entry.aliases.length === 0 ||
    typeof given !== "object" ||
    given === null ||
    Array.isArray(given)
  )
    return given;
  const renamed = renamedArguments(entry, calledAs);
  const own: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const ours = (Object.hasOwn(renamed, name) ? renamed[name] : undefined) ?? name;
    if (Object.hasOwn(own, ours)) {
      const theirs = Object.keys(given).find((other) => other !== ours && renamed[other] === ours);
      throw new InputError(`\`${theirs}\` is another name of \`${ours}\`; give one of them.`);
    }
    // Not by assignment: an argument may be called __proto__.
    Object.defineProperty(own, ours, { value, enumerable: true, writable: true, configurable: true });
  }
  return own;
}
