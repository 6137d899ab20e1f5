import type { Logger } from "../log.ts";
import type { Id } from "../wire/in-flight.ts";

/**
 * A server that somebody has made with an SDK, of whichever version. It is a guest: it sits at the other end of a pair
 * in memory and is asked as any other would be, for what is not ours. Messages are all that passes: no class of an SDK
 * is looked into, so that copies of it never matter.
 */

/** By which one gateway of ours asks another server of ours to be told when a stream is to be ended. */
export const hangUpCapability = "meanwhile/hangUp";
export const hangUpNotice = "notifications/meanwhile/hang_up";

export type GuestEra = "legacy" | "modern";

/** What an SDK takes beside a message. */
export interface MessageExtra {
  closeSSEStream?: () => void;
  authInfo?: { token: string; clientId: string; scopes: string[]; extra: Record<string, unknown> };
}

/** The guest's end of the pair, as the SDKs want their transports. */
export interface GuestPair {
  /** Given by whoever is connected; `extra` is a MessageExtra. */
  onmessage?(message: unknown, extra?: unknown): void;
  onclose?(): void;
  onerror?(error: Error): void;
  readonly isClosed: boolean;
  /** By which a server tells its sessions apart that keeps something for each; of one that all share there is none. */
  readonly sessionId: string | undefined;
  start(): Promise<void>;
  send(message: unknown, options?: { readonly relatedRequestId?: Id }): Promise<void>;
  close(): Promise<void>;
}

/** Makes guests, or has one. */
export interface GuestHost {
  /** In a sentence: the `mcp` hook, the server acme. */
  readonly name: string;
  /** What its servers speak, best first. */
  readonly eras: readonly GuestEra[];
  /** It has one server, which can be connected once: everybody shares it. */
  readonly isOne: boolean;
  /** Callers without a session have servers of their own too, and strangers one for each call. */
  readonly isPerCaller: boolean;
  /** Puts a server at the other end of the pair. `failed` rejects when that fails, then or later. */
  connect(era: GuestEra, pair: GuestPair): Promise<{ readonly failed: Promise<never> }>;
}

export interface GuestOptions {
  readonly host: GuestHost;
  readonly log: Logger;
  /** See `GuestView`. Default: false. */
  readonly isAlone?: boolean;
}
