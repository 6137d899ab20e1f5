import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { acceptBoth, isEventStream, readBody, subjectHeaders } from "../../src/wire/http-client.ts";
import { InFlight } from "../../src/wire/in-flight.ts";
import { LineSplitter } from "../../src/wire/lines.ts";
import { readMessage, type Message as Sent, writeMessage } from "../../src/wire/message.ts";
import { toEnvelope } from "../../src/wire/request-envelope.ts";
import { isModern, legacyRevision, modernRevision, tasksExtension } from "../../src/wire/revisions.ts";
import { cleanUp } from "./home.ts";
import { type Started, waitFor } from "./meanwhile.ts";

/**
 * Clients that write their JSON-RPC by hand: any revision, name and capability, and every message, header and status
 * seen as it came.
 */

export type Json = Readonly<Record<string, unknown>>;
// biome-ignore lint/suspicious/noExplicitAny: what is in a message is for the tests to check.
export type Fields = Record<string, any>;

export type Id = string | number;

/** One message of the server's. */
export interface Message {
  readonly id?: Id | null;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields | undefined;
  readonly error?: RpcError | undefined;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Fields;
}

/** What a job's handle says, as far as tests read it. */
export interface Handle {
  readonly job_id: string;
  readonly status: string;
  readonly questions?: readonly Json[];
  readonly next_action: { readonly tool: string; readonly arguments: Json };
}

