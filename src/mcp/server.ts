import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  type JSONRPCRequest,
  LOG_LEVEL_META_KEY,
  McpServer,
  ResourceNotFoundError,
  ProtocolError as SdkProtocolError,
  type Result as SdkResult,
  Server,
  type ServerCapabilities,
  type ServerContext,
} from "@modelcontextprotocol/server";
import type { JsonSchema, Schema } from "../command/schema.ts";
import { internalErrorCode, ProtocolError, RequestError, RuntimeError, requestErrors } from "../errors.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import { hasCompletionsCapability, knowsTaskSupport, legacyRevision } from "../wire/revisions.ts";
import { anonymous, fromAuthInfo, localUser } from "./caller.ts";
import type { OwnCompletions } from "./completions.ts";
import type { Outbound } from "./outbound.ts";
import type { OwnPrompts } from "./prompts.ts";
import type { AskOptions, Client, Connection, Handler as OwnHandler, Request, Result } from "./request.ts";
import type { Tasks2025 } from "./tasks-2025.ts";

/**
 * The SDK's server, with our commands beside whatever an author registers by hand.
 *
 * The SDK keeps its tools in a registry that is filled anew for every HTTP request and checks every answer against
 * a schema. Our commands need neither: they live in the catalog, and their answers are made by `toCallResult`.
 * So `tools/list` and `tools/call` are looked up here first, and fall through to the SDK for the rest.
 */
export interface CommandTools {
  list(request: Request): Promise<readonly Tool[]>;
  inputSchema(toolName: string): JsonSchema | undefined;
  /** Undefined when no command of that name is known. */
  call(called: ToolCall, request: Request): Promise<Result> | undefined;
  /** The error for a name that nobody knows. */
  unknown(toolName: string): Error;
}

/** Resources of our own, beside the author's. */
export interface OwnResources {
  list(): readonly Record<string, unknown>[];
  /** Undefined when there is none of that address. */
  read(uri: string): Promise<Result> | undefined;
}

/** Params that are checked by whoever reads them. */
const anyParams: Schema = { "~standard": { version: 1, vendor: "meanwhile", validate: (value) => ({ value }) } };

/** An error as the protocol knows it; what is not meant for clients tells them nothing. */
export function toProtocolError(error: unknown): ProtocolError {
  if (error instanceof RequestError) return new ProtocolError(requestErrors[error.kind].code, error.message);
  if (error instanceof ProtocolError) return error;
  if (error instanceof SdkProtocolError) return new ProtocolError(error.code, error.message, error.data);
  if (error instanceof RuntimeError && error.forClients !== undefined) return new ProtocolError(internalErrorCode, error.forClients);
  return new ProtocolError(internalErrorCode, "Internal error");
}

export type Tool = { name: string; inputSchema: JsonSchema; [key: string]: unknown };
export interface ToolCall {
  readonly name: string;
  readonly arguments?: unknown;
  /** 2025-11-25: run it as a task. */
  readonly task?: unknown;
}

export interface ServerFacts {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
}

/** What a server is made of, beside what its author registers. */
export interface ServerParts {
  readonly tools: CommandTools;
  readonly resources: OwnResources;
  /** Absent when commands are not to be prompts. */
  readonly prompts: OwnPrompts | undefined;
  readonly completions: OwnCompletions;
  /** Declared beside tools, resources and logging. */
  readonly capabilities: ServerCapabilities;
}

export class CommandServer extends McpServer implements Connection {
  readonly #tools: CommandTools;
  /** Follows the tasks that a client of 2025-11-25 has started here. */
  tasks2025: Tasks2025 | undefined;
  /** Who the MCP host of this connection is, whatever it calls itself. */
  hostName: string | undefined;
  /** The working folder of this connection's session; undefined where it has none. */
  folder: string | undefined;
  /** A front of ours is at the other end: what is safe to ask twice it asks the next daemon. */
  isFront = false;
  /** How answers leave by this connection; over HTTP each request has a way of its own. */
  outbound: Outbound | undefined;
  /** Jobs this connection is told about: each once, however many calls have joined it. */
  readonly jobs = new Set<string>();

  constructor(facts: ServerFacts, parts: ServerParts) {
    super({ name: facts.name, version: facts.version });
    const { tools } = parts;
    this.#tools = tools;
    const options = {
      capabilities: {
        tools: { listChanged: true },
        resources: {},
        ...(parts.prompts !== undefined && { prompts: { listChanged: true } }),
        completions: {},
        logging: {},
        ...parts.capabilities,
      },
      ...(facts.instructions === undefined ? {} : { instructions: facts.instructions }),
    };
    const core = new CommandCore({ name: facts.name, version: facts.version }, options);
    core.face = { ...parts, owner: this };
    // McpServer makes its own Server; every handler it registers from here on goes through ours.
    (this as { server: Server }).server = core;
  }

