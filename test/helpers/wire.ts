import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";

/** Clients that write their JSON-RPC by hand: any revision, name and capability, and every message seen as it came. */

export type Json = Readonly<Record<string, unknown>>;

/** One message of the server's. */
export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Json;
  readonly result?: Result;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** What a job's handle says, as far as tests read it. */
export interface Handle {
  readonly job_id: string;
  readonly status: string;
  readonly questions?: readonly Json[];
  readonly next_action: { readonly tool: string; readonly arguments: Json };
}

export interface Envelope {
  readonly success: boolean;
  readonly data: Json;
  readonly messages: readonly { readonly type: string; readonly text: string; readonly timestamp: string }[];
}

export interface Result {
  readonly content?: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: Envelope;
  readonly isError?: boolean;
  readonly _meta?: Json;
  /** A task of 2025-11-25. */
  readonly task?: { readonly taskId: string; readonly status: string };
  /** A task of 2026-07-28. */
  readonly resultType?: string;
  readonly taskId?: string;
  readonly status?: string;
  readonly [field: string]: unknown;
}

/** What carries the messages of one client. */
export interface Link {
  readonly door: "stdio" | "http";
  onMessage(listener: (message: Message) => void): void;
  send(message: Message, facts: { readonly revision: string }): void;
  /** Breaks the connection that carries this request; pipes have but one. */
  drop(id: number): void;
  close(): Promise<void>;
}

export interface WireOptions {
  readonly revision: string;
  /** `clientInfo.name`. */
  readonly name?: string;
  readonly capabilities?: object;
}

export interface CallOptions {
  /** Put into `_meta`. */
  readonly meta?: Json;
  /** `params.task` of 2025-11-25. */
  readonly task?: unknown;
}

const modern = "2026-07-28";

/** One client on a link. */
export class WireClient {
  /** Everything the server sent, in its order. */
  readonly received: Message[] = [];
  readonly #link: Link;
  readonly #options: Required<WireOptions>;
  readonly #waiting = new Map<number, (message: Message) => void>();
  readonly #watchers = new Set<(message: Message) => void>();
  #lastId = 0;

  constructor(link: Link, options: WireOptions) {
    this.#link = link;
    this.#options = { name: "scenario", capabilities: {}, ...options };
    link.onMessage((message) => {
      this.received.push(message);
      for (const watch of this.#watchers) watch(message);
      const answer = message.method === undefined ? this.#waiting.get(Number(message.id)) : undefined;
      this.#waiting.delete(Number(message.id));
      answer?.(message);
    });
  }

  get door(): "stdio" | "http" {
    return this.#link.door;
  }

  /** Shakes hands where the revision has that. */
  async begin(): Promise<this> {
    const { revision, name, capabilities } = this.#options;
    if (revision >= modern) return this;
    const { result } = await this.request("initialize", { protocolVersion: revision, capabilities, clientInfo: { name, version: "1" } });
    if (result?.protocolVersion !== revision) throw new Error(`The server wants to speak ${String(result?.protocolVersion)}, not ${revision}`);
    this.notify("notifications/initialized");
    return this;
  }

  /** Sends a request; `id` is for cancelling it. */
  start(method: string, params: Json = {}): { readonly id: number; readonly answer: Promise<Message> } {
    const id = ++this.#lastId;
    const answer = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    this.#link.send({ jsonrpc: "2.0", id, method, params: this.#dress(params) } as Message, this.#options);
    return { id, answer };
  }

  request(method: string, params?: Json): Promise<Message> {
    return this.start(method, params).answer;
  }

  startCall(tool: string, input: object = {}, { meta, task }: CallOptions = {}): { readonly id: number; readonly answer: Promise<Message> } {
    return this.start("tools/call", { name: tool, arguments: input, ...(task !== undefined && { task }), ...(meta !== undefined && { _meta: meta }) });
  }

  /** A call's result; an error of the protocol is thrown. */
  async call(tool: string, input: object = {}, options: CallOptions = {}): Promise<Result> {
    return resultOf(await this.startCall(tool, input, options).answer);
  }

  notify(method: string, params: Json = {}): void {
    this.#link.send({ jsonrpc: "2.0", method, params } as Message, this.#options);
  }

  /** Answers a request of the server's. */
  respond(id: string | number, result: Result): void {
    this.#link.send({ jsonrpc: "2.0", id, result } as Message, this.#options);
  }

  cancel(requestId: number): void {
    this.notify("notifications/cancelled", { requestId });
  }

  onMessage(watch: (message: Message) => void): () => void {
    this.#watchers.add(watch);
    return () => this.#watchers.delete(watch);
  }

  drop(id: number): void {
    this.#link.drop(id);
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  /** Since 2026-07-28 every request says who asks. */
  #dress(params: Json): Json {
    const { revision, name, capabilities } = this.#options;
    if (revision < modern) return params;
    const about = {
      "io.modelcontextprotocol/protocolVersion": revision,
      "io.modelcontextprotocol/clientCapabilities": capabilities,
      "io.modelcontextprotocol/clientInfo": { name, version: "1" },
    };
    return { ...params, _meta: { ...about, ...(params._meta as object | undefined) } };
  }
}

export function resultOf({ result, error }: Message): Result {
  if (result === undefined) throw new Error(`The server answered with ${JSON.stringify(error)}`);
  return result;
}

/** A call's result as the handle of a job. */
export function handleOf(result: Result): Handle {
  const data = result.structuredContent?.data;
  if (data?.job_id === undefined) throw new Error(`This is no handle: ${JSON.stringify(result)}`);
  return data as unknown as Handle;
}

/** Lines on a pair of streams. */
export function overStreams(output: Writable, input: Readable, close: () => Promise<void>): Link {
  return {
    door: "stdio",
    onMessage(listener) {
      let rest = "";
      input.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) listener(JSON.parse(line) as Message);
      });
    },
    send: (message) => void output.write(`${JSON.stringify(message)}\n`),
    drop: () => void close(),
    close,
  };
}