interface Envelope {
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

export const takesTasks = { extensions: { [tasksExtension]: {} } };
export const takesJobs = { experimental: { "meanwhile/jobs": {} } };
export const takesAll = { ...takesTasks, elicitation: {} };
export const clientInfo = { name: "scenario", version: "1.0.0" };

/** The envelope that every request of 2026-07-28 carries. */
export function modernMeta(capabilities: object, name = clientInfo.name): Fields {
  return toEnvelope({ ...clientInfo, name }, capabilities as Fields);
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

function read(text: string): Message {
  const message = readMessage(text);
  if (message === undefined) throw new Error(`This is no message: ${text.slice(0, 1_000)}`);
  return message as Message;
}

// ---------------------------------------------------------------- links

/** What carries the messages of one client, or of several on one pipe. */
export interface Link {
  readonly door: "stdio" | "http";
  nextId(): number;
  onMessage(listener: (message: Message) => void): void;
  /** Takes a message to the server; what answers a request comes back. */
  send(message: Message, sending: Sending): Promise<Answer>;
  close(): Promise<void>;
  readonly http?: HttpDoor;
}

interface Sending {
  readonly revision: string;
  /** Over HTTP: in place of the usual ones; undefined leaves one out. */
  readonly headers?: HeaderValues | undefined;
  /** Over HTTP: closes the connection without a word. */
  readonly stop?: AbortController;
  /** Over HTTP: what has come on its stream so far. */
  readonly messages?: Message[];
}

type HeaderValues = Readonly<Record<string, string | undefined>>;

/** What HTTP alone has. */
export interface HttpDoor {
  sessionId: string | undefined;
  /** Every POST that was answered, in order. */
  readonly exchanges: readonly Stream[];
  /** The session's own. */
  headersOf(revision: string): Record<string, string>;
  /** Before 2026-07-28: opens the stream for what the server sends by itself, or takes up one that broke. */
  openStream(revision: string, lastEventId?: string): Promise<Stream>;
}

/** What a request was answered with: a message, and over HTTP how it came. */
export class Answer implements Message {
  declare readonly id?: Id | null;
  readonly result: Fields | undefined;
  readonly error: RpcError | undefined;
  readonly #message: Message | undefined;
  readonly #stream: Stream | undefined;

  constructor(message: Message | undefined, stream?: Stream) {
    Object.assign(this, message);
    this.result = message?.result;
    this.error = message?.error;
    this.#message = message;
    this.#stream = stream;
  }

  /** Of HTTP; 0 over a pipe. */
  get status(): number {
    return this.#stream?.status ?? 0;
  }

  get headers(): Headers {
    return this.#stream?.headers ?? new Headers();
  }

  /** The body as it came; empty over a pipe. */
  get text(): string {
    return this.#stream?.text ?? "";
  }

  /** What came on its stream, the answer itself included. */
  get messages(): readonly Message[] {
    return this.#stream?.messages ?? (this.#message === undefined ? [] : [this.#message]);
  }
}

/** Lines on a pair of streams. */
export function overStreams(output: Writable, input: Readable, close: () => Promise<void>): Link {
  const listeners = new Set<(message: Message) => void>();
  const inFlight = new InFlight<Answer>();
  const splitter = new LineSplitter(Number.POSITIVE_INFINITY);
  let lastId = 0;
  const receive = (message: Message) => {
    for (const listen of listeners) listen(message);
    if (message.method === undefined) inFlight.settle(message.id, new Answer(message));
  };
  return {
    door: "stdio",
    nextId: () => ++lastId,
    onMessage(listener) {
      listeners.add(listener);
      if (listeners.size > 1) return;
      input.on("data", (chunk: Buffer | string) => {
        // What a daemon and its fronts say to each other is no message.
        for (const line of splitter.push(Buffer.from(chunk as string)))
          if (!line.toString().startsWith('{"meanwhile":')) receive(read(line.toString()));
      });
    },
    async send(message) {
      const isRequest = message.method !== undefined && message.id != null;
      const answer = isRequest ? inFlight.open(message.id as Id).answer : new Answer(undefined);
      output.write(`${writeMessage(message as Sent)}\n`);
      return await answer;
    },
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

const maxKept = 1024 * 1024;

/** One HTTP response that is being read. */
export class Stream {
  readonly events: { readonly id: string | undefined; readonly message: Message | undefined }[] = [];
  readonly messages: Message[];
  /** The body as it came, its beginning at least. */
  text = "";
  isOver = false;
  /** The method of what was sent. */
  readonly method: string;
  readonly over: Promise<void>;
  readonly #response: Response;
  readonly #stop: AbortController;

  constructor(
    response: Response,
    about: {
      stop: AbortController;
      method?: string | undefined;
      messages?: Message[];
      onMessage?: (message: Message) => void;
    },
  ) {
    this.#response = response;
    this.#stop = about.stop;
    this.method = about.method ?? "answer";
    this.messages = about.messages ?? [];
    this.over = this.#read(about.onMessage).finally(() => {
      this.isOver = true;
    });
    // A dropped stream rejects; whoever waits for its answer is told.
    this.over.catch(() => undefined);
  }

  get status(): number {
    return this.#response.status;
  }

  get headers(): Headers {
    return this.#response.headers;
  }

  get type(): string {
    return this.headers.get("content-type") ?? "";
  }

  drop(): void {
    this.#stop.abort();
  }

  of(method: string): Message[] {
    return this.messages.filter((message) => message.method === method);
  }

  async #read(onMessage?: (message: Message) => void): Promise<void> {
    const isStream = isEventStream(this.type);
    for await (const { data, id } of readBody(this.#chunks(), isStream)) {
      // The first event of a stream that can be resumed is empty.
      const message = isStream ? (data === "" ? undefined : read(data)) : (readMessage(data) as Message | undefined);
      this.events.push({ id, message });
      if (message === undefined) continue;
      this.messages.push(message);
      onMessage?.(message);
    }
  }

  async *#chunks(): AsyncGenerator<Uint8Array> {
    const decoder = new TextDecoder();
    for await (const chunk of (this.#response.body ?? []) as AsyncIterable<Uint8Array>) {
      if (this.text.length < maxKept) this.text += decoder.decode(chunk, { stream: true });
      yield chunk;
    }
  }
}

/** Any HTTP request; resolves with its response's head. The connection is closed after the test. */
export async function exchange(
  url: string,
  request: { method?: string; headers?: HeaderValues; body?: string },
): Promise<Stream> {
  const stop = new AbortController();
  cleanUp(() => stop.abort());
  return new Stream(await fetch(url, toInit({ ...request, headers: { ...acceptBoth, ...request.headers } }, stop)), {
    stop,
  });
}

/** Not a Request: once that is collected, what aborts its signal aborts nothing any more. */
function toInit(
  { method = "POST", headers, body }: { method?: string; headers: HeaderValues; body?: string },
  { signal }: AbortController,
): RequestInit {
  const given = Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { method, headers: Object.fromEntries(given), ...(body !== undefined && { body }), signal };
}

export interface HttpLinkOptions {
  readonly token?: string;
  /** Sent with every request: who is calling. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** Streamable HTTP, of either era, over whatever fetches. */
export function overHttp(
  url: string,
  { token, headers, fetch: begin = fetch }: HttpLinkOptions = {},
): Link & { readonly http: HttpDoor } {
  const own = { ...acceptBoth, ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers };
  const open = new Set<AbortController>();
  const exchanges: Stream[] = [];
  let listener: (message: Message) => void = () => undefined;
  let lastId = 0;
  const http: HttpDoor = {
    sessionId: undefined,
    exchanges,
    headersOf: (revision) => subjectHeaders({ revision, session: http.sessionId }),
    async openStream(revision, lastEventId) {
      const stop = new AbortController();
      open.add(stop);
      const all = { ...own, accept: "text/event-stream", ...http.headersOf(revision), "last-event-id": lastEventId };
      return new Stream(await begin(url, toInit({ method: "GET", headers: all }, stop)), {
        stop,
        onMessage: (message) => listener(message),
      });
    },
  };
  const post = async (
    message: Message,
    { revision, stop = new AbortController(), messages = [], headers: more }: Sending,
  ): Promise<Answer> => {
    const { method, params } = message;
    open.add(stop);
    const about = {
      ...own,
      "content-type": "application/json",
      ...subjectHeaders({ revision, session: http.sessionId, method, params }),
      ...more,
    };
    const response = await begin(url, toInit({ headers: about, body: writeMessage(message as Sent) }, stop));
    http.sessionId = response.headers.get("mcp-session-id") ?? http.sessionId;
    const stream = new Stream(response, { stop, method, messages, onMessage: (received) => listener(received) });
    exchanges.push(stream);
    await stream.over;
    open.delete(stop);
    return new Answer(
      messages.find((received) => received.method === undefined),
      stream,
    );
  };
  return {
    door: "http",
    http,
    nextId: () => ++lastId,
    onMessage: (listen) => {
      listener = listen;
    },
    send(message, sending) {
      const answer = post(message, sending);
      // A request whose connection was broken on purpose has no answer.
      answer.catch(() => undefined);
      return answer;
    },
    async close() {
      for (const stop of open) stop.abort();
    },
  };
}

// ---------------------------------------------------------------- clients

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

export interface RequestOptions {
  readonly id?: Id;
  /** Over HTTP: in place of the client's own; undefined leaves one out. */
  readonly headers?: HeaderValues;
  /** 2026-07-28: in place of what the client declares. */
  readonly capabilities?: object;
}

export interface Begun {
  /** For cancelling it. */
  readonly id: number;
  readonly answer: Promise<Answer>;
  /** Over HTTP: what has come on its stream so far. */
  readonly messages: readonly Message[];
  /** Breaks the connection that carries it; pipes have but one. */
  drop(): void;
  /** Takes it back: over HTTP by closing its stream, else by a notification. */
  stop(): void;
}

/** One client on a link. */
export class WireClient {
  /** Everything the server sent, on whichever stream, in the order it came. */
  readonly received: Message[] = [];
  /** What initialize was answered with. */
  initialized: Fields = {};
  readonly #link: Link;
  readonly #options: Required<WireOptions>;
  readonly #watchers = new Set<(message: Message) => void>();

  constructor(link: Link, options: WireOptions) {
    this.#link = link;
    this.#options = { name: clientInfo.name, capabilities: {}, ...options };
    link.onMessage((message) => {
      this.received.push(message);
      for (const watch of this.#watchers) watch(message);
    });
  }

  get door(): "stdio" | "http" {
    return this.#link.door;
  }

  get revision(): string {
    return this.#options.revision;
  }

  /** Over HTTP: every POST. */
  get exchanges(): readonly Stream[] {
    return this.#link.http?.exchanges ?? [];
  }

  get sessionId(): string | undefined {
    return this.#http.sessionId;
  }

  set sessionId(id: string | undefined) {
    this.#http.sessionId = id;
  }

  /** Shakes hands where the revision has that. */
  async begin(): Promise<this> {
    const { revision, name, capabilities } = this.#options;
    if (isModern(revision)) return this;
    const { result, error } = await this.request("initialize", {
      protocolVersion: revision,
      capabilities,
      clientInfo: { name, version: "1" },
    });
    if (error !== undefined) throw new Error(error.message);
    if (result?.protocolVersion !== revision)
      throw new Error(`The server wants to speak ${String(result?.protocolVersion)}, not ${revision}`);
    this.initialized = result;
    // What comes next may overtake it, as with any client over HTTP.
    this.notify("notifications/initialized").catch(() => undefined);
    return this;
  }

  start(method: string, params: Json = {}, options: RequestOptions = {}): Begun {
    const id = options.id ?? this.#link.nextId();
    const stop = new AbortController();
    const messages: Message[] = [];
    const drop = () => (this.door === "http" ? stop.abort() : void this.close());
    const sending = { revision: this.revision, headers: options.headers, stop, messages };
    const answer = this.#link.send({ id, method, params: this.#dress(params, options.capabilities) }, sending);
    return { id: id as number, answer, messages, drop, stop: () => (this.door === "http" ? drop() : this.cancel(id)) };
  }

  request(method: string, params?: Json, options?: RequestOptions): Promise<Answer> {
    return this.start(method, params, options).answer;
  }

  startCall(tool: string, input: object = {}, { meta, task }: CallOptions = {}): Begun {
    return this.start("tools/call", {
      name: tool,
      arguments: input,
      ...(task !== undefined && { task }),
      ...(meta !== undefined && { _meta: meta }),
    });
  }

  /** A call's result; an error of the protocol is thrown. */
  async call(tool: string, input: object = {}, options: CallOptions = {}): Promise<Result> {
    return resultOf(await this.startCall(tool, input, options).answer);
  }

  async notify(method: string, params: Json = {}): Promise<void> {
    await this.#link.send({ method, params }, this.#options);
  }

  /** Answers a request of the server's. */
  async respond(id: Id | null | undefined, result: Fields): Promise<void> {
    if (id == null) throw new Error("only requests are answered");
    await this.#link.send({ id, result }, this.#options);
  }

  /** Answers one with an error. */
  async fail(id: Id | null | undefined, error: RpcError): Promise<void> {
    if (id == null) throw new Error("only requests are answered");
    await this.#link.send({ id, error }, this.#options);
  }

  cancel(requestId: Id): void {
    this.notify("notifications/cancelled", { requestId }).catch(() => undefined);
  }

  onMessage(watch: (message: Message) => void): () => void {
    this.#watchers.add(watch);
    return () => this.#watchers.delete(watch);
  }

  /** What came by this method so far. */
  of(method: string): Message[] {
    return this.received.filter((message) => message.method === method);
  }

  /** The first message of a method that fits, now or later. */
  async comes(method: string, fits: (message: Message) => boolean = () => true): Promise<Message> {
    return await waitFor(
      () => this.of(method).find(fits),
      () => `no ${method} that fits came; the last were ${JSON.stringify(this.received.slice(-5))}`,
    );
  }

  /** The session's own. */
  headersOf(): Record<string, string> {
    return this.#http.headersOf(this.revision);
  }

  openStream(lastEventId?: string): Promise<Stream> {
    return this.#http.openStream(this.revision, lastEventId);
  }

  /** 2026-07-28 over HTTP: opens `subscriptions/listen` for tasks. Resolves with the acknowledgement. */
  async listen(
    taskIds: readonly unknown[],
    more: Fields = {},
  ): Promise<{ readonly acknowledged: Fields; readonly stream: Stream }> {
    const { id, messages } = this.start(
      "subscriptions/listen",
      { notifications: { taskIds, ...more } },
      { id: "listening" },
    );
    const isOurs = (stream: Stream) => stream.messages === messages;
    const [first] = await waitFor(
      () => messages.length > 0 && messages,
      () => `nothing was acknowledged to ${id}: ${this.exchanges.find(isOurs)?.text}`,
    );
    return { acknowledged: first?.params?.notifications ?? first, stream: this.exchanges.find(isOurs) as Stream };
  }

  close(): Promise<void> {
    return this.#link.close();
  }

  get #http(): HttpDoor {
    if (this.#link.http === undefined) throw new Error("This client is on a pipe.");
    return this.#link.http;
  }

  /** Since 2026-07-28 every request says who asks. */
  #dress(params: Json, capabilities = this.#options.capabilities): Json {
    if (!isModern(this.revision)) return params;
    return {
      ...params,
      _meta: { ...modernMeta(capabilities, this.#options.name), ...(params._meta as object | undefined) },
    };
  }
}

export interface HttpClientOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly capabilities?: object;
}

function overHttpHere(url: string, { headers = {} }: HttpClientOptions): Link {
  const link = overHttp(url, { headers });
  cleanUp(() => link.close());
  return link;
}

/** A client of 2026-07-28: every request is its own. Its connections are closed after the test. */
export class ModernClient extends WireClient {
  constructor(url: string, options: HttpClientOptions) {
    super(overHttpHere(url, options), { revision: modernRevision, capabilities: options.capabilities ?? {} });
  }
}

/** A client of 2025-11-25, in a session. */
export class SessionClient extends WireClient {
  constructor(url: string, options: HttpClientOptions = {}) {
    super(overHttpHere(url, options), { revision: legacyRevision, capabilities: options.capabilities ?? {} });
  }

  static async begin(url: string, options?: HttpClientOptions): Promise<SessionClient> {
    return await new SessionClient(url, options).begin();
  }
}

/** A client on the pipes of a server that was started for it. */
export class PipeClient extends WireClient {
  readonly server: Started;

  constructor(server: Started, options: WireOptions) {
    const { stdin, stdout } = server.child;
    const leave = async () => {
      stdin.end();
      await server.exited;
    };
    super(overStreams(stdin, stdout, leave), options);
    this.server = server;
  }

  /** Text as it stands: numbers that JSON.stringify would not write. */
  writeText(line: string): void {
    this.server.child.stdin.write(`${line}\n`);
  }
}
