import { type Clock, systemClock } from "../clock.ts";
import { CommandError } from "../errors.ts";
import type { Json } from "../wire/json.ts";
import { legacyRevision, modernRevision } from "../wire/revisions.ts";
import type { CallLog } from "./calls.ts";
import type { Evidence } from "./check.ts";
import type { Facts, Tool } from "./facts.ts";
import { sampleArguments } from "./sample.ts";
import { movedTarget, secretsOf, type Target, type ToolWish } from "./target.ts";
import { printable, redact } from "./text.ts";
import { type HttpAnswer, type HttpWish, sendHttp } from "./wire/http.ts";
import { Pipe, type PipeEvents } from "./wire/pipe.ts";
import { type Answer, httpCarrier, type OpenOptions, pipeCarrier, type Session, WireSession } from "./wire/session.ts";

/** A tool that may be called, and with what. */
export interface Callable {
  readonly tool: Tool;
  readonly arguments: Json;
  /** The user named it; else it says that it only reads. */
  readonly isNamed: boolean;
}

/** What a check works with. Everything it opens is closed after it. */
export interface Probe {
  readonly target: Target;
  readonly facts: Facts;
  readonly clock: Clock;
  /** Aborted when the check's time is over. */
  readonly signal: AbortSignal;
  readonly isFull: boolean;
  /** How long one request may take. */
  readonly requestMs: number;
  /** Tools that the user named, then those that say they only read; only such that arguments are known for. */
  readonly callables: readonly Callable[];
  /** A folder of the user's that no server should hand files out of; undefined where none is known. */
  readonly privateFolder: string | undefined;
  /** Opens a conversation; rejects with `HandshakeFailed` when the server refuses it. */
  open(options?: OpenOptions): Promise<Session>;
  /** Opens a conversation and hands over what came for the handshake, whatever it was. */
  greet(options?: OpenOptions): Promise<{ readonly session: Session; readonly answer: Answer }>;
  /** Over stdio: a fresh server that has heard nothing yet. */
  startPipe(): Promise<Pipe>;
  /**
   * Over HTTP: one exchange with the target's URL, with its headers unless told otherwise. `url` stays on the target's
   * origin.
   */
  http(wish: Partial<HttpWish> & { readonly url?: string; readonly isBare?: boolean }): Promise<HttpAnswer>;
  /**
   * Does something once for all checks of a diagnosis that want the same; `make` gives plain facts and leaves nothing
   * open.
   */
  recall<T>(name: string, make: () => Promise<T>): Promise<T>;
  sent(value: unknown): Evidence;
  received(value: unknown): Evidence;
  printed(text: string): Evidence;
  measured(text: string): Evidence;
  /** A text of the server's, as it may stand in a sentence. */
  show(text: string, max?: number): string;
}

export class HandshakeFailed extends CommandError {
  override readonly name = "HandshakeFailed";
  readonly answer: Answer;

  constructor(message: string, answer: Answer) {
    super(message);
    this.answer = answer;
  }
}

export interface ProbeOptions {
  readonly target: Target;
  readonly facts: Facts;
  readonly tools: readonly ToolWish[];
  readonly isFull: boolean;
  readonly requestMs: number;
  readonly signal: AbortSignal;
  readonly events: PipeEvents;
  /** Conversations that outlive the check, for those that may share them. */
  readonly pool?: SessionPool | undefined;
  /** What was learned for several checks. */
  readonly memory?: Map<string, Promise<unknown>> | undefined;
  /** Where calls of tools are kept. */
  readonly calls?: CallLog | undefined;
  /** A folder of the user's that no server should hand files out of. */
  readonly privateFolder?: string | undefined;
}

/** Conversations over pipes that gentle checks hand on to each other. */
export class SessionPool {
  readonly #kept = new Map<string, { readonly session: WireSession; readonly answer: Answer }>();

  take(key: string): { readonly session: WireSession; readonly answer: Answer } | undefined {
    const kept = this.#kept.get(key);
    if (kept?.session.pipe?.isEnded !== false) return undefined;
    // What it said to others is not news.
    kept.session.heard.length = 0;
    return kept;
  }

  keep(key: string, met: { readonly session: WireSession; readonly answer: Answer }): void {
    this.#kept.set(key, met);
  }

  /** After a check that found something nobody knows what state a conversation is in. */
  async empty(): Promise<void> {
    const kept = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.allSettled(kept.map(({ session }) => session.close()));
  }
}

export class LiveProbe implements Probe {
  readonly facts: Facts;
  readonly clock = systemClock;
  readonly signal: AbortSignal;
  readonly isFull: boolean;
  readonly requestMs: number;
  readonly callables: readonly Callable[];
  readonly pool: SessionPool | undefined;
  readonly privateFolder: string | undefined;
  readonly #calls: CallLog | undefined;
  readonly #memory: Map<string, Promise<unknown>>;
  readonly #events: PipeEvents;
  #target: Target;
  #secrets: readonly string[];
  readonly #open = new Set<{ close(): Promise<unknown> }>();

  constructor(options: ProbeOptions) {
    this.#target = options.target;
    this.facts = options.facts;
    this.signal = options.signal;
    this.isFull = options.isFull;
    this.requestMs = options.requestMs;
    this.callables = findCallables(options.facts.tools, options.tools);
    this.pool = options.pool;
    this.privateFolder = options.privateFolder;
    this.#calls = options.calls;
    this.#memory = options.memory ?? new Map();
    this.#events = options.events;
    this.#secrets = secretsOf(options.target);
    if (options.facts.movedTo !== undefined) this.moveTo(options.facts.movedTo);
  }

  get target(): Target {
    return this.#target;
  }

