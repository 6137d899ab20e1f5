import { createId } from "../ids.ts";
import { logLevels } from "../wire/claim.ts";
import { fieldsOf, type Json, textOf } from "../wire/json.ts";
import type { Guest } from "./guest.ts";
import type { Hearing } from "./guest-audience.ts";
import { SharingSession } from "./guest-sessions.ts";
import type { ConversationGuest } from "./guest-view.ts";
import type { Guests } from "./guests.ts";
import { textParam } from "./params.ts";
import type { ClientConnection, ClientIdentity, ClientRequest, Result } from "./request.ts";
import { methodNotFound } from "./router.ts";

/** What a conversation has of the guests: one of its own since its handshake, or its share of one for all. */
export class SessionGuest implements ConversationGuest {
  readonly #guests: Guests;
  readonly #connection: ClientConnection;
  /** Names the conversation to whoever works on its calls. */
  readonly session = createId();
  /** Of this session alone. */
  #own: Promise<Guest> | undefined;
  #openOwn: Guest | undefined;
  #hearing: Hearing | undefined;
  /** The server that all sessions share, once the client has shaken hands. */
  #shared: Guest | undefined;
  /** This session as that server sees it, from the end of the handshake on. */
  #share: { readonly session: SharingSession; readonly end: () => void } | undefined;
  #logLevel: string | undefined;
  #isClosed = false;

  constructor(guests: Guests, connection: ClientConnection) {
    this.#guests = guests;
    this.#connection = connection;
  }

  /** A probe of another era decides nothing. */
  for({ isModern }: ClientIdentity): Promise<Guest> {
    if (this.#own !== undefined && !isModern) return this.#own;
    return this.#guests.ofClient(isModern ? "modern" : "legacy", {
      session: this.session,
      caller: this.#connection.caller,
    });
  }

  /** Once it is there. */
  openFor({ isModern }: ClientIdentity): Guest | undefined {
    if (this.#openOwn !== undefined && !isModern) return this.#openOwn;
    return this.#guests.openShared(isModern ? "modern" : "legacy");
  }

  /** Its client has shaken hands as `params` say; what it is told then. */
  async greet(hello: Json, params: Json): Promise<Json> {
    const guest = await (this.#guests.hasSessions ? this.#openAnew(params) : this.#joinShared());
    return { ...hello, capabilities: guest.mergeCapabilities(fieldsOf(hello.capabilities)) };
  }

  async #openAnew(params: Json): Promise<Guest> {
    this.#openOwn?.leave();
    this.#own = this.#guests.open(this.#connection, withForms(params));
    const guest = await this.#own;
    this.#openOwn = guest;
    if (this.#isClosed) guest.leave();
    return guest;
  }

  async #joinShared(): Promise<Guest> {
    const guest = await this.#guests.shared("legacy");
    this.#hearing?.stop();
    this.#endShare();
    this.#hearing = guest.hearFor((method, params) => this.#connection.notify(method, params));
    this.#shared = guest;
    if (this.#isClosed) this.#hearing.stop();
    return guest;
  }

  /** From now on the server may ask this client, where it is the only one. */
  #beginShare(guest: Guest): void {
    if (this.#share !== undefined || this.#isClosed) return;
    const hears = ({ level }: Json) => rankOf(level) >= rankOf(this.#logLevel ?? "debug");
    const session = new SharingSession({ connection: this.#connection, session: this.session, hears });
    this.#share = { session, end: guest.shareWith(session) };
  }

  #endShare(): void {
    this.#share?.end();
    this.#share = undefined;
  }

  /** A request that is none of ours. */
  async answer(method: string, params: Json, request: ClientRequest): Promise<Result> {
    const guest = await this.for(request.client);
    const hearing = this.#hearing;
    // Of what all share, each hears what it wants to hear.
    if (hearing === undefined || !/^resources\/(un)?subscribe$/.test(method))
      return await guest.request(method, params, request);
    const uri = textParam(params, "uri");
    await (method === "resources/subscribe" ? hearing.subscribe(uri) : hearing.unsubscribe(uri));
    return {};
  }

  /**
   * To the server of this session alone. A server that sessions share gets one `notifications/initialized`, when it is
   * opened, and of a session only that its roots have changed.
   */
  notify(method: string, params: Json): void {
    this.#openOwn?.notify(method, params);
    if (this.#shared === undefined) return;
    if (method === "notifications/initialized") this.#beginShare(this.#shared);
    else if (method === "notifications/roots/list_changed" && this.#share !== undefined)
      this.#shared.rootsChanged(this.#share.session);
  }

  async setLevel(params: Json): Promise<void> {
    const guest = this.#openOwn ?? this.#shared;
    if (guest?.isAlone === true && !guest.capabilityOf("logging/setLevel")) throw methodNotFound;
    this.#logLevel = textOf(params.level);
    if (this.#openOwn?.capabilityOf("logging/setLevel") === true)
      await this.#openOwn.request("logging/setLevel", params);
  }

  close(): void {
    this.#isClosed = true;
    this.#guests.leave(this.session);
    this.#openOwn?.leave();
    this.#hearing?.stop();
    this.#endShare();
  }
}

function rankOf(level: unknown): number {
  return logLevels.indexOf(level as (typeof logLevels)[number]);
}

/** What a tool asks finds somebody, whether or not this client can show it. */
function withForms(params: Json): Json {
  const capabilities = fieldsOf(params.capabilities);
  return capabilities.elicitation === undefined && textOf(params.protocolVersion) !== undefined
    ? { ...params, capabilities: { ...capabilities, elicitation: { form: {} } } }
    : params;
}
