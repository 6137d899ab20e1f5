import type { Caller } from "./caller.ts";
import type { Command, CommandDefinition, TaskSupport } from "./command.ts";
import type { Origin, ProgressReport } from "./context.ts";
import type { JsonSchema, Schema } from "./schema.ts";

/** A tool of somebody else's server, as a command: what it answers is passed on as it is. */

export type JsonObject = { readonly [key: string]: unknown };

/** The `_meta` keys of this server: its own, and the one that ties a message to one of its tasks. */
const reservedKey = /^(meanwhile\/.*|io\.modelcontextprotocol\/related-task)$/;

/**
 * Removes this server's `_meta` keys from the result or the params that another server sent. A client would take them
 * as this server's: its task ID, its deadline for an answer. Returns the same object where there is nothing to remove.
 */
export function withoutReservedMeta(sent: JsonObject): JsonObject {
  const { _meta, ...others } = sent;
  if (typeof _meta !== "object" || _meta === null || Array.isArray(_meta)) return sent;
  const all = Object.entries(_meta);
  const allowed = all.filter(([key]) => !reservedKey.test(key));
  if (allowed.length === all.length) return sent;
  return allowed.length === 0 ? others : { ...sent, _meta: Object.fromEntries(allowed) };
}

/** What a server asks of the client whose call it works on: a form, a link, the client's model, its folders. */
export interface ForeignRequest {
  readonly method: string;
  readonly params: JsonObject;
}

interface AskOptions {
  /** What the server calls its question. */
  readonly key?: string | undefined;
  /** Who aborts it with a TakenBack does not want to know any longer: nobody is asked then, and the work goes on. */
  readonly signal?: AbortSignal | undefined;
}

/** The other side of a call, as the server that works on it sees it. */
export interface Relay {
  /** Aborted when the call is to end. */
  readonly signal: AbortSignal;
  readonly caller: Caller;
  readonly origin: Origin;
  /** Which attempt this is. */
  readonly attempt: number;
  /** It is a task by now, whose client does not wait for it. */
  readonly isTask: boolean;
  /** Asks whoever can answer; the result, as a client gives it. */
  ask(request: ForeignRequest, options?: AskOptions): Promise<JsonObject>;
  progress(report: ProgressReport): void;
  /** Tells the client that waits, if one does. */
  notify(method: string, params: JsonObject): void;
  /** What an earlier attempt of the same task has left behind; undefined where there is none. */
  readonly leftBehind: JsonObject | undefined;
  /**
   * Leaves behind where the work stands, in place of what was left before: for another attempt, after a crash. With
   * `isSafe` one may take it up from here; without, the task then ends as interrupted. Resolves when that is on record,
   * at once where nothing is recorded yet.
   */
  leave(state: JsonObject, terms: { readonly isSafe: boolean }): Promise<void>;
  /** Its server has made a task of it: a client that takes tasks may have ours at once. */
  becomesTask(): void;
  /** Ends the stream on which the client waits; it comes back for the rest. Undefined where it could not. */
  readonly hangUp: (() => void) | undefined;
}

/** Why a question is asked no longer, though the work goes on: its server has waited for long enough. */
export class TakenBack extends Error {
  override readonly name = "TakenBack";

  constructor() {
    super("The question was taken back.");
  }
}

/** The server went away in the middle of a call: what it has done is unknown. */
export class ServerGone extends Error {
  override readonly name = "ServerGone";

  /** `sentence` says how it went, where more is known of it. */
  constructor(server: string, sentence = `${server} was closed in the middle of the call, so its outcome is unknown.`) {
    super(sentence);
  }
}

export interface ForeignTool {
  /** As its server lists it. */
  readonly listing: JsonObject;
  /** Its result as its server gives it. Throws a ProtocolError where that is one. */
  call(input: unknown, relay: Relay): Promise<JsonObject>;
  /** It asks before it begins to work: a client gets the questions ahead of any task. */
  readonly asksFirst?: boolean;
  /**
   * It says itself, by `Relay.leave`, from where on running it again would not be safe: until it has said so nothing has
   * been begun.
   */
  readonly saysWhenSafe?: boolean;
}

/** What is said of a tool beside what its server says. */
export interface ForeignToolOptions {
  /** Expected to take long: a task at once where the client can take one. Default: what history says. */
  readonly long?: boolean;
  /**
   * It asks before it begins to work. A client that can carry questions gets them with the call, and a task once they
   * are answered; otherwise a long tool is a task at once, which then asks.
   */
  readonly asksFirst?: boolean;
  /** "required": refused to clients that cannot take a task; "forbidden": never one. Default: "optional". */
  readonly taskSupport?: TaskSupport;
  /** Running it again after a crash does no harm. Default: what the tool's annotations say. */
  readonly rerun?: boolean;
  /** How long a run with this input will take, in seconds, or a size that history turns into time. */
  readonly estimate?: (input: JsonObject) => number | { readonly work: number } | undefined;
  /** Seconds after which a run fails as timed out, those in which it waits for an answer apart. Default: none. */
  readonly timeout?: number;
  /** `false`: equal calls of one caller are separate tasks even while one is live. */
  readonly dedupe?: boolean;
}

type Define = (definition: CommandDefinition<Schema, Schema>) => Command;

/** A command that calls such a tool. */
export function toForeignCommand(tool: ForeignTool, options: ForeignToolOptions, define: Define): Command {
  const { listing } = tool;
  const { title, description, name } = listing as { title?: string; description?: string; name: string };
  const hints = (listing.annotations ?? {}) as Readonly<Record<string, unknown>>;
  // Hints that contradict each other say nothing.
  const isRead = hints.readOnlyHint === true && hints.destructiveHint !== true;
  const isSafe = options.rerun ?? (isRead || (hints.readOnlyHint !== true && hints.idempotentHint === true));
  const command = define({
    summary: firstLine(description) ?? firstLine(title) ?? name,
    effects: isRead ? "read" : "write",
    idempotent: isSafe,
    confirm: false,
    envelope: false,
    long: options.long ?? false,
    ...(options.estimate !== undefined && { estimate: options.estimate as never }),
    ...(options.timeout !== undefined && { timeout: options.timeout }),
    ...(options.dedupe !== undefined && { dedupe: options.dedupe }),
    ...(options.taskSupport !== undefined && { taskSupport: options.taskSupport }),
    run: () => undefined,
  });
  return {
    ...command,
    description,
    inputSchema: (listing.inputSchema ?? { type: "object" }) as JsonSchema,
    outputSchema: listing.outputSchema as JsonSchema | undefined,
    foreign: options.asksFirst === true ? { ...tool, asksFirst: true } : tool,
  };
}

function firstLine(text: string | undefined): string | undefined {
  const line = text?.trim().split("\n", 1)[0];
  return line === "" ? undefined : line;
}
