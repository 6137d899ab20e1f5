import type { Clock } from "../clock.ts";
import type { Caller } from "../command/caller.ts";
import type { Relay } from "../command/foreign.ts";
import type { CommandSource } from "../command/source.ts";
import { CommandError } from "../errors.ts";
import { createId } from "../ids.ts";
import type { Logger } from "../log.ts";
import type { GuestCompany } from "../mcp/guest-view.ts";
import type { ServedIdentity, ServerIdentity } from "../mcp/parts.ts";
import type { ClientConnection, SessionEnvironment } from "../mcp/request.ts";
import type { UpstreamConfig } from "../project/upstream-config.ts";
import { fieldsOf, type Json, textOf } from "../wire/json.ts";
import { ConnectionError } from "../wire/peer-errors.ts";
import { declaredTo } from "./declared-to.ts";
import { Environments } from "./environments.ts";
import { FirstSight } from "./first-sight.ts";
import { type GatewayConversation, GatewaySession } from "./gateway-session.ts";
import { JoinedSession } from "./joined-session.ts";
import { KeptRoots } from "./kept-roots.ts";
import { ResourceOwners } from "./resource-owners.ts";
import { chooseTools } from "./served-tools.ts";
import { type ResolvedUpstream, type Turn, Upstream, type UpstreamPlace } from "./upstream.ts";
import type { CallLine } from "./upstream-call.ts";
import type { OpenUpstreamLink } from "./upstream-link.ts";
import { UpstreamMemory } from "./upstream-memory.ts";
import type { UpstreamNames } from "./upstream-names.ts";
import { UpstreamNotices } from "./upstream-notices.ts";
import { sharedKey, UpstreamSession } from "./upstream-session.ts";
import { UpstreamTools } from "./upstream-tools.ts";
import type { UpstreamStatus, UpstreamsControl } from "./upstreams-control.ts";

export interface GatewayOptions {
  readonly upstreams: Readonly<Record<string, UpstreamConfig>>;
  /** Upstreams that are named and not served, each with the reason. */
  readonly leftOut: Readonly<Record<string, string>>;
  /** They are all there is. */
  readonly isWrap: boolean;
  /** What their tools and prompts are called here. */
  readonly names: UpstreamNames;
  /** One alone is shown as if it were connected directly: all is called as it calls it, and nothing is joined. */
  readonly isVerbatim: boolean;
  /** Names that are taken by tools of ours. */
  readonly taken: readonly string[];
  /** What the author registers by hand. */
  readonly beside: GuestCompany | undefined;
  readonly openLink: OpenUpstreamLink;
  readonly resolve: (name: string, config: UpstreamConfig, place: UpstreamPlace) => ResolvedUpstream;
  /** Where what an upstream has said is kept; undefined for nowhere. */
  readonly memoryFile: (name: string, config: UpstreamConfig) => string | undefined;
  readonly environment: SessionEnvironment;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Other people's servers behind ours: their tools as commands, and all else that their clients may ask them. */
export class Gateway implements GuestCompany, UpstreamsControl {
  readonly #options: GatewayOptions;
  readonly #environments: Environments;
  readonly #sessions = new Map<string, GatewayConversation>();
  readonly #owners = new ResourceOwners();
  readonly #firstSight: FirstSight;
  readonly #notices: UpstreamNotices;
  #own: ServerIdentity | undefined;
  readonly #roots = new KeptRoots((session) => this.#sessions.has(session));
  readonly upstreams: readonly Upstream[];
  readonly sources: readonly UpstreamTools[];

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#environments = new Environments(options.environment, options.clock);
    this.#firstSight = new FirstSight(options.clock);
    options.names.reserve((name) => options.taken.includes(name));
    this.upstreams = Object.entries(options.upstreams).map(([name, config]) => this.#toUpstream(name, config));
    this.sources = this.upstreams.map((upstream) => this.#toSource(upstream));
    this.#notices = new UpstreamNotices({ ...options, upstreams: this.upstreams });
  }

  /** Commands of ours have their names first, also those that come later; call it before they are merged. */
  standBeside(own: readonly CommandSource[]): void {
    const { names, taken } = this.#options;
    let ours = namesOf(own);
    names.reserve((name) => taken.includes(name) || ours.has(name));
    const refresh = () => {
      for (const source of this.sources) source.refresh();
    };
    for (const source of own)
      source.onChange(() => {
        ours = namesOf(own);
        refresh();
      });
    refresh();
  }

  /** It stands in front of one server alone: what that has not, it has not either. */
  get isOnlyFront(): boolean {
    return this.#options.isVerbatim;
  }

  /** Who it is to its clients. In front of one server alone it is that server. */
  factsBeside(own: ServerIdentity): ServedIdentity {
    this.#own = own;
    const [only] = this.upstreams;
    if (only === undefined || !this.isOnlyFront) return this.#joinedFacts(own);
    const info = () => fieldsOf(only.memory.latest?.hello.serverInfo);
    return {
      get name() {
        return textOf(info().name) ?? only.name;
      },
      get version() {
        return textOf(info().version) ?? "0";
      },
      instructions: (caller) => this.#notices.under(only.memory.latest?.hello.instructions, caller),
      get about() {
        const { name: _name, version: _version, ...about } = info();
        return about;
      },
    };
  }

  #joinedFacts(own: ServerIdentity): ServedIdentity {
    return {
      name: own.name,
      version: own.version,
      ...(own.about !== undefined && { about: own.about }),
      instructions: (caller) => this.#instructions(caller),
    };
  }

