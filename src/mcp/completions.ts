import { ownArgument, ownArguments } from "../command/aliases.ts";
import { callerKey, isKnown } from "../command/caller.ts";
import type { Catalog, CatalogEntry } from "../command/catalog.ts";
import type { Completer } from "../command/command.ts";
import type { JsonSchema } from "../command/schema.ts";
import { closest } from "../command/suggest.ts";
import type { CompletionRequest } from "../completion/complete.ts";
import { CompletionFailed } from "../completion/completion-failed.ts";
import { messageOf, ProtocolError, RpcCode, requestErrors } from "../errors.ts";
import type { Engine } from "../task/engine.ts";
import { forCommands } from "../task/runner.ts";
import { isObject } from "../wire/json.ts";
import { badParams } from "./params.ts";
import { isPrompt } from "./prompts.ts";
import type { ClientRequest, Result } from "./request.ts";

/**
 * completion/complete for our prompts, and in a form of our own for a tool's arguments:
 * `{ name, partial_argument, arguments, context }`. The author's prompts and templates stay with the SDK.
 */
export interface OwnCompletions {
  /** The tool or prompt that a request is about; undefined when it names none. */
  nameIn(params: unknown): string | undefined;
  /** Undefined when the request is about something that is not ours. */
  complete(params: unknown, request: ClientRequest, authors: AuthorsOwn): Promise<Result> | undefined;
}

/** What the author has registered by hand. */
interface AuthorsOwn {
  isPrompt(name: string): boolean;
  /** The input schema of a tool, a command's or the author's. */
  schemaOf(tool: string): JsonSchema | undefined;
}

export interface CompletionsOptions {
  readonly catalog: Catalog;
  /** Commands are prompts too. */
  readonly hasPrompts: boolean;
  readonly openEngine: () => Promise<Engine>;
}

interface Wanted {
  readonly schema: JsonSchema;
  readonly completers: Readonly<Record<string, Completer | undefined>>;
}

export function createCompletions(options: CompletionsOptions): OwnCompletions {
  return {
    nameIn(params) {
      const { ref, name } = (params ?? {}) as { ref?: { name?: unknown } | null; name?: unknown };
      const asked = ref === undefined ? name : ref?.name;
      return typeof asked === "string" ? asked : undefined;
    },
    complete(params, request, authors) {
      const { ref, name } = (params ?? {}) as { ref?: { type?: unknown; name?: unknown } | null; name?: unknown };
      if (ref === undefined) {
        const tool = textOf(name, "name");
        return answer(
          find(options, tool, request, authors) ?? refuse(options, tool),
          toOwnNames(options.catalog.get(tool), tool, toVendorRequest(params)),
          request,
        );
      }
      if (ref?.type === "ref/resource") return undefined;
      if (ref?.type !== "ref/prompt") throw badParams('`ref.type` must be "ref/prompt" or "ref/resource".');
      const prompt = textOf(ref.name, "ref.name");
      const entry = options.hasPrompts && !authors.isPrompt(prompt) ? options.catalog.get(prompt) : undefined;
      if (!isPrompt(entry)) return undefined;
      const { inputSchema: schema, complete: completers } = entry.command;
      return answer({ schema, completers }, toOwnNames(entry, prompt, toRequest(params)), request);
    },
  };
}

/** What a tool's arguments are completed from. */
function find(
  { catalog, openEngine }: CompletionsOptions,
  name: string,
  request: ClientRequest,
  authors: AuthorsOwn,
): Wanted | undefined {
  const command = catalog.get(name)?.command;
  if (command !== undefined) return { schema: command.inputSchema, completers: command.complete };
  const schema = authors.schemaOf(name);
  return schema === undefined ? undefined : { schema, completers: { job_id: () => ownTasks(openEngine, request) } };
}

/** Who cannot be told from others is told of no tasks. */
async function ownTasks(openEngine: () => Promise<Engine>, { caller }: ClientRequest): Promise<string[]> {
  if (!isKnown(caller)) return [];
  const { tasks } = await forCommands(async () => await (await openEngine()).list(callerKey(caller)));
  return tasks.map(({ taskId }) => taskId);
}

function refuse({ catalog }: CompletionsOptions, name: string): never {
  const guess = closest(
    name,
    catalog.entries.map((entry) => entry.toolName),
  );
  throw badParams(
    `There is no tool ${JSON.stringify(name.slice(0, 100))}${guess === undefined ? "." : `; did you mean ${guess}?`}`,
  );
}

function toRequest(params: unknown): CompletionRequest {
  const { argument, context } = params as { argument?: { name?: unknown; value?: unknown } | null; context?: unknown };
  const given = context === undefined ? undefined : objectOf(context, "context").arguments;
  return {
    argument: textOf(argument?.name, "argument.name"),
    partial: textOf(argument?.value, "argument.value"),
    ...(given !== undefined && { arguments: objectOf(given, "context.arguments") }),
  };
}

function toVendorRequest(params: unknown): CompletionRequest {
  const { partial_argument, argument, ...rest } = params as {
    partial_argument?: unknown;
    argument?: unknown;
    arguments?: unknown;
    context?: unknown;
  };
  return {
    ...(partial_argument !== undefined && { partial: textOf(partial_argument, "partial_argument") }),
    ...(argument !== undefined && { argument: textOf(argument, "argument") }),
    ...(rest.arguments !== undefined && { arguments: objectOf(rest.arguments, "arguments") }),
    ...(rest.context !== undefined && { context: objectOf(rest.context, "context") }),
  };
}

/** A request by the arguments' own names, for a tool that goes by several. */
function toOwnNames(entry: CatalogEntry | undefined, calledAs: string, request: CompletionRequest): CompletionRequest {
  if (entry?.aliases === undefined) return request;
  const { argument, arguments: given } = request;
  try {
    return {
      ...request,
      ...(argument !== undefined && { argument: ownArgument(entry, calledAs, argument) }),
      ...(given !== undefined && { arguments: ownArguments(entry, calledAs, given) as Record<string, unknown> }),
    };
  } catch (error) {
    throw badParams(messageOf(error));
  }
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== "string") throw badParams(`\`${field}\` must be a text.`);
  return value;
}

function objectOf(value: unknown, field: string): Record<string, unknown> {
  if (!isObject(value)) throw badParams(`\`${field}\` must be an object.`);
  return value;
}

async function answer(
  { schema, completers }: Wanted,
  wanted: CompletionRequest,
  { signal }: ClientRequest,
): Promise<Result> {
  // Loaded when first needed: most servers are never asked.
  const { complete } = await import("../completion/complete.ts");
  try {
    const { total, ...completion } = await complete(schema, wanted, { completers, signal });
    // Where values are only examples of endlessly many, nobody knows the total.
    const isKnown = total > completion.values.length || !completion.hasMore;
    return { completion: { ...completion, ...(isKnown && { total }) } } as unknown as Result;
  } catch (error) {
    if (error instanceof RangeError)
      throw new ProtocolError(RpcCode.Internal, "Completing failed: the schema is nested too deep.", {
        error: "completion_failed",
      });
    if (!(error instanceof CompletionFailed)) throw error;
    const isCallers = error.fault === "argument" || error.fault === "limit";
    const data = { error: error.code, reason: error.reason };
    throw new ProtocolError(isCallers ? requestErrors.params.code : RpcCode.Internal, error.message, data);
  }
}
