import type { ConversationGuest, GuestView } from "../mcp/guest-view.ts";
import type { ClientCapabilities, ClientIdentity, ClientRequest, Result } from "../mcp/request.ts";
import { methodNotFound } from "../mcp/router.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import type { Upstream } from "./upstream.ts";
import { forClient } from "./upstream-down.ts";
import type { UpstreamNotices } from "./upstream-notices.ts";
import type { UpstreamSession } from "./upstream-session.ts";

/** A conversation, as whoever works on its calls finds it. */
export interface GatewayConversation extends ConversationGuest {
  /** It has connections for as long as its client is there. */
  readonly isLasting: boolean;
  partOf(upstream: Upstream): UpstreamSession | undefined;
}

/** What one conversation has of an upstream that is all there is: it looks as if it were connected directly. */
export class GatewaySession implements GatewayConversation {
  readonly session: string;
  readonly #only: UpstreamSession;
  readonly #notices: UpstreamNotices;
  readonly #onClose: () => void;
  #isClosed = false;

  constructor(
    session: string,
    only: UpstreamSession,
    { notices, onClose }: { readonly notices: UpstreamNotices; readonly onClose: () => void },
  ) {
    this.session = session;
    this.#only = only;
    this.#notices = notices;
    this.#onClose = onClose;
  }

  get isLasting(): boolean {
    return !this.#isClosed && this.#only.isLasting;
  }

  partOf(upstream: Upstream): UpstreamSession | undefined {
    return this.#only.upstream === upstream ? this.#only : undefined;
  }

  async for(client: ClientIdentity): Promise<GuestView> {
    return await forClient(this.#only.view(client), this.#only.caller);
  }

  openFor(client: ClientIdentity): GuestView | undefined {
    return this.#only.opened(client);
  }

  async greet(hello: Json, params: Json): Promise<Json> {
    const capabilities = fieldsOf(params.capabilities) as ClientCapabilities;
    this.#only.begin(capabilities);
    const view = await forClient(this.#only.view({ isModern: false, capabilities }), this.#only.caller);
    const { serverInfo, instructions: theirs } = this.#only.known?.hello ?? {};
    const instructions = this.#notices.under(theirs, this.#only.caller);
    return {
      ...hello,
      capabilities: view.mergeCapabilities(fieldsOf(hello.capabilities)),
      ...(serverInfo !== undefined && { serverInfo }),
      ...(instructions !== undefined && { instructions }),
    };
  }

  async answer(method: string, params: Json, request: ClientRequest): Promise<Result> {
    const { caller } = request;
    if (method === "resources/subscribe") return await forClient(this.#only.subscribe(request, params), caller);
    if (method === "resources/unsubscribe") return await forClient(this.#only.unsubscribe(params), caller);
    return await passesOn(await this.for(request.client), { method, params }, request);
  }

  notify(method: string, params: Json): void {
    this.#only.notify(method, params);
  }

  async setLevel(params: Json): Promise<void> {
    const known = this.#only.known ?? this.#only.upstream.memory.latest;
    if (known !== undefined && known.hello.capabilities.logging === undefined) throw methodNotFound;
    await this.#only.setLevel(params);
  }

  close(): void {
    this.#isClosed = true;
    this.#only.close();
    this.#onClose();
  }
}

/** A request that is none of ours, and that could be somebody's. */
export async function passesOn(
  view: GuestView,
  { method, params }: { readonly method: string; readonly params: Json },
  request: ClientRequest,
): Promise<Result> {
  if (!/^[\w$.-]+\/./.test(method)) throw methodNotFound;
  return await view.request(method, params, request);
}
