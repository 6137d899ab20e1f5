import type { Caller } from "../command/caller.ts";
import type { JsonSchema } from "../command/schema.ts";
import type { Json } from "../wire/json.ts";
import type { OwnCompletions } from "./completions.ts";
import type { OwnPrompts } from "./prompts.ts";
import type { ClientRequest, Result } from "./request.ts";

/** What a server is made of, beside what its author registers by hand. */

export interface ServerParts {
  readonly tools: CommandTools;
  /** Absent where all resources are somebody else's. */
  readonly resources: OwnResources | undefined;
  /** Absent when commands are not to be prompts. */
  readonly prompts: OwnPrompts | undefined;
  readonly completions: OwnCompletions;
}

export interface CommandTools {
  /** The very same list as long as nothing has changed that this client is told. */
  list(request: ClientRequest): Promise<readonly ListedTool[]>;
  /** A tool of somebody else's server, as it is listed here; undefined where its name is taken. */
  present(tool: Json, request: ClientRequest): Json | undefined;
  inputSchema(toolName: string): JsonSchema | undefined;
  /** See `Catalog.load`. Await it before `call`, and before anything that is asked of a command by its name. */
  load(toolName: string): Promise<void> | undefined;
  /** Undefined when no command of that name is known. */
  call(called: ToolCall, request: ClientRequest): Result | Promise<Result> | undefined;
  /**
   * Waits for a server that is starting, until shortly before the client's host gives up; then returns the result that
   * says so.
   */
  whenStarted<T>(
    starting: Promise<T>,
    called: ToolCall,
    request: ClientRequest,
    act: (started: T) => Result | Promise<Result>,
  ): Promise<Result>;
  /** The error for a name that nobody knows. */
  unknown(toolName: string): Error;
  /** True for the name of a tool that this caller must not learn of, also of one that is no command. */
  isHidden(toolName: string): boolean;
  /** True where a name that is in no list is unknown, and not passed on to a server behind this one. */
  readonly needsListedNames: boolean;
}

export type ListedTool = { name: string; inputSchema: JsonSchema; [key: string]: unknown };

export interface ToolCall {
  readonly name: string;
  readonly arguments?: unknown;
  /** 2025-11-25: run it as a task. */
  readonly task?: unknown;
}

/** Resources of our own. */
export interface OwnResources {
  list(caller: Caller): readonly Record<string, unknown>[];
  /** Undefined when this caller sees no resource of that URI. */
  read(uri: string, caller: Caller): Promise<Result> | undefined;
}

/** How a server introduces itself, where that depends on the caller. */
export interface ServedIdentity extends Omit<ServerIdentity, "instructions"> {
  readonly instructions: string | undefined | ((caller: Caller) => string | undefined);
}

/** How a server introduces itself. */
export interface ServerIdentity {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  /** What else it says of itself: a title, icons. */
  readonly about?: Json;
}
