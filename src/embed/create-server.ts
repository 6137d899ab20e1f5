import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable, Writable } from "node:stream";
import type { ForCaller } from "../auth/app-caller.ts";
import { messageOf, RpcCode } from "../errors.ts";
import { writeMessage } from "../wire/message.ts";
import type { ServerCallOptions } from "./call-here.ts";
import type { OpenParts, OpenServer } from "./open-embedded.ts";
import type { CallResult } from "./result-copy.ts";
import { type CheckedOptions, checkServerOptions, type ServerOptions } from "./server-options.ts";
import type { ServerProgress, ServerTasks } from "./server-tasks.ts";
import type { MessageTransport } from "./transport-way.ts";

/** Node's own request, which is also Express's; of Fastify it is `request.raw`. */
export interface NodeHttpRequest {
  readonly rawHeaders: readonly string[];
  readonly method?: string | undefined;
  readonly url?: string | undefined;
}

/** Node's own response, which is also Express's; of Fastify it is `reply.raw`. */
export interface NodeHttpResponse {
  writeHead(status: number, headers?: Record<string, string>): unknown;
  end(text?: string): unknown;
}

/** A pair of Node's streams. */
export interface StreamPair {
  readonly input: { pipe: unknown; resume(): unknown };
  readonly output: { write: unknown; cork(): unknown };
}

/** A server inside a program: its doors, its tools and its tasks. It is opened when it is first used. */
export interface EmbeddedServer extends ServerProgress {
  /**
   * Opens it now, and begins to work on the tasks that an earlier process has left: for an app that should do so before
   * anybody calls.
   */
  ready(): Promise<void>;
  /** For Hono, and whatever else on Node has web requests. `caller`: who that is, where the app knows already. */
  readonly fetch: (request: Request, options?: ForCaller & { readonly body?: unknown }) => Promise<Response>;
  /** For Express, Fastify and node:http. The third is a body that was read before; Express's `next` is passed over. */
  readonly node: (request: NodeHttpRequest, response: NodeHttpResponse, bodyOrNext?: unknown) => void;
  /**
   * One client over this process's stdin and stdout. Resolves when it has hung up and the server is closed, so that
   * the process can end; what else would be written to stdout goes to stderr from the beginning on. Over another pair
   * of streams it resolves when the client has hung up, and the server stays open.
   */
  stdio(streams?: StreamPair): Promise<void>;
  /**
   * One client over a transport of any SDK; resolves when it has started. Where it may be anybody's, as over a
   * WebSocket, say with `caller` who that is: the tasks of the process's own user are not for everybody.
   */
  connect(transport: MessageTransport, options?: ForCaller): Promise<void>;
  /** What a client would get for this call, once it has ended, however long that takes. */
  call(tool: string, input?: Readonly<Record<string, unknown>>, options?: ServerCallOptions): Promise<CallResult>;
  readonly tasks: ServerTasks;
  /**
   * Hands out calls, gives back what is safe to run again, and lets the rest go on for `graceSeconds`. For good, and
   * harmless twice.
   */
  close(): Promise<void>;
}

/** Makes a server of commands, inside this program. Nothing is opened, read or written before it is used. */
export function createServer(options: ServerOptions): EmbeddedServer {
  return embedServer(checkServerOptions(options));
}

/** The same of options that were looked at, with what somebody else's server brings along. */
export function embedServer(options: CheckedOptions, openParts?: OpenParts): EmbeddedServer {
  return new LazyServer(options, openParts);
}

const closedText = "This server was closed; make another with createServer().";
/** Why, is in the log. */
const unopenedText = "Internal error";
const headers = { "content-type": "application/json" };

/** Loads and opens what it needs with its first use: whoever only defines commands loads nothing of it. */
class LazyServer implements EmbeddedServer {
  readonly tasks: ServerTasks;
  readonly #options: CheckedOptions;
  readonly #openParts: OpenParts | undefined;
  #opening: Promise<OpenServer> | undefined;
  #opened: OpenServer | undefined;
  #closing: Promise<void> | undefined;

  constructor(options: CheckedOptions, openParts: OpenParts | undefined) {
    this.#options = options;
    this.#openParts = openParts;
    const view = async () => {
      const { core } = await this.#open();
      const { createServerTasks } = await import("./server-tasks.ts");
      return createServerTasks(core);
    };
    this.tasks = {
      get: async (...given) => await (await view()).get(...given),
      list: async (...given) => await (await view()).list(...given),
      cancel: async (...given) => await (await view()).cancel(...given),
      answer: async (...given) => await (await view()).answer(...given),
      wait: async (...given) => await (await view()).wait(...given),
    };
  }

