import { type Clock, systemClock, toTimestamp } from "../clock.ts";
import type { Completer, Suggestion } from "../command/command.ts";
import type { JsonSchema } from "../command/schema.ts";
import { closest } from "../command/suggest.ts";
import { messageOf } from "../errors.ts";
import { CompletionFailed } from "./completion-failed.ts";
import { filterBy } from "./filter.ts";
import { withParser } from "./pattern-program.ts";
import { type Path, parsePath, resolveContext, valueAt } from "./references.ts";
import { openSchema, type SchemaView } from "./schema-branches.ts";
import { schemaAt } from "./schema-names.ts";
import {
  type Candidate,
  type CandidateRequest,
  type Candidates,
  candidatesOf,
  describe,
  maxValues,
} from "./schema-values.ts";

export interface CompletionRequest {
  /** What was typed so far; nothing, or an empty text, lists all. */
  readonly partial?: string;
  /**
   * The argument whose value is wanted, e.g. `format`, `options.format`, `pages[0].title`. Without it: the names, or
   * the values of a schema that is no object.
   */
  readonly argument?: string;
  /** The arguments that are there already. */
  readonly arguments?: Readonly<Record<string, unknown>>;
  /** What else the caller knows; its `$.field` references are resolved. */
  readonly context?: Readonly<Record<string, unknown>>;
}

export interface Completion {
  /** At most 100. */
  readonly values: string[];
  /** How many are known to fit. */
  readonly total: number;
  /** More fit than are listed: there are more than 100, or a range or pattern was only sampled. */
  readonly hasMore: boolean;
}

/** A completion whose values may say what they are. */
export interface DescribedCompletion {
  readonly suggestions: readonly Suggestion[];
  readonly total: number;
  readonly hasMore: boolean;
}

export interface CompletionOptions {
  /** Completers by argument; `options.format` for one inside. */
  readonly completers?: Readonly<Record<string, Completer | undefined>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** How long a completer may take. */
  readonly limitMs?: number | undefined;
  /** Dates begin with its day. */
  readonly clock?: Clock | undefined;
}

const MAX_PARTIAL_BYTES = 1024;
const defaultLimitMs = 5000;

/**
 * The values that can stand where the caller is typing, from the schema or the command's own completer. Throws
 * `CompletionFailed`.
 */
export async function complete(
  schema: JsonSchema,
  request: CompletionRequest = {},
  options: CompletionOptions = {},
): Promise<Completion> {
  const { suggestions, total, hasMore } = await completeWithDescriptions(schema, request, options);
  return { values: suggestions.map(({ value }) => value), total, hasMore };
}

/** The same with descriptions, for a shell or a form that can show them. */
export async function completeWithDescriptions(
  schema: JsonSchema,
  request: CompletionRequest = {},
  options: CompletionOptions = {},
): Promise<DescribedCompletion> {
  options.signal?.throwIfAborted();
  const { partial = "", arguments: given = {}, context = {}, argument } = request;
  checkRequest(partial, argument);
  const known: CandidateRequest = {
    partial,
    arguments: given,
    context,
    today: toTimestamp((options.clock ?? systemClock).now()).slice(0, 10),
  };
  try {
    const finding = withParser(() => find(schema, argument, known, options.completers));
    const found = finding instanceof Promise ? await finding : finding;
    if ("items" in found) return toCompletion(found, partial);
    return toCompletion(await runCompleter(found.completer, found.target, known, options), partial);
  } catch (error) {
    if (error instanceof CompletionFailed && error.argument === undefined && argument !== undefined) {
      throw new CompletionFailed(error.fault, error.reason, { argument, cause: error.cause });
    }
    throw error;
  }
}

/** The candidates that the schema has, or the completer of the argument that is meant. */
function find(
  schema: JsonSchema,
  argument: string | undefined,
  request: CandidateRequest,
  completers: CompletionOptions["completers"],
): Candidates | { readonly completer: Completer; readonly target: string } {
  const view = openSchema(schema);
  const target = argument ?? findArgumentBeingTyped(view, request);
  const completer = target === undefined ? undefined : completerOf(completers, target);
  if (target !== undefined && completer !== undefined) return { completer, target };
  return target === undefined
    ? candidatesOf(view, schema, request, request.arguments)
    : valuesAt(view, target, request);
}

function checkRequest(partial: string, argument: string | undefined): void {
  for (const [what, text] of [
    ["what was typed", partial],
    ["the argument's name", argument],
  ] as const) {
    if (text === undefined || Buffer.byteLength(text) <= MAX_PARTIAL_BYTES) continue;
    throw new CompletionFailed("limit", `${what} is longer than ${MAX_PARTIAL_BYTES} bytes.`);
  }
}

/**
 * A request may leave the argument out and give its value so far both as `partial` and among the arguments.
 * Then that argument is meant, unless what was typed begins the name of one.
 */
