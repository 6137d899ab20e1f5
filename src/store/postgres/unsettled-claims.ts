import type { Clock } from "../../clock.ts";
import type { Database } from "./database.ts";
import type { PostgresValues } from "./task-rows.ts";

/** What was sent may reach the server for as long as a system tries to deliver it: a quarter of an hour on Linux. */
const doubtMs = 20 * 60_000;
/** After the first look, which is at once, others follow this often for as long. */
const lookMs = 5_000;
/** A connection that breaks leaves as many as it had under way, so there are never nearly so many. */
const maxClaims = 10_000;

interface UnsettledClaim {
  readonly worker: string;
  readonly claimId: string;
  /** The task was made with it, and whoever wanted that was told that it was not. */
  readonly isMade: boolean;
  readonly until: number;
}

/** What came of a look: tasks that may be run now, and those that are gone. */
export interface SettledClaims {
  readonly released: readonly string[];
  readonly forgotten: readonly string[];
}

const nothing: SettledClaims = { released: [], forgotten: [] };

/**
 * Claims of which nobody here knows whether they were made, since their answers were lost. A worker renews the leases
 * of all that it has claimed, so what it does not know of would be held for ever: it is looked for, and given back. No
 * claim that was ever handed to its worker may be added.
 */
export class UnsettledClaims {
  readonly #database: Database;
  readonly #clock: Clock;
  #claims: UnsettledClaim[] = [];
  #lookFrom = 0;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** `isMade` where the task was to be made with its claim: nobody was told of it, so it is removed and not run. */
  add(worker: string, claimIds: readonly string[], isMade = false): void {
    if (claimIds.length === 0) return;
    const until = this.#clock.monotonic() + doubtMs;
    const added = claimIds.map((claimId) => ({ worker, claimId, isMade, until }));
    this.#claims = [...this.#claims, ...added].slice(-maxClaims);
    this.#lookFrom = Number.NEGATIVE_INFINITY;
  }

  /** Looks for them, when it is time to; whoever asks meanwhile does not wait. Rejects when the database is away. */
  async settle(): Promise<SettledClaims> {
    const at = this.#clock.monotonic();
    if (this.#claims.length === 0 || at < this.#lookFrom) return nothing;
    this.#lookFrom = at + lookMs;
    try {
      const claimIds = this.#ids((claim) => !claim.isMade);
      const madeIds = this.#ids((claim) => claim.isMade);
      const joinedIds = [...claimIds, ...madeIds].map((claimId) => `joined ${claimId}`);
      const forgotten = madeIds.length === 0 ? [] : await this.#end("forgetUnsettled", { madeIds });
      const released = await this.#end("releaseUnsettled", { claimIds, madeIds, joinedIds });
      this.#claims = this.#claims.filter(({ until }) => until > at);
      return { released, forgotten };
    } catch (error) {
      this.#lookFrom = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  #ids(isOne: (claim: UnsettledClaim) => boolean): string[] {
    return this.#claims.filter(isOne).map(({ claimId }) => claimId);
  }

  async #end(name: "forgetUnsettled" | "releaseUnsettled", values: PostgresValues): Promise<string[]> {
    const workers = [...new Set(this.#claims.map(({ worker }) => worker))];
    const rows = await this.#database.query<{ task_id: string }>(name, { workers, ...values });
    return rows.map((row) => row.task_id);
  }
}
