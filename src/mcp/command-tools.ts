import { nextTurn } from "../clock.ts";
import { ownArguments } from "../command/aliases.ts";
import { isKnown } from "../command/caller.ts";
import type { Catalog, CatalogEntry, ListedEntry } from "../command/catalog.ts";
import type { Command } from "../command/command.ts";
import { envelopeSchema } from "../command/envelope.ts";
import type { ForeignTool } from "../command/foreign.ts";
import type { JsonSchema } from "../command/schema.ts";
import { closest } from "../command/suggest.ts";
import { CommandError, type ProtocolError } from "../errors.ts";
import { withinHostLimit } from "../task/answer-deadline.ts";
import type { DeferralRules } from "../task/deferral.ts";
import type { CommandStats } from "../task/history.ts";
import { announceTaskMode } from "../task/outlook.ts";
import { fieldsOf, isObject, type Json, textOf } from "../wire/json.ts";
import { knowsTaskSupport } from "../wire/revisions.ts";
import { CommandCall, type CommandCallOptions } from "./command-call.ts";
import { refuseWrongSupport, takesJobNotifications } from "./generation/task-support.ts";
import { budgetFor } from "./host-limit.ts";
import { admitsHandle } from "./listed-shapes.ts";
import { badParams } from "./params.ts";
import type { CommandTools, ListedTool, ToolCall } from "./parts.ts";
import type { ClientIdentity, ClientRequest, Result } from "./request.ts";
import { errorResult } from "./results.ts";

/** Which tools a caller with limited rights sees, by the tools' own names. */
export interface ToolVisibility {
  isHidden(toolName: string): boolean;
  isListed(toolName: string): boolean;
  /** See `ToolAccess`. */
  readonly needsListedNames: boolean;
}

export interface ToolsOptions extends CommandCallOptions {
  readonly catalog: Catalog;
  /** What is known of every command's durations; read once for each revision of the catalog. */
  readonly readStats: () => Promise<readonly CommandStats[]>;
  /** Which commands count as long. */
  readonly deferral: DeferralRules;
  /** Undefined for a caller who sees every tool. */
  readonly visibility: ToolVisibility | undefined;
}

interface ListShape {
  /** Tools say whether they can be tasks. */
  readonly hasSupport: boolean;
  /** Tools that may become tasks say so as the jobs dialect does. */
  readonly takesJobs: boolean;
  /** A handle may stand in place of a result, and output schemas admit it. */
  readonly admitsHandle: boolean;
}

function listFor(
  commands: readonly ListedTool[],
  followUps: readonly ListedTool[],
  { hasSupport, takesJobs }: ListShape,
): readonly ListedTool[] {
  const tools = [...(takesJobs ? commands.map(withAsync) : commands), ...followUps];
  return hasSupport ? tools : tools.map(({ execution: _support, ...tool }) => tool);
}

function withAsync<T extends Json>(tool: T): T {
  return fieldsOf(tool.execution).taskSupport === "forbidden" ? tool : { ...tool, async: true };
}

/** For the jobs dialect the members of the envelope stand beside it, too. */
function withEnvelopeOnTop(result: Result): Result {
  const { success, data, messages } = fieldsOf(result.structuredContent);
  const isEnvelope = typeof success === "boolean" && data !== undefined && Array.isArray(messages);
  return isEnvelope ? { ...result, success, data, messages } : result;
}

/** tools/list and tools/call for every command of a catalog. */
export function createTools(options: ToolsOptions): CommandTools {
  const { catalog, plain, deferral, shapes, visibility } = options;
  const shapeFor = (request: ClientRequest): ListShape => ({
    hasSupport: showsSupport(request.client),
    takesJobs: takesJobNotifications(request.client),
    admitsHandle: admitsHandle(request, plain !== undefined),
  });
  /** What was made of a list for each kind of client. */
  const listsOf = new WeakMap<readonly ListedTool[], Map<string, readonly ListedTool[]>>();
  const commandTools = keepList(options);
  return {
    async list(request) {
      // Before anything is waited for: a call may be next to this request.
      shapes.note(request);
      const commands = await commandTools();
      const kept = listsOf.get(commands) ?? new Map<string, readonly ListedTool[]>();
      listsOf.set(commands, kept);
      const shape = shapeFor(request);
      const key = `${JSON.stringify(shape)} ${isKnown(request.caller)} ${plain?.isAloneFor(request)}`;
      const tools = kept.get(key) ?? listFor(commands, plain?.list(request) ?? [], shape);
      kept.set(key, tools);
      return tools;
    },
    present(tool, request) {
      const name = textOf(tool.name) ?? "";
      if (visibility?.isListed(name) === false) return undefined;
      const entry = catalog.get(name);
      // A name that is ours leads to ours.
      const isOurs = entry?.toolName === name ? entry.command.foreign === undefined : plain?.inputSchema(name);
      if (isOurs) return undefined;
      return present(tool, entry, shapeFor(request), deferral);
    },
    inputSchema: (toolName) => catalog.get(toolName)?.command.inputSchema ?? plain?.inputSchema(toolName),
    load: (toolName) => catalog.load(toolName),
    call(called, request) {
      const answer = callTool(options, called, request);
      if (catalog.pending.length > 0) void loadAfter(answer, catalog);
      if (answer === undefined || !takesJobNotifications(request.client)) return answer;
      return answer instanceof Promise ? answer.then(withEnvelopeOnTop) : withEnvelopeOnTop(answer);
    },
    async whenStarted(starting, { name }, request, act) {
      const { clock } = options;
      const budget = budgetFor(options, request);
      const known = starting.then((value) => ({ value }));
      const started = await withinHostLimit(known, { clock, arrivedAt: request.arrivedAt, budget }, () => undefined);
      if (started !== undefined) return await act(started.value);
      const command = catalog.get(name)?.command;
      const hasOwnSchema = shapes.wasForTasks(request) || !shapeFor(request).admitsHandle;
      const terms = command === undefined ? {} : { command, hasOwnSchema };
      const sentence = `${name} was not started, because its server is still starting. Call it again later.`;
      return errorResult(sentence, clock, terms);
    },
    unknown: (toolName) => unknownTool(toolName, catalog),
    isHidden: (toolName) => visibility?.isHidden(toolName) === true,
    needsListedNames: visibility?.needsListedNames === true,
  };
}

