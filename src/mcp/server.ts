import { type JSONRPCRequest, McpServer, type Result, Server, type ServerContext } from "@modelcontextprotocol/server";
import type { JsonSchema } from "../command/schema.ts";

/**
 * The SDK's server, with our commands beside whatever an author registers by hand.
 *
 * The SDK keeps its tools in a registry that is filled anew for every HTTP request and checks every answer against
 * a schema. Our commands need neither: they live in the catalog, and their answers are made by `toCallResult`.
 * So `tools/list` and `tools/call` are looked up here first, and fall through to the SDK for the rest.
 */
export interface CommandTools {
  list(): Tool[];
  inputSchema(toolName: string): JsonSchema | undefined;
  /** Undefined when no command of that name is known. */
  call(request: ToolCall, ctx: ServerContext, server: CommandServer): Promise<Result> | undefined;
  /** The error for a name that nobody knows. */
  unknown(toolName: string): Error;
}

export type Tool = { name: string; inputSchema: JsonSchema; [key: string]: unknown };
export interface ToolCall {
  readonly name: string;
  readonly arguments?: unknown;
}

export interface ServerFacts {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
}

export class CommandServer extends McpServer {
  readonly #tools: CommandTools;

  constructor(facts: ServerFacts, tools: CommandTools) {
    super({ name: facts.name, version: facts.version });
    this.#tools = tools;
    const options = {
      capabilities: { tools: { listChanged: true }, logging: {} },
      ...(facts.instructions === undefined ? {} : { instructions: facts.instructions }),
    };
    const core = new CommandCore({ name: facts.name, version: facts.version }, options);
    core.face = { tools, owner: this };
    // McpServer makes its own Server; every handler it registers from here on goes through ours.
    (this as { server: Server }).server = core;
  }

  get core(): CommandCore {
    return this.server as CommandCore;
  }

  /** Registers the tool methods, unless a tool of the author's did so already. */
  serveTools(): void {
    if (this.core.hasToolHandlers) return;
    this.server.setRequestHandler("tools/list", () => ({ tools: [] }));
    this.server.setRequestHandler("tools/call", (request) => {
      throw this.#tools.unknown(request.params.name);
    });
  }

  /** Where the SDK looks for the `x-mcp-header` marks of a tool's arguments. */
  override toolInputSchemaJson(name: string): Record<string, unknown> | undefined {
    return this.#tools.inputSchema(name) ?? super.toolInputSchemaJson(name);
  }
}

type Handler = (request: JSONRPCRequest, ctx: ServerContext) => Promise<Result>;

class CommandCore extends Server {
  // Both are read while the base constructor runs, so neither may have an initializer.
  declare face: { tools: CommandTools; owner: CommandServer } | undefined;
  declare hasToolHandlers: boolean | undefined;
  /** Set once a client before 2026-07-28 has asked for logging. */
  declare hasClientLogLevel: boolean | undefined;

  protected override _wrapHandler(method: string, handler: Handler): Handler {
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
      const own = (await handler(request, ctx)) as { tools: Tool[] };
      return { ...own, tools: [...(this.face?.tools.list() ?? []), ...own.tools] };
    });
  }

  #wrapCall(handler: Handler): Handler {
    const registered = super._wrapHandler("tools/call", handler);
    return async (request, ctx) => {
      const params = request.params as unknown as ToolCall | undefined;
      const { face } = this;
      if (face === undefined || typeof params?.name !== "string") return await registered(request, ctx);
      const answer = face.tools.call(params, ctx, face.owner);
      if (answer !== undefined) return await answer;
      try {
        return await registered(request, ctx);
      } catch (error) {
        const isUnknown = error instanceof Error && error.message === `Tool ${params.name} not found`;
        throw isUnknown ? face.tools.unknown(params.name) : error;
      }
    };
  }
}
