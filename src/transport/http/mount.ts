import type { IncomingMessage, ServerResponse } from "node:http";
import type { AppCaller, CallersOfServer } from "../../auth/app-caller.ts";
import type { Clock } from "../../clock.ts";
import type { Caller } from "../../command/caller.ts";
import { RpcCode } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import type { Serving } from "../../mcp/serving.ts";
import { type OwnNames, publicNames, refuseOtherTypes, refuseStrangers } from "./admission.ts";
import { type BodyListener, readNodeBody, readWebBody, takeBody } from "./body.ts";
import { type DoorRequest, NodeRequest, WebRequest } from "./door-request.ts";
import type { DoorResponse } from "./door-response.ts";
import { Endpoint } from "./endpoint.ts";
import type { HttpExchange } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { createIdentification, type Identification, type Identify } from "./identification.ts";
import { WebResponse } from "./web-response.ts";

export interface HttpMountOptions {
  readonly serving: Serving;
  /** Returns the caller of a request; undefined refuses the request. Without it every caller is `anonymous`. */
  readonly identify?: Identify | undefined;
  readonly callers: CallersOfServer;
  /** The address that clients know, where it is not this machine's own: its host may stand in Host and Origin. */
  readonly publicUrl?: string | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

interface FetchOptions {
  /** The caller, where the app has identified it already. */
  readonly caller?: AppCaller | undefined;
  /** What the app has made of the body, where it has read it already. */
  readonly body?: unknown;
}

/** MCP inside somebody else's web app, which has decided which requests are for us. */
export interface HttpMount {
  /** For Hono, and whatever else on Node hands over a web Request. */
  readonly fetch: (request: Request, options?: FetchOptions) => Promise<Response>;
  /**
   * For Express, Fastify and node:http. What the app has made of the body is taken from `request.body`, or handed over
   * as the third; a function there is Express's `next`, and not called.
   */
  readonly node: (request: IncomingMessage, response: ServerResponse, body?: unknown) => void;
  /** Ends sessions and streams; whoever asks afterwards is told so. */
  close(): Promise<void>;
}

/** Throws a TypeError for an address that is none. */
export function createHttpMount(options: HttpMountOptions): HttpMount {
  return new Mount(options);
}

/** A request on its way in. */
interface Arrived {
  readonly request: DoorRequest;
  readonly response: DoorResponse;
  readonly readBody: (listener: BodyListener) => void;
  readonly caller?: AppCaller | undefined;
}

const closedText = "This server was closed.";

class Mount implements HttpMount {
  readonly #endpoint: Endpoint;
  readonly #names: OwnNames;
  readonly #identification: Identification;
  /** What has not been answered. */
  readonly #open = new Set<HttpExchange>();
  #isClosed = false;

  constructor(options: HttpMountOptions) {
    this.#names = publicNames(options.publicUrl);
    this.#identification = createIdentification(options);
    this.#endpoint = new Endpoint(options);
  }

  readonly fetch = (request: Request, options: FetchOptions = {}): Promise<Response> => {
    if (typeof request?.headers?.get !== "function")
      return Promise.reject(new TypeError("`fetch` takes a web Request; in Hono it is `c.req.raw`."));
    const response = new WebResponse();
    const { caller, body } = options;
    this.#begin({
      request: new WebRequest(request),
      response,
      caller,
      readBody: (listener) => (body === undefined ? readWebBody(request, listener) : takeBody(body, listener)),
    });
    response.watch(request);
    return response.made;
  };

  readonly node = (incoming: IncomingMessage, response: ServerResponse, body?: unknown): void => {
    if (!Array.isArray(incoming?.rawHeaders) || typeof response?.writeHead !== "function")
      throw new TypeError(
        "`node` takes node's own request and response; in Fastify these are `request.raw` and `reply.raw`.",
      );
    const given = typeof body === "function" ? undefined : body;
    this.#begin({
      request: new NodeRequest(incoming),
      response,
      readBody: (listener) => readNodeBody(incoming, given, listener),
    });
  };

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#endpoint.close();
    for (const exchange of this.#open)
      exchange.breakOff(503, { id: null, error: { code: RpcCode.Internal, message: closedText } });
  }

  /** Never throws: whatever goes wrong is answered. */
  #begin(arrived: Arrived): void {
    const { request, response, caller } = arrived;
    const exchange = this.#endpoint.createExchange(response);
    this.#open.add(exchange);
    exchange.onClose(() => this.#open.delete(exchange));
    const refuse = (error: unknown) => this.#endpoint.refuse(response, error);
    try {
      this.#refuseWhenClosed();
      refuseStrangers(request, this.#names);
      const known = this.#identification(request, caller);
      if (known instanceof Promise) known.then((who) => this.#answer(arrived, exchange, who)).catch(refuse);
      else this.#answer(arrived, exchange, known);
    } catch (error) {
      refuse(error);
    }
  }

  #answer(arrived: Arrived, exchange: HttpExchange, caller: Caller): void {
    this.#refuseWhenClosed();
    refuseOtherTypes(arrived.request);
    this.#endpoint.answer({ ...arrived, authentication: { caller }, exchange });
  }

  #refuseWhenClosed(): void {
    if (this.#isClosed) throw new HttpRefusal(503, closedText);
  }
}
