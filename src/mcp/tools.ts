import { LOG_LEVEL_META_KEY, ProtocolError, type Result, type ServerContext } from "@modelcontextprotocol/server";
import { type Clock, sleep, toTimestamp } from "../clock.ts";
import type { Catalog, CatalogEntry } from "../command/catalog.ts";
import type { Command } from "../command/command.ts";
import type { CommandLogLevel, Door } from "../command/context.ts";
import { envelopeSchema, toEnvelope, toEnvelopeText } from "../command/envelope.ts";
import { type Outcome, runCommand } from "../command/run.ts";
import { closest } from "../command/suggest.ts";
import { CommandError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { secondsLeft } from "../task/estimate.ts";
import { authorsEstimate } from "../task/history.ts";
import { ProgressTrack, type ProgressUpdate } from "../task/progress.ts";
import { type Caller, callerOf } from "./caller.ts";
import { Conversation, canElicit, elicit, ParkedCalls } from "./questions.ts";
import type { CommandServer, CommandTools, Tool, ToolCall } from "./server.ts";

export interface ToolsOptions {
  readonly catalog: Catalog;
  readonly clock: Clock;
  readonly log: Logger;
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
  /** Aborted when the server stops; its reason ends every call. */
  readonly signal: AbortSignal;
}

/** SDK clients drop progress that arrives in one piece with the answer: leave this much between them. */
const progressGapMs = 10;

/** tools/list and tools/call for every command of a catalog. */
export function createTools(options: ToolsOptions): CommandTools {
  const parked = new ParkedCalls(options.clock);
  let listed: { revision: number; tools: Tool[] } | undefined;
  const stoppers = new Set<(reason: Error) => void>();
  const calls: LiveCalls = { parked, stoppers };
  const onStop = () => {
    const reason = options.signal.reason as Error;
    for (const stop of stoppers) stop(reason);
    parked.close(reason);
  };
  options.signal.addEventListener("abort", onStop, { once: true });
  return {
    list() {
      const { catalog } = options;
      if (listed?.revision !== catalog.revision) listed = { revision: catalog.revision, tools: catalog.entries.map(toTool) };
      return listed.tools;
    },
    inputSchema: (toolName) => options.catalog.get(toolName)?.command.inputSchema,
    call(request, ctx, server) {
      const entry = options.catalog.get(request.name);
      if (entry !== undefined) return new Call(options, calls, entry, request, server).answer(ctx);
      const problem = options.catalog.problemOf(request.name);
      if (problem === undefined) return undefined;
      return Promise.resolve(errorResult(`${request.name} could not be loaded from ${problem.file}: ${problem.text}`, options.clock));
    },
    unknown(toolName) {
      const guess = closest(
        toolName,
        options.catalog.entries.map((entry) => entry.toolName),
      );
      return new ProtocolError(
        -32602,
        `Unknown tool ${JSON.stringify(toolName.slice(0, 100))}${guess === undefined ? "; tools/list names them all." : `; did you mean ${guess}?`}`,
      );
    },
  };
}

/** Everything that is still to be answered. */
interface LiveCalls {
  readonly parked: ParkedCalls;
  readonly stoppers: Set<(reason: Error) => void>;
}

/** One tools/call, in as many legs as its questions need. */
class Call {
  readonly #options: ToolsOptions;
  readonly #calls: LiveCalls;
  readonly #entry: CatalogEntry;
  readonly #request: ToolCall;
  readonly #server: CommandServer;

  constructor(options: ToolsOptions, calls: LiveCalls, entry: CatalogEntry, request: ToolCall, server: CommandServer) {
    this.#options = options;
    this.#calls = calls;
    this.#entry = entry;
    this.#request = request;
    this.#server = server;
  }

  async answer(ctx: ServerContext): Promise<Result> {
    const isModern = ctx.mcpReq.envelope !== undefined;
    const isSecondLeg = ctx.mcpReq.requestState() !== undefined;
    if (!isModern || (!isSecondLeg && !canElicit(ctx, this.#server)))
      return await this.#run(ctx, ctx.mcpReq.signal, { ctx: () => ctx, conversation: undefined });
    const caller = callerOf(ctx);
    const conversation = this.#converse(ctx, caller);
    const next = await conversation.next();
    if (!("questions" in next)) return next;
    const requestState = this.#calls.parked.park(conversation, this.#request, caller);
    return { resultType: "input_required", inputRequests: next.questions, requestState } as Result;
  }

  /** Starts the run, or goes back to the one that waits for these answers. */
  #converse(ctx: ServerContext, caller: Caller): Conversation {
    const state: unknown = ctx.mcpReq.requestState();
    if (state !== undefined) {
      const conversation = this.#calls.parked.resume(state, this.#request, caller);
      conversation.leg = ctx;
      conversation.answer((ctx.mcpReq.inputResponses ?? {}) as Record<string, unknown>);
      return conversation;
    }
    const conversation = new Conversation(this.#options.clock, ctx);
    conversation.start(this.#run(ctx, conversation.signal, { ctx: () => conversation.leg, conversation }));
    return conversation;
  }

  async #run(ctx: ServerContext, signal: AbortSignal, leg: { ctx: () => ServerContext; conversation: Conversation | undefined }): Promise<Result> {
    const { clock, home, config, isDebug } = this.#options;
    const { command, toolName } = this.#entry;
    const startedAt = clock.monotonic();
    const estimateMs = authorsEstimate(command, this.#request.arguments)?.ms;
    const track = new ProgressTrack({
      clock,
      deliver: (update) =>
        sendProgress(leg.ctx(), update, {
          elapsedMs: clock.monotonic() - startedAt,
          estimateSeconds: estimateMs === undefined ? undefined : estimateMs / 1000,
        }),
    });
    const outcome = await runCommand(command, this.#request.arguments, {
      name: toolName,
      clock,
      home,
      config,
      isDebug,
      signals: [signal],
      stoppers: this.#calls.stoppers,
      door: this.#door(track, leg),
    });
    track.finish();
    const sinceProgressMs = clock.monotonic() - track.lastDeliveryAt;
    if (sinceProgressMs < progressGapMs) await sleep(clock, progressGapMs - sinceProgressMs);
    this.#note(outcome, leg.ctx());
    const withLog =
      isDebug ||
      (ctx.mcpReq.envelope as Record<string, unknown> | undefined)?.[LOG_LEVEL_META_KEY] !== undefined ||
      this.#server.core.hasClientLogLevel === true;
    return toCallResult(outcome, command, { withLog, progressToken: leg.ctx().mcpReq._meta?.progressToken });
  }

  #door(track: ProgressTrack, leg: { ctx: () => ServerContext; conversation: Conversation | undefined }): Door {
    const { conversation } = leg;
    const door: Door = {
      announce: (text) => track.report({ message: text }),
      progress: (report) => track.report(report),
      log: (line) => {
        const data = line.details === undefined ? line.text : { message: line.text, details: line.details };
        leg
          .ctx()
          .mcpReq.log(mcpLevels[line.level], data, this.#entry.toolName)
          .catch((error: unknown) => this.#options.log.debug("log line not delivered", { error }));
      },
    };
    if (conversation !== undefined) return { ...door, ask: (question, signal) => conversation.ask(question, signal) };
    if (canElicit(leg.ctx(), this.#server)) return { ...door, ask: (question, signal) => elicit(question, leg.ctx(), signal) };
    return { ...door, whyNoAnswer: `this client cannot show questions; run it in a terminal: meanwhile ${this.#entry.path.join(" ")}` };
  }

  /** One line a call for the operator; the stack of what a command threw, and never its arguments. */
  #note(outcome: Outcome, ctx: ServerContext): void {
    const facts = { tool: this.#entry.toolName, caller: callerOf(ctx).kind, ms: outcome.durationMs };
    const isBug = outcome.ending === "failed" && outcome.error !== undefined && !(outcome.error instanceof CommandError);
    if (isBug) this.#options.log.warn("command failed", { ...facts, error: outcome.error });
    else this.#options.log.debug(`command ${outcome.ending}`, facts);
  }
}

const mcpLevels = { debug: "debug", info: "info", warn: "warning", error: "error" } as const satisfies Record<CommandLogLevel, string>;

function sendProgress(ctx: ServerContext, update: ProgressUpdate, run: { elapsedMs: number; estimateSeconds: number | undefined }): void {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  if (progressToken === undefined || ctx.mcpReq.signal.aborted) return;
  const { value, total, message, percentage, context } = update;
  const eta = secondsLeft({ ...run, percentage });
  const details = {
    ...(percentage !== undefined && { percentage }),
    ...(eta !== undefined && { etaSeconds: Math.round(eta) }),
    ...(context !== undefined && { context }),
  };
  const params = {
    progressToken,
    progress: value,
    ...(total !== undefined && { total }),
    ...(message !== undefined && { message }),
    ...(Object.keys(details).length > 0 && { _meta: { "meanwhile/progress": details } }),
  };
  // A client that left cannot be told; the call's own answer will fail and say so.
  ctx.mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
}

/** A command as tools/list shows it. */
export function toTool(entry: CatalogEntry): Tool {
  const { command, toolName } = entry;
  return {
    name: toolName,
    description: command.description === undefined ? command.summary : `${command.summary}\n\n${command.description}`,
    inputSchema: command.inputSchema,
    ...(command.outputSchema !== undefined && { outputSchema: listedOutput(command.outputSchema, command.envelope) }),
    annotations: { readOnlyHint: command.effects === "read", destructiveHint: command.effects === "destroy", idempotentHint: command.idempotent },
    _meta: { "meanwhile/tool": { async: command.long } },
  };
}

function listedOutput(output: NonNullable<Command["outputSchema"]>, hasEnvelope: boolean) {
  if (hasEnvelope) return envelopeSchema(output);
  const { $defs, ...own } = output;
  return { type: "object", anyOf: [own, envelopeSchema({})], ...($defs !== undefined && { $defs }) };
}

/** An outcome as tools/call answers it. */
export function toCallResult(outcome: Outcome, command: Command, about: { withLog: boolean; progressToken: string | number | undefined }): Result {
  const envelope = toEnvelope(outcome, about.withLog);
  const _meta = { "meanwhile/call": { durationMs: outcome.durationMs, ...(about.progressToken !== undefined && { progressToken: about.progressToken }) } };
  if (outcome.ending === "completed" && outcome.content !== undefined) return { content: outcome.content, _meta } as Result;
  if (outcome.ending === "completed" && !command.envelope) {
    return {
      content: [{ type: "text", text: typeof outcome.data === "string" ? outcome.data : outcome.json }],
      structuredContent: outcome.data,
      _meta,
    } as Result;
  }
  const content = [{ type: "text", text: toEnvelopeText(outcome, envelope) }];
  return { content, structuredContent: envelope, ...(!envelope.success && { isError: true }), _meta } as Result;
}

function errorResult(text: string, clock: Clock): Result {
  const messages = [{ type: "error", text, timestamp: toTimestamp(clock.now()) }];
  return { content: [{ type: "text", text }], structuredContent: { success: false, data: {}, messages }, isError: true } as Result;
}
