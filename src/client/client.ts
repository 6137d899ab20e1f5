import type { TaskGeneration } from "../wire/revisions.ts";
import { checkCall, checkLimits, checkTarget } from "./check-options.ts";
import { ServerConnection } from "./connection/server-connection.ts";
import { Askers } from "./follow/asked-questions.ts";
import type { ClientFacts } from "./follow/find-task.ts";
import { fromEnding, toHandle } from "./task-handle.ts";
import { listTasks } from "./task-list.ts";
import { callDetached, callToEnd } from "./tool-call.ts";
import { ToolList } from "./tool-list.ts";
import { askWhoami } from "./whoami.ts";

/** Where a server is. */
export type Target = CommandTarget | UrlTarget | SocketTarget;

/** A server that is started for this connection and ends with it. */
export interface CommandTarget {
  readonly command: string;
  readonly args?: readonly string[];
  /** Beside this process's own variables. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server that is reached over Streamable HTTP. */
export interface UrlTarget {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Names the environment variable that holds the bearer token, so that no token is written anywhere. */
  readonly tokenVariable?: string;
}

/** A server that listens on a Unix socket, one message a line. */
export interface SocketTarget {
  readonly socket: string;
}

export interface ConnectOptions {
  /** How the client introduces itself. */
  readonly name?: string;
  readonly version?: string;
  /** Speak this revision and no other. Default: the newest that both sides know. */
  readonly revision?: string;
  /** How long connecting may take. Default: 30 s. */
  readonly timeoutMs?: number;
  /** How long a network error is retried before it counts. Default: 30 s; 0 for never. */
  readonly retryMs?: number;
  readonly signal?: AbortSignal;
  /** What a started server prints to its standard error. */
  readonly onStderr?: (text: string) => void;
}

/** Who answered, and what it can do. */
export interface ServerFacts {
  readonly name: string;
  readonly version: string;
  readonly instructions: string | undefined;
  readonly revision: string;
  /** The generation of tasks it speaks. */
  readonly tasks: TaskGeneration | "none";
}

export interface Tool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly execution?: { readonly taskSupport?: "required" | "optional" | "forbidden" };
  readonly _meta?: Readonly<Record<string, unknown>>;
}

/** What a tool gave, whichever way it came. */
export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
  readonly _meta?: Readonly<Record<string, unknown>>;
}

export interface Progress {
  readonly done: number;
  readonly total?: number;
  readonly message?: string;
  /** What the server says about the time left. */
  readonly etaMs?: number;
}

export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled";

/** What is known of a task; times in milliseconds since the epoch. */
export interface TaskState {
  readonly taskId: string;
  readonly status: TaskStatus;
  readonly statusMessage?: string;
  readonly createdAt?: number;
  readonly lastUpdatedAt?: number;
  /** How long the server keeps the result; null for ever. */
  readonly ttlMs?: number | null;
  readonly pollIntervalMs?: number;
  /** What it asks right now. */
  readonly questions?: readonly Question[];
}

export interface Question {
  readonly key: string;
  readonly message: string;
  /** A flat object of texts, numbers, booleans and choices. */
  readonly schema: Readonly<Record<string, unknown>>;
  readonly taskId: string | undefined;
  /** When the question expires, in milliseconds since 1970, where the server tells it. */
  readonly until?: number;
}

export type Answer =
  | { readonly action: "accept"; readonly content: Readonly<Record<string, unknown>> }
  | { readonly action: "decline" | "cancel" };

export interface FollowOptions {
  readonly onProgress?: (progress: Progress) => void;
  /** Answers the server's questions. Without it the client says that it cannot be asked. */
  readonly onInput?: (question: Question) => Answer | Promise<Answer>;
  /** Sees the task when it is made and whenever its state or message changes. */
  readonly onTask?: (task: TaskState) => void;
  /** Called each time the server is asked how far the task is. */
  readonly onPoll?: () => void;
  /**
   * Aborting stops the call, or cancels the task, and rejects with the signal's reason. A `Detach` as reason leaves the
   * task alone.
   */
  readonly signal?: AbortSignal;
  /** After this long the call is cancelled and rejected with `TimedOut`. Default: no limit. */
  readonly timeoutMs?: number;
  /** How often to look, until the server says how often it wants to be asked. */
  readonly pollIntervalMs?: number;
}

export interface CallOptions extends FollowOptions {
  /** Ask for a task. On 2026-07-28, where the server alone decides, servers of Meanwhile take it as asked for. */
  readonly asTask?: boolean;
  /** How long its result shall be kept. */
  readonly ttlMs?: number;
  /** Start another run even if an equal one is live. */
  readonly isNew?: boolean;
  /** One key, one run: a repeated call gets the first one's result. */
  readonly idempotencyKey?: string;
  /** Resolve as soon as the work goes on without us. */
  readonly detach?: boolean;
}

/** Work that goes on without its caller. */
export interface TaskHandle {
  /**
   * Undefined where the server has answered without making a task of it: there is none, and `result` has the answer.
   */
  readonly taskId: string | undefined;
  state(): Promise<TaskState>;
  /** Follows it to its end. */
  result(options?: FollowOptions): Promise<ToolResult>;
  cancel(): Promise<void>;
  answer(answers: Readonly<Record<string, Answer>>): Promise<void>;
}

export interface TaskPage {
  readonly tasks: readonly TaskState[];
  readonly nextCursor?: string;
}

/** The caller that a server has identified by the credential of this connection. */
export interface CallerInfo {
  readonly kind: "local" | "key" | "user" | "app" | "anonymous";
  readonly id: string;
  readonly name?: string;
  /** The program that acts for the caller. */
  readonly client?: string;
  readonly scopes: readonly string[];
  readonly groups: readonly string[];
}

export interface Client {
  readonly server: ServerFacts;
  listTools(): Promise<readonly Tool[]>;
  callTool(
    name: string,
    args: Readonly<Record<string, unknown>> | undefined,
    options: CallOptions & { readonly detach: true },
  ): Promise<TaskHandle>;
  callTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: CallOptions & { readonly detach?: false },
  ): Promise<ToolResult>;
  /** A task by its id, whichever process started it. */
  task(taskId: string): TaskHandle;
  /** Rejects where the server cannot list tasks. */
  listTasks(options?: { readonly cursor?: string }): Promise<TaskPage>;
  /** Asks a server of Meanwhile whom it takes this client for. Rejects where the server is another one. */
  whoami(): Promise<CallerInfo>;
  close(): Promise<void>;
  /** `await using client = await connect(…)` closes it at the end of the block. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** Connects to any MCP server. */
export async function connect(target: Target, options: ConnectOptions = {}): Promise<Client> {
  checkTarget(target);
  checkLimits(options, ["timeoutMs", "retryMs"]);
  const connection = await ServerConnection.open(target, options);
  const facts: ClientFacts = { connection, askers: new Askers(connection), tools: new ToolList(connection) };
  async function callTool(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options: CallOptions = {},
  ): Promise<never> {
    checkCall(name, args);
    checkLimits(options, ["timeoutMs", "pollIntervalMs", "ttlMs"]);
    const called =
      options.detach === true
        ? fromEnding(await callDetached(facts, name, args ?? {}, options))
        : await callToEnd(facts, name, args ?? {}, options);
    return called as never;
  }
  return {
    server: connection.server,
    listTools: () => facts.tools.list(),
    callTool,
    task: (taskId) => toHandle(facts, taskId),
    listTasks: (page) => listTasks(facts, page?.cursor),
    whoami: () => askWhoami(connection),
    close: () => connection.close(),
    [Symbol.asyncDispose]: () => connection.close(),
  };
}
