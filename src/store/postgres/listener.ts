import type pg from "pg";
import type { Clock } from "../../clock.ts";
import type { ServerAccess } from "./address.ts";
import { connectionTerms } from "./connection-terms.ts";
import { driver } from "./driver.ts";

const firstPauseMs = 50;
const longestPauseMs = 2_000;
/** A connection whose other end is gone looks like one on which nobody says anything. */
const checkEveryMs = 5_000;

interface ListenTerms {
  readonly access: ServerAccess;
  readonly channel: string;
  readonly clock: Clock;
  readonly onNotice: (payload: string) => void;
  /** It hears from now on; what was said before, it has not heard. */
  readonly onUp: () => void;
}

/** The connection that hears what other nodes say. Makes itself anew whenever it breaks. */
export class Listener {
  readonly #terms: ListenTerms;
  #client: pg.Client | undefined;
  #connecting: Promise<void> | undefined;
  #cancelRetry: (() => void) | undefined;
  #pauseMs = firstPauseMs;
  #checkedAt = 0;
  #isUp = false;
  #isStopped = false;

  constructor(terms: ListenTerms) {
    this.#terms = terms;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /** Harmless when it has begun. Resolves after the first try, whatever came of it. */
  async start(): Promise<void> {
    if (this.#connecting === undefined && !this.#isStopped) this.#connect();
    await this.#connecting;
  }

  /** Asks for a sign of life now and then; where none comes, the connection is made anew. */
  check(): void {
    const client = this.#client;
    const at = this.#terms.clock.monotonic();
    if (client === undefined || !this.#isUp || at - this.#checkedAt < checkEveryMs) return;
    this.#checkedAt = at;
    client.query("select 1").catch(() => this.#lost(client));
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelRetry?.();
    await this.#connecting;
    await this.#client?.end().catch(() => undefined);
  }

  #connect(): void {
    this.#cancelRetry = undefined;
    const { Client } = driver();
    const client = new Client(connectionTerms(this.#terms.access));
    this.#client = client;
    client.on("notification", ({ payload }) => this.#terms.onNotice(payload ?? ""));
    // Both may come, in any order; the first one counts.
    client.on("error", () => this.#lost(client));
    client.on("end", () => this.#lost(client));
    this.#connecting = client
      .connect()
      .then(() => client.query(`listen "${this.#terms.channel}"`))
      .then(
        () => this.#up(client),
        () => this.#lost(client),
      );
  }

  #up(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#isUp = true;
    this.#checkedAt = this.#terms.clock.monotonic();
    this.#pauseMs = firstPauseMs;
    if (!this.#isStopped) this.#terms.onUp();
  }

  #lost(client: pg.Client): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#isUp = false;
    void client.end().catch(() => undefined);
    if (this.#isStopped) return;
    this.#cancelRetry = this.#terms.clock.after(this.#pauseMs, () => this.#connect());
    this.#pauseMs = Math.min(this.#pauseMs * 2, longestPauseMs);
  }
}
