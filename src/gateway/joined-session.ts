import type { Clock } from "../clock.ts";
import type { ConversationGuest, GuestView } from "../mcp/guest-view.ts";
import { textParam } from "../mcp/params.ts";
import type { ClientCapabilities, ClientConnection, ClientIdentity, ClientRequest, Result } from "../mcp/request.ts";
import { methodNotFound } from "../mcp/router.ts";
import { fieldsOf, type Json } from "../wire/json.ts";
import type { FirstSight } from "./first-sight.ts";
import { type GatewayConversation, passesOn } from "./gateway-session.ts";
import { type JoinedMember, JoinedView } from "./joined-view.ts";
import type { ResourceOwners } from "./resource-owners.ts";
import type { Upstream } from "./upstream.ts";
import { forClient } from "./upstream-down.ts";
import type { UpstreamNames } from "./upstream-names.ts";
import type { UpstreamSession } from "./upstream-session.ts";

interface JoinedSessionOptions {
  readonly session: string;
  readonly connection: ClientConnection;
  readonly parts: readonly UpstreamSession[];
  /** What the author registers by hand. */
  readonly beside: ConversationGuest | undefined;
  readonly names: UpstreamNames;
  readonly owners: ResourceOwners;
  readonly firstSight: FirstSight;
  /** What all have to say to whoever uses them. */
  readonly instructions: () => string | undefined;
  readonly clock: Clock;
  readonly onClose: () => void;
}

type Client = Pick<ClientIdentity, "isModern" | "capabilities">;

/** What one conversation has of several upstreams, and of what the author registers beside them. */
export class JoinedSession implements GatewayConversation {
  readonly #options: JoinedSessionOptions;
  /** Whom subscriptions are with. */
  readonly #subscribed = new Map<string, readonly JoinedMember[]>();
  readonly #awaited = new Map<UpstreamSession, () => void>();
  #open: { legacy?: JoinedView; modern?: JoinedView } = {};
  #isClosed = false;

  constructor(options: JoinedSessionOptions) {
    this.#options = options;
  }

  get session(): string {
    return this.#options.session;
  }

  get isLasting(): boolean {
    return !this.#isClosed && this.#options.parts.every((part) => part.isLasting);
  }

  partOf(upstream: Upstream): UpstreamSession | undefined {
    return this.#options.parts.find((part) => part.upstream === upstream);
  }

  for(client: ClientIdentity): Promise<GuestView> {
    return this.#join(client, this.#options.beside?.for(client));
  }

  openFor({ isModern }: ClientIdentity): GuestView | undefined {
    return this.#open[isModern ? "modern" : "legacy"];
  }

  async greet(hello: Json, params: Json): Promise<Json> {
    const { parts, beside, instructions } = this.#options;
    const capabilities = fieldsOf(params.capabilities) as ClientCapabilities;
    for (const part of parts) part.begin(capabilities);
    this.#open = {};
    const [greeted, view] = await Promise.all([
      beside?.greet(hello, params) ?? hello,
      this.#join({ isModern: false, capabilities }, undefined),
    ]);
    const said = instructions();
    return {
      ...greeted,
      capabilities: view.mergeCapabilities(fieldsOf(greeted.capabilities)),
      ...(said !== undefined && { instructions: said }),
    };
  }

  async answer(method: string, params: Json, request: ClientRequest): Promise<Result> {
    const view = await this.#join(request.client, this.#options.beside?.for(request.client));
    if (method === "resources/subscribe") return await this.#subscribe(view, params, request);
    if (method === "resources/unsubscribe") return await this.#unsubscribe(params, request);
    return await passesOn(view, { method, params }, request);
  }

  notify(method: string, params: Json): void {
    this.#options.beside?.notify(method, params);
    for (const part of this.#options.parts) part.notify(method, params);
  }

  async setLevel(params: Json): Promise<void> {
    const { parts, beside } = this.#options;
    await Promise.all([beside?.setLevel(params), ...parts.map((part) => part.setLevel(params).catch(() => undefined))]);
  }

  close(): void {
    this.#isClosed = true;
    for (const stop of this.#awaited.values()) stop();
    this.#options.beside?.close();
    for (const part of this.#options.parts) part.close();
    this.#options.onClose();
  }

  /** One that is down is left out of nothing that is known of it. */
  async #join(client: Client, opening: Promise<GuestView> | undefined): Promise<JoinedView> {
    const { parts, firstSight, names, owners, clock } = this.#options;
    const [author, ...views] = await Promise.all([opening, ...parts.map((part) => firstSight.viewOf(part, client))]);
    const members: JoinedMember[] =
      author === undefined ? [] : [{ name: "", view: author, publicName: (_kind, own) => own }];
    for (const [at, part] of parts.entries()) {
      const view = views[at];
      const upstream = part.upstream.name;
      if (view === undefined) this.#await(part);
      else members.push({ name: upstream, view, publicName: (kind, own) => names.nameOf(kind, { upstream, own }) });
    }
    const isPartial = views.includes(undefined);
    const find: UpstreamNames["find"] = (kind, name) => names.find(kind, name);
    const view = new JoinedView({ members, find, owners, isPartial, clock });
    // Who looks at what is there already must not miss what has come since.
    if (!isPartial) this.#open[client.isModern ? "modern" : "legacy"] = view;
    return view;
  }

  /** Who was told of the others alone hears of it when it comes. */
  #await(part: UpstreamSession): void {
    const { connection } = this.#options;
    if (this.#awaited.has(part) || this.#isClosed || connection.isOfOneRequest) return;
    const { upstream } = part;
    const stop = upstream.onChange(() => {
      const { latest } = upstream.memory;
      if (latest === undefined) return;
      stop();
      this.#awaited.delete(part);
      const { tools, prompts, resources, resourceTemplates } = latest.lists;
      const lists = { tools, prompts, resources: [...resources, ...resourceTemplates] };
      for (const [name, items] of Object.entries(lists))
        if (items.length > 0 && connection.client.revision !== "")
          connection.notify(`notifications/${name}/list_changed`, {});
    });
    this.#awaited.set(part, stop);
  }

  async #subscribe(view: JoinedView, params: Json, request: ClientRequest): Promise<Result> {
    const uri = textParam(params, "uri");
    const members = await view.whoTellsOf(uri);
    if (members.length === 0) throw methodNotFound;
    const willing: JoinedMember[] = [];
    this.#subscribed.set(uri, willing);
    const asked = members.map(async (member) => {
      const part = this.#partOf(member);
      if (part !== undefined) await forClient(part.subscribe(request, params), request.caller);
      else await this.#options.beside?.answer("resources/subscribe", params, request);
      if (this.#subscribed.get(uri) === willing) willing.push(member);
      else await part?.unsubscribe(params).catch(() => undefined);
    });
    // One that is slow to come keeps nobody waiting.
    await Promise.any(asked).catch((refused: AggregateError) => {
      this.#subscribed.delete(uri);
      throw refused.errors[0];
    });
    return {};
  }

  async #unsubscribe(params: Json, request: ClientRequest): Promise<Result> {
    const uri = textParam(params, "uri");
    const members = this.#subscribed.get(uri) ?? [];
    this.#subscribed.delete(uri);
    const over = members.map(async (member) => {
      const part = this.#partOf(member);
      if (part !== undefined) await forClient(part.unsubscribe(params), request.caller);
      else await this.#options.beside?.answer("resources/unsubscribe", params, request);
    });
    await Promise.all(over);
    return {};
  }

  #partOf({ name }: JoinedMember): UpstreamSession | undefined {
    return this.#options.parts.find(({ upstream }) => upstream.name === name);
  }
}
