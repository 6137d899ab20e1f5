import path from "node:path";
import type { Clock } from "../clock.ts";
import type { Caller } from "../command/caller.ts";
import type { Logger } from "../log.ts";
import type { GuestEra } from "../mcp/guest-host.ts";
import type { ClientConnection, SessionEnvironment } from "../mcp/request.ts";
import type { UpstreamConfig } from "../project/upstream-config.ts";
import type { Json } from "../wire/json.ts";
import type { ConnectionError } from "../wire/peer-errors.ts";
import { isModern } from "../wire/revisions.ts";
import { UpstreamConnection } from "./upstream-connection.ts";
import { seesReasons, UpstreamDown } from "./upstream-down.ts";
import type { OpenUpstreamLink, UpstreamAddress } from "./upstream-link.ts";
import { type ListedName, withKnown } from "./upstream-lists.ts";
import { changedTools, type KnownUpstream, type UpstreamMemory } from "./upstream-memory.ts";
import type { UpstreamStatus } from "./upstreams-control.ts";

/** Where a session works, and with which variables. */
export interface UpstreamPlace {
  readonly folder: string | undefined;
  /** Undefined: this process's own. */
  readonly environment: SessionEnvironment | undefined;
}

/** The right to one connection: whoever has the same key shares it. */
export interface UpstreamLease {
  readonly key: string;
  /** Whose it is alone. */
  readonly owner: ClientConnection | undefined;
  readonly place: UpstreamPlace;
  /** What its clients can do, and what they speak. */
  readonly capabilities: Json;
  readonly era: GuestEra;
}

/** Where an upstream is for a session, and who hears what it writes to its stderr. */
export interface ResolvedUpstream {
  readonly address: UpstreamAddress;
  readonly onStderr?: (text: string) => void;
  /** Nothing more comes from it. */
  readonly onGone?: () => void;
}

/** A connection, until its call is over. */
export interface Turn {
  readonly key: string;
  end(): void;
}

export interface UpstreamOptions {
  readonly name: string;
  readonly config: UpstreamConfig;
  readonly memory: UpstreamMemory;
  readonly openLink: OpenUpstreamLink;
  /** Throws a sentence where something that it refers to is missing. */
  readonly resolve: (place: UpstreamPlace) => ResolvedUpstream;
  readonly clock: Clock;
  readonly log: Logger;
}

const defaultStartSeconds = 60;
/** State that a server keeps in its memory goes with it, so one that a session has is left alone for long. */
const defaultIdleSeconds = { command: 3600, url: 600 } as const;
const lookMs = 30_000;
/** One that has not answered for so long is named in the log, and to whoever started the session. */
const slowMs = 5_000;

