import type { Authentication } from "../../auth/authentication.ts";
import { challenge } from "../../auth/challenge.ts";
import { InsufficientScope } from "../../auth/insufficient-scope.ts";
import type { ProtectedResource } from "../../auth/metadata.ts";
import { type Clock, nextTurn } from "../../clock.ts";
import type { Caller } from "../../command/caller.ts";
import { ProtocolError, RequestError, RpcCode, RuntimeError, requestErrors } from "../../errors.ts";
import type { Logger } from "../../log.ts";
import { Conversation } from "../../mcp/conversation.ts";
import type { Serving } from "../../mcp/serving.ts";
import { checkMessage, maxIntroductionBytes, parseJson, refuseIntroduction } from "../../wire/frames.ts";
import { fieldsOf, textOf } from "../../wire/json.ts";
import type { Message } from "../../wire/message.ts";
import { checkParamHeaders, checkRouting, isModernMessage } from "../../wire/routing.ts";
import { type BodyListener, ParsedBody } from "./body.ts";
import { Connections } from "./connections.ts";
import { CredentialWatch } from "./credential-watch.ts";
import type { DoorRequest } from "./door-request.ts";
import type { DoorResponse } from "./door-response.ts";
import { HttpExchange, OpenStreams } from "./http-exchange.ts";
import { HttpRefusal } from "./http-refusal.ts";
import { Sessions } from "./http-sessions.ts";

interface EndpointOptions {
  readonly serving: Serving;
  /** What a challenge names of this server where issuers are configured. */
  readonly resource?: (() => ProtectedResource) | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** What is asked, by whom, and how it is answered. */
interface Asked {
  readonly request: DoorRequest;
  readonly response: DoorResponse;
  readonly authentication: Authentication;
  readonly exchange: HttpExchange;
  readonly readBody: (listener: BodyListener) => void;
}

/** MCP over HTTP, every revision on one address, whichever way requests come in. */
export class Endpoint {
  /** Who holds how much. */
  readonly connections: Connections;
  readonly #sessions: Sessions;
  readonly #options: EndpointOptions;
  readonly #streams: OpenStreams;
  readonly #credentials: CredentialWatch;

