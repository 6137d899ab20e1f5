import { type Alias, readAliases } from "./aliases.ts";
import type { Content } from "./content.ts";
import type { CallFacts, CommandContext, Origin } from "./context.ts";
import type { ForeignTool } from "./foreign.ts";
import { type InferInput, type InferOutput, type JsonSchema, type Schema, toJsonSchema } from "./schema.ts";
import { closest } from "./suggest.ts";

export type Effects = "read" | "write" | "destroy";
type Isolation = "server" | "process";
type Estimate = number | { readonly work: number };
/** Whether a client may, must or must not call it as a task. */
export type TaskSupport = "optional" | "required" | "forbidden";

/**
 * How a failed run is tried again: this many attempts in all, waiting `backoff` seconds, then twice that, and so on.
 */
interface Retry {
  readonly attempts: number;
  readonly backoff?: number;
}

/** A value to offer, with what it is for shells and forms that can show it. */
export interface Suggestion {
  readonly value: string;
  readonly description?: string | undefined;
}

/** What a completer knows beside the text. Over MCP the arguments may still be texts, and any may be missing. */
interface CompleterContext {
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly context: Readonly<Record<string, unknown>>;
  /** Aborted when the caller no longer waits, or the completer has taken too long. */
  readonly signal: AbortSignal;
}

type Suggestions = readonly (string | Suggestion)[];

/**
 * An author's own: the values for one argument. It may give all of them; those that do not fit `partial` are left out.
 */
export type Completer = (partial: string, given: CompleterContext) => Suggestions | Promise<Suggestions>;

/**
 * Another name for the tool; `arguments` says what that name's arguments are called here. Without a name, for the
 * tool's own.
 */
interface AliasDefinition<I> {
  readonly name?: string;
  readonly arguments?: { readonly [theirs: string]: keyof I & string };
}

type ArgumentPath<I> = (keyof I & string) | `${keyof I & string}.${string}`;

/** What an author writes. Only `summary` and `run` are needed. */
export interface CommandDefinition<I extends Schema, O extends Schema> {
  /**
   * Its words, as typed in a terminal: `report build` makes the tool report_build. For commands that are handed over in
   * code; one in a file is named by its file.
   */
  readonly name?: string;
  /** One line: what it does. */
  readonly summary: string;
  /** More for a model to choose by: when to use it, when not. */
  readonly description?: string;
  /** An object schema; absent means no arguments. */
  readonly input?: I;
  /** What `run` returns. Without it the tool lists no output schema. */
  readonly output?: O;
  /** Expected to take long: a task at once where the client can take one. */
  readonly long?: boolean;
  /**
   * How long a run with this input will take: seconds, or a size that history turns into time; undefined when that
   * cannot be said.
   */
  readonly estimate?: (input: InferOutput<I>, call: CallFacts) => Estimate | undefined;
  /** `read` changes nothing, `destroy` cannot be undone. Default: `write`. */
  readonly effects?: Effects;
  /** Running it twice with the same input is the same as once. */
  readonly idempotent?: boolean;
  /**
   * Asked before a run: a sentence, or one made from the input and where the call came from. `destroy` commands ask by
   * default; `false` turns it off.
   */
  readonly confirm?: string | false | ((input: InferOutput<I>, origin: Origin) => string | false);
  /**
   * Questions to settle before anything is started: asks, and may return the input changed. It must change nothing
   * itself, because it runs again with the answers.
   */
  readonly before?: (input: InferOutput<I>, ask: CommandContext["ask"]) => Prepared<I> | Promise<Prepared<I>>;
  /**
   * `required`: only as a task, so clients without tasks cannot call it; `forbidden`: never as one. Default: optional.
   */
  readonly taskSupport?: TaskSupport;
  /** Seconds after which the run fails as timed out, those in which it waits for an answer apart. Default: none. */
  readonly timeout?: number;
  /** Tries again when `run` throws, as a task. Also says that running again after a crash does no harm. */
  readonly retry?: Retry;
  /**
   * `process`: over MCP and as a task, every run has a child process of bounded memory that can be killed. Default: in
   * the server.
   */
  readonly isolation?: Isolation;
  /** `false`: equal calls of one caller are separate tasks even while one is live. */
  readonly dedupe?: boolean;
  /** `false`: the output is the tool's structured content as it is, without { success, data, messages }. */
  readonly envelope?: boolean;
  /**
   * `true`: a caller may write `$.field` for a text argument, and its value is taken from the other arguments or the
   * call's context.
   */
  readonly references?: boolean;
  /** Values for arguments that know more than their schema; `"options.format"` for one inside. */
  readonly complete?: { readonly [argument in ArgumentPath<InferInput<I>>]?: Completer };
  /** Other names the tool answers to, unlisted: after a rename, what people have written down goes on working. */
  readonly aliases?: readonly (string | AliasDefinition<InferInput<I>>)[];
  /**
   * What a caller over HTTP needs beside the right to call: all of these scopes. The user of this machine needs none.
   */
  readonly scopes?: readonly string[];
  /** Optional arguments that are typed without their names, in this order, behind those that are required. */
  readonly positional?: readonly (keyof InferInput<I> & string)[];
  /** Arguments worth showing in `--help`, as typed after the command's name. */
  readonly examples?: readonly string[];
  /** The result in one line. */
  readonly summarize?: (output: InferOutput<O>) => string;
  /**
   * True when the data is a no: in a terminal ✗ and exit code 1. The data is the result all the same, at every door.
   */
  readonly saysNo?: (output: InferOutput<O>) => boolean;
  readonly run: (input: InferOutput<I>, task: CommandContext) => RunResult<O> | Promise<RunResult<O>>;
}