  get core(): CommandCore {
    return this.server as CommandCore;
  }

  get closed(): AbortSignal {
    return this.core.closed;
  }

  get canPush(): boolean {
    return this.core.canPush;
  }

  get client(): Client {
    const capabilities = (this.server.getClientCapabilities() ?? {}) as Client["capabilities"];
    const revision = this.server.getNegotiatedProtocolVersion() ?? "";
    return { revision, isModern: false, name: this.server.getClientVersion()?.name, capabilities, wantsLog: this.core.hasClientLogLevel === true };
  }

  onStream(listener: () => void): () => void {
    return this.core.onStream(listener);
  }

  notify(method: string, params: Json): void {
    this.server.notification({ method, params } as never).catch(() => undefined);
  }

  ask(_method: "elicitation/create", params: Json, { signal, timeoutMs }: AskOptions): Promise<unknown> {
    return this.server.elicitInput(params as never, { signal, timeout: timeoutMs });
  }

  /** Answers these methods, too. */
  serve(methods: Readonly<Record<string, OwnHandler>>): void {
    for (const [method, handler] of Object.entries(methods))
      this.server.setRequestHandler(
        method as "tasks/get",
        { params: anyParams },
        async (params, ctx) => (await handler(fieldsOf(params), this.toRequest(ctx))) as never,
      );
  }

  /** A request of the SDK's as our methods see it. */
  toRequest(ctx: ServerContext): Request {
    return new SdkRequest(ctx, this);
  }

  /** Registers the methods of tools and resources, unless something of the author's did so already. */
  serveAll(): void {
    if (!this.core.hasToolHandlers) {
      this.server.setRequestHandler("tools/list", () => ({ tools: [] }));
      this.server.setRequestHandler("tools/call", (request) => {
        throw this.#tools.unknown(request.params.name);
      });
    }
    if (this.core.face?.prompts !== undefined && !this.core.hasPromptHandlers) {
      this.server.setRequestHandler("prompts/list", () => ({ prompts: [] }));
      this.server.setRequestHandler("prompts/get", (request) => {
        throw new ProtocolError(requestErrors.params.code, `Prompt ${request.params.name} not found`);
      });
    }
    if (!this.core.hasCompletionHandler) {
      this.server.setRequestHandler("completion/complete", () => {
        throw new ProtocolError(requestErrors.params.code, "There is nothing of that name to complete.");
      });
    }
    if (this.core.hasResourceHandlers) return;
    this.server.setRequestHandler("resources/list", () => ({ resources: [] }));
    this.server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [] }));
    this.server.setRequestHandler("resources/read", (request) => {
      throw new ResourceNotFoundError(request.params.uri);
    });
  }

  /** The commands have changed, and with them the tools and the prompts. */
  sendListsChanged(): void {
    this.sendToolListChanged();
    if (this.core.face?.prompts !== undefined) this.sendPromptListChanged();
  }

  /** Whether the author has registered a tool of this name by hand. */
  isAuthorsTool(name: string): boolean {
    return super.toolInputSchemaJson(name) !== undefined;
  }

  /** Where the SDK looks for the `x-mcp-header` marks of a tool's arguments. */
  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#tools.inputSchema(name) ?? super.toolInputSchemaJson(name);
  }
}

/** One for all: an error made anew, with its stack, is most of what closing costs. */
const connectionClosed = new Error("The connection is closed.");

/** As much of a client's own words as a sentence about them repeats. */
const maxEcho = 200;

/** Megabytes that a client sent as a name are not sent back to it in the error that nobody knows the name. */
async function withoutEcho<T>(name: unknown, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (typeof name !== "string" || name.length <= maxEcho || !(error instanceof SdkProtocolError || error instanceof ProtocolError)) throw error;
    const excerpt = `${name.slice(0, maxEcho)}…`;
    throw error instanceof ResourceNotFoundError
      ? new ResourceNotFoundError(excerpt)
      : new ProtocolError(error.code, error.message.replaceAll(name, excerpt), error.data);
  }
}

type Handler = (request: JSONRPCRequest, ctx: ServerContext) => Promise<SdkResult>;

class SdkRequest implements Request {
  readonly connection: CommandServer;
  readonly #ctx: ServerContext;

  constructor(ctx: ServerContext, connection: CommandServer) {
    this.#ctx = ctx;
    this.connection = connection;
  }