function findArgumentBeingTyped(view: SchemaView, request: CandidateRequest): string | undefined {
  const { partial } = request;
  if (partial === "") return undefined;
  const typed = Object.entries(request.arguments).filter(
    ([name, value]) => value === partial && parsePath(name)?.length === 1,
  );
  const name = typed[0]?.[0];
  if (name === undefined || schemaAt(view, view.root, [name], {}) === undefined) return undefined;
  const names = candidatesOf(view, view.root, request, {}).items;
  return names.some(({ text }) => text.startsWith(partial)) ? undefined : name;
}

/** `tags` completes an item of the list as well: `tags[2]`. */
function completerOf(completers: CompletionOptions["completers"], argument: string): Completer | undefined {
  for (const name of [argument, argument.replaceAll(/\[\d+\]/g, "")]) {
    if (completers !== undefined && Object.hasOwn(completers, name)) return completers[name];
  }
  return undefined;
}

function valuesAt(view: SchemaView, argument: string, request: CandidateRequest): Candidates {
  const { path, schema } = findArgument(view, argument, request);
  if (path === undefined || schema === undefined)
    throw new CompletionFailed("argument", unknownArgument(view, argument, request), { argument });
  return candidatesOf(view, schema, request, valueAt(request.arguments, path));
}

function findArgument(
  view: SchemaView,
  argument: string,
  request: CandidateRequest,
): { path: Path | undefined; schema: unknown } {
  // A property may be called `a.b`.
  for (const path of [[argument], parsePath(argument)]) {
    const schema = path && schemaAt(view, view.root, path, request.arguments);
    if (schema !== undefined) return { path, schema };
  }
  return { path: undefined, schema: undefined };
}

function unknownArgument(view: SchemaView, argument: string, request: CandidateRequest): string {
  const names = candidatesOf(view, view.root, { ...request, partial: "" }, {}).items.map(({ text }) => text);
  const near = closest(argument, names);
  const known =
    names.length === 0 ? "it takes none" : `known: ${names.slice(0, 20).join(", ")}${names.length > 20 ? ", …" : ""}`;
  return `there is no such argument; ${near === undefined ? known : `did you mean ${near}?`}`;
}

async function runCompleter(
  completer: Completer,
  argument: string,
  request: CandidateRequest,
  options: CompletionOptions,
): Promise<Candidates> {
  const { limitMs = defaultLimitMs, clock = systemClock, signal } = options;
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  const tooLate = new CompletionFailed("timeout", `its completer took longer than ${limitMs} ms.`, { argument });
  const cancel = clock.after(limitMs, () => controller.abort(tooLate));
  const ended = new Promise<never>((_, reject) => {
    controller.signal.addEventListener("abort", () => reject(controller.signal.reason as Error), { once: true });
  });
  const given = {
    arguments: request.arguments,
    context: resolveContext(request.arguments, request.context),
    signal: controller.signal,
  };
  try {
    const answer: unknown = await Promise.race([runGuarded(() => completer(request.partial, given)), ended]);
    return { items: toCandidates(answer), isSampled: false };
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason;
    throw new CompletionFailed("completer", messageOf(error), { argument, cause: error });
  } finally {
    cancel();
    signal?.removeEventListener("abort", abort);
  }
}

/** A completer may throw at once or later. */
async function runGuarded(run: () => unknown): Promise<unknown> {
  return await run();
}

function toCandidates(answer: unknown): Candidate[] {
  const toCandidate = (item: unknown): Candidate => {
    if (typeof item === "string") return { text: item, isMade: false };
    const { value, description } = (item ?? {}) as Partial<Suggestion>;
    if (typeof value !== "string")
      throw new TypeError("its completer must give a list of texts, or of { value, description }.");
    return { text: value, about: { description }, isMade: false };
  };
  if (!Array.isArray(answer))
    throw new TypeError("its completer must give a list of texts, or of { value, description }.");
  return [...new Map(answer.map(toCandidate).map((candidate) => [candidate.text, candidate])).values()];
}

function toCompletion({ items, isSampled }: Candidates, partial: string): DescribedCompletion {
  const exact = items.filter(({ text }) => text.startsWith(partial));
  const written = (candidate: Candidate) => !candidate.isMade;
  const fitting = exact.length > 0 ? exact : filterBy(items.filter(written), partial, ({ text }) => text);
  const suggestions = fitting.slice(0, maxValues).map((candidate) => {
    const description = describe(candidate);
    return { value: candidate.text, ...(description === undefined ? {} : { description }) };
  });
  const isOnlySampled = isSampled && (partial === "" || !fitting.every(written));
  return { suggestions, total: fitting.length, hasMore: fitting.length > maxValues || isOnlySampled };
}