  #instructions(caller: Caller): string | undefined {
    const theirs = this.upstreams.flatMap(({ name, memory }) => {
      const said = memory.latest?.hello.instructions;
      return said === undefined || said === "" ? [] : [`# ${name}\n\n${shorten(said)}`];
    });
    const all = [this.#own?.instructions ?? "", ...theirs].filter((text) => text !== "");
    return this.#notices.under(all.length === 0 ? undefined : all.join("\n\n"), caller);
  }

  join(connection: ClientConnection): GatewayConversation {
    const session = createId();
    if (connection.environment !== undefined) this.#environments.remember(connection.environment);
    const parts = this.upstreams.map(
      (upstream) =>
        new UpstreamSession({
          upstream,
          connection,
          session,
          isServed: chooseTools(upstream.config).isServed,
          isAlone: this.isOnlyFront,
          clock: this.#options.clock,
        }),
    );
    const joined = this.#toSession(session, connection, parts);
    this.#sessions.set(session, joined);
    return joined;
  }

  #toSession(session: string, connection: ClientConnection, parts: readonly UpstreamSession[]): GatewayConversation {
    const stopNotices = connection.isFront ? this.#notices.sendTo(connection) : undefined;
    const onClose = () => {
      stopNotices?.();
      this.#sessions.delete(session);
    };
    const { isVerbatim, beside, names, clock } = this.#options;
    const [only] = parts;
    if (isVerbatim && only !== undefined) return new GatewaySession(session, only, { notices: this.#notices, onClose });
    return new JoinedSession({
      ...{ session, connection, parts, names, clock, onClose },
      owners: this.#owners,
      firstSight: this.#firstSight,
      beside: beside?.join(connection),
      instructions: () => this.#instructions(connection.caller),
    });
  }

  schemaOf(tool: string): Json | undefined {
    return this.#options.beside?.schemaOf(tool);
  }

  statuses(): readonly UpstreamStatus[] {
    return this.upstreams.map((upstream, at) => ({
      ...upstream.status,
      tools: this.sources[at]?.entries.length ?? 0,
    }));
  }

  async restart(name: string): Promise<void> {
    const upstream = this.upstreams.find((one) => one.name === name);
    if (upstream === undefined) throw new CommandError(`There is no upstream ${name} here.`);
    upstream.restart(new ConnectionError(`The upstream ${name} was restarted.`));
  }

  /** Has every upstream say what it lists; one that cannot is in trouble. */
  async askAll(folder: string | undefined): Promise<void> {
    const place = { folder, environment: undefined };
    const lease = { key: "asked", owner: undefined, place, capabilities: declaredTo({}), era: "modern" } as const;
    await Promise.allSettled(this.upstreams.map((upstream) => upstream.connect(lease)));
    for (const upstream of this.upstreams) upstream.release(lease);
  }

  close(): void {
    this.#options.beside?.close();
    for (const upstream of this.upstreams) upstream.close();
  }

  #toUpstream(name: string, config: UpstreamConfig): Upstream {
    const { openLink, resolve, memoryFile, clock, log } = this.#options;
    return new Upstream({
      name,
      config,
      memory: new UpstreamMemory(memoryFile(name, config)),
      openLink,
      resolve: (place) => resolve(name, config, place),
      clock,
      log,
    });
  }

  #toSource(upstream: Upstream): UpstreamTools {
    const { taken, log, names, isWrap } = this.#options;
    return new UpstreamTools({
      upstream,
      choice: chooseTools(upstream.config),
      publicName: (own) => names.nameOf("tool", { upstream: upstream.name, own }),
      pathOf: (own, toolName) => (isWrap ? [toolName] : [upstream.name, own]),
      taken,
      lineFor: (tool, relay) => this.#lineFor(upstream, tool, relay),
      onResult: (result) => this.#owners.note(upstream.name, result),
      withRoots: (relay) => this.#roots.for(relay),
      log,
    });
  }

  /** The connection for a call: its session's while that lasts; a known caller's; or one for this call alone. */
  #lineFor(upstream: Upstream, tool: Json, relay: Relay): CallLine {
    const { origin, caller, signal } = relay;
    const session = origin.client?.session === undefined ? undefined : this.#sessions.get(origin.client.session);
    const own = session?.partOf(upstream);
    const mark = origin.client?.environment;
    // What is opened for a session that has left is for its calls alone: nobody comes back to it.
    const isLast = mark !== undefined && upstream.config.share === undefined;
    let taken: Turn | undefined;
    const openShared = async () => {
      const era = origin.client?.isModern === false ? "legacy" : "modern";
      const capabilities = declaredTo(fieldsOf(origin.client?.capabilities), era);
      const key = sharedKey(upstream.config, { caller, era, capabilities, mark, folder: origin.folder });
      const place = { folder: origin.folder, environment: await this.#environments.find(mark, signal) };
      taken ??= upstream.takeTurn(key, textOf(tool.name) ?? "", upstream.known({ capabilities, era }));
      return await upstream.connect({ key: taken.key, owner: undefined, place, capabilities, era });
    };
    return {
      // A call that waits for an answer may outlive its session.
      connect: () => (own !== undefined && session?.isLasting === true ? (own.open ?? own.connect()) : openShared()),
      end: () => {
        if (taken !== undefined && isLast) upstream.release(taken);
        taken?.end();
      },
    };
  }
}

/** All that these sources claim, what cannot be loaded included. */
function namesOf(sources: readonly CommandSource[]): ReadonlySet<string> {
  return new Set(
    sources.flatMap(({ entries, problems }) => [
      ...entries.flatMap(({ toolName, aliases = [] }) => [toolName, ...aliases.map(({ name }) => name)]),
      ...problems.flatMap(({ toolName }) => toolName ?? []),
    ]),
  );
}

/** Of several, each has to be short. */
const maxInstructions = 2_000;

function shorten(text: string): string {
  return text.length <= maxInstructions ? text : `${text.slice(0, maxInstructions)}…`;
}