/** Loads the other commands when the first call has been answered, so that its client does not wait for them. */
async function loadAfter(answer: unknown, catalog: Catalog): Promise<void> {
  await Promise.allSettled([answer]);
  await nextTurn();
  await catalog.loadAll();
}

/** The tools of the commands, made again when the catalog has changed. */
function keepList(options: ToolsOptions): () => Promise<readonly ListedTool[]> {
  const { catalog, deferral } = options;
  let listed: { revision: number; isPartial: boolean; tools: Promise<readonly ListedTool[]> } | undefined;
  return () => {
    if (listed?.revision !== catalog.revision || listed.isPartial)
      listed = { revision: catalog.revision, isPartial: false, tools: listCommands(options) };
    const current = listed;
    return current.tools.catch(async (error: unknown) => {
      // Hints are a courtesy: tools are listed without them when the store cannot be read, and with them when it can
      // again.
      options.log.warn("durations could not be read; tools are listed without hints", { error });
      current.isPartial = true;
      return (await ownEntries(catalog)).map((entry) => toTool(entry, deferral));
    });
  };
}

function callTool(
  options: ToolsOptions,
  called: ToolCall,
  request: ClientRequest,
): Result | Promise<Result> | undefined {
  const { catalog, plain } = options;
  const entry = catalog.get(called.name);
  if (entry !== undefined) {
    // What an author has registered by hand is listed, and an alias is not: the call is meant for the former.
    if (called.name !== entry.toolName && request.isAuthorsTool(called.name)) return undefined;
    const own = toOwnNames(entry, called);
    if (typeof own === "string") return Promise.resolve(errorResult(own, options.clock));
    return new CommandCall(options, entry, own, request).answer();
  }
  const isFollowUp = plain?.inputSchema(called.name) !== undefined;
  if (isFollowUp) refuseWrongSupport({ toolName: called.name, taskSupport: "forbidden" }, called, request);
  const followUp = plain?.call(called.name, called.arguments, { request, budget: budgetFor(options, request) });
  if (followUp !== undefined) return followUp;
  const problem = catalog.problemOf(called.name);
  if (problem === undefined) return undefined;
  // The reason may have paths of this machine, and whatever the file has thrown.
  const isOwner = request.caller.kind === "local";
  const reason = isOwner ? ` from ${problem.file}: ${problem.text}` : "; the log of the server says why.";
  return Promise.resolve(errorResult(`${called.name} could not be loaded${reason}`, options.clock));
}

function unknownTool(toolName: string, catalog: Catalog): ProtocolError {
  const names = catalog.entries.map((entry) => entry.toolName);
  const guess = closest(toolName, names);
  return badParams(
    `Unknown tool ${JSON.stringify(toolName.slice(0, 100))}${guess === undefined ? "; tools/list names them all." : `; did you mean ${guess}?`}`,
  );
}

/** A call under the tool's own name, with its arguments by theirs; a sentence when that cannot be. */
function toOwnNames(entry: CatalogEntry, request: ToolCall): ToolCall | string {
  if (entry.aliases === undefined) return request;
  try {
    return { ...request, name: entry.toolName, arguments: ownArguments(entry, request.name, request.arguments) };
  } catch (error) {
    if (error instanceof CommandError) return error.message;
    throw error;
  }
}

async function listCommands({ catalog, readStats, deferral }: ToolsOptions): Promise<readonly ListedTool[]> {
  const known = new Map((await readStats()).map((stats) => [stats.command, stats]));
  return (await ownEntries(catalog)).map((entry) => toTool(entry, deferral, known.get(entry.toolName)));
}

/** Those of somebody else's server are listed as that server lists them to this client, page by page. */
async function ownEntries(catalog: Catalog): Promise<readonly ListedEntry[]> {
  return (await catalog.listed()).filter(({ isListedByServer }) => isListedByServer !== true);
}

