import { cleanUp } from "./home.ts";
import { executable } from "./meanwhile.ts";
import { overPipes } from "./sdk-transport.ts";
import type { Pipes } from "./server.ts";

/** A client of each generation, by the SDK that speaks it, with all that a server can be asked. */

type Answered = Readonly<Record<string, unknown>>;

interface CallWays {
  readonly onprogress?: (progress: { readonly progress: number; readonly message?: string }) => void;
  readonly signal?: AbortSignal;
  readonly timeout?: number;
}

export interface MatrixClient {
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  call(name: string, args?: object, ways?: CallWays): Promise<Answered>;
  readResource(params: { uri: string }): Promise<Answered>;
  getPrompt(params: object): Promise<Answered>;
  complete(params: object): Promise<Answered>;
  close(): Promise<void>;
}

/** Whatever the types are in that version. */
interface SdkParts {
  readonly Client: unknown;
  readonly Http?: unknown;
  readonly Stdio: unknown;
  /** What it knows a question by; undefined where it cannot be asked. */
  readonly question?: unknown;
  readonly options?: object;
  /** v1 has a schema of the result before the options of a call. */
  readonly hasSchema: boolean;
}

type Make<T> = new (...parts: unknown[]) => T;

interface AnyClient extends Omit<MatrixClient, "call"> {
  connect(transport: unknown): Promise<void>;
  callTool(...parts: unknown[]): Promise<Answered>;
  setRequestHandler(question: unknown, answer: (asked: { params: { message: string } }) => object): void;
}

const info = { name: "matrix", version: "1" };

export const generations: Readonly<Record<string, () => Promise<SdkParts>>> = {
  "2024-11-05": async () => ({
    Client: (await import("mcp-sdk-1.4.1/client/index.js")).Client,
    Stdio: (await import("mcp-sdk-1.4.1/client/stdio.js")).StdioClientTransport,
    hasSchema: true,
  }),
  "2025-06-18": async () => ({
    Client: (await import("mcp-sdk-1.17.5/client/index.js")).Client,
    Http: (await import("mcp-sdk-1.17.5/client/streamableHttp.js")).StreamableHTTPClientTransport,
    Stdio: (await import("mcp-sdk-1.17.5/client/stdio.js")).StdioClientTransport,
    question: (await import("mcp-sdk-1.17.5/types.js")).ElicitRequestSchema,
    hasSchema: true,
  }),
  "2025-11-25": async () => ({
    Client: (await import("@modelcontextprotocol/sdk/client/index.js")).Client,
    Http: (await import("@modelcontextprotocol/sdk/client/streamableHttp.js")).StreamableHTTPClientTransport,
    Stdio: (await import("@modelcontextprotocol/sdk/client/stdio.js")).StdioClientTransport,
    question: (await import("@modelcontextprotocol/sdk/types.js")).ElicitRequestSchema,
    hasSchema: true,
  }),
  "2026-07-28": async () => ({
    Client: (await import("@modelcontextprotocol/client")).Client,
    Http: (await import("@modelcontextprotocol/client")).StreamableHTTPClientTransport,
    Stdio: (await import("@modelcontextprotocol/client/stdio")).StdioClientTransport,
    question: "elicitation/create",
    options: { versionNegotiation: { mode: { pin: "2026-07-28" } } },
    hasSchema: false,
  }),
};

/** What carries it: pipes of this process, an address, or a front that it starts. */
export type Carrier =
  | { readonly pipes: Pipes }
  | { readonly url: string }
  | { readonly words: readonly string[]; readonly cwd: string; readonly env: Readonly<Record<string, string>> };

export async function connectGeneration(
  revision: string,
  carrier: Carrier,
  answer: (params: { readonly message: string }) => object,
): Promise<MatrixClient> {
  const {
    Client,
    question,
    options = {},
    hasSchema,
    ...parts
  } = await (generations[revision] as () => Promise<SdkParts>)();
  const capabilities = question === undefined ? {} : { elicitation: {} };
  const client = new (Client as Make<AnyClient>)(info, { capabilities, ...options });
  if (question !== undefined) client.setRequestHandler(question, ({ params }) => answer(params));
  cleanUp(() => client.close());
  await client.connect(transportOf(parts, carrier));
  return {
    listTools: () => client.listTools(),
    call: (name, args = {}, ways = {}) =>
      client.callTool({ name, arguments: args }, ...(hasSchema ? [undefined, ways] : [ways])),
    readResource: (params) => client.readResource(params),
    getPrompt: (params) => client.getPrompt(params),
    complete: (params) => client.complete(params),
    close: () => client.close(),
  };
}

function transportOf({ Http, Stdio }: Pick<SdkParts, "Http" | "Stdio">, carrier: Carrier): unknown {
  if ("pipes" in carrier) return overPipes(carrier.pipes);
  if ("url" in carrier) {
    if (Http === undefined) throw new Error("This SDK does not speak Streamable HTTP.");
    return new (Http as Make<unknown>)(new URL(carrier.url));
  }
  const { words, cwd, env } = carrier;
  const all = { ...(process.env as Record<string, string>), ...env };
  return new (Stdio as Make<unknown>)({
    command: process.execPath,
    args: [executable, ...words],
    cwd,
    env: all,
    stderr: "ignore",
  });
}
