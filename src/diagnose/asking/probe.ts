import type { Clock } from "../../clock.ts";
import type { Evidence } from "../check.ts";
import type { DiagnosisTarget } from "../diagnosis-target.ts";
import type { HttpAnswer, HttpExchangeOptions } from "../wire/probe-http.ts";
import type { ProbeAnswer, ProbeSession, SessionOptions } from "../wire/probe-session.ts";
import type { Pipe } from "../wire/server-pipe.ts";
import type { Callable } from "./callables.ts";
import type { Facts } from "./facts.ts";

/** What a check works with. Everything it opens is closed after it. */
export interface Probe {
  readonly target: DiagnosisTarget;
  readonly facts: Facts;
  readonly clock: Clock;
  /** Aborted when the check's time is over. */
  readonly signal: AbortSignal;
  readonly isFull: boolean;
  /** How long one request may take. */
  readonly requestMs: number;
  /** Tools that the user named, then those that say they only read; only such that arguments are known for. */
  readonly callables: readonly Callable[];
  /** A folder of the user's that no server should hand files out of; undefined where none is known. */
  readonly privateFolder: string | undefined;
  /** Opens a conversation; rejects with `HandshakeFailed` when the server refuses it. */
  open(options?: SessionOptions): Promise<ProbeSession>;
  /** Opens a conversation and hands over what came for the handshake, whatever it was. */
  greet(options?: SessionOptions): Promise<{ readonly session: ProbeSession; readonly answer: ProbeAnswer }>;
  /** Over stdio: a fresh server that has heard nothing yet. */
  startPipe(): Promise<Pipe>;
  /**
   * Over HTTP: one exchange with the target's URL, with its headers unless told otherwise. `url` stays on the target's
   * origin.
   */
  http(
    options: Partial<HttpExchangeOptions> & { readonly url?: string; readonly isBare?: boolean },
  ): Promise<HttpAnswer>;
  /**
   * Does something once for all checks of a diagnosis that want the same; `make` gives plain facts and leaves nothing
   * open.
   */
  recall<T>(name: string, make: () => Promise<T>): Promise<T>;
  sent(value: unknown): Evidence;
  received(value: unknown): Evidence;
  printed(text: string): Evidence;
  measured(text: string): Evidence;
  /** A text of the server's, as it may stand in a sentence. */
  show(text: string, max?: number): string;
}
