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
 * The guests of a host: one for each session that has begun with a handshake, and one of each era for everybody else;
 * or one for all, where the host has no more.
 */
export class Guests implements GuestCompany {
  readonly #options: GuestOptions;
  readonly #shared = new Map<GuestEra, Promise<Guest>>();
  readonly #open = new Map<GuestEra, Guest>();
  readonly #sessions = new Map<string, Guest>();
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
    return new SessionGuest(this, connection);
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
      guest = Guest.open(this.#options, { era, onClose });
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
    const own = client?.session === undefined ? undefined : this.#sessions.get(client.session);
    if (own !== undefined) return own;
    const era = client?.isModern === true ? "modern" : "legacy";
    if (!this.#options.host.isPerCaller) return this.openShared(era) ?? this.shared(era);
    // Strangers have nothing in common, and leave nothing behind for each other.
    return isKnown(caller) ? this.ofCaller(era, caller) : this.#callers.openForOne(this.#eraFor(era));
  }

  /** For what a caller asks outside of any session, but for calls. */
  ofCaller(era: GuestEra, caller: Caller): Promise<Guest> {
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
    this.#callers.close();
  }

  #eraFor(wanted: GuestEra): GuestEra {
    const { eras } = this.#options.host;
    return eras.includes(wanted) ? wanted : (eras[0] as GuestEra);
  }
}