// biome-ignore lint/suspicious/noConfusingVoidType: a function that returns nothing is what most authors will write.
type Prepared<I extends Schema> = InferOutput<I> | void;
type RunResult<O extends Schema> = InferInput<O> | Content;

/** A definition, checked, with its schemas described. */
export interface Command {
  readonly name: string | undefined;
  readonly summary: string;
  readonly description: string | undefined;
  readonly input: Schema | undefined;
  readonly output: Schema | undefined;
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema | undefined;
  readonly long: boolean;
  readonly estimate: ((input: never, call: CallFacts) => Estimate | undefined) | undefined;
  readonly effects: Effects;
  readonly idempotent: boolean;
  readonly confirm: string | false | ((input: never, origin: Origin) => string | false);
  readonly before: ((input: never, ask: CommandContext["ask"]) => unknown) | undefined;
  readonly taskSupport: TaskSupport;
  readonly timeout: number | undefined;
  readonly retry: { readonly attempts: number; readonly backoff: number } | undefined;
  readonly isolation: Isolation;
  readonly dedupe: boolean;
  readonly envelope: boolean;
  readonly references: boolean;
  readonly complete: Readonly<Record<string, Completer | undefined>>;
  readonly aliases: readonly Alias[];
  readonly scopes: readonly string[];
  readonly positional: readonly string[];
  readonly examples: readonly string[];
  readonly summarize: ((output: never) => string) | undefined;
  readonly saysNo: ((output: never) => boolean) | undefined;
  readonly run: (input: never, task: CommandContext) => unknown;
  /** There where it is a tool of somebody else's server: that is called in place of `run`. */
  readonly foreign?: ForeignTool;
}

/** What help and completion need of a command; nothing of it has to be run. */
export type DescribedCommand = Pick<
  Command,
  "summary" | "description" | "inputSchema" | "positional" | "examples" | "confirm" | "complete"
>;

const brand = Symbol.for("meanwhile.command");

/** Makes a command; a wrong definition is refused here, by field, when the file is loaded. */
export function defineCommand<I extends Schema = Schema<Record<string, never>>, O extends Schema = Schema<unknown>>(
  definition: CommandDefinition<I, O>,
): Command {
  checkDefinition(definition as unknown as Record<string, unknown>);
  const effects = definition.effects ?? "write";
  const inputSchema =
    definition.input === undefined ? { type: "object", properties: {} } : toObjectSchema(definition.input, "input");
  const command: Command = {
    name: definition.name?.trim(),
    summary: definition.summary.trim(),
    description: definition.description?.trim(),
    input: definition.input,
    output: definition.output,
    inputSchema,
    outputSchema: definition.output === undefined ? undefined : toJsonSchema(definition.output, "output"),
    long: definition.long ?? false,
    estimate: definition.estimate as Command["estimate"],
    effects,
    idempotent: definition.idempotent ?? effects === "read",
    confirm:
      (definition.confirm as Command["confirm"] | undefined) ??
      (effects === "destroy" ? "This cannot be undone. Go ahead?" : false),
    before: definition.before as Command["before"],
    taskSupport: definition.taskSupport ?? "optional",
    timeout: definition.timeout,
    retry:
      definition.retry === undefined
        ? undefined
        : { attempts: definition.retry.attempts, backoff: definition.retry.backoff ?? 1 },
    isolation: definition.isolation ?? "server",
    dedupe: definition.dedupe ?? true,
    envelope: definition.envelope ?? true,
    references: definition.references ?? false,
    complete: (definition.complete as Command["complete"] | undefined) ?? {},
    aliases: readAliases(definition.aliases ?? [], inputSchema),
    scopes: definition.scopes ?? [],
    positional: definition.positional ?? [],
    examples: definition.examples ?? [],
    summarize: definition.summarize as Command["summarize"],
    saysNo: definition.saysNo as Command["saysNo"],
    run: definition.run as Command["run"],
  };
  checkPositional(command);
  return Object.defineProperty(command, brand, { value: true });
}

/** True for what `defineCommand` made, whichever copy of the package made it. */
export function isCommand(value: unknown): value is Command {
  return typeof value === "object" && value !== null && brand in value;
}

function checkPositional({ positional, inputSchema }: Command): void {
  const known = Object.keys((inputSchema.properties ?? {}) as object);
  const unknown = positional.find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new TypeError(`\`positional\` names ${unknown}, which is no argument; known: ${known.join(", ")}`);
}

