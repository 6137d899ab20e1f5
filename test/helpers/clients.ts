import type { ChildProcess } from "node:child_process";
import { cleanUp } from "./home.ts";
import { waitFor } from "./meanwhile.ts";
import { type SdkTransport as LinkedTransport, overPipes, toProcess } from "./sdk-transport.ts";
import type { Target } from "./server.ts";

/**
 * Real MCP clients behind one small interface. The SDKs' own types differ from version to version,
 * so a client is typed by what the tests ask of it.
 */

export type TransportName = "stdio" | "HTTP";

export interface Sdk {
  readonly title: string;
  readonly transports: readonly TransportName[];
  /** The revision it agrees on with a server that speaks all of them. */
  readonly revision: string;
  readonly load: () => Promise<Loaded>;
}

export interface ListedTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: object;
  readonly outputSchema?: { readonly type: string; readonly properties?: object };
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export interface CallResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: Readonly<Record<string, unknown>>;
  readonly isError?: boolean;
}

interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface Asked {
  readonly message: string;
  readonly requestedSchema: object;
}

export type Reply =
  | { readonly action: "accept"; readonly content: Readonly<Record<string, unknown>> }
  | { readonly action: "decline" | "cancel" };

export interface TestClient {
  listTools(): Promise<readonly ListedTool[]>;
  call(
    name: string,
    input?: object,
    options?: { onprogress?: (progress: Progress) => void; signal?: AbortSignal },
  ): Promise<CallResult>;
  /** Resolves once a change of the tool list would reach this client. */
  subscribe(): Promise<void>;
  /** How often the server has said that its tools changed. */
  readonly listChanges: () => number;
  /** What came from the server since the connection was made: "answer", or a notification's method. */
  readonly received: readonly string[];
  readonly errors: readonly Error[];
}

export interface ConnectOptions {
  /** Declares elicitation and answers with this; without it the client cannot be asked. */
  readonly answer?: (asked: Asked) => Reply | Promise<Reply>;
}

/** The tools that follow up slow calls; callers over HTTP without a token have no list. */
export const followUps = (transport: TransportName) =>
  ["task_result", "task_status", "task_cancel", "task_list", "task_answer"].filter(
    (name) => transport === "stdio" || name !== "task_list",
  );

interface Loaded {
  readonly makeClient: (options: { elicitation: boolean }) => SdkClient;
  readonly makePipe: (server: object) => SdkTransport;
  readonly makeHttp: (url: URL, options: { fetch: typeof fetch; requestInit: RequestInit }) => SdkTransport;
  /** What `setRequestHandler` knows a question by. */
  readonly question: unknown;
  /** Where `callTool` takes its options: v1 has a result schema before them. */
  readonly callOptions: (options: object) => unknown[];
}

interface SdkTransport extends LinkedTransport {
  /** The server's process, where the transport has started one. */
  readonly _process?: ChildProcess;
}

interface SdkClient {
  connect(transport: SdkTransport): Promise<void>;
  close(): Promise<void>;
  listTools(): Promise<{ tools: ListedTool[] }>;
  callTool(params: object, ...options: unknown[]): Promise<CallResult>;
  setRequestHandler(method: unknown, handler: (request: { params: Asked }) => unknown): void;
  getNegotiatedProtocolVersion?(): string | undefined;
  listen?(filter: object): Promise<unknown>;
  onerror?: (error: Error) => void;
  fallbackNotificationHandler?: (notification: { method: string }) => Promise<void>;
}

/** Connects an SDK's client to a server; the client is closed after the test. */
export async function connect(sdk: Sdk, target: Target, { answer }: ConnectOptions = {}): Promise<TestClient> {
  const loaded = await sdk.load();
  const client = loaded.makeClient({ elicitation: answer !== undefined });
  const received: string[] = [];
  const errors: Error[] = [];
  let listChanges = 0;
  let hasStream = !("url" in target);
  const watchStream: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (init?.method === "GET" && response.ok) hasStream = true;
    return response;
  };
  client.onerror = (error) => errors.push(error);
  client.fallbackNotificationHandler = async ({ method }) => {
    if (method === "notifications/tools/list_changed") listChanges += 1;
  };
  if (answer !== undefined) client.setRequestHandler(loaded.question, ({ params }) => answer(params));

  const transport = toTransport(target, loaded, watchStream);
  cleanUp(() => close(client, transport));
  await client.connect(transport);
  const revision = client.getNegotiatedProtocolVersion?.() ?? sdk.revision;
  if (revision !== sdk.revision)
    throw new Error(`${sdk.title} was expected to agree on ${sdk.revision}, not on ${revision}`);

  const deliver = transport.onmessage;
  transport.onmessage = (message, extra) => {
    received.push(message.method ?? "answer");
    deliver?.(message, extra);
  };
  return {
    received,
    errors,
    listChanges: () => listChanges,
    async listTools() {
      return (await client.listTools()).tools;
    },
    call: (name, input = {}, callOptions = {}) =>
      client.callTool({ name, arguments: input }, ...loaded.callOptions(callOptions)),
    async subscribe() {
      if (sdk.revision >= "2026-07-28") await client.listen?.({ toolsListChanged: true });
      else
        await waitFor(
          () => hasStream,
          () => `${sdk.title} never opened its stream`,
        );
    },
  };
}

