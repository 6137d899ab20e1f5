import type { Authentication } from "../auth/authentication.ts";
import type { Caller } from "../command/caller.ts";
import { logLevels } from "../wire/claim.ts";
import { fieldsOf, isObject, type Json, textOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import { modernRevision } from "../wire/revisions.ts";
import type { Conversation } from "./conversation.ts";
import { whoAsks } from "./guest-client.ts";
import { hangUpCapability, hangUpNotice } from "./guest-host.ts";
import type { GuestView } from "./guest-view.ts";
import type { Outbound } from "./outbound.ts";
import { badParams, objectParam, textParam } from "./params.ts";
import type { AskLimits, ClientCapabilities, ClientIdentity, ClientRequest } from "./request.ts";
import { agreeOn } from "./router.ts";

type Id = string | number;

/** By which messages go to a client: a pipe, or the answer to one POST. */
export interface Way {
  send(message: Message): void;
  readonly outbound: Outbound;
  /** Over HTTP: aborted when the exchange is over, or broken. */
  readonly exchange: AbortSignal | undefined;
  /** When the request that is being received arrived, on the monotonic clock; undefined: now. */
  readonly arrivedAt?: number | undefined;
  /** The credential of its request, where that may grant other scopes than the one that the conversation began with. */
  readonly authentication?: Authentication | undefined;
  /** The request was taken back: no answer to it will come. */
  drop?(): void;
  /** Ends the stream; the client comes back for what has not been sent. */
  hangUp?(): void;
}

interface Asked {
  readonly id: Id;
  readonly method: string;
  readonly params: Json;
  readonly meta: Json;
  readonly client: ClientIdentity;
  readonly arrivedAt: number;
}

/** A request of a client's. */
export class IncomingRequest implements ClientRequest {
  readonly connection: Conversation;
  readonly way: Way;
  readonly id: Id;
  readonly method: string;
  readonly client: ClientIdentity;
  readonly meta: Json;
  readonly arrivedAt: number;
  readonly #params: Json;
  #stop: AbortController | undefined;
  /** True until something is sent on the stream of this request. */
  isSilent = true;
  /** True once the client has closed the stream of this request. */
  isGivenUp = false;

  constructor(connection: Conversation, way: Way, { id, method, params, meta, client, arrivedAt }: Asked) {
    this.connection = connection;
    this.way = way;
    this.id = id;
    this.method = method;
    this.#params = params;
    this.meta = meta;
    this.client = client;
    this.arrivedAt = arrivedAt;
    const { progressToken } = meta;
    if (progressToken !== undefined && typeof progressToken !== "string" && !Number.isSafeInteger(progressToken))
      throw badParams("`_meta.progressToken` must be a text or a whole number.");
  }

  get authentication(): Authentication {
    return this.way.authentication ?? this.connection.authentication;
  }

  get caller(): Caller {
    return this.authentication.caller;
  }

  get who(): string {
    return whoAsks(this.caller, this.connection.session);
  }

  get door(): ClientRequest["door"] {
    return this.connection.door;
  }

  get outbound(): Outbound {
    return this.way.outbound;
  }

  get exchange(): AbortSignal | undefined {
    return this.way.exchange;
  }

  guest(): Promise<GuestView> | undefined {
    return this.connection.guestFor(this.client);
  }

  get openGuest(): GuestView | undefined {
    return this.connection.openGuestFor(this.client);
  }

  isAuthorsTool(name: string): boolean {
    return this.openGuest?.tools.has(name) === true;
  }

  get hangUp(): ClientRequest["hangUp"] {
    const { way } = this;
    if (way.hangUp !== undefined) return () => way.hangUp?.();
    // A gateway of ours has the stream that is meant.
    if (this.connection.client.capabilities.experimental?.[hangUpCapability] === undefined) return undefined;
    return () => this.notify(hangUpNotice, { requestId: this.id });
  }

  get progressToken(): ClientRequest["progressToken"] {
    return this.meta.progressToken as ClientRequest["progressToken"];
  }

  /** What looks like a message of its own is no answer. */
  get inputResponses(): Json {
    const given = Object.entries(fieldsOf(this.#params.inputResponses));
    return Object.fromEntries(
      given.filter(([, answer]) => isObject(answer) && !("method" in answer) && !("result" in answer)),
    );
  }

  get requestState(): unknown {
    return this.client.isModern ? this.#params.requestState : undefined;
  }

  get signal(): AbortSignal {
    this.#stop ??= new AbortController();
    return this.#stop.signal;
  }

  abort(reason: unknown): void {
    this.#stop ??= new AbortController();
    this.#stop.abort(reason);
  }

  notify(method: string, params: Json): void {
    this.isSilent = false;
    this.connection.send({ method, params }, this.way);
  }

  ask(method: string, params: Json, options: AskLimits): Promise<unknown> {
    this.isSilent = false;
    return this.connection.askBy(this.way, { method, params }, options);
  }

  hears(level: unknown): boolean {
    const least = this.connection.logLevelFor(this);
    const rankOf = (name: unknown) => logLevels.indexOf(name as (typeof logLevels)[number]);
    return least !== undefined && rankOf(level) >= rankOf(least);
  }

  log(level: (typeof logLevels)[number], data: unknown, logger: string): void {
    if (this.hears(level)) this.notify("notifications/message", { level, data, logger });
  }
}

/** Who asks, as every request says since 2026-07-28. */
export function clientOf(meta: Json): ClientIdentity {
  const info = fieldsOf(meta[metaKeys.clientInfo]);
  return {
    revision: modernRevision,
    isModern: true,
    name: textOf(info.name),
    capabilities: fieldsOf(meta[metaKeys.clientCapabilities]) as ClientCapabilities,
    wantsLog: meta[metaKeys.logLevel] !== undefined,
  };
}

/** Who shakes hands, before 2026-07-28. */
export function greetedClient(params: Json, wantsLog: boolean): ClientIdentity {
  const asked = textParam(params, "protocolVersion");
  const capabilities = objectParam(params, "capabilities") as ClientCapabilities;
  const info = objectParam(params, "clientInfo");
  const name = textParam(info, "name");
  textParam(info, "version");
  return { revision: agreeOn(asked), isModern: false, name, capabilities, wantsLog };
}
