import { withoutReservedMeta } from "../command/foreign.ts";
import type { GuestClient } from "../mcp/guest-client.ts";
import type { AskLimits, ClientRequest } from "../mcp/request.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import { metaKeys } from "../wire/request-envelope.ts";

/** These belong to one hop, or are ours: who asks, which request is traced, by which token it is followed. */
const ofTheHop =
  /^(progressToken|traceparent|tracestate|baggage|meanwhile\/.*|io\.modelcontextprotocol\/(protocolVersion|client\w*|logLevel|related-task))$/;

/** What a client has said beside its request to whoever is behind us. */
export function passedMeta(meta: Json | undefined): Json {
  return Object.fromEntries(Object.entries(meta ?? {}).filter(([key]) => !ofTheHop.test(key)));
}

/** A request's params as an upstream gets them; with a token of ours where the client follows its progress. */
export function passedParams(params: Json, token: string | number | undefined): Json {
  const { _meta, ...rest } = params;
  const meta = { ...passedMeta(fieldsOf(_meta)), ...(token !== undefined && { progressToken: token }) };
  return Object.keys(meta).length === 0 ? rest : { ...rest, _meta: meta };
}

/** A client whose request is passed on: what comes back bears our token, and is told by the client's. */
export class PassingClient implements GuestClient {
  readonly #request: GuestClient & Partial<Pick<ClientRequest, "progressToken">>;

  constructor(request: GuestClient & Partial<Pick<ClientRequest, "progressToken">>) {
    this.#request = request;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get who(): string {
    return this.#request.who;
  }

  get hangUp(): (() => void) | undefined {
    return this.#request.hangUp;
  }

  notify(method: string, params: Json): void {
    if (method !== "notifications/progress") return void this.#request.notify(method, params);
    const { progressToken } = this.#request;
    if (progressToken !== undefined) this.#request.notify(method, { ...params, progressToken });
  }

  async ask(method: string, params: Json, options: AskLimits): Promise<unknown> {
    return await this.#request.ask(method, params, options);
  }
}

/** Removes from a result what belongs to the connection to the upstream, and this server's own `_meta` keys. */
export function withoutHop(result: Json): Json {
  const { resultType: _kind, ttlMs: _ttl, cacheScope: _scope, ...rest } = withoutReservedMeta(result);
  if (fieldsOf(rest._meta)[metaKeys.serverInfo] === undefined) return rest;
  const { [metaKeys.serverInfo]: _who, ...meta } = fieldsOf(rest._meta);
  const { _meta, ...others } = rest;
  return Object.keys(meta).length === 0 ? others : { ...others, _meta: meta };
}

/** An `input_required` result as a client may get it: without this server's `_meta` keys, also in its questions. */
export function toOwnInputRequired(result: Json): Json {
  const { inputRequests } = result;
  if (inputRequests === undefined) return withoutReservedMeta(result);
  const requests = Object.entries(fieldsOf(inputRequests)).map(([key, request]) => {
    const { params, ...rest } = fieldsOf(request);
    return [key, { ...rest, ...(params !== undefined && { params: withoutReservedMeta(fieldsOf(params)) }) }] as const;
  });
  return { ...withoutReservedMeta(result), inputRequests: Object.fromEntries(requests) };
}