function toTransport(target: Target, { makePipe, makeHttp }: Loaded, watched: typeof fetch): SdkTransport {
  if ("pipes" in target) return overPipes(target.pipes);
  if ("words" in target) return makePipe(toProcess(target));
  return makeHttp(new URL(target.url), { fetch: watched, requestInit: { headers: { ...target.headers } } });
}

/** Old transports do not wait for the process they end. */
async function close(client: SdkClient, { _process: child }: SdkTransport): Promise<void> {
  const isRunning = child !== undefined && child.exitCode === null && child.signalCode === null;
  const exited = isRunning ? new Promise<void>((resolve) => child.once("close", () => resolve())) : undefined;
  await client.close();
  await exited;
}

const info = { name: "scenario", version: "1.0.0" };
const capabilities = ({ elicitation }: { elicitation: boolean }) => ({
  capabilities: elicitation ? { elicitation: {} } : {},
});

/** The parts of a v1 SDK, whatever their types are in that version. */
interface V1 {
  readonly client: () => Promise<{ Client: unknown }>;
  readonly stdio: () => Promise<{ StdioClientTransport: unknown }>;
  readonly http?: () => Promise<{ StreamableHTTPClientTransport: unknown }>;
  readonly types?: () => Promise<{ ElicitRequestSchema: unknown }>;
}

type Make<T> = new (...parts: unknown[]) => T;

function v1(version: string, revision: string, parts: V1): Sdk {
  return {
    title: `SDK v1 ${version}`,
    transports: parts.http === undefined ? ["stdio"] : ["stdio", "HTTP"],
    revision,
    async load() {
      const [{ Client }, { StdioClientTransport }, http, types] = await Promise.all([
        parts.client(),
        parts.stdio(),
        parts.http?.(),
        parts.types?.(),
      ]);
      const HttpTransport = http?.StreamableHTTPClientTransport as Make<SdkTransport>;
      return {
        makeClient: (options) => new (Client as Make<SdkClient>)(info, capabilities(options)),
        makePipe: (server) => new (StdioClientTransport as Make<SdkTransport>)(server),
        makeHttp: (url, options) => new HttpTransport(url, options),
        question: types?.ElicitRequestSchema,
        callOptions: (options) => [undefined, options],
      };
    },
  };
}

function v2(mode: "legacy" | "auto" | { pin: string }, revision: string): Sdk {
  return {
    title: `SDK v2 2.4.0 (${typeof mode === "string" ? mode : "pinned"}, ${revision})`,
    transports: ["stdio", "HTTP"],
    revision,
    async load() {
      const [{ Client, StreamableHTTPClientTransport }, { StdioClientTransport }] = await Promise.all([
        import("@modelcontextprotocol/client"),
        import("@modelcontextprotocol/client/stdio"),
      ]);
      return {
        makeClient: (options) =>
          new Client(info, { ...capabilities(options), versionNegotiation: { mode } }) as unknown as SdkClient,
        makePipe: (server) => new (StdioClientTransport as unknown as Make<SdkTransport>)(server),
        makeHttp: (url, options) => new (StreamableHTTPClientTransport as unknown as Make<SdkTransport>)(url, options),
        question: "elicitation/create",
        callOptions: (options) => [options],
      };
    },
  };
}

/** The newest v1: what most hosts are built on. */
export const newestV1 = v1("1.32.2", "2025-11-25", {
  client: () => import("@modelcontextprotocol/sdk/client/index.js"),
  stdio: () => import("@modelcontextprotocol/sdk/client/stdio.js"),
  http: () => import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  types: () => import("@modelcontextprotocol/sdk/types.js"),
});

/** v2 where it speaks 2026-07-28 and nothing else. */
export const modernV2 = v2({ pin: "2026-07-28" }, "2026-07-28");

/** One client for each step the protocol and its SDK took. */
export const sdks: readonly Sdk[] = [
  v1("1.4.1", "2024-11-05", {
    client: () => import("mcp-sdk-1.4.1/client/index.js"),
    stdio: () => import("mcp-sdk-1.4.1/client/stdio.js"),
  }),
  v1("1.11.5", "2025-03-26", {
    client: () => import("mcp-sdk-1.11.5/client/index.js"),
    stdio: () => import("mcp-sdk-1.11.5/client/stdio.js"),
    http: () => import("mcp-sdk-1.11.5/client/streamableHttp.js"),
  }),
  v1("1.17.5", "2025-06-18", {
    client: () => import("mcp-sdk-1.17.5/client/index.js"),
    stdio: () => import("mcp-sdk-1.17.5/client/stdio.js"),
    http: () => import("mcp-sdk-1.17.5/client/streamableHttp.js"),
  }),
  v1("1.25.3", "2025-11-25", {
    client: () => import("mcp-sdk-1.25.3/client/index.js"),
    stdio: () => import("mcp-sdk-1.25.3/client/stdio.js"),
    http: () => import("mcp-sdk-1.25.3/client/streamableHttp.js"),
  }),
  newestV1,
  v2("legacy", "2025-11-25"),
  v2("auto", "2026-07-28"),
  modernV2,
];