/** A server that was started as a child; closing ends its input, and waits for it to leave. */
export function overPipes(child: ChildProcessWithoutNullStreams): Link {
  return overStreams(child.stdin, child.stdout, async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "close");
    child.stdin.end();
    await exited;
  });
}

/** Streamable HTTP, of either era, over whatever fetches. */
export function overHttp(url: string, options: { token?: string; fetch?: (request: Request) => Promise<Response> } = {}): Link {
  const { token, fetch: send = fetch } = options;
  const open = new Map<number, AbortController>();
  let listener: (message: Message) => void = () => undefined;
  let session: string | null = null;
  const post = async (message: Message, revision: string): Promise<void> => {
    const stop = new AbortController();
    const { id, method, params } = message;
    if (typeof id === "number") open.set(id, stop);
    const headers = new Headers({ "content-type": "application/json", accept: "application/json, text/event-stream" });
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    if (session !== null) headers.set("mcp-session-id", session);
    if (method !== "initialize") headers.set("mcp-protocol-version", revision);
    if (revision >= modern) headers.set("mcp-method", method ?? "");
    const subject = params?.name ?? params?.uri ?? params?.taskId;
    if (revision >= modern && typeof subject === "string") headers.set("mcp-name", subject);
    const response = await send(new Request(url, { method: "POST", headers, body: JSON.stringify(message), signal: stop.signal }));
    session = response.headers.get("mcp-session-id") ?? session;
    await readAnswer(response, (received) => listener(received));
    if (typeof id === "number") open.delete(id);
  };
  return {
    door: "http",
    onMessage: (listen) => {
      listener = listen;
    },
    // A request whose connection was broken on purpose has no answer.
    send: (message, { revision }) => void post(message, revision).catch(() => undefined),
    drop: (id) => open.get(id)?.abort(),
    async close() {
      for (const stop of open.values()) stop.abort();
    },
  };
}

async function readAnswer(response: Response, deliver: (message: Message) => void): Promise<void> {
  if (response.body === null) return;
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) {
    const text = await response.text();
    if (text !== "") deliver(JSON.parse(text) as Message);
    return;
  }
  const decoder = new TextDecoder();
  let rest = "";
  for await (const part of response.body as unknown as AsyncIterable<Uint8Array>) {
    const events = (rest + decoder.decode(part, { stream: true })).split("\n\n");
    rest = events.pop() ?? "";
    for (const event of events) {
      // The first event of a stream that can be resumed is empty.
      const data = /^data:(.*)$/m.exec(event)?.[1]?.trim() ?? "";
      if (data !== "") deliver(JSON.parse(data) as Message);
    }
  }
}
