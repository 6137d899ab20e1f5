import type { Message } from "../wire/message.ts";

/**
 * Until a handshake is answered nothing may come but that answer, pings and log lines. What has changed in lists is
 * told afterwards, to a client that has asked for them already.
 */
export class Handshake {
  readonly #late = new Set<string>();
  #isOpen = false;

  begin(): void {
    this.#isOpen = true;
  }

  /** True for what is not sent now. */
  holdsBack({ method }: Message, isAlone: boolean): boolean {
    if (!this.#isOpen || method?.endsWith("/list_changed") !== true) return false;
    if (!isAlone) this.#late.add(method);
    return true;
  }

  /** It is answered; what was held back. */
  end(): readonly Message[] {
    this.#isOpen = false;
    return [...this.#late].map((method) => ({ method }));
  }
}
