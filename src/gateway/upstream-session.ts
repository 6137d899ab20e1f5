import type { Clock } from "../clock.ts";
import { type Caller, callerKey, isKnown } from "../command/caller.ts";
import { environmentKey } from "../mcp/environment-key.ts";
import type { Hearing } from "../mcp/guest-audience.ts";
import type { GuestEra } from "../mcp/guest-host.ts";
import { textParam } from "../mcp/params.ts";
import type { ClientCapabilities, ClientConnection, ClientIdentity, ClientRequest, Result } from "../mcp/request.ts";
import type { UpstreamConfig } from "../project/upstream-config.ts";
import { type Json, textOf } from "../wire/json.ts";
import { declaredTo } from "./declared-to.ts";
import type { Upstream, UpstreamLease } from "./upstream.ts";
import type { UpstreamConnection } from "./upstream-connection.ts";
import type { KnownUpstream } from "./upstream-memory.ts";
import { UpstreamView } from "./upstream-view.ts";

/** A host that only looks, as many do twice, has nothing started. */
const warmUpMs = 300;

interface SessionOptions {
  readonly upstream: Upstream;
  readonly connection: ClientConnection;
  readonly session: string;
  readonly isServed: (tool: string) => boolean;
  /** See `GuestView`. */
  readonly isAlone: boolean;
  readonly clock: Clock;
}

/** Who looks at an upstream. */
type Viewer = Pick<ClientIdentity, "isModern" | "capabilities">;

/** What one conversation has of one upstream: a connection of its own, or its share of one. */
export class UpstreamSession {
  readonly #options: SessionOptions;
  readonly #listens = new Map<string, AbortController>();
  #lease: UpstreamLease | undefined;
  #views: { legacy?: UpstreamView; modern?: UpstreamView } = {};
  #told: KnownUpstream | undefined;
  #logLevel: string | undefined;
  #followed: UpstreamConnection | undefined;
  #followedFor: UpstreamLease | undefined;
  #hearing: Hearing | undefined;
  readonly #subscribed = new Set<string>();
  #cancelWarmUp: (() => void) | undefined;
  #isClosed = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** It has a connection for as long as its client is there. */
  get isLasting(): boolean {
    return !this.#isClosed && !this.#options.connection.isOfOneRequest;
  }

  /** What its upstream says of itself to such clients. */
  get known(): KnownUpstream | undefined {
    return this.#lease === undefined ? undefined : this.upstream.known(this.#lease);
  }

  get caller(): Caller {
    return this.#options.connection.caller;
  }

  get upstream(): Upstream {
    return this.#options.upstream;
  }