/** Since 2026-07-28 a tool does not say whether it can be a task, and before 2025-11-25 there are none. */
function showsSupport({ isModern, revision }: ClientIdentity): boolean {
  return !isModern && knowsTaskSupport(revision);
}

function present(
  listing: Json,
  entry: CatalogEntry | undefined,
  { hasSupport, takesJobs, admitsHandle }: ListShape,
  rules: DeferralRules,
): Json {
  const { execution, ...plain } = listing;
  const { foreign } = entry?.command ?? {};
  // What no other session has is called as it always was.
  if (entry === undefined || foreign === undefined) return hasSupport ? listing : plain;
  const command = {
    ...entry.command,
    inputSchema: (listing.inputSchema ?? {}) as JsonSchema,
    outputSchema: listing.outputSchema as JsonSchema | undefined,
    foreign: { ...foreign, listing },
  };
  const listed = trim(toTool({ ...entry, command }, rules), admitsHandle ? undefined : command.outputSchema);
  const { execution: support, ...tool } = takesJobs ? withAsync(listed) : listed;
  return hasSupport ? { ...tool, execution: support } : tool;
}

/** A command as tools/list shows it. */
export function toTool(entry: ListedEntry, rules: DeferralRules, known?: CommandStats): ListedTool {
  const { command, toolName } = entry;
  const { async, taskModeRecommended } = announceTaskMode(entry, known, rules);
  const _meta = { "meanwhile/tool": { async, ...(taskModeRecommended && { taskModeRecommended }) } };
  if (command.foreign !== undefined) return toForeignTool(entry, command.foreign, _meta);
  return {
    name: toolName,
    description: command.description === undefined ? command.summary : `${command.summary}\n\n${command.description}`,
    inputSchema: command.inputSchema,
    ...(command.outputSchema !== undefined && { outputSchema: listedOutput(command.outputSchema, command.envelope) }),
    annotations: {
      readOnlyHint: command.effects === "read",
      destructiveHint: command.effects === "destroy",
      idempotentHint: command.idempotent,
    },
    execution: { taskSupport: command.taskSupport },
    _meta,
  };
}

/** As its own server lists it, and that it may be a task here. */
function toForeignTool({ command, toolName }: ListedEntry, { listing }: ForeignTool, _meta: object): ListedTool {
  const { outputSchema } = command;
  return {
    ...listing,
    name: toolName,
    inputSchema: command.inputSchema,
    ...(outputSchema !== undefined && { outputSchema: foreignOutput(outputSchema) }),
    execution: { taskSupport: command.taskSupport },
    _meta: { ...fieldsOf(listing._meta), ..._meta },
  };
}

/** The same without a word on a tool that is not long. `outputSchema`: the server's own, for a client that gets no handle. */
function trim({ _meta, ...tool }: ListedTool, outputSchema: JsonSchema | undefined): ListedTool {
  const { "meanwhile/tool": said, ...theirs } = fieldsOf(_meta);
  const { async, taskModeRecommended } = fieldsOf(said);
  const meta = async === true || taskModeRecommended === true ? fieldsOf(_meta) : theirs;
  return {
    ...tool,
    ...(outputSchema !== undefined && { outputSchema }),
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
  } as ListedTool;
}

function listedOutput(output: NonNullable<Command["outputSchema"]>, hasEnvelope: boolean) {
  if (hasEnvelope) return envelopeSchema(output);
  const { $defs, ...own } = output;
  return { type: "object", anyOf: [own, envelopeSchema({})], ...($defs !== undefined && { $defs }) };
}

/**
 * Admits the envelope of a handle or of a failure besides the tool's own results. Each of the server's schemas gets these
 * bytes, so a schema without references gives its `$schema` and `type` to the union and `envelope` names one field. A
 * schema with references stays whole, because they point at what is in it, and moves as one, unless it has an ID.
 */
function foreignOutput(output: JsonSchema): JsonSchema {
  const { $schema, type, ...rest } = output;
  const isWhole = output.$id !== undefined || type !== "object" || hasReferences(rest);
  if (!isWhole) return { ...($schema !== undefined && { $schema }), type, anyOf: [rest, envelope] };
  return { type: "object", anyOf: [output.$id === undefined ? moved(output) : output, envelope] };
}

const envelope: JsonSchema = { required: ["messages"] };

/** Also true for a reference in an example: such a schema is listed with a few bytes more. */
function hasReferences(schema: unknown): boolean {
  if (!isObject(schema) && !Array.isArray(schema)) return false;
  return Object.entries(schema).some(
    ([name, value]) => /^\$(?:ref|dynamicRef|recursiveRef)$/.test(name) || hasReferences(value),
  );
}

const literals: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"]);

function moved<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(moved) as T;
  if (!isObject(schema)) return schema;
  const fields = Object.entries(schema).map(([name, value]) => {
    const isPointer = name === "$ref" && typeof value === "string" && value.startsWith("#");
    return [name, isPointer ? `#/anyOf/0${value.slice(1)}` : literals.has(name) ? value : moved(value)];
  });
  return Object.fromEntries(fields) as T;
}
