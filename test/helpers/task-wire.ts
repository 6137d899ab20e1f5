import { AsyncLocalStorage } from "node:async_hooks";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { TransportName } from "./clients.ts";
import { cleanUp, temporaryFolder } from "./home.ts";
import { type Pipes, serveHttpHere, servePipesHere } from "./in-process.ts";
import { codeCache, executable, quickStart, waitFor } from "./meanwhile.ts";

/** Messages written and read by hand, over either transport: what an SDK's client keeps to itself can be seen. */

export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

// biome-ignore lint/suspicious/noExplicitAny: what is in a message is checked by the tests.
export type Fields = Record<string, any>;

export const relatedTaskKey = "io.modelcontextprotocol/related-task";
export const tasksExtension = "io.modelcontextprotocol/tasks";
export const clientInfo = { name: "scenario", version: "1.0.0" };
const modern = "2026-07-28";

/** A server in this process that clients can be connected to; it is gone after the test. */
export interface Served {
  readonly transport: TransportName;
  readonly home: string;
  /** HTTP alone. */
  readonly url: string;
  /** The home's token, for callers over HTTP who are to be told from others. */
  readonly token: () => string;
  /** How a client starts it by itself, over stdio. */
  readonly process: { command: string; args: string[]; env: Record<string, string>; cwd: string; stderr: "ignore" };
  /** Opens a connection; over stdio that is a server of its own, on the same home, unless pipes are shared. */
  connect(options?: WireOptions): Promise<Wire>;
}

export interface ServeOptions {
  readonly commands: string;
  readonly home?: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Over stdio: clients that say the same of themselves share a server, and with it a pipe; since 2026-07-28 all do. */
  readonly sharesPipes?: boolean;
}

export interface WireOptions {
  readonly revision?: "2025-06-18" | "2025-11-25" | "2026-07-28";
  readonly capabilities?: object;
  /** Over HTTP: without the home's token. */
  readonly isAnonymous?: boolean;
  /** Over HTTP before 2026-07-28: opens no stream for what the server sends by itself. */
  readonly hasNoStream?: boolean;
}

export async function serve(transport: TransportName, options: ServeOptions): Promise<Served> {
  const { commands, home = temporaryFolder(), cwd = temporaryFolder() } = options;
  const words = ["--no-bundled", "--commands", commands];
  const inPipe = ["serve", "--in-process", ...words];
  const env = { ...options.env, MEANWHILE_HOME: home };
  const { url } = transport === "HTTP" ? await serveHttpHere(words, { cwd, env }) : { url: "" };
  const token = () => readFileSync(path.join(home, "token"), "utf8").trim();
  // A shared process lives as long as what it was asked for here, not as long as the test that is the first to use it.
  const inScope = AsyncLocalStorage.snapshot();
  const pipes = new Map<string, Promise<Pipe>>();
  const connectPipe = async (wish: WireOptions): Promise<Wire> => {
    if (options.sharesPipes !== true) return await new Pipe(await servePipesHere(words, { cwd, env })).connect(wish);
    const key = wish.revision === modern ? modern : JSON.stringify(wish);
    const pipe = pipes.get(key) ?? inScope(async () => new Pipe(await servePipesHere(words, { cwd, env })));
    pipes.set(key, pipe);
    return await (await pipe).connect(wish);
  };
  return {
    transport,
    home,
    url,
    token,
    process: {
      command: process.execPath,
      args: [quickStart, executable, ...inPipe],
      env: { ...(process.env as Record<string, string>), NODE_COMPILE_CACHE: codeCache, ...env },
      cwd,
      stderr: "ignore",
    },
    async connect(wish = {}) {
      if (transport === "stdio") return await connectPipe(wish);
      const wire = connectHttp(url, wish.isAnonymous === true ? undefined : token(), wish);
      if (wish.revision !== modern) await wire.initialize();
      if (wish.revision !== modern && wish.hasNoStream !== true) await wire.openStream?.();
      return wire;
    },
  };
}

/** A server on a pipe, and the connections that are open on its pipe. */
class Pipe {
  readonly #pipes: Pipes;
  readonly #wires = new Set<Wire>();
  #initialized: Promise<Fields> | undefined;
  #count = 0;