  /** What is said of it to a client; its upstream is asked where nothing is known yet. */
  async view(client: Viewer): Promise<UpstreamView> {
    if (!this.isKnownTo(client)) await this.connect().catch((error: unknown) => this.#makeDo(error));
    return this.knownView(client) as UpstreamView;
  }

  /** Whether its upstream has said what it has to clients like this one. */
  isKnownTo({ isModern, capabilities }: Viewer): boolean {
    const era = isModern ? "modern" : "legacy";
    this.#lease ??= this.#leaseFor(declaredTo(capabilities, era), era);
    return this.upstream.known(this.#lease) !== undefined;
  }

  /** What is said of it without asking it: as it was told to such clients, or else to others. */
  knownView(client: Viewer): UpstreamView | undefined {
    if (this.isKnownTo(client)) this.#warmUp();
    else if (this.upstream.memory.latest === undefined) return undefined;
    return this.#viewFor(client.isModern, declaredTo(client.capabilities, client.isModern ? "modern" : "legacy"));
  }

  /** What it has told others is better than nothing. */
  #makeDo(error: unknown): void {
    if (this.upstream.memory.latest === undefined) throw error;
  }

  /** Once it is known. */
  opened({ isModern }: Pick<ClientIdentity, "isModern">): UpstreamView | undefined {
    return this.#views[isModern ? "modern" : "legacy"];
  }

  /** Who has shaken hands anew can do what it says now. */
  begin(capabilities: ClientCapabilities): void {
    const declared = declaredTo(capabilities);
    if (this.#lease !== undefined) this.upstream.release(this.#lease);
    this.#lease = this.#leaseFor(declared, "legacy");
    this.#views = {};
  }

  /** The connection that it has; undefined where it has to be opened, or opened anew. */
  get open(): UpstreamConnection | undefined {
    const isCurrent = !this.#isClosed && this.#followed?.why === undefined && this.#followedFor === this.#lease;
    return isCurrent ? this.#followed : undefined;
  }

  async connect(): Promise<UpstreamConnection> {
    this.#lease ??= this.#leaseFor(declaredTo({}, "modern"), "modern");
    const lease = this.#lease;
    const connection = await this.upstream.connect(lease);
    this.#follow(connection, lease);
    if (this.#isClosed) this.upstream.release(lease);
    return connection;
  }

  async subscribe(request: ClientRequest, params: Json): Promise<Result> {
    const uri = textParam(params, "uri");
    const connection = await this.connect();
    if (connection.era === "legacy" && this.#lease?.owner !== undefined) {
      await this.#hearing?.subscribe(uri);
      this.#subscribed.add(uri);
      return {};
    }
    this.#listens.get(uri)?.abort();
    const over = new AbortController();
    this.#listens.set(uri, over);
    const tell = (method: string, news: Json) => this.#tell(method, news);
    const honoured = await connection.listen({ resourceSubscriptions: [uri] }, tell, over.signal);
    if (honoured.resourceSubscriptions === undefined)
      return await connection.request("resources/subscribe", { uri }, { client: request });
    return {};
  }

  async unsubscribe(params: Json): Promise<Result> {
    const uri = textParam(params, "uri");
    const over = this.#listens.get(uri);
    this.#listens.delete(uri);
    over?.abort();
    if (over !== undefined) return {};
    if (this.#subscribed.delete(uri)) {
      await this.#hearing?.unsubscribe(uri);
      return {};
    }
    return await (await this.connect()).request("resources/unsubscribe", { uri });
  }

  async setLevel(params: Json): Promise<void> {
    this.#logLevel = textOf(params.level);
    const open = this.#lease === undefined ? undefined : this.upstream.opened(this.#lease);
    if (open === undefined) return;
    const connection = await open;
    this.#sendLevel(connection);
  }

  /** To one of this session alone: what others share is told nothing by one of them. */
  notify(method: string, params: Json): void {
    if (method === "notifications/initialized" || this.#lease?.owner === undefined) return;
    void this.upstream
      .opened(this.#lease)
      ?.then((connection) => connection.era === "legacy" && connection.notify(method, params))
      .catch(() => undefined);
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelWarmUp?.();
    for (const over of this.#listens.values()) over.abort();
    if (this.#lease?.owner !== undefined) this.upstream.release(this.#lease);
  }

  #viewFor(isModern: boolean, capabilities: Json): UpstreamView {
    const kind = isModern ? "modern" : "legacy";
    const known = () => {
      const now = this.known ?? this.upstream.known({ capabilities, era: kind }) ?? this.upstream.memory.latest;
      if (now === undefined) throw new Error("Nothing is known of the upstream yet.");
      this.#told ??= now;
      return now;
    };
    const view = new UpstreamView({
      name: this.upstream.name,
      caller: this.caller,
      explain: (sentence, reason) => this.upstream.explain(this.caller, sentence, reason),
      known,
      connect: () => this.connect(),
      isServed: this.#options.isServed,
      isAlone: this.#options.isAlone,
      capabilities,
      logLevel: () => this.#logLevel,
      isModern,
    });
    // Since 2026-07-28 each request says what its client can do.
    const kept = isModern ? view : (this.#views.legacy ?? view);
    this.#views[kind] = kept;
    return kept;
  }

  /** As its host had it: one for each session, unless sessions are to share. Who has no session shares with itself. */
  #leaseFor(capabilities: Json, era: GuestEra): UpstreamLease {
    const { connection, session, upstream } = this.#options;
    const place = { folder: connection.folder, environment: connection.environment };
    const share = upstream.config.share ?? "session";
    if (share === "session" && !connection.isOfOneRequest)
      return { key: `session ${session}`, owner: connection, place, capabilities, era };
    return {
      key: sharedKey(upstream.config, {
        caller: connection.caller,
        era,
        capabilities,
        mark: environmentKey(connection.environment),
        folder: connection.folder,
      }),
      owner: undefined,
      place,
      capabilities,
      era,
    };
  }

  #warmUp(): void {
    if (this.#cancelWarmUp !== undefined || this.#options.connection.isOfOneRequest) return;
    this.#cancelWarmUp = this.#options.clock.after(warmUpMs, () => {
      if (!this.#isClosed) this.connect().catch(() => undefined);
    });
  }

  #follow(connection: UpstreamConnection, lease: UpstreamLease): void {
    this.#followedFor = lease;
    if (this.#followed === connection) return;
    this.#followed = connection;
    this.#sendLevel(connection);
    // A client that was told what was known hears when it is otherwise.
    const now = this.upstream.known(lease);
    if (this.#told !== undefined && this.#told !== now)
      for (const list of ["tools", "prompts", "resources"] as const)
        if (JSON.stringify(this.#told.lists[list]) !== JSON.stringify(now?.lists[list]))
          this.#tell(`notifications/${list}/list_changed`, {});
    this.#told = now;
    const hearing = connection.audience.add(["tools", "prompts", "resources"], (method, params) =>
      this.#tell(method, params),
    );
    // A server that was started anew knows nothing of them.
    for (const uri of this.#subscribed) hearing.subscribe(uri).catch(() => undefined);
    this.#hearing = hearing;
    this.#options.connection.closed.addEventListener("abort", () => hearing.stop(), { once: true });
  }

  #sendLevel(connection: UpstreamConnection): void {
    if (
      this.#logLevel === undefined ||
      connection.era === "modern" ||
      connection.hello.capabilities.logging === undefined
    )
      return;
    connection.request("logging/setLevel", { level: this.#logLevel }).catch(() => undefined);
  }

  #tell(method: string, params: Json): void {
    const { connection } = this.#options;
    if (!connection.isOfOneRequest && connection.client.revision !== "")
      connection.notify(method, withoutSubscription(params));
  }
}

interface Sharer {
  readonly caller: Caller;
  readonly era: GuestEra;
  readonly capabilities: Json;
  readonly mark: string | undefined;
  readonly folder: string | undefined;
}

/** Names the connection of those who share one: all, the sessions of a caller, or strangers, whom nobody can tell apart. */
export function sharedKey({ share }: UpstreamConfig, { caller, era, capabilities, mark, folder }: Sharer): string {
  const whose = share === "all" ? "all" : isKnown(caller) ? `caller ${callerKey(caller)}` : "strangers";
  return `${whose} ${JSON.stringify([era, era === "legacy" ? Object.keys(capabilities) : [], mark, share === undefined ? folder : ""])}`;
}

function withoutSubscription(params: Json): Json {
  const { _meta: _ours, ...rest } = params;
  return rest;
}