  get id(): string | number {
    return this.#ctx.mcpReq.id;
  }

  get outbound(): Outbound | undefined {
    const { http } = this.#ctx;
    return http === undefined ? this.connection.outbound : (http.authInfo?.extra?.outbound as Outbound | undefined);
  }

  /** Pipes belong to the local user, HTTP says who it is. */
  get caller(): Request["caller"] {
    const { http } = this.#ctx;
    return http === undefined ? localUser : (fromAuthInfo(http.authInfo) ?? anonymous);
  }

  get client(): Client {
    const envelope = this.#ctx.mcpReq.envelope as Json | undefined;
    if (envelope === undefined) return this.connection.client;
    return {
      revision: this.connection.server.getNegotiatedProtocolVersion() ?? "",
      isModern: true,
      name: (envelope[CLIENT_INFO_META_KEY] as { name?: string } | undefined)?.name,
      capabilities: (envelope[CLIENT_CAPABILITIES_META_KEY] ?? {}) as Client["capabilities"],
      wantsLog: envelope[LOG_LEVEL_META_KEY] !== undefined || this.connection.core.hasClientLogLevel === true,
    };
  }

  get door(): Request["door"] {
    return this.#ctx.http === undefined ? "stdio" : "http";
  }

  get meta(): Json {
    return (this.#ctx.mcpReq._meta ?? {}) as Json;
  }

  get progressToken(): Request["progressToken"] {
    return this.#ctx.mcpReq._meta?.progressToken;
  }

  get inputResponses(): Json {
    return (this.#ctx.mcpReq.inputResponses ?? {}) as Json;
  }

  get requestState(): unknown {
    return this.#ctx.mcpReq.envelope === undefined ? undefined : this.#ctx.mcpReq.requestState();
  }

  get signal(): AbortSignal {
    return this.#ctx.mcpReq.signal;
  }

  get exchange(): AbortSignal | undefined {
    return this.#ctx.http?.req?.signal;
  }

  notify(method: string, params: Json): void {
    // A client that left cannot be told; the answer itself will fail and say so.
    this.#ctx.mcpReq.notify({ method, params } as never).catch(() => undefined);
  }

  ask(method: string, params: Json, { signal, timeoutMs }: AskOptions): Promise<unknown> {
    return this.#ctx.mcpReq.send({ method, params } as never, { signal, timeout: timeoutMs });
  }

  log(level: string, data: unknown, logger: string): void {
    this.#ctx.mcpReq.log(level as "info", data, logger).catch(() => undefined);
  }
}

class CommandCore extends Server {
  // Both are read while the base constructor runs, so neither may have an initializer.
  declare face: (Omit<ServerParts, "capabilities"> & { owner: CommandServer }) | undefined;
  declare hasToolHandlers: boolean | undefined;
  declare hasResourceHandlers: boolean | undefined;
  declare hasPromptHandlers: boolean | undefined;
  declare hasCompletionHandler: boolean | undefined;
  /** Set once a client before 2026-07-28 has asked for logging. */
  declare hasClientLogLevel: boolean | undefined;

  readonly #closed = new AbortController();
  /** Whether a message can reach the client while no request of its own is open. Pipes always can. */
  isPushable: () => boolean = () => true;

  readonly #onStream = new Set<() => void>();

  /** Calls back when the client has opened a stream for messages of our own. */
  onStream(listener: () => void): () => void {
    this.#onStream.add(listener);
    return () => this.#onStream.delete(listener);
  }

  streamOpened(): void {
    for (const listener of this.#onStream) listener();
  }

  /** Requests of ours are numbered from here: the answer to one of an earlier server must not be taken for the answer to ours. */
  numberFrom(first: number): void {
    (this as unknown as { _requestMessageId: number })._requestMessageId = first;
  }

  /** Aborted when the connection is closed. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get canPush(): boolean {
    return this.isConnected && this.isPushable();
  }

  get isConnected(): boolean {
    return this.transport !== undefined;
  }

  protected override _onclose(): void {
    // Before the requests are aborted, so that they can tell a lost client from one that cancels.
    this.#closed.abort(connectionClosed);
    super._onclose();
  }

  /** A client is told of what its revision knows: completions as a capability since 2025-03-26, core tasks since 2025-11-25. */
  override getCapabilities(): ServerCapabilities {
    const { tasks, completions, ...capabilities } = super.getCapabilities() as ServerCapabilities & { tasks?: object };
    const version = this.getNegotiatedProtocolVersion() ?? legacyRevision;
    return {
      ...capabilities,
      ...(completions !== undefined && hasCompletionsCapability(version) && { completions }),
      ...(tasks !== undefined && knowsTaskSupport(version) && { tasks }),
    } as ServerCapabilities;
  }

  protected override _wrapHandler(method: string, handler: Handler): Handler {
    if (method === "resources/list") return this.#wrapResources(handler);
    if (method === "resources/read") return this.#wrapRead(handler);
    if (method === "prompts/list") return this.#wrapPrompts(handler);
    if (method === "prompts/get") return this.#wrapPrompt(handler);
    if (method === "completion/complete") return this.#wrapComplete(handler);
    if (method === "tools/list") return this.#wrapList(handler);
    if (method === "tools/call") return this.#wrapCall(handler);
    if (method === "logging/setLevel") {
      return super._wrapHandler(method, (request, ctx) => {
        this.hasClientLogLevel = true;
        return handler(request, ctx);
      });
    }
    return super._wrapHandler(method, handler);
  }

  #wrapList(handler: Handler): Handler {
    this.hasToolHandlers = true;
    return super._wrapHandler("tools/list", async (request, ctx) => {
      const { face } = this;
      const own = (await handler(request, ctx)) as { tools: Tool[] };
      return { ...own, tools: [...((await face?.tools.list(face.owner.toRequest(ctx))) ?? []), ...own.tools] };
    });
  }

  #wrapResources(handler: Handler): Handler {
    this.hasResourceHandlers = true;
    return super._wrapHandler("resources/list", async (request, ctx) => {
      const own = (await handler(request, ctx)) as { resources: Record<string, unknown>[] };
      return { ...own, resources: [...(this.face?.resources.list() ?? []), ...own.resources] };
    });
  }

  #wrapRead(handler: Handler): Handler {
    return super._wrapHandler("resources/read", async (request, ctx) => {
      const { uri } = request.params as { uri: string };
      return ((await this.face?.resources.read(uri)) as SdkResult | undefined) ?? (await withoutEcho(uri, () => handler(request, ctx)));
    });
  }