  async ready(): Promise<void> {
    const { core } = await this.#open();
    await core.tasks.start();
  }

  readonly fetch: EmbeddedServer["fetch"] = async (request, options = {}) => {
    const { caller, body } = options;
    if (this.#closing !== undefined) return new Response(toAnswer(closedText), { status: 503, headers });
    const opened = await this.#open().catch(() => undefined);
    if (opened === undefined) return new Response(toAnswer(unopenedText), { status: 500, headers });
    return await opened.mount.fetch(request, { caller, body });
  };

  readonly node: EmbeddedServer["node"] = (request, response, bodyOrNext) => {
    if (!Array.isArray(request?.rawHeaders) || typeof response?.writeHead !== "function")
      throw new TypeError(
        "`node` takes node's own request and response; in Fastify these are `request.raw` and `reply.raw`.",
      );
    const begin = ({ mount }: OpenServer) =>
      mount.node(request as unknown as IncomingMessage, response as unknown as ServerResponse, bodyOrNext);
    if (this.#closing !== undefined) refuse(response, 503, closedText);
    else if (this.#opened !== undefined) begin(this.#opened);
    else
      void this.#open()
        .then(begin)
        .catch((error: unknown) => this.#failed(response, error));
  };

  async stdio(streams?: StreamPair): Promise<void> {
    const server = await this.#open();
    if (streams !== undefined) return await server.serve(toStreams(streams));
    const { ownStreams } = await import("./open-embedded.ts");
    await server.serve(ownStreams());
    // Whoever started this process has let go of it; looking out for tasks must not keep it.
    await this.close();
  }

  async connect(transport: MessageTransport, { caller }: ForCaller = {}): Promise<void> {
    await (await this.#open()).connect(transport, caller);
  }

  async call(
    tool: string,
    input: Readonly<Record<string, unknown>> = {},
    options: ServerCallOptions = {},
  ): Promise<CallResult> {
    const { core } = await this.#open();
    const { callHere } = await import("./call-here.ts");
    return await callHere(core, { name: tool, input }, options);
  }

  async progressOf(...given: Parameters<ServerProgress["progressOf"]>) {
    return await (await this.#progress()).progressOf(...given);
  }

  async listProgress(...given: Parameters<ServerProgress["listProgress"]>) {
    return await (await this.#progress()).listProgress(...given);
  }

  async #progress(): Promise<ServerProgress> {
    const { core } = await this.#open();
    const { createServerProgress } = await import("./server-tasks.ts");
    return createServerProgress(core);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    const opened = await this.#opening?.catch(() => undefined);
    await opened?.close();
  }

  #open(): Promise<OpenServer> {
    if (this.#closing !== undefined) return Promise.reject(new Error(closedText));
    this.#opening ??= this.#openOnce().catch((error: unknown) => {
      // What is wrong may be mended by the next time.
      this.#opening = undefined;
      throw error;
    });
    return this.#opening;
  }

  /** Nobody waits for the first request to be begun, so whatever that comes to ends here. Never throws. */
  #failed(response: NodeHttpResponse, error: unknown): void {
    // Why it could not be opened was logged there.
    this.#opened?.core.log.error(`a request could not be answered: ${messageOf(error)}`, { error });
    try {
      refuse(response, 500, unopenedText);
    } catch {
      // It has been answered, or is no response that could be.
    }
  }

  async #openOnce(): Promise<OpenServer> {
    const { openEmbedded } = await import("./open-embedded.ts");
    const opened = await openEmbedded(this.#options, this.#openParts);
    this.#opened = opened;
    return opened;
  }
}

function refuse(response: NodeHttpResponse, status: number, message: string): void {
  response.writeHead(status, headers);
  response.end(toAnswer(message));
}

function toAnswer(message: string): string {
  return writeMessage({ id: null, error: { code: RpcCode.Internal, message } });
}

/** Node's own by what they can do; of which copy of which class they are says nothing. */
function toStreams({ input, output }: StreamPair) {
  const [from, to] = [input as unknown as Readable, output as unknown as Writable];
  return { input: from, output: to, write: to.write.bind(to) };
}