  constructor(pipes: Pipes) {
    this.#pipes = pipes;
    let rest = "";
    pipes.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#deliver(JSON.parse(line) as Message);
    });
  }

  /** A connection until the end of the test; hands are shaken with the first. */
  async connect(options: WireOptions): Promise<Wire> {
    const wire = new Wire(options, async (message) => void this.#pipes.stdin.write(`${JSON.stringify(message)}\n`), 1_000_000 * this.#count++);
    this.#wires.add(wire);
    cleanUp(() => this.#wires.delete(wire));
    if (options.revision === modern) return wire;
    this.#initialized ??= wire.initialize().then(() => wire.initialized);
    wire.initialized = await this.#initialized;
    return wire;
  }

  /** An answer is for whoever has asked, all else for everybody. */
  #deliver(message: Message): void {
    for (const wire of this.#wires) if (message.method !== undefined || wire.waitsFor(message.id)) wire.receive(message);
  }
}

/** One POST and what it was answered with. */
export interface Exchange {
  readonly method: string;
  readonly status: number;
  readonly type: string;
  /** What came in its body, in order. */
  readonly messages: Message[];
  isOver: boolean;
}

type Send = (message: Message, signal: AbortSignal) => Promise<void>;

/** A request that its client may close: over HTTP its stream, else by a notification. */
export interface OpenRequest {
  readonly id: number;
  readonly answer: Promise<Message>;
  close(): Promise<void>;
}

/** One connection. */
export class Wire {
  /** Everything that came, in order. */
  readonly received: Message[] = [];
  /** Over HTTP: every POST. */
  readonly exchanges: Exchange[] = [];
  /** What initialize was answered with. */
  initialized: Fields = {};
  /** Over HTTP before 2026-07-28: opens the stream for what the server sends by itself. */
  openStream: (() => Promise<void>) | undefined;
  readonly #options: WireOptions;
  readonly #send: Send;
  readonly #waiting = new Map<string | number, (message: Message) => void>();
  #lastId: number;

  constructor(options: WireOptions, send: Send, lastId = 0) {
    this.#options = options;
    this.#send = send;
    this.#lastId = lastId;
  }

  async initialize(): Promise<void> {
    const { revision = "2025-11-25", capabilities = {} } = this.#options;
    const answer = await this.request("initialize", { protocolVersion: revision, capabilities, clientInfo });
    this.initialized = answer.result ?? {};
    await this.notify("notifications/initialized");
  }

  async request(method: string, params: Fields = {}): Promise<Message> {
    return await this.open(method, params).answer;
  }

  open(method: string, params: Fields = {}): OpenRequest {
    const id = ++this.#lastId;
    const stop = new AbortController();
    const answered = new Promise<Message>((resolve) => this.#waiting.set(id, resolve));
    const unsent = this.#send(toMessage({ id, method, params: this.#frame(params) }), stop.signal).then(
      () => new Promise<never>(() => undefined),
      // Only what could not be sent ends the wait; what is closed is never answered.
      (error: unknown) => (stop.signal.aborted ? new Promise<never>(() => undefined) : Promise.reject(error)),
    );
    return {
      id,
      answer: Promise.race([answered, unsent]),
      close: async () => {
        stop.abort();
        if (this.openStream === undefined) await this.notify("notifications/cancelled", { requestId: id });
      },
    };
  }

  async notify(method: string, params: Fields = {}): Promise<void> {
    await this.#send(toMessage({ method, params: this.#frame(params) }), new AbortController().signal);
  }

  /** Answers a request of the server's. */
  async respond({ id }: Message, result: object): Promise<void> {
    if (id === undefined) throw new Error("only requests are answered");
    await this.#send(toMessage({ id, result }), new AbortController().signal);
  }

  waitsFor(id: string | number | undefined): boolean {
    return id !== undefined && this.#waiting.has(id);
  }

  receive(message: Message): void {
    this.received.push(message);
    if (message.method !== undefined || message.id === undefined) return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
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

  #frame(params: Fields): Fields {
    if (this.#options.revision !== modern) return params;
    const envelope = {
      "io.modelcontextprotocol/protocolVersion": modern,
      "io.modelcontextprotocol/clientInfo": clientInfo,
      "io.modelcontextprotocol/clientCapabilities": this.#options.capabilities ?? {},
    };
    return { ...params, _meta: { ...envelope, ...params._meta } };
  }
}

const toMessage = (message: Message) => ({ jsonrpc: "2.0", ...message });

function connectHttp(url: string, token: string | undefined, options: WireOptions): Wire {
  const { revision = "2025-11-25" } = options;
  const closing = new AbortController();
  cleanUp(() => closing.abort());
  let session: Record<string, string> = {};
  const common = (): Record<string, string> => ({
    accept: "application/json, text/event-stream",
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...session,
  });
  const post: Send = async (message, signal) => {
    const { method = "answer", params } = message;
    const name = params?.name ?? params?.taskId;
    const routing = { "mcp-protocol-version": revision, "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) };
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...common(), ...(revision === modern && routing) },
      body: JSON.stringify(message),
      signal: AbortSignal.any([signal, closing.signal]),
    });
    if (method === "initialize") session = { "mcp-session-id": response.headers.get("mcp-session-id") ?? "", "mcp-protocol-version": revision };
    const exchange: Exchange = { method, status: response.status, type: response.headers.get("content-type") ?? "", messages: [], isOver: false };
    wire.exchanges.push(exchange);
    await readBody(response, (received) => {
      exchange.messages.push(received);
      wire.receive(received);
    });
    exchange.isOver = true;
  };
  const wire = new Wire(options, (message, signal) =>
    post(message, signal).catch((error: unknown) => {
      // What is still open when the test ends is never answered.
      if (!closing.signal.aborted) throw error;
    }),
  );
  wire.openStream = async () => {
    const response = await fetch(url, { headers: common(), signal: closing.signal });
    if (!response.ok) throw new Error(`the stream was refused: ${response.status}`);
    // It ends with the test, or with its server.
    readBody(response, (message) => wire.receive(message)).catch(() => undefined);
  };
  return wire;
}

async function readBody(response: Response, receive: (message: Message) => void): Promise<void> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (!isStream) {
    const text = await response.text();
    if (text !== "") receive(JSON.parse(text) as Message);
    return;
  }
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const frames = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const data = /^data: (.+)$/m.exec(frame)?.[1];
      if (data !== undefined) receive(JSON.parse(data) as Message);
    }
  }
}

/** A file that a command leaves its traces in, the lines that are in it, and the word that lets the command go on. */
export function traces() {
  const file = path.join(temporaryFolder(), "traces.txt");
  return {
    file,
    lines: () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []),
    release: () => writeFileSync(`${file}.go`, ""),
  };
}