  #wrapPrompts(handler: Handler): Handler {
    this.hasPromptHandlers = true;
    return super._wrapHandler("prompts/list", async (request, ctx) => {
      const own = (await handler(request, ctx)) as { prompts: { name: string }[] };
      const ours = (this.face?.prompts?.list() ?? []).filter(({ name }) => !this.#isAuthorsPrompt(name));
      return { ...own, prompts: [...own.prompts, ...ours] };
    });
  }

  #wrapPrompt(handler: Handler): Handler {
    const registered = super._wrapHandler("prompts/get", handler);
    return async (request, ctx) => {
      const { name, arguments: given = {} } = request.params as { name: string; arguments?: unknown };
      const prompts = this.face?.prompts;
      const isOurs = prompts?.has(name) === true && !this.#isAuthorsPrompt(name);
      return isOurs ? ((await prompts.get(name, given)) as SdkResult) : await withoutEcho(name, () => registered(request, ctx));
    };
  }

  /** Our own form of the request is not the SDK's, so it is looked at before the SDK checks it. */
  #wrapComplete(handler: Handler): Handler {
    this.hasCompletionHandler = true;
    const registered = super._wrapHandler("completion/complete", handler);
    return async (request, ctx) =>
      ((await this.face?.completions.complete(request.params, this.face.owner.toRequest(ctx), {
        isPrompt: (name) => this.#isAuthorsPrompt(name),
        schemaOf: (name) => this.face?.owner.toolInputSchemaJson(name),
      })) as SdkResult | undefined) ?? (await registered(request, ctx));
  }

  /** An author's prompt wins over a command of the same name. */
  #isAuthorsPrompt(name: string): boolean {
    const owner = this.face?.owner as unknown as { _registeredPrompts?: object } | undefined;
    return Object.hasOwn(owner?._registeredPrompts ?? {}, name);
  }

  #wrapCall(handler: Handler): Handler {
    const registered = super._wrapHandler("tools/call", handler);
    return async (request, ctx) => {
      const params = request.params as unknown as ToolCall | undefined;
      const { face } = this;
      if (face === undefined || typeof params?.name !== "string") return await registered(request, ctx);
      const answer = face.tools.call(params, face.owner.toRequest(ctx));
      if (answer !== undefined) return (await answer) as SdkResult;
      try {
        return await registered(request, ctx);
      } catch (error) {
        const isUnknown = error instanceof Error && error.message === `Tool ${params.name} not found`;
        throw isUnknown ? face.tools.unknown(params.name) : error;
      }
    };
  }
}
