import type { DescribedCommand, Suggestion } from "../../command/command.ts";
import type { TaskStatus } from "../../task/task.ts";

/** What the shell is to offer: these values, or its own files or folders. */
export type Offer =
  | { readonly kind: "values"; readonly suggestions: readonly Suggestion[] }
  | { readonly kind: "files" | "folders" };

/** An offer for the part of the word behind `before`, e.g. behind `--format=`. */
export interface Completed {
  readonly before: string;
  readonly offer: Offer;
}

/** What can stand at a place, from what was typed there, what was given elsewhere, and what is known of the project. */
export type OfferAt = (typed: string, given: Given, known: KnownValues) => Offer | Promise<Offer>;

/** Looked up when it is needed; nothing of a project is run for it. */
export interface KnownValues {
  /** Tasks with these statuses, or all; newest first. */
  findTasks(statuses: readonly TaskStatus[] | undefined): Promise<readonly Suggestion[]>;
  findUpstreams(): Promise<readonly string[]>;
  /** The names of the project's API keys. */
  findKeys(): Promise<readonly string[]>;
  /** Asks the completion engine for the values of one argument. */
  complete(command: DescribedCommand, request: ArgumentRequest): Promise<readonly Suggestion[]>;
  readonly tools: OwnTools;
}

interface ArgumentRequest {
  readonly argument: string;
  readonly partial: string;
  readonly arguments: Readonly<Record<string, unknown>>;
}

/** The tools of this project's own server, known without starting it. */
export interface OwnTools {
  list(): Promise<readonly Suggestion[]>;
  describe(toolName: string): Promise<DescribedCommand | undefined>;
}

/** The words given for each flag and operand, by its name. */
export type Given = ReadonlyMap<string, readonly string[]>;

export interface Flag {
  /** With its dashes: --format. */
  readonly word: string;
  /** The same for flags that say something about the same thing, as --draft and --no-draft do. Default: the word. */
  readonly name?: string;
  /** What help calls its value: <format>. */
  readonly value?: string;
  readonly description: string;
  /** Without it the flag takes no value. */
  readonly values?: OfferAt;
  readonly isRepeatable?: boolean;
  /** Offered only once its first letter was typed. */
  readonly isRare?: boolean;
}

export interface Operand {
  readonly name: string;
  /** As help shows it: <task>, [hosts...]. */
  readonly shown?: string;
  readonly description?: string;
  /** Without it flags are offered in its place. */
  readonly values?: OfferAt;
  /** Takes all words that are left. */
  readonly isList?: boolean;
}

export interface LineWords {
  /** The whole words before the one that is being typed. */
  readonly words: readonly string[];
  readonly current: string;
}

/** The words that may stand behind a command. */
export interface Grammar {
  readonly flags: readonly Flag[];
  readonly operands: readonly Operand[];
}

/** A flag by the words that help shows: `--port <number>`. */
export function flag(shown: string, description: string, more: Partial<Flag> = {}): Flag {
  const [word = "", value] = shown.split(" ");
  return { word, description, ...(value !== undefined && { value, values: unknown }), ...more };
}

/** An operand by the word that help shows: `<task>`, `[hosts...]`. */
export function operand(shown: string, values?: OfferAt, description = ""): Operand {
  const name = shown.replaceAll(/[^\w/-]/g, "");
  return { name, shown, description, isList: shown.includes("..."), ...(values !== undefined && { values }) };
}

export const nothing: Offer = { kind: "values", suggestions: [] };
export const files: OfferAt = () => ({ kind: "files" });
export const folders: OfferAt = () => ({ kind: "folders" });
/** A value that only its author can know. */
export const unknown: OfferAt = () => nothing;
export const toOffer = (suggestions: readonly Suggestion[]): Offer => ({ kind: "values", suggestions });
export const choices =
  (...values: readonly string[]): OfferAt =>
  () =>
    toOffer(values.map((value) => ({ value })));

/** Several of them with commas between, each once. */
export const commaList =
  (...values: readonly string[]): OfferAt =>
  (typed) => {
    const before = typed.split(",").slice(0, -1);
    return toOffer(
      values.filter((value) => !before.includes(value)).map((value) => ({ value: [...before, value].join(",") })),
    );
  };