/** One server that stands behind us, and the connections to it. */
export class Upstream {
  readonly name: string;
  readonly config: UpstreamConfig;
  readonly memory: UpstreamMemory;
  readonly #options: UpstreamOptions;
  readonly #open = new Map<string, Promise<UpstreamConnection>>();
  readonly #connections = new Set<UpstreamConnection>();
  readonly #listeners = new Set<() => void>();
  readonly #turns = new Set<string>();
  /** Tools that have asked something while they worked. */
  readonly askers = new Set<string>();
  #cancelLook: (() => void) | undefined;
  #starting = 0;
  #isSlow = false;
  #isClosed = false;
  /** Why it cannot be used, as far as that is known. */
  trouble: string | undefined;
  /** The lists that the connection which was opened last was refused, each with the reason; undefined before the first. */
  #refusedLists: ReadonlyMap<ListedName, string> | undefined;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.name = options.name;
    this.config = options.config;
    this.memory = options.memory;
  }

  get kind(): "command" | "url" {
    return this.config.url === undefined ? "command" : "url";
  }

  get status(): Omit<UpstreamStatus, "tools"> {
    const connections = [...this.#connections];
    const isStarting = this.#starting > 0;
    const { latest } = this.memory;
    const { toolTrouble } = this;
    return {
      name: this.name,
      kind: this.kind,
      target: targetOf(this.config),
      state: connections.length > 0 ? "open" : isStarting ? "starting" : this.trouble === undefined ? "idle" : "down",
      ...(toolTrouble !== undefined && { trouble: toolTrouble }),
      connections: connections.length,
      calls: connections.reduce((sum, { calls }) => sum + calls, 0),
      ...(latest !== undefined && { era: latest.hello.revision }),
      pids: connections.flatMap(({ pid }) => pid ?? []),
    };
  }

  /** Says that it is being started and has not answered yet; undefined where it is not, or nobody waits for it. */
  get delay(): string | undefined {
    const isUnknown = this.memory.latest === undefined;
    if (this.#starting === 0 || this.#connections.size > 0 || !(isUnknown || this.#isSlow)) return undefined;
    return `The upstream ${this.name} has not answered yet${isUnknown ? "; its tools are listed as soon as it has" : ""}.`;
  }

  /** Says which of its lists it does not give; undefined where it gives all, as far as that is known. */
  get refusal(): { readonly sentence: string; readonly reason?: string } | undefined {
    if (this.#refusedLists === undefined) {
      // An earlier process has asked it.
      const isUnread = this.memory.latest?.lists.unread?.includes("tools") === true;
      return isUnread
        ? { sentence: `The upstream ${this.name} did not list its tools when it was last asked` }
        : undefined;
    }
    const names = [...this.#refusedLists.keys()];
    if (names.length === 0) return undefined;
    const reasons = [...new Set(this.#refusedLists.values())].map((reason) => reason.replace(/\.$/, ""));
    const sentence = `The upstream ${this.name} does not list its ${names.join(" and ")} now`;
    return { sentence, reason: reasons.join("; ") };
  }

  /** Why none of its tools can be listed, or none but those known from before. */
  get toolTrouble(): string | undefined {
    const { trouble, refusal } = this;
    if (trouble !== undefined || refusal === undefined || this.#refusedLists?.has("tools") === false) return trouble;
    return describeRefusal(refusal);
  }

  /** True after five seconds without an answer. */
  get isSlow(): boolean {
    return this.#isSlow;
  }

  /** A sentence and its reason, for a caller. The log has the reason where the caller is not told. */
  explain(caller: Caller, sentence: string, reason: string): string {
    const whole = `${sentence} ${reason}`;
    if (seesReasons(caller)) return whole;
    this.#options.log.warn(whole);
    return sentence;
  }

  /** Calls back when what it lists, whether it can be used, or whether it is slow to answer has changed. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The connection of a lease; opened where there is none. */
  async connect(lease: UpstreamLease): Promise<UpstreamConnection> {
    const open = this.#open.get(lease.key) ?? this.#begin(lease);
    const connection = await open;
    if (connection.why === undefined) return connection;
    return await this.connect(lease);
  }

  /**
   * The right of a call to a connection that many share. A server before 2026-07-28 that is spoken to over a pipe cannot
   * say for whom it asks: a call that may ask has one of its own for as long as it lasts.
   */
  takeTurn(key: string, tool: string, known: KnownUpstream | undefined): Turn {
    const isAlone =
      eraOf(known) !== "modern" &&
      this.kind === "command" &&
      (this.config.share === undefined || this.askers.has(tool));
    if (!isAlone) return { key, end: () => undefined };
    let at = 0;
    while (this.#turns.has(`${key} ${at}`)) at += 1;
    const own = `${key} ${at}`;
    this.#turns.add(own);
    return { key: own, end: () => this.#turns.delete(own) };
  }

  /** Once it is open. */
  opened(lease: UpstreamLease): Promise<UpstreamConnection> | undefined {
    return this.#open.get(lease.key);
  }

  /** Nobody needs a lease any more: its connection ends with what it works on. */
  release({ key }: Pick<UpstreamLease, "key">): void {
    const open = this.#open.get(key);
    this.#open.delete(key);
    open?.then((connection) => connection.leave()).catch(() => undefined);
  }

  /** Ends all connections; the next request opens another. */
  restart(why?: ConnectionError): void {
    for (const connection of this.#connections) connection.close(why);
    this.trouble = undefined;
    this.#refusedLists = undefined;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelLook?.();
    this.restart();
    this.#listeners.clear();
  }

  #begin(lease: UpstreamLease): Promise<UpstreamConnection> {
    const opening = this.#connect(lease);
    this.#open.set(lease.key, opening);
    const forget = () => void (this.#open.get(lease.key) === opening && this.#open.delete(lease.key));
    opening.then(
      (connection) => {
        connection.onClose = (why) => {
          forget();
          this.#connections.delete(connection);
          this.#options.log.debug(`${this.name}: ${why.message}`);
        };
        if (this.#isClosed) connection.close();
      },
      () => forget(),
    );
    return opening;
  }

  async #connect(lease: UpstreamLease): Promise<UpstreamConnection> {
    const { config, openLink, resolve, clock, log, name } = this.#options;
    this.#starting += 1;
    const cancelSlow = clock.after(slowMs, () => this.#noteSlow());
    try {
      const connection = await UpstreamConnection.open({
        ...resolve(lease.place),
        openLink,
        wanted: lease.era,
        known: eraOf(this.known(lease)),
        capabilities: lease.capabilities,
        owner: lease.owner,
        startMs: (config.startSeconds ?? defaultStartSeconds) * 1000,
        clock,
        log: inNameOf(name, log),
      });
      this.#connections.add(connection);
      connection.onLists = () => this.#learn(lease, connection);
      this.trouble = undefined;
      this.#learn(lease, connection);
      this.#lookLater();
      return connection;
    } catch (error) {
      const down = new UpstreamDown(name, error);
      if (this.trouble !== down.message) log.error(down.message);
      this.trouble = down.message;
      this.#tell();
      throw down;
    } finally {
      cancelSlow();
      this.#starting -= 1;
      if (this.#starting === 0) this.#isSlow = false;
    }
  }

  #noteSlow(): void {
    if (this.#isSlow) return;
    this.#isSlow = true;
    const { delay } = this;
    if (delay !== undefined) this.#options.log.warn(delay);
    this.#tell();
  }

  /** What it says now is what the next clients are told; what is not as it was, a person can read in the log. */
  #learn(lease: UpstreamLease, { hello, lists: said, refusedLists }: UpstreamConnection): void {
    this.#refusedLists = refusedLists;
    const kind = kindOf(lease);
    const before = this.memory.find(kind);
    const lists = withKnown(said, before?.lists);
    const isNews = this.memory.keep(kind, { hello, lists });
    if (isNews && before !== undefined) {
      const changed = changedTools(before.lists.tools, lists.tools);
      if (changed.length > 0)
        this.#options.log.warn(`${this.name} lists other tools than before: ${changed.slice(0, 20).join(", ")}`);
    }
    this.#tell();
  }

  known(client: Pick<UpstreamLease, "capabilities" | "era">): KnownUpstream | undefined {
    return this.memory.find(kindOf(client));
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  #lookLater(): void {
    const { config, clock } = this.#options;
    const idleMs = (config.idleSeconds ?? defaultIdleSeconds[this.kind]) * 1000;
    this.#cancelLook ??= clock.after(Math.min(idleMs, lookMs), () => {
      this.#cancelLook = undefined;
      for (const connection of this.#connections)
        if (connection.isIdle && clock.monotonic() - connection.lastUsedAt >= idleMs) connection.close();
      if (this.#connections.size > 0) this.#lookLater();
    });
  }
}

/** What `Upstream.refusal` says, with its reason where that is known. */
export function describeRefusal({ sentence, reason }: NonNullable<Upstream["refusal"]>): string {
  return reason === undefined ? `${sentence}.` : `${sentence}: ${reason}.`;
}

/** Of several, a line says which. */
function inNameOf(name: string, log: Logger): Logger {
  const said = (level: keyof Logger) => (text: string, facts?: object) =>
    log[level](`The upstream ${name}: ${text}`, facts);
  return { debug: said("debug"), info: said("info"), warn: said("warn"), error: said("error") };
}

/** What a person knows it by; what else is in its words or its address may be a secret. */
function targetOf({ command = "", url }: UpstreamConfig): string {
  if (url === undefined) return path.basename(command);
  return URL.canParse(url) ? `${new URL(url).origin}${new URL(url).pathname}` : "an address";
}

/** Before 2026-07-28 servers list other tools to clients that can do more. */
function kindOf({ capabilities, era }: Pick<UpstreamLease, "capabilities" | "era">): string {
  if (era === "modern") return era;
  return [era, ...["elicitation", "sampling", "roots"].filter((name) => capabilities[name] !== undefined)].join("+");
}

function eraOf(known: KnownUpstream | undefined): GuestEra | undefined {
  if (known === undefined) return undefined;
  return isModern(known.hello.revision) ? "modern" : "legacy";
}
