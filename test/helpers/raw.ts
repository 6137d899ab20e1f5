import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cleanUp, temporaryFolder } from "./home.ts";
import { serveHttpHere, servePipesHere } from "./in-process.ts";
import { type Started, startHttp, startMeanwhile, waitFor } from "./meanwhile.ts";

/** Requests of both generations, written by hand: every header, status, stream and byte of them can be seen, dropped and forged. */

export type Revision = "2025-11-25" | "2026-07-28";
export const revisions: readonly Revision[] = ["2025-11-25", "2026-07-28"];
export type Id = string | number;

// biome-ignore lint/suspicious/noExplicitAny: what is in a message is for the tests to check.
export type Fields = Record<string, any>;

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: Fields;
}

export interface Message {
  readonly id?: Id | null;
  readonly method?: string;
  readonly params?: Fields;
  readonly result?: Fields;
  readonly error?: RpcError;
}

/** What a request was answered with. */
export interface Answer {
  /** Of HTTP; 0 over a pipe. */
  readonly status: number;
  readonly headers: Headers;
  /** The body as it came; empty over a pipe. */
  readonly text: string;
  /** What came on its stream, the answer itself included. */
  readonly messages: readonly Message[];
  readonly result: Fields | undefined;
  readonly error: RpcError | undefined;
}

export interface Begun {
  readonly id: Id;
  readonly answer: Promise<Answer>;
  /** What has come on its stream so far. */
  readonly messages: readonly Message[];
  /** Over HTTP: closes the connection without a word. */
  drop(): void;
}

export interface RequestOptions {
  readonly id?: Id;
  /** In place of the client's own; undefined leaves one out. */
  readonly headers?: Readonly<Record<string, string | undefined>>;
  /** 2026-07-28: in place of what the client declares. */
  readonly capabilities?: Fields;
}

export interface Client {
  readonly revision: Revision;
  /** All that came, on whichever stream, in the order it came. */
  readonly log: Message[];
  begin(method: string, params?: Fields, options?: RequestOptions): Begun;
  request(method: string, params?: Fields, options?: RequestOptions): Promise<Answer>;
  notify(method: string, params?: Fields): Promise<void>;
  /** Answers a request of the server's. */
  respond(id: Id, result: Fields): Promise<void>;
}

const tasksExtension = "io.modelcontextprotocol/tasks";
export const takesTasks = { extensions: { [tasksExtension]: {} } };
export const takesAll = { ...takesTasks, elicitation: {} };
const clientInfo = { name: "scenario", version: "1.0.0" };

/** The envelope that every request of 2026-07-28 carries. */
export function modernMeta(capabilities: Fields): Fields {
  return {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": capabilities,
    "io.modelcontextprotocol/clientInfo": clientInfo,
  };
}

function framed(revision: Revision, params: Fields | undefined, capabilities: Fields): Fields {
  return revision === "2025-11-25" ? (params ?? {}) : { ...params, _meta: { ...modernMeta(capabilities), ...params?._meta } };
}

const initializing = (capabilities: Fields) => ({ protocolVersion: "2025-11-25", capabilities, clientInfo });

// ---------------------------------------------------------------- HTTP

/** One HTTP response that is being read. */
export class Stream {
  readonly events: { readonly id: string | undefined; readonly message: Message | undefined }[] = [];
  readonly messages: Message[] = [];
  text = "";
  isOver = false;
  readonly #response: Response;
  readonly #stop: AbortController;
  readonly over: Promise<void>;

  constructor(response: Response, stop: AbortController, onMessage: (message: Message) => void = () => undefined) {
    this.#response = response;
    this.#stop = stop;
    this.over = this.#read((message) => {
      this.messages.push(message);
      onMessage(message);
    }).finally(() => {
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

  drop(): void {
    this.#stop.abort();
  }

  of(method: string): Message[] {
    return this.messages.filter((message) => message.method === method);
  }

  async #read(receive: (message: Message) => void): Promise<void> {
    const isStream = this.#response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of (this.#response.body ?? []) as unknown as AsyncIterable<Uint8Array>) {
      const part = decoder.decode(chunk, { stream: true });
      this.text += part;
      if (!isStream) continue;
      const frames = (rest + part).split("\n\n");
      rest = frames.pop() ?? "";
      for (const frame of frames) {
        const data = /^data: (\S.*)$/m.exec(frame)?.[1];
        const message = data === undefined ? undefined : (JSON.parse(data) as Message);
        this.events.push({ id: /^id: ?(.+)$/m.exec(frame)?.[1], message });
        if (message !== undefined) receive(message);
      }
    }
    const isJson = this.#response.headers.get("content-type")?.startsWith("application/json") === true;
    if (!isStream && isJson && this.text !== "") receive(JSON.parse(this.text) as Message);
  }
}

