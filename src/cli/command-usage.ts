import { Option, Command as Program } from "commander";
import type { DescribedCommand } from "../command/command.ts";
import type { FoundCommand } from "../command/discover.ts";
import { UsageError } from "../errors.ts";
import { thisProgram } from "../program/program.ts";
import { wrap } from "../screen/width.ts";
import { describeOff, type Parameter, readParameters, readValue } from "./arguments.ts";
import type { Flag } from "./completion/grammar.ts";
import { refuseExclusive } from "./exclusive-flags.ts";
import { commandFlags, globalFlags, hasOwnOut } from "./flags.ts";
import { clean } from "./terminal.ts";

/** What was typed after a command's name. */
export interface TypedCommand {
  readonly input: Record<string, unknown>;
  readonly json: boolean;
  readonly yaml: boolean;
  readonly quiet: boolean;
  readonly yes: boolean;
  /** Run as a task: follow it, or leave at once. */
  readonly asTask: "follow" | "detach" | undefined;
  /** Start another run even if an equal one is live. */
  readonly isNew: boolean;
  readonly ttl: string | undefined;
  /** A file to read the input from, or - for standard input. */
  readonly inputFile: string | undefined;
  /** The file for images and files of the result. */
  readonly out: string | undefined;
}

/** A command by the words it is called by, and what is known of it. */
export interface Described {
  readonly path: readonly string[];
  readonly command: DescribedCommand;
}

function parametersOf({ command }: Described): Parameter[] {
  return readParameters(command.inputSchema, command.positional);
}

/** Whether the words after a command's name ask for its help. */
export function wantsHelpOf(words: readonly string[]): boolean {
  return beforeDashes(words).some((word) => word === "--help" || word === "-h");
}

/** What `--help` prints behind a command. */
export function commandHelp(entry: Described): string {
  return `${toProgram(entry, parametersOf(entry)).helpInformation()}${examplesOf(entry)}`;
}

/** The same for one whose file nobody has loaded as it is: what its name tells. */
export function unknownHelp({ path, file }: FoundCommand): string {
  return `Usage: ${thisProgram.name} ${path.map(clean).join(" ")} …\n\n${clean(file)} has not been loaded as it is now;\nrun \`${thisProgram.name} tools\` once to see what it takes.\n`;
}

/** Reads the words after a command's name. Throws a UsageError that says which word is wrong. */
export function parseTyped(entry: Described, words: readonly string[]): TypedCommand {
  const parameters = parametersOf(entry);
  const program = toProgram(entry, parameters);
  const typed = beforeDashes(words);
  try {
    program.parse(
      words.map((word, at) => (at < typed.length ? plainSwitch(word, parameters) : word)),
      { from: "user" },
    );
  } catch (error) {
    throw new UsageError(
      `${sentence((error as Error).message)}\n  See: ${thisProgram.name} ${entry.path.join(" ")} --help`,
    );
  }
  const options = program.opts<Record<string, unknown>>();
  const out = hasOwnOut(entry.command) ? undefined : (options.out as string | undefined);
  refuseExclusive({ ...options, out });
  return {
    input: toInput(parameters, program.processedArgs as unknown[], options),
    json: options.json === true,
    yaml: options.yaml === true,
    quiet: options.quiet === true,
    yes: options.yes === true,
    asTask: options.detach === true ? "detach" : options.async === true ? "follow" : undefined,
    isNew: options.new === true,
    ttl: options.taskTtl as string | undefined,
    inputFile: options.input as string | undefined,
    out,
  };
}

/** Behind `--` everything is an argument. */
export function beforeDashes(words: readonly string[]): readonly string[] {
  const at = words.indexOf("--");
  return at === -1 ? words : words.slice(0, at);
}

/** `--draft=true` and `--draft=false` mean --draft and --no-draft. */
function plainSwitch(word: string, parameters: readonly Parameter[]): string {
  const [, name, value] = /^--([^=]+)=(true|false)$/.exec(word) ?? [];
  const isSwitch = parameters.some((parameter) => parameter.isSwitch && parameter.word === name);
  if (!isSwitch) return word;
  return value === "true" ? `--${name}` : `--no-${name}`;
}

