import { type Caller, callerKey, isKnown } from "../command/caller.ts";
import type { OriginClient } from "../command/context.ts";
import type { Json } from "../wire/json.ts";
import { CallersGuests } from "./callers-guests.ts";
import { Guest } from "./guest.ts";
import type { GuestEra, GuestOptions } from "./guest-host.ts";
import type { ConversationGuest, GuestCompany } from "./guest-view.ts";
import type { ClientConnection } from "./request.ts";
import { SessionGuest } from "./session-guest.ts";

/**
 * The guests of a host. A host that makes many: one for each session, also for a connection without a handshake that
 * outlives its requests, and one for each caller over HTTP since 2026-07-28. A host with one server: that one for all.
 */
export class Guests implements GuestCompany {
  readonly #options: GuestOptions;
  readonly #shared = new Map<GuestEra, Promise<Guest>>();
  readonly #open = new Map<GuestEra, Guest>();
  readonly #sessions = new Map<string, Guest>();
  /** Of clients of 2026-07-28 whose connection outlives a request, by session; undefined until the first request. */
  readonly #connections = new Map<string, Promise<Guest> | undefined>();
  readonly #callers: CallersGuests;
  #onShared: ((guest: Guest) => void) | undefined;

  constructor(options: GuestOptions) {
    this.#options = options;
    this.#callers = new CallersGuests(options);
  }

  /** In a sentence. */
  get name(): string {
    return this.#options.host.name;
  }

  /** True where every session has a guest of its own. */
  get hasSessions(): boolean {
    return !this.#options.host.isOne;
  }

  join(connection: ClientConnection): ConversationGuest {
    const session = new SessionGuest(this, connection);
    if (this.#options.host.isPerCaller && !connection.isOfOneRequest) this.#connections.set(session.session, undefined);
    return session;
  }

  /** The connection of a session has ended. */
  leave(session: string): void {
    const guest = this.#connections.get(session);
    this.#connections.delete(session);
    void guest?.then((open) => open.leave()).catch(() => undefined);
  }

  shared(wanted: GuestEra): Promise<Guest> {
    const era = this.#eraFor(wanted);
    let guest = this.#shared.get(era);
    if (guest === undefined) {
      // Whoever made a server may close it; the next client gets another.
      const onClose = () => {
        this.#shared.delete(era);
        this.#open.delete(era);
      };
      guest = Guest.open(this.#options, { era, onClose, isSample: this.#options.host.isPerCaller });
      this.#shared.set(era, guest);
      // A server that could not be made may be made the next time.
      guest.then(
        (open) => {
          this.#open.set(era, open);
          this.#onShared?.(open);
        },
        () => this.#shared.delete(era),
      );
    }
    return guest;
  }

  /** Calls back with each guest that is made for many. */
  onShared(listener: (guest: Guest) => void): void {
    this.#onShared = listener;
  }

  /** Once it is there. */
  openShared(era: GuestEra): Guest | undefined {
    return this.#open.get(this.#eraFor(era));
  }

  /** For a client that has shaken hands as `params` say. */
  async open(connection: ClientConnection, params: Json): Promise<Guest> {
    const { session } = connection;
    const onClose = () => {
      if (session !== undefined) this.#sessions.delete(session);
    };
    const guest = await Guest.open(this.#options, { era: "legacy", connection, params, onClose });
    if (session !== undefined) this.#sessions.set(session, guest);
    return guest;
  }

  /** The one that works on a call: its session's own while that lasts, or its caller's. */
  forCall(client: OriginClient | undefined, caller: Caller): Guest | Promise<Guest> {
    const { session = "", isModern = false } = client ?? {};
    const own = this.#sessions.get(session);
    if (own !== undefined) return own;
    if (isModern && this.#connections.has(session)) return this.#ofConnection(session);
    const era = isModern ? "modern" : "legacy";
    if (!this.#options.host.isPerCaller) return this.openShared(era) ?? this.shared(era);
    // Strangers have nothing in common, and leave nothing behind for each other.
    return isKnown(caller) ? this.#ofCaller(era, caller) : this.#callers.openForOne(this.#eraFor(era));
  }

  /** For what a client asks without a handshake, but for calls. */
  ofClient(era: GuestEra, { session, caller }: Pick<ClientConnection, "session" | "caller">): Promise<Guest> {
    const isLasting = era === "modern" && session !== undefined && this.#connections.has(session);
    return isLasting ? this.#ofConnection(session) : this.#ofCaller(era, caller);
  }

  #ofConnection(session: string): Promise<Guest> {
    const known = this.#connections.get(session);
    if (known !== undefined) return known;
    const forget = () => {
      if (this.#connections.get(session) === guest) this.#connections.set(session, undefined);
    };
    const era = this.#eraFor("modern");
    const guest: Promise<Guest> = Guest.open(this.#options, { era, isOfOneCaller: true, onClose: forget });
    this.#connections.set(session, guest);
    // A server that could not be made may be made the next time.
    guest.catch(forget);
    return guest;
  }

  #ofCaller(era: GuestEra, caller: Caller): Promise<Guest> {
    return this.#options.host.isPerCaller && isKnown(caller)
      ? this.#callers.get(this.#eraFor(era), callerKey(caller))
      : this.shared(era);
  }

  /** A tool's definition, as the guest that everybody shares since 2026-07-28 has it, once it is there. */
  schemaOf(tool: string): Json | undefined {
    return this.openShared("modern")?.tools.get(tool)?.inputSchema as Json | undefined;
  }

  close(): void {
    for (const guest of this.#shared.values()) void guest.then((open) => open.close()).catch(() => undefined);
    for (const guest of this.#sessions.values()) guest.close();
    for (const guest of this.#connections.values()) void guest?.then((open) => open.close()).catch(() => undefined);
    this.#callers.close();
  }

  #eraFor(wanted: GuestEra): GuestEra {
    const { eras } = this.#options.host;
    return eras.includes(wanted) ? wanted : (eras[0] as GuestEra);
  }
}
