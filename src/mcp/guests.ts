import type { Json } from "../wire/json.ts";
import { Guest } from "./guest.ts";
import type { GuestEra, GuestOptions } from "./guest-server.ts";
import type { ClientConnection } from "./request.ts";

/** Makes guests: one for each session that has begun with a handshake, and one of each era for everybody else. */
export class Guests {
  readonly #options: GuestOptions;
  readonly #shared = new Map<GuestEra, Promise<Guest>>();
  readonly #open = new Map<GuestEra, Guest>();

  constructor(options: GuestOptions) {
    this.#options = options;
  }

  shared(era: GuestEra): Promise<Guest> {
    let guest = this.#shared.get(era);
    if (guest === undefined) {
      // An author may close a server; the next client gets another.
      const onClose = () => {
        this.#shared.delete(era);
        this.#open.delete(era);
      };
      guest = Guest.open(this.#options, { era, onClose });
      this.#shared.set(era, guest);
      // A hook that fails may do better the next time.
      guest.then(
        (open) => void this.#open.set(era, open),
        () => this.#shared.delete(era),
      );
    }
    return guest;
  }

  /** Once it is there. */
  openShared(era: GuestEra): Guest | undefined {
    return this.#open.get(era);
  }

  /** For a client that has shaken hands as `params` say. */
  open(connection: ClientConnection, params: Json): Promise<Guest> {
    return Guest.open(this.#options, { era: "legacy", connection, params });
  }

  /** The schema of a tool's arguments, as the guest that everybody shares since 2026-07-28 has it, once it is there. */
  schemaOf(tool: string): Json | undefined {
    return this.openShared("modern")?.tools.get(tool);
  }

  close(): void {
    for (const guest of this.#shared.values()) void guest.then((open) => open.close()).catch(() => undefined);
  }
}
