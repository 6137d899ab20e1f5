import { systemClock } from "../clock.ts";
import { Guest } from "./guest.ts";
import type { GuestEra, GuestOptions } from "./guest-host.ts";

/** A guest that nobody has asked anything for so long is closed; the next request has another made. */
const idleMs = 10 * 60 * 1000;
/** Beyond so many, the one that was asked longest ago is closed. */
const maxGuests = 1_000;

interface Kept {
  readonly guest: Promise<Guest>;
  lastUsedAt: number;
}

/** Guests of callers who have no session: each caller has one, and a stranger one for each call. */
export class CallersGuests {
  readonly #options: GuestOptions;
  /** Asked longest ago first. */
  readonly #kept = new Map<string, Kept>();
  readonly #forOne = new Set<Guest>();
  #cancelLook: (() => void) | undefined;
  #isClosed = false;

  constructor(options: GuestOptions) {
    this.#options = options;
  }

  get(era: GuestEra, caller: string): Promise<Guest> {
    const key = `${era} ${caller}`;
    const guest = this.#kept.get(key)?.guest ?? this.#open(era, key);
    this.#kept.delete(key);
    this.#kept.set(key, { guest, lastUsedAt: systemClock.monotonic() });
    this.#makeRoom();
    this.#lookLater();
    return guest;
  }

  /** Closed once it has been used. */
  async openForOne(era: GuestEra): Promise<Guest> {
    // One that could not be made is closed before it is known.
    let known: Guest | undefined;
    const onClose = () => void (known !== undefined && this.#forOne.delete(known));
    known = await Guest.open(this.#options, { era, isForOne: true, isOfOneCaller: true, onClose });
    this.#forOne.add(known);
    if (this.#isClosed) known.close();
    return known;
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelLook?.();
    for (const { guest } of this.#kept.values()) void guest.then((open) => open.close()).catch(() => undefined);
    for (const guest of this.#forOne) guest.close();
  }

  #open(era: GuestEra, key: string): Promise<Guest> {
    // One that made room may end long after another has taken its place.
    const forget = () => void (this.#kept.get(key)?.guest === guest && this.#kept.delete(key));
    const guest: Promise<Guest> = Guest.open(this.#options, { era, isOfOneCaller: true, onClose: forget });
    // A server that could not be made may be made the next time.
    guest.catch(forget);
    return guest;
  }

  #makeRoom(): void {
    for (const [key, { guest }] of this.#kept) {
      if (this.#kept.size <= maxGuests) return;
      this.#kept.delete(key);
      void guest.then((open) => open.leave()).catch(() => undefined);
    }
  }

  #lookLater(): void {
    this.#cancelLook ??= systemClock.after(idleMs, () => {
      this.#cancelLook = undefined;
      const due = [...this.#kept].filter(([, { lastUsedAt }]) => systemClock.monotonic() - lastUsedAt >= idleMs);
      for (const [key, { guest }] of due) {
        this.#kept.delete(key);
        void guest.then((open) => open.leave()).catch(() => undefined);
      }
      if (this.#kept.size > 0) this.#lookLater();
    });
  }
}