interface Reading {
  readonly given: Given;
  /** The flag whose value comes next. */
  readonly pending: Flag | undefined;
  /** How many words stand at operands' places. */
  readonly operands: number;
  /** Behind `--` everything is an operand. */
  readonly isBehindDashes: boolean;
  /** The words from the first operand on. */
  readonly rest: readonly string[];
}

/** Reads whole words; what the grammar does not know is passed over. */
export function readWords(grammar: Grammar, words: readonly string[]): Reading {
  const given = new Map<string, string[]>();
  const give = (name: string, word: string) => given.set(name, [...(given.get(name) ?? []), word]);
  let pending: Flag | undefined;
  let isBehindDashes = false;
  let operands = 0;
  let restFrom = words.length;
  for (const [at, word] of words.entries()) {
    if (pending !== undefined) {
      give(nameOf(pending), word);
      pending = undefined;
    } else if (word === "--" && !isBehindDashes) isBehindDashes = true;
    else if (!isBehindDashes && looksLikeFlag(word)) {
      const [, name = word, value] = /^(--[^=]+)=(.*)$/s.exec(word) ?? [];
      const flag = grammar.flags.find((known) => known.word === name);
      if (flag === undefined) continue;
      if (flag.values !== undefined && value === undefined) pending = flag;
      else give(nameOf(flag), value ?? String(!flag.word.startsWith("--no-")));
    } else {
      restFrom = Math.min(restFrom, at);
      const operand = operandAt(grammar, operands++);
      if (operand !== undefined) give(operand.name, word);
    }
  }
  return { given, pending, operands, isBehindDashes, rest: words.slice(restFrom) };
}

/** What may stand at the cursor behind these words. */
export async function completeWord(
  grammar: Grammar,
  { words, current }: LineWords,
  known: KnownValues,
): Promise<Completed> {
  const reading = readWords(grammar, words);
  if (reading.pending?.values !== undefined)
    return { before: "", offer: await reading.pending.values(current, reading.given, known) };
  const [, before, typed = ""] = (!reading.isBehindDashes && /^(--[^=]+=)(.*)$/s.exec(current)) || [];
  if (before !== undefined) {
    const flag = grammar.flags.find(({ word }) => `${word}=` === before);
    // --draft=true and --draft=false mean the same as --draft and --no-draft.
    const isSwitch =
      flag !== undefined && grammar.flags.some((other) => other !== flag && nameOf(other) === nameOf(flag));
    const values = flag?.values ?? (isSwitch ? choices("true", "false") : unknown);
    return { before, offer: await values(typed, reading.given, known) };
  }
  const flags = reading.isBehindDashes ? [] : flagsLeft(grammar, reading.given, current);
  const operand = operandAt(grammar, reading.operands);
  const isFlag = !reading.isBehindDashes && current.startsWith("--");
  if (operand?.values === undefined || isFlag) return { before: "", offer: toOffer(flags) };
  const offer = await operand.values(current, reading.given, known);
  if (reading.isBehindDashes || (offer.kind !== "values" && !current.startsWith("-"))) return { before: "", offer };
  // A word that begins with a dash would be taken for a flag here, unless it is a number.
  const suggestions = offer.kind === "values" ? offer.suggestions.filter(({ value }) => !looksLikeFlag(value)) : [];
  return { before: "", offer: toOffer(current.startsWith("-") ? [...flags, ...suggestions] : suggestions) };
}

const nameOf = (flag: Flag) => flag.name ?? flag.word;

/** A lone dash is standard input, and -5 a number. */
function looksLikeFlag(word: string): boolean {
  return word.length > 1 && word.startsWith("-") && !/^-(\d+|\d*\.\d+)(e[+-]?\d+)?$/.test(word);
}

function operandAt(grammar: Grammar, at: number): Operand | undefined {
  const last = grammar.operands.at(-1);
  return grammar.operands[at] ?? (last?.isList === true ? last : undefined);
}

function flagsLeft(grammar: Grammar, given: Given, current: string): Suggestion[] {
  const isFirstLetterTyped = /^--./.test(current);
  return grammar.flags
    .filter(
      (flag) =>
        (flag.isRepeatable === true || !given.has(nameOf(flag))) && (isFirstLetterTyped || flag.isRare !== true),
    )
    .map(({ word, description }) => ({ value: word, description }));
}