function toObjectSchema(schema: Schema, side: "input"): JsonSchema {
  const described = toJsonSchema(schema, side);
  if (described.type !== "object")
    throw new TypeError(
      `\`input\` must be an object schema (its JSON Schema has type ${JSON.stringify(described.type ?? "none")}); wrap it: z.object({ value: … })`,
    );
  return described.properties === undefined ? { ...described, properties: {} } : described;
}

const isText = (value: unknown) => typeof value === "string" && value.trim() !== "";
const isFunction = (value: unknown) => typeof value === "function";
const isBoolean = (value: unknown) => typeof value === "boolean";
const isSchema = (value: unknown) =>
  typeof value === "object" && value !== null
    ? "~standard" in value
    : isFunction(value) && "~standard" in (value as object);

const isWords = (value: unknown) =>
  typeof value === "string" && /^[A-Za-z][A-Za-z0-9_-]*( [A-Za-z][A-Za-z0-9_-]*)*$/.test(value.trim());

const isTexts = (value: unknown) => Array.isArray(value) && value.every((item) => typeof item === "string");

/** A scope as OAuth has it: printable ASCII without spaces, quotes and backslashes. */
export const isScope = (value: unknown) => typeof value === "string" && /^[\x21\x23-\x5B\x5D-\x7E]{1,200}$/.test(value);

const isScopes = (value: unknown) => Array.isArray(value) && value.every(isScope);

const isCompleters = (value: unknown) =>
  typeof value === "object" && value !== null && Object.values(value).every(isFunction);

const isRetry = (value: unknown) => {
  const { attempts, backoff = 1, ...others } = (value ?? {}) as Record<string, unknown>;
  const isBackoff = typeof backoff === "number" && Number.isFinite(backoff) && backoff >= 0;
  return (
    Number.isInteger(attempts) &&
    (attempts as number) >= 2 &&
    (attempts as number) <= 100 &&
    isBackoff &&
    Object.keys(others).length === 0
  );
};

const fields: Record<string, { check: (value: unknown) => boolean; expected: string; required?: true }> = {
  summary: { check: isText, expected: "one line of text", required: true },
  run: { check: isFunction, expected: "a function (input, task) => result", required: true },
  name: {
    check: isWords,
    expected: "the command's words, of letters, digits and hyphens, with spaces between: report build",
  },
  description: { check: isText, expected: "text" },
  input: { check: isSchema, expected: "a Standard Schema, e.g. z.object({ … })" },
  output: { check: isSchema, expected: "a Standard Schema, e.g. z.object({ … })" },
  long: { check: isBoolean, expected: "true or false" },
  estimate: { check: isFunction, expected: "a function (input) => seconds, or => { work }" },
  effects: {
    check: (value) => value === "read" || value === "write" || value === "destroy",
    expected: '"read", "write" or "destroy"',
  },
  idempotent: { check: isBoolean, expected: "true or false" },
  confirm: {
    check: (value) => value === false || isText(value) || isFunction(value),
    expected: "a question, a function (input) => question, or false",
  },
  before: { check: isFunction, expected: "a function (input, ask) => input" },
  taskSupport: {
    check: (value) => value === "optional" || value === "required" || value === "forbidden",
    expected: '"optional", "required" or "forbidden"',
  },
  timeout: {
    check: (value) => typeof value === "number" && value > 0 && Number.isFinite(value),
    expected: "a positive number of seconds",
  },
  retry: { check: isRetry, expected: "{ attempts: a whole number from 2 to 100, backoff: seconds }" },
  isolation: { check: (value) => value === "server" || value === "process", expected: '"server" or "process"' },
  dedupe: { check: isBoolean, expected: "true or false" },
  envelope: { check: isBoolean, expected: "true or false" },
  references: { check: isBoolean, expected: "true or false" },
  complete: {
    check: isCompleters,
    expected: "an object of functions (partial, { arguments, context, signal }) => values",
  },
  aliases: {
    check: Array.isArray,
    expected: "a list of tool names, or of { name, arguments: { their_name: our_name } }",
  },
  scopes: { check: isScopes, expected: 'a list of scopes without spaces, e.g. ["reports:write"]' },
  positional: { check: isTexts, expected: "a list of arguments' names" },
  examples: { check: isTexts, expected: "a list of texts" },
  summarize: { check: isFunction, expected: "a function (output) => text" },
  saysNo: { check: isFunction, expected: "a function (output) => true or false" },
};

function checkDefinition(definition: Record<string, unknown>): void {
  // A mistyped name is also one that is missing, and the first is what there is to mend.
  for (const name of Object.keys(definition)) {
    if (Object.hasOwn(fields, name)) continue;
    const guess = closest(name, Object.keys(fields));
    throw new TypeError(
      `\`${name}\` is not a field of a command; ${guess === undefined ? `known: ${Object.keys(fields).join(", ")}` : `did you mean \`${guess}\`?`}`,
    );
  }
  for (const [name, field] of Object.entries(fields)) {
    const value = definition[name];
    if (value === undefined && field.required !== true) continue;
    if (!field.check(value))
      throw new TypeError(`\`${name}\` must be ${field.expected}${value === undefined ? ", and it is missing" : ""}`);
  }
}