  constructor(options: EndpointOptions) {
    this.#options = options;
    this.connections = new Connections(options.clock);
    this.#sessions = new Sessions(options.serving.served);
    options.serving.onListsChanged((lists) => this.#sessions.sendListsChanged(lists));
    options.serving.onLeaving(() => this.#sessions.leave());
    this.#streams = new OpenStreams(options.clock);
    this.#credentials = new CredentialWatch(options.clock);
  }

  async close(): Promise<void> {
    this.#credentials.close();
    this.#sessions.close();
    this.#options.serving.listening.endHttp();
    // Their last words are written by then.
    await nextTurn();
  }

  createExchange(response: DoorResponse): HttpExchange {
    return new HttpExchange({ response, clock: this.#options.clock, streams: this.#streams });
  }

  /** Answers with what went wrong. */
  refuse(response: DoorResponse, error: unknown, id: string | number | null = null): void {
    const { status, headers, ...told } = this.#describe(error);
    if (response.writableEnded) return;
    if (response.headersSent) response.destroy();
    else writeJson(response, status, { jsonrpc: "2.0", id, error: told }, { ...errorHeaders[status], ...headers });
  }

  #describe(error: unknown): {
    status: number;
    code: number;
    message: string;
    data?: unknown;
    headers?: Readonly<Record<string, string>> | undefined;
  } {
    if (error instanceof HttpRefusal)
      return { status: error.status, code: error.code, message: error.message, headers: error.headers };
    if (error instanceof RequestError)
      return { status: requestErrors[error.kind].http, code: requestErrors[error.kind].code, message: error.message };
    if (error instanceof InsufficientScope) {
      const { code, message, data } = error;
      // An anonymous caller has sent no token that could have too few scopes.
      const { metadataUrl } = this.#options.resource?.() ?? {};
      const facts = error.isAnonymous ? {} : ({ error: "insufficient_scope" } as const);
      const headers = { "www-authenticate": challenge({ ...facts, scope: error.scopes, metadataUrl }) };
      return { status: error.isAnonymous ? 401 : 403, code, message, data, headers };
    }
    if (error instanceof ProtocolError)
      return { status: 400, code: error.code, message: error.message, data: error.data };
    if (error instanceof RuntimeError && error.forClients !== undefined)
      return { status: 200, code: RpcCode.Internal, message: error.forClients };
    this.#options.log.error("request failed", { error });
    return { status: 500, code: RpcCode.Internal, message: "Internal error" };
  }

  /** Throws what the request is refused with, as long as it has not been read. */
  answer(asked: Asked): void {
    const { request, response, authentication, exchange, readBody } = asked;
    const { caller } = authentication;
    const { method } = request;
    if (method !== "POST" && method !== "GET" && method !== "DELETE")
      throw new HttpRefusal(405, "MCP is asked by POST, GET and DELETE.");
    this.#credentials.add(exchange, authentication);
    this.connections.admit(request, exchange, caller);
    exchange.shareBacklog(this.connections.backlogOf(caller));
    if (method === "GET") this.connections.holdStream(caller, exchange);
    const fail = (error: unknown) => this.refuse(response, error);
    if (method !== "POST") {
      this.#options.serving.served.gate.authorize(authentication, `${method} /mcp`, {});
      return void this.#sessions.handle({ request, authentication, exchange })?.catch(fail);
    }
    readBody({
      onGrowth: (bytes) => this.connections.holdBody(caller, bytes, exchange),
      onBody: (body) => {
        const turn = this.connections.pace(caller, body.length);
        if (turn === undefined) this.#receive(body, asked);
        else turn.then(() => this.#receive(body, asked)).catch(fail);
      },
      onError: fail,
    });
  }

  /** Never throws. */
  #receive(body: Buffer | ParsedBody, asked: Asked): void {
    let message: Message | undefined;
    // Its client has hung up while it waited for its turn.
    if (asked.exchange.isOver) return;
    const refuse = (error: unknown) => {
      const isRequest = message?.method !== undefined && error instanceof ProtocolError;
      this.refuse(asked.response, error, isRequest ? (message?.id ?? null) : null);
    };
    try {
      const received = checkMessage(body instanceof ParsedBody ? body.value : parseJson(body));
      message = received;
      this.#refuseIntroduction(received, body.length);
      const allowed = this.#authorize(received, asked);
      if (allowed === undefined) this.#handle(received, asked)?.catch(refuse);
      else allowed.then(() => (asked.exchange.isOver ? undefined : this.#handle(received, asked))).catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  #refuseIntroduction(message: Message, bytes: number): void {
    const introduction = bytes <= maxIntroductionBytes ? undefined : refuseIntroduction(message);
    if (introduction !== undefined) throw new ProtocolError(requestErrors.params.code, introduction);
  }

  /** Before the message is handed on, because only then the answer can have a status of its own. */
  #authorize({ method, params = {} }: Message, { authentication }: Asked): undefined | Promise<void> {
    return this.#options.serving.served.gate.authorize(authentication, method, params);
  }

  #handle(message: Message, { request, authentication, exchange }: Asked): undefined | Promise<void> {
    const { caller } = authentication;
    if (!isModernMessage(message, request))
      return this.#sessions.handle({ request, authentication, exchange, message }) ?? undefined;
    if (message.id === undefined) return void exchange.accept();
    checkRouting(message, request);
    this.#checkParams(message, request, authentication);
    if (message.method === "subscriptions/listen") this.#holdListening(message, caller, exchange);
    const conversation = new Conversation(this.#options.serving.served, {
      authentication,
      door: "http",
      way: exchange,
      canPush: () => false,
      era: "modern",
    });
    const { id } = message;
    exchange.onClose(() => {
      if (exchange.isBroken && id !== null) conversation.noteHangUp(id);
      conversation.close();
    });
    conversation.receive(message);
  }

  #checkParams({ method, params = {} }: Message, request: DoorRequest, authentication: Authentication): void {
    if (method !== "tools/call") return;
    const schema = this.#options.serving.schemaOf(textOf(params.name) ?? "", authentication);
    if (schema !== undefined) checkParamHeaders(schema, params.arguments, request);
  }

  #holdListening({ params = {} }: Message, caller: Caller, exchange: HttpExchange): void {
    const { taskIds } = fieldsOf(params.notifications);
    this.connections.holdStream(caller, exchange);
    if (Array.isArray(taskIds)) this.connections.holdTaskIds(caller, taskIds.length, exchange);
  }
}

const errorHeaders: Readonly<Record<number, Record<string, string>>> = {
  401: { "www-authenticate": "Bearer" },
  405: { allow: "GET, POST, DELETE" },
  413: { connection: "close" },
  503: { connection: "close", "retry-after": "1" },
};

/** One value is the whole answer. */
export function writeJson(
  response: DoorResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = JSON.stringify(value);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}