type HeaderValues = Readonly<Record<string, string | undefined>>;

/** Any HTTP request; resolves with its response's head. The connection is closed after the test. */
export async function exchange(
  url: string,
  { method = "POST", headers = {}, body }: { method?: string; headers?: HeaderValues; body?: string },
  stop = new AbortController(),
  onMessage?: (message: Message) => void,
): Promise<Stream> {
  cleanUp(() => stop.abort());
  const given = Object.entries({ accept: "application/json, text/event-stream", ...headers }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const response = await fetch(url, { method, headers: Object.fromEntries(given), ...(body !== undefined && { body }), signal: stop.signal });
  return new Stream(response, stop, onMessage);
}

export interface HttpClientOptions {
  /** Sent with every request: who is calling. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly capabilities?: Fields;
}

abstract class HttpClient implements Client {
  abstract readonly revision: Revision;
  readonly log: Message[] = [];
  readonly url: string;
  protected readonly own: Readonly<Record<string, string>>;
  protected readonly capabilities: Fields;
  #lastId = 0;

  constructor(url: string, { headers = {}, capabilities = {} }: HttpClientOptions) {
    this.url = url;
    this.own = headers;
    this.capabilities = capabilities;
  }

  protected abstract headersOf(message: Message): Record<string, string>;

  begin(method: string, params?: Fields, options: RequestOptions = {}): Begun {
    const id = options.id ?? ++this.#lastId;
    const message = { id, method, params: framed(this.revision, params, options.capabilities ?? this.capabilities) };
    const stop = new AbortController();
    const messages: Message[] = [];
    const answer = this.#post(message, options.headers ?? {}, stop, messages).then(async (stream): Promise<Answer> => {
      await stream.over;
      const own = stream.messages.find((candidate) => candidate.method === undefined);
      return { status: stream.status, headers: stream.headers, text: stream.text, messages, result: own?.result, error: own?.error };
    });
    answer.catch(() => undefined);
    return { id, answer, messages, drop: () => stop.abort() };
  }

  async request(method: string, params?: Fields, options?: RequestOptions): Promise<Answer> {
    return await this.begin(method, params, options).answer;
  }

  async notify(method: string, params?: Fields): Promise<void> {
    const stream = await this.#post({ method, ...(params !== undefined && { params }) }, {}, new AbortController(), []);
    await stream.over;
  }

  async respond(id: Id, result: Fields): Promise<void> {
    const stream = await this.#post({ id, result }, {}, new AbortController(), []);
    await stream.over;
  }

  #post(message: Message, headers: HeaderValues, stop: AbortController, messages: Message[]): Promise<Stream> {
    const all = { "content-type": "application/json", ...this.own, ...this.headersOf(message), ...headers };
    return exchange(this.url, { headers: all, body: JSON.stringify({ jsonrpc: "2.0", ...message }) }, stop, (received) => {
      messages.push(received);
      this.log.push(received);
    });
  }
}

/** A client of 2026-07-28: every request is its own. */
export class ModernClient extends HttpClient {
  readonly revision = "2026-07-28";

  protected headersOf({ method = "", params }: Message): Record<string, string> {
    const name = params?.name ?? params?.uri ?? params?.taskId;
    return { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) };
  }

  /** Listens to tasks; resolves with the acknowledgement. */
  async listen(taskIds: readonly unknown[], more: Fields = {}): Promise<{ readonly acknowledged: Fields; readonly stream: Stream }> {
    const params = framed(this.revision, { notifications: { taskIds, ...more } }, this.capabilities);
    const message = { jsonrpc: "2.0", id: "listening", method: "subscriptions/listen", params };
    const headers = { "content-type": "application/json", ...this.own, ...this.headersOf(message) };
    const stream = await exchange(this.url, { headers, body: JSON.stringify(message) }, new AbortController(), (received) => this.log.push(received));
    const [first] = await waitFor(
      () => stream.messages.length > 0 && stream.messages,
      () => `nothing was acknowledged: ${stream.status} ${stream.text}`,
    );
    return { acknowledged: first?.params?.notifications ?? first, stream };
  }
}

/** A client of 2025-11-25, in a session. */
export class SessionClient extends HttpClient {
  readonly revision = "2025-11-25";
  /** What initialize was answered with. */
  initialized: Fields = {};
  sessionId: string | undefined;

  static async begin(url: string, options: HttpClientOptions = {}): Promise<SessionClient> {
    const client = new SessionClient(url, options);
    const answer = await client.request("initialize", initializing(client.capabilities));
    client.initialized = answer.result ?? {};
    client.sessionId = answer.headers.get("mcp-session-id") ?? undefined;
    await client.notify("notifications/initialized");
    return client;
  }

  headersOf(): Record<string, string> {
    return this.sessionId === undefined ? {} : { "mcp-session-id": this.sessionId, "mcp-protocol-version": "2025-11-25" };
  }

  /** Opens the stream for what the server sends by itself, or takes up one that broke. */
  async openStream(lastEventId?: string): Promise<Stream> {
    const headers = { accept: "text/event-stream", ...this.own, ...this.headersOf(), "last-event-id": lastEventId };
    return await exchange(this.url, { method: "GET", headers }, new AbortController(), (received) => this.log.push(received));
  }
}

// ---------------------------------------------------------------- stdio

/** A client on a pipe; the server is its own process. */
export class PipeClient implements Client {
  readonly revision: Revision;
  readonly log: Message[] = [];
  /** When each of them came. */
  readonly times: number[] = [];
  readonly server: Started;
  initialized: Fields = {};
  readonly #capabilities: Fields;
  readonly #waiting = new Map<Id, (message: Message) => void>();
  #lastId = 0;

  constructor(revision: Revision, server: Started, capabilities: Fields) {
    this.revision = revision;
    this.server = server;
    this.#capabilities = capabilities;
    let rest = "";
    server.child.stdout.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#receive(JSON.parse(line) as Message);
    });
  }

  async initialize(): Promise<this> {
    if (this.revision === "2026-07-28") return this;
    this.initialized = (await this.request("initialize", initializing(this.#capabilities))).result ?? {};
    await this.notify("notifications/initialized");
    return this;
  }

  begin(method: string, params?: Fields, options: RequestOptions = {}): Begun {
    const id = options.id ?? ++this.#lastId;
    const answer = new Promise<Message>((resolve) => this.#waiting.set(id, resolve)).then(
      (message): Answer => ({ status: 0, headers: new Headers(), text: "", messages: [message], result: message.result, error: message.error }),
    );
    this.write({ id, method, params: framed(this.revision, params, options.capabilities ?? this.#capabilities) });
    return { id, answer, messages: this.log, drop: () => this.server.child.stdin.end() };
  }

  async request(method: string, params?: Fields, options?: RequestOptions): Promise<Answer> {
    return await this.begin(method, params, options).answer;
  }

  async notify(method: string, params?: Fields): Promise<void> {
    this.write({ method, ...(params !== undefined && { params }) });
  }

  async respond(id: Id, result: Fields): Promise<void> {
    this.write({ id, result });
  }

  write(message: Message): void {
    this.server.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  /** Text as it stands: numbers that JSON.stringify would not write. */
  writeText(line: string): void {
    this.server.child.stdin.write(`${line}\n`);
  }

  #receive(message: Message): void {
    this.log.push(message);
    this.times.push(performance.now());
    if (message.method !== undefined || message.id === undefined || message.id === null) return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }
}

// ---------------------------------------------------------------- servers

export interface ServerOptions {
  readonly commands: string;
  /** The project's meanwhile.config.json. */
  readonly config?: Fields;
  readonly home?: string;
  readonly env?: Record<string, string>;
  /** Servers have processes of their own, and can be killed. */
  readonly isApart?: boolean;
}

/** A home and a project on which servers can be started, one after the other or several at once. */
export interface Place {
  readonly home: string;
  readonly token: () => string;
  readonly local: () => { authorization: string };
  startHttp(): Promise<Started & { readonly url: string }>;
  /** A server of its own on a pipe. */
  startPipe(revision: Revision, capabilities?: Fields): Promise<PipeClient>;
}

export function openPlace({ commands, config, home = temporaryFolder(), env = {}, isApart = false }: ServerOptions): Place {
  const cwd = temporaryFolder();
  if (config !== undefined) writeFileSync(path.join(cwd, "meanwhile.config.json"), JSON.stringify(config));
  const words = ["--no-bundled", "--commands", commands];
  const given = { cwd, env: { ...env, MEANWHILE_HOME: home } };
  const token = () => readFileSync(path.join(home, "token"), "utf8").trim();
  const startPipe = async (): Promise<Started> => {
    if (isApart) return startMeanwhile(["serve", "--in-process", ...words], given);
    const pipes = await servePipesHere(words, given);
    pipes.stdout.setEncoding("utf8");
    return likeStarted(home, pipes, pipes.left);
  };
  return {
    home,
    token,
    local: () => ({ authorization: `Bearer ${token()}` }),
    startHttp: async () => (isApart ? await startHttp(words, given) : { ...likeStarted(home), url: (await serveHttpHere(words, given)).url }),
    startPipe: async (revision, capabilities = {}) => await new PipeClient(revision, await startPipe(), capabilities).initialize(),
  };
}

/** What can be said of a server in this process as if it had its own. */
function likeStarted(home: string, pipes: object = {}, left: Promise<unknown> = new Promise(() => {})): Started {
  const kill = () => {
    throw new Error("This server has no process of its own: openPlace({ isApart: true }) gives it one.");
  };
  const child = { pid: process.pid, exitCode: null, ...pipes, kill } as unknown as Started["child"];
  return { child, home, stdout: () => "", stderr: () => "", exited: left.then(() => 0) };
}

/** Ends a server as a power cut would. */
export async function killNine({ child, exited }: Started): Promise<void> {
  child.kill("SIGKILL");
  await exited;
}

// ---------------------------------------------------------------- tasks

/** Starts a command as a task, in the way of the client's revision; the task's id, and all that the handle says. */
export async function startTask(
  client: Client,
  name: string,
  input: Fields = {},
  more: Fields = {},
): Promise<{ readonly taskId: string; readonly task: Fields }> {
  const asked = client.revision === "2025-11-25" ? { task: {} } : {};
  const answer = await client.request("tools/call", { name, arguments: input, ...asked, ...more });
  const task = answer.result?.task ?? (answer.result?.resultType === "task" ? answer.result : undefined);
  if (typeof task?.taskId !== "string") throw new Error(`${name} gave no task: ${JSON.stringify(answer.result ?? answer.error)}`);
  return { taskId: task.taskId as string, task };
}

export const isEnded = ({ status }: Fields) => status === "completed" || status === "failed" || status === "cancelled";

/** Looks at a task until it is as wanted. */
export async function taskWhen(client: Client, taskId: string, isRight: (task: Fields) => boolean, guardMs = 50_000): Promise<Fields> {
  const end = performance.now() + guardMs;
  for (;;) {
    const { result, error } = await client.request("tasks/get", { taskId });
    if (result !== undefined && isRight(result)) return result;
    if (performance.now() > end) throw new Error(`the task never became so: ${JSON.stringify(result ?? error)}`);
    await sleep(60);
  }
}

/** Asks until there is something. */
export async function eventually<T>(ask: () => Promise<T | undefined>, guardMs = 50_000): Promise<T> {
  const end = performance.now() + guardMs;
  for (;;) {
    const found = await ask();
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error("it never came");
    await sleep(30);
  }
}

/** A file that a command leaves its traces in, and the gate it waits at. */
export interface Traces {
  readonly file: string;
  readonly lines: () => string[];
  /** Resolves once such a line is there. */
  readonly shows: (start: string) => Promise<string>;
  /** Lets the command go on. */
  readonly open: () => void;
}

export function openTraces(): Traces {
  const file = path.join(temporaryFolder(), "traces.txt");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  return {
    file,
    lines,
    shows: (start) =>
      waitFor(
        () => lines().find((line) => line.startsWith(start)),
        () => `no trace of «${start}»: ${lines().join(" | ")}`,
      ),
    open: () => writeFileSync(`${file}.go`, ""),
  };
}