function toProgram(entry: Described, parameters: readonly Parameter[]): Program {
  const { command } = entry;
  const program = quietProgram(`${thisProgram.name} ${entry.path.join(" ")}`);
  program.description(toText(command));
  const positional = parameters.filter((parameter) => parameter.place === "positional");
  for (const parameter of positional)
    program.argument(`[${parameter.word}${parameter.isList ? "..." : ""}]`, describe(parameter));
  const usage = positional.map((parameter) => {
    const word = `${parameter.word}${parameter.isList ? "..." : ""}`;
    return isNeeded(parameter) ? `<${word}>` : `[${word}]`;
  });
  program.usage([...usage, "[options]"].join(" "));
  for (const parameter of parameters)
    for (const option of toOptions(parameter))
      program.addOption(parameter.place === "flag" ? option : option.hideHelp());
  addFlags(program, commandFlags(command));
  return program;
}

/** What somebody else says of a tool begins with what is its summary here. */
function toText({ summary, description }: DescribedCommand): string {
  if (description === undefined) return summary;
  return description.trimStart().startsWith(summary) ? description.trim() : `${summary}\n\n${description}`;
}

/** A commander program that neither exits nor writes. */
export function quietProgram(name: string): Program {
  return new Program(name)
    .exitOverride()
    .configureOutput({ writeErr: () => {}, writeOut: () => {} })
    .helpOption("-h, --help", "show this help")
    .allowExcessArguments(false);
}

/** Has a program read these flags, and show them in its help. */
export function addFlags(program: Program, flags: readonly Flag[]): void {
  for (const { word, value, description, isRepeatable } of flags) {
    const option = new Option([word, value].filter(Boolean).join(" "), description);
    program.addOption(isRepeatable === true ? option.argParser(collect) : option);
  }
}

/** For options that may be given several times. */
function collect(value: string, previous: readonly string[] | undefined): string[] {
  return [...(previous ?? []), value];
}

function toOptions(parameter: Parameter): Option[] {
  const { word, name } = parameter;
  if (parameter.isSwitch) {
    const positive = new Option(`--${word}`, describe(parameter));
    const negative = new Option(`--no-${word}`, describeOff(describe(parameter)));
    if (parameter.defaultValue === true) return [positive.hideHelp(), negative];
    return [positive, negative.hideHelp()];
  }
  const option = new Option(
    `--${word} <${parameter.choices === undefined ? parameter.valueWord : name}>`,
    describe(parameter),
  );
  return [parameter.isList ? option.argParser(collect) : option];
}

function isNeeded({ isRequired, defaultValue }: Parameter): boolean {
  return isRequired && defaultValue === undefined;
}

function describe(parameter: Parameter): string {
  const notes = [
    parameter.choices === undefined ? "" : `one of ${parameter.choices.join(", ")}`,
    parameter.defaultValue === undefined || parameter.defaultValue === "" || parameter.isSwitch
      ? ""
      : `default ${JSON.stringify(parameter.defaultValue)}`,
    parameter.isList ? "may be given several times" : "",
    isNeeded(parameter) && parameter.place === "flag" ? "required" : "",
  ].filter(Boolean);
  return [parameter.description, notes.length === 0 ? "" : `(${notes.join("; ")})`].filter(Boolean).join(" ");
}

function toInput(
  parameters: readonly Parameter[],
  positionals: readonly unknown[],
  options: Record<string, unknown>,
): Record<string, unknown> {
  const input: Record<string, unknown> = {};
  const positional = parameters.filter((parameter) => parameter.place === "positional");
  for (const parameter of parameters) {
    const placed = parameter.place === "positional" ? positionals[positional.indexOf(parameter)] : undefined;
    const isPlaced = placed !== undefined && !(Array.isArray(placed) && placed.length === 0);
    // What is positional may be given by its name all the same.
    const given = isPlaced ? placed : options[camelCase(parameter.word)];
    if (given === undefined) continue;
    input[parameter.name] = toValue(given, parameter);
  }
  return input;
}

function toValue(given: unknown, parameter: Parameter): unknown {
  if (Array.isArray(given))
    return given.map((item: string) => readValue(item, (parameter.schema.items ?? {}) as Parameter["schema"]));
  return typeof given === "string" ? readValue(given, parameter.schema) : given;
}