  /** From now on everything is asked at another path of the same origin. */
  moveTo(path: string): void {
    this.#target = movedTarget(this.#target, path);
    this.#secrets = [...new Set([...this.#secrets, ...secretsOf(this.#target)])];
  }

  async open(options: OpenOptions = {}): Promise<Session> {
    const { session, answer } = await this.greet(options);
    if (answer.result !== undefined) return session;
    const why = answer.problem ?? `error ${String(answer.error?.code)}: ${String(answer.error?.message)}`;
    throw new HandshakeFailed(
      `The server did not take the handshake of ${this.show(session.revision, 40)}: ${this.show(why)}.`,
      answer,
    );
  }

  async greet(options: OpenOptions = {}): Promise<{ session: Session; answer: Answer }> {
    const { pool } = this;
    const key =
      pool === undefined || this.target.kind === "http" || options.onRequest !== undefined
        ? undefined
        : JSON.stringify([options, this.requestMs]);
    const kept = key === undefined ? undefined : pool?.take(key);
    if (kept !== undefined) return kept;
    const met = await this.#greet(options);
    if (key !== undefined && met.answer.result !== undefined) {
      pool?.keep(key, met);
      this.#open.delete(met.session);
    }
    return met;
  }

  async #greet(options: OpenOptions): Promise<{ session: WireSession; answer: Answer }> {
    const revision =
      options.revision ??
      (this.facts.modern === undefined ? (this.facts.legacy?.revision ?? legacyRevision) : modernRevision);
    const credentials = options.credentials ?? (this.target.kind === "http" ? this.target.headers : {});
    const carrier =
      this.target.kind === "http"
        ? httpCarrier((wish) =>
            this.http({ ...wish, isBare: true, ...(options.url !== undefined && { url: options.url }) }),
          )
        : pipeCarrier(await this.#startPipe(), this.signal);
    // A server that was slow to start before may be so again; only what comes after the first answer has to be quick.
    const startMs = Math.max(this.facts.modern?.startMs ?? 0, this.facts.legacy?.startMs ?? 0);
    const session = new WireSession(carrier, revision, {
      timeoutMs: this.requestMs,
      firstMs: Math.max(options.timeoutMs ?? 0, this.requestMs + 2 * startMs),
      ...options,
      credentials,
      onExchange: (exchange) => this.#calls?.note(exchange, this.callables, (text) => this.show(text)),
    });
    this.#open.add(session);
    return { session, answer: await session.begin() };
  }

  async startPipe(): Promise<Pipe> {
    const pipe = await this.#startPipe();
    this.#open.add(pipe);
    return pipe;
  }

  async #startPipe(): Promise<Pipe> {
    if (this.target.kind !== "stdio") throw new CommandError("Only a server that is started here has pipes.");
    return await Pipe.start(this.target, this.#events);
  }

  http({
    url,
    isBare = false,
    headers = {},
    ...wish
  }: Partial<HttpWish> & { url?: string; isBare?: boolean }): Promise<HttpAnswer> {
    const { target } = this;
    if (target.kind !== "http") throw new CommandError("Only a server with a URL is reached over HTTP.");
    const home = new URL(target.url);
    const at = url === undefined ? home : new URL(url, home);
    // Whatever a server says about other addresses, nothing is sent there.
    if (at.origin !== home.origin) throw new CommandError(`Requests go to ${home.origin} only.`);
    const usual = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...target.headers,
    };
    const signal = wish.signal === undefined ? this.signal : AbortSignal.any([wish.signal, this.signal]);
    return sendHttp(
      at,
      { timeoutMs: this.requestMs, ...wish, headers: isBare ? headers : { ...usual, ...headers }, signal },
      target.policy,
    );
  }

  /** Ends everything that was opened. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#open].map((item) => item.close()));
    this.#open.clear();
  }

  recall<T>(name: string, make: () => Promise<T>): Promise<T> {
    const known = this.#memory.get(name) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const made = make();
    this.#memory.set(name, made);
    // Whoever comes next tries again.
    made.catch(() => this.#memory.delete(name));
    return made;
  }

  sent(value: unknown): Evidence {
    return { kind: "sent", text: this.#text(value) };
  }

  received(value: unknown): Evidence {
    return { kind: "received", text: this.#text(value) };
  }

  printed(text: string): Evidence {
    return { kind: "printed", text: this.show(text) };
  }

  measured(text: string): Evidence {
    return { kind: "measured", text };
  }

  show(text: string, max?: number): string {
    return printable(redact(text.slice(0, 20_000), this.#secrets), max);
  }

  #text(value: unknown): string {
    return this.show(
      typeof value === "string" ? value : value === undefined ? "(nothing)" : (JSON.stringify(value) ?? "(nothing)"),
    );
  }
}

/** Tools that the user named, then those that say they only read; only such that arguments are known for. */
export function findCallables(tools: readonly Tool[], wishes: readonly ToolWish[]): Callable[] {
  const named = wishes.flatMap((wish): Callable[] => {
    const tool = tools.find(({ name }) => name === wish.name);
    const args = wish.arguments ?? (tool === undefined ? undefined : sampleArguments(tool.inputSchema));
    return tool === undefined || args === undefined ? [] : [{ tool, arguments: args, isNamed: true }];
  });
  const reading = tools.flatMap((tool): Callable[] => {
    const isSafe = tool.annotations.readOnlyHint === true && tool.annotations.destructiveHint !== true;
    const args =
      isSafe && !wishes.some(({ name }) => name === tool.name) ? sampleArguments(tool.inputSchema) : undefined;
    return args === undefined ? [] : [{ tool, arguments: args, isNamed: false }];
  });
  return [...named, ...reading];
}
