import type { Authentication } from "../../auth/authentication.ts";
import type { Clock } from "../../clock.ts";
import { RpcCode } from "../../errors.ts";
import type { HttpExchange } from "./http-exchange.ts";

/** How often the credentials of open responses are checked. A revocation is in force within 5 s. */
const checkMs = 2_000;

/** Ends responses, above all streams, whose credential has expired or was revoked since their request was accepted. */
export class CredentialWatch {
  readonly #clock: Clock;
  readonly #open = new Map<HttpExchange, Authentication>();
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Checks the credential until the response has ended. */
  add(exchange: HttpExchange, authentication: Authentication): void {
    const { validUntil, isStillValid } = authentication;
    if (validUntil === undefined && isStillValid === undefined) return;
    this.#open.set(exchange, authentication);
    exchange.onClose(() => this.#open.delete(exchange));
    this.#cancel ??= this.#clock.after(checkMs, this.#check);
  }

  /** Ends the timer, which otherwise runs until a check finds no response. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  readonly #check = (): void => {
    this.#cancel = this.#open.size === 0 ? undefined : this.#clock.after(checkMs, this.#check);
    for (const [exchange, authentication] of this.#open) void this.#checkOne(exchange, authentication);
  };

  async #checkOne(exchange: HttpExchange, { validUntil, isStillValid }: Authentication): Promise<void> {
    const isExpired = validUntil !== undefined && validUntil <= this.#clock.now();
    // Where it cannot be found out, the credential stays valid until it can: the next request needs a valid one.
    const isValid = !isExpired && (await Promise.resolve(isStillValid?.() ?? true).catch(() => true));
    if (!isValid) exchange.breakOff(401, { id: null, error: { code: RpcCode.Internal, message: endedText } });
  }
}

const endedText = "The credential of this request has expired or was revoked; send another one.";