function camelCase(word: string): string {
  return word.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function examplesOf(entry: Described): string {
  const { examples } = entry.command;
  if (examples.length === 0) return "";
  return `\nExamples:\n${examples.map((example) => `  $ ${thisProgram.name} ${entry.path.join(" ")}${example === "" ? "" : ` ${example}`}\n`).join("")}`;
}

/** commander's "error: unknown option '--x'" as a sentence of ours. */
export function sentence(message: string): string {
  const text = message.replace(/^error: /, "").replace(/\n\(Did you mean (.+)\?\)/, "; did you mean $1?");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`.replace(/([^.?!])$/, "$1.");
}

interface ListedVerb {
  readonly name: string;
  readonly summary: string;
}

/** Commands that belong together in the help; the first group is named even where it is empty. */
export interface HelpGroup {
  readonly heading: string;
  readonly found: readonly FoundCommand[];
}

export interface RootHelp {
  readonly version: string;
  readonly verbs: readonly ListedVerb[];
  readonly groups: readonly HelpGroup[];
  /** How wide it may be. */
  readonly columns: number;
}

type Row = readonly [name: string, text: string];

/** `meanwhile --help`. Names the commands without loading any. */
export function rootHelp({ version, verbs, groups, columns }: RootHelp): string {
  const own = groups
    .filter(({ found }, at) => at === 0 || found.length > 0)
    .map(({ heading, found }) => ({ heading, rows: toDomains(found) }));
  const words: readonly Row[] = verbs.map((verb) => [verb.name, verb.summary]);
  const options = globalFlags().map(
    ({ word, value, description }): Row => [[word, value].filter(Boolean).join(" "), description],
  );
  const width =
    Math.max(...[...own.flatMap(({ rows }) => rows), ...words, ...options].map(([name]) => name.length)) + 2;
  const block = (heading: string, rows: readonly Row[]) =>
    `${wrap(heading, columns).join("\n")}\n${rows.length === 0 ? noneYet() : toRows(rows, width, columns)}`;
  return `${[
    wrap(`${thisProgram.name} ${version}${about()}`, columns).join("\n"),
    `Usage: ${thisProgram.name} <command> [arguments]`,
    ...own.map(({ heading, rows }) => block(heading, rows)),
    block(thisProgram.authors === undefined ? `Commands of ${thisProgram.title}` : "Besides", words),
    block("Options", options),
    wrap(`\`${thisProgram.name} <command> --help\` explains one of them.`, columns).join("\n"),
  ].join("\n\n")}\n`;
}

/** What the program is for. */
function about(): string {
  const { authors } = thisProgram;
  if (authors === undefined) return ": write a command once, run it here and from any MCP client";
  return authors.summary === undefined ? "" : `: ${clean(authors.summary)}`;
}

function noneYet(): string {
  return thisProgram.authors === undefined
    ? `  none yet; ${thisProgram.name} new hello/world writes the first`
    : "  none yet";
}

/** Each domain with the rest of its commands' words. */
function toDomains(found: readonly FoundCommand[]): Row[] {
  const domains = Map.groupBy(found, ({ path }) => path[0] ?? "");
  return [...domains].map(([domain, inside]) => [
    clean(domain),
    clean(
      inside
        .map(({ path }) => path.slice(1).join(" "))
        .filter(Boolean)
        .join(", "),
    ),
  ]);
}

/** Names in a column of their own, what they mean beside them. */
function toRows(rows: readonly Row[], width: number, columns: number): string {
  return rows
    .map(([name, text]) =>
      `  ${name.padEnd(width)}${wrap(text, columns - width - 2).join(`\n${" ".repeat(width + 2)}`)}`.trimEnd(),
    )
    .join("\n");
}

interface Named {
  readonly path: readonly string[];
  readonly summary: string | undefined;
}

/** `meanwhile report`: what there is in a domain, and what each does, where it is known. */
export function domainHelp(domain: string, entries: readonly Named[], columns: number): string {
  const rows = entries.map(({ path, summary }): Row => [`${thisProgram.name} ${path.join(" ")}`, clean(summary ?? "")]);
  const isAllKnown = entries.every(({ summary }) => summary !== undefined);
  return `Commands of ${domain}\n${toRows(rows, Math.max(...rows.map(([name]) => name.length)) + 2, columns)}\n${isAllKnown ? "" : `\nRun \`${thisProgram.name} tools\` once to see what they do.\n`}`;
}
