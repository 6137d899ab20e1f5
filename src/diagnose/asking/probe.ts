import { systemClock } from "../../clock.ts";
import { CommandError } from "../../errors.ts";
import { legacyRevision, modernRevision } from "../../wire/revisions.ts";
import type { Evidence } from "../check.ts";
import { type DiagnosisTarget, movedTarget, secretsOf, type ToolToCall } from "../diagnosis-target.ts";
import { printable, redact } from "../text.ts";
import { httpCarrier, pipeCarrier } from "../wire/carriers.ts";
import { type HttpAnswer, type ProbeHttpOptions, sendHttp } from "../wire/probe-http.ts";
import { type ProbeAnswer, ProbeSession, type SessionOptions } from "../wire/probe-session.ts";
import { Pipe, type PipeEvents } from "../wire/server-pipe.ts";
import { type Callable, findCallables } from "./callables.ts";
import type { Facts } from "./facts.ts";
import type { SessionPool } from "./session-pool.ts";
import type { CallLog } from "./tool-calls.ts";

export class HandshakeFailed extends CommandError {
  override readonly name = "HandshakeFailed";
}

interface ProbeOptions {
  readonly target: DiagnosisTarget;
  readonly facts: Facts;
  readonly tools: readonly ToolToCall[];
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

/** What a check works with. Everything it opens is closed after it. */
export class Probe {
  readonly facts: Facts;
  readonly clock = systemClock;
  /** Aborted when the check's time is over. */
  readonly signal: AbortSignal;
  readonly isFull: boolean;
  /** How long one request may take. */
  readonly requestMs: number;
  readonly callables: readonly Callable[];
  readonly pool: SessionPool | undefined;
  /** A folder of the user's that no server should hand files out of; undefined where none is known. */
  readonly privateFolder: string | undefined;
  readonly #calls: CallLog | undefined;
  readonly #memory: Map<string, Promise<unknown>>;
  readonly #events: PipeEvents;
  #target: DiagnosisTarget;
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

  get target(): DiagnosisTarget {
    return this.#target;
  }

  /** From now on everything is asked at another path of the same origin. */
  moveTo(path: string): void {
    this.#target = movedTarget(this.#target, path);
    this.#secrets = [...new Set([...this.#secrets, ...secretsOf(this.#target)])];
  }

  /** Opens a conversation; rejects with `HandshakeFailed` when the server refuses it. */
  async open(options: SessionOptions = {}): Promise<ProbeSession> {
    const { session, answer } = await this.greet(options);
    if (answer.result !== undefined) return session;
    const why = answer.problem ?? `error ${String(answer.error?.code)}: ${String(answer.error?.message)}`;
    throw new HandshakeFailed(
      `The server did not take the handshake of ${this.show(session.revision, 40)}: ${this.show(why)}.`,
    );
  }

  /** Opens a conversation and hands over what came for the handshake, whatever it was. */
  async greet(options: SessionOptions = {}): Promise<{ session: ProbeSession; answer: ProbeAnswer }> {
    const { pool } = this;
    const key =
      pool === undefined || this.target.kind === "http" || options.onRequest !== undefined
        ? undefined
        : JSON.stringify([options, this.requestMs]);
    const kept = key === undefined ? undefined : pool?.take(key);
    if (kept !== undefined) return kept;
    const greeted = await this.#greet(options);
    if (key !== undefined && greeted.answer.result !== undefined) {
      pool?.keep(key, greeted);
      this.#open.delete(greeted.session);
    }
    return greeted;
  }

  async #greet(options: SessionOptions): Promise<{ session: ProbeSession; answer: ProbeAnswer }> {
    const revision =
      options.revision ??
      (this.facts.modern === undefined ? (this.facts.legacy?.revision ?? legacyRevision) : modernRevision);
    const credentials = options.credentials ?? (this.target.kind === "http" ? this.target.headers : {});
    const carrier =
      this.target.kind === "http"
        ? httpCarrier((message) =>
            this.http({ ...message, isBare: true, ...(options.url !== undefined && { url: options.url }) }),
          )
        : pipeCarrier(await this.#startPipe(), this.signal);
    // A server that was slow to start before may be so again; only what comes after the first answer has to be quick.
    const startMs = Math.max(this.facts.modern?.startMs ?? 0, this.facts.legacy?.startMs ?? 0);
    const session = new ProbeSession(carrier, revision, {
      timeoutMs: this.requestMs,
      firstMs: Math.max(options.timeoutMs ?? 0, this.requestMs + 2 * startMs),
      ...options,
      credentials,
      onExchange: (exchange) => this.#calls?.note(exchange, this.callables, (text) => this.show(text)),
    });
    this.#open.add(session);
    return { session, answer: await session.begin() };
  }

  /** Over stdio: a fresh server that has heard nothing yet. */
  async startPipe(): Promise<Pipe> {
    const pipe = await this.#startPipe();
    this.#open.add(pipe);
    return pipe;
  }

  async #startPipe(): Promise<Pipe> {
    if (this.target.kind !== "stdio") throw new CommandError("Only a server that is started here has pipes.");
    return await Pipe.start(this.target, this.#events);
  }

  /**
   * Over HTTP: one exchange with the target's URL, with its headers unless told otherwise. `url` stays on the target's
   * origin.
   */
  http({
    url,
    isBare = false,
    headers = {},
    ...options
  }: Partial<ProbeHttpOptions> & { url?: string; isBare?: boolean }): Promise<HttpAnswer> {
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
    const signal = options.signal === undefined ? this.signal : AbortSignal.any([options.signal, this.signal]);
    return sendHttp(
      at,
      { timeoutMs: this.requestMs, ...options, headers: isBare ? headers : { ...usual, ...headers }, signal },
      target.policy,
    );
  }

  /** Ends everything that was opened. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#open].map((item) => item.close()));
    this.#open.clear();
  }

  /**
   * Does something once for all checks of a diagnosis that want the same; `make` gives plain facts and leaves nothing
   * open.
   */
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

  /** A text of the server's, as it may stand in a sentence. */
  show(text: string, max?: number): string {
    return printable(redact(text.slice(0, 20_000), this.#secrets), max);
  }

  #text(value: unknown): string {
    return this.show(
      typeof value === "string" ? value : value === undefined ? "(nothing)" : (JSON.stringify(value) ?? "(nothing)"),
    );
  }
}
