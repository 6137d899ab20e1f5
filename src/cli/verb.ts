import type { Command as Program } from "commander";
import { UsageError } from "../errors.ts";
import { quietProgram, sentence } from "./command-usage.ts";

export type ParsedVerb =
  | { readonly help: string }
  | { readonly options: Record<string, unknown>; readonly operands: readonly string[] };

/** Reads the words after one of our own verbs. */
export function parseVerb(
  name: string,
  description: string,
  words: readonly string[],
  declare: (program: Program) => void = () => {},
): ParsedVerb {
  const program = quietProgram(`meanwhile ${name}`).description(description);
  declare(program);
  if (words.includes("--help") || words.includes("-h")) return { help: program.helpInformation() };
  try {
    program.parse([...words], { from: "user" });
  } catch (error) {
    throw new UsageError(`${sentence((error as Error).message)}\n  See: meanwhile ${name} --help`);
  }
  return { options: program.opts(), operands: program.args };
}

/** The options that say which commands are meant. */
export function declareProject(program: Program): void {
  program.option("--commands <folder>", "a folder of commands; may be given several times", collect);
  program.option("--bundled", "also the commands that come with Meanwhile, beside the project's own");
  program.option("--no-bundled", "without the commands that come with Meanwhile");
}

/** What they say, behind the verb or before it. */
export function toProjectFlags(options: Readonly<Record<string, unknown>>, given: ProjectFlags): ProjectFlags {
  const commands = (options.commands as string[] | undefined) ?? given.commands;
  const bundled = (options.bundled as boolean | undefined) ?? given.bundled;
  return { ...(commands !== undefined && { commands }), ...(bundled !== undefined && { bundled }) };
}

interface ProjectFlags {
  readonly commands?: readonly string[];
  readonly bundled?: boolean;
}

/** For options that may be given several times. */
export function collect(value: string, previous: readonly string[] | undefined): string[] {
  return [...(previous ?? []), value];
}
