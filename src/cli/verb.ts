import { Exit, type ExitCode, UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import type { ProjectFlags } from "../project/project.ts";
import { addFlags, beforeDashes, quietProgram, sentence } from "./command-usage.ts";
import type { Flag, Operand } from "./completion/grammar.ts";
import type { ProcessContext } from "./process-context.ts";
import { printHelp } from "./screens/layout.ts";
import type { Terminal } from "./terminal.ts";

/**
 * One of our own verbs, all of it: what is read behind it, what help shows and what is completed there. What does its
 * work is loaded when it is run, so that a key that is pressed loads next to nothing.
 */
export interface Verb {
  readonly description: string;
  /** Where help is to show other words than those of the operands. */
  readonly usage?: string;
  readonly flags: readonly Flag[];
  readonly operands?: readonly Operand[];
  /** Said below its help. */
  readonly notes?: string;
  /** Behind `--` stands the command line of a server. */
  readonly takesServer?: boolean;
  /** Flags that are no more, and what is said of them. */
  readonly retired?: Readonly<Record<string, string>>;
  run(typed: TypedVerb): Promise<ExitCode>;
}

/** A verb with verbs of its own; `line` is how help shows each of them. */
export interface VerbGroup {
  readonly verbs: Readonly<Record<string, Verb & { readonly line: string }>>;
  readonly notes?: string;
  /** The one that is meant where none is named. */
  readonly usual?: string;
}

/** A verb as it was typed, with the words behind it. */
export interface VerbCall {
  readonly words: readonly string[];
  readonly flags: ProjectFlags;
  readonly terminal: Terminal;
  readonly context: ProcessContext;
  protectStdout(): Promise<void>;
}

/** The same, read by its declaration. */
export interface TypedVerb extends Omit<VerbCall, "words"> {
  readonly options: Readonly<Record<string, unknown>>;
  readonly operands: readonly string[];
  /** The command line behind `--`, where there is one. */
  readonly server: readonly string[] | undefined;
}

/** Reads the words behind a verb, and does what they say. */
export async function runVerb(name: string, verb: Verb | VerbGroup, call: VerbCall): Promise<ExitCode> {
  if ("verbs" in verb) return await runInGroup(name, verb, call);
  const { words, ...surroundings } = call;
  const own = verb.takesServer === true ? beforeDashes(words) : words;
  const retired = Object.keys(verb.retired ?? {}).find((word) => own.includes(word));
  if (retired !== undefined) throw new UsageError(`${retired} ${verb.retired?.[retired]}`);
  const program = quietProgram(`${thisProgram.name} ${name}`).description(verb.description);
  for (const { shown = "", description } of verb.operands ?? []) program.argument(shown, description);
  if (verb.usage !== undefined) program.usage(verb.usage);
  addFlags(program, verb.flags);
  if (own.includes("--help") || own.includes("-h"))
    return sayHelp(`${program.helpInformation()}${verb.notes ?? ""}`, call);
  try {
    program.parse([...own], { from: "user" });
  } catch (error) {
    const isOfServer = verb.takesServer === true && verb.operands === undefined && own.length === words.length;
    const hint = isOfServer ? hintOnServer(name, own, error as Error) : "";
    throw new UsageError(`${sentence((error as Error).message)}${hint}\n  See: ${thisProgram.name} ${name} --help`);
  }
  const server = own.length === words.length ? undefined : words.slice(own.length + 1);
  return await verb.run({ ...surroundings, options: program.opts(), operands: program.args, server });
}

/** To who has typed a server's words where ours stand. */
function hintOnServer(name: string, words: readonly string[], { message }: Error): string {
  const address = words.findLast((word) => /^https?:\/\//i.test(word));
  if (/argument missing/.test(message)) return "";
  if (address !== undefined && !words.includes("--url"))
    return `\n  An address stands behind --url: ${thisProgram.name} ${name} --url ${address}`;
  return `\n  A server's own words stand behind --: ${thisProgram.name} ${name} -- npx -y a-server`;
}

async function runInGroup(
  name: string,
  { verbs, notes = "", usual = "" }: VerbGroup,
  call: VerbCall,
): Promise<ExitCode> {
  const [first = ""] = call.words;
  // Flags alone are those of the usual one.
  const isUsual = usual !== "" && !isHelp(first) && (first === "" || first.startsWith("-"));
  const [inner = "", ...words] = isUsual ? [usual, ...call.words] : call.words;
  if (inner === "" || isHelp(inner)) {
    const width = Math.max(...Object.values(verbs).map(({ line }) => line.length)) + 2;
    const rows = Object.values(verbs).map(({ line, description }) => `  ${line.padEnd(width)}${description}\n`);
    return sayHelp(
      `Usage: ${thisProgram.name} ${name} ${usual === "" ? "<what>" : "[what]"}\n\n${rows.join("")}${notes}`,
      call,
    );
  }
  const verb = Object.hasOwn(verbs, inner) ? verbs[inner] : undefined;
  if (verb === undefined)
    throw new UsageError(`Unknown command \`${name} ${inner}\`; there are ${Object.keys(verbs).join(", ")}.`);
  return await runVerb(`${name} ${inner}`, verb, { ...call, words });
}

const isHelp = (word: string) => word === "--help" || word === "-h";

function sayHelp(text: string, { terminal }: VerbCall): ExitCode {
  printHelp(text, terminal);
  return Exit.Ok;
}

/** Whether a flag was typed. */
export function isGiven(word: string, options: TypedVerb["options"]): boolean {
  return options[word.slice(2).replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase())] !== undefined;
}

/** Which commands are meant, by what was said behind the verb or before it. */
export function toProjectFlags({ options, flags }: Pick<TypedVerb, "options" | "flags">): ProjectFlags {
  const commands = (options.commands as string[] | undefined) ?? flags.commands;
  const bundled = (options.bundled as boolean | undefined) ?? flags.bundled;
  return { ...(commands !== undefined && { commands }), ...(bundled !== undefined && { bundled }) };
}
