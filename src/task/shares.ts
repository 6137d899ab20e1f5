import { anonymousKey } from "../command/caller.ts";

/** How places are shared between callers. */
export interface ShareLimits {
  /** So many may be taken, by one caller alone if nobody else wants any. */
  readonly total: number;
  /** So many by one caller, where that is fewer. */
  readonly each?: number;
  /** So many of them by all together who cannot be told apart. */
  readonly anonymous: number;
  /**
   * Who holds fewer than this may take one also when all are taken, until there are half as many more, and who holds
   * none until there are twice as many: nobody is kept out by what others hold.
   */
  readonly guaranteed: number;
}

/** How many each caller holds. */
export type Held = ReadonlyMap<string, number>;

/** The callers who may take no more. */
export function whoIsFull(held: Held, limits: ShareLimits): readonly string[] | "everybody" {
  const taken = [...held.values()].reduce((sum, count) => sum + count, 0);
  if (taken >= 2 * limits.total) return "everybody";
  return [...held].filter(([caller, count]) => count >= mostOf(caller, taken, limits)).map(([caller]) => caller);
}

/** How many a caller may hold while so many are taken. */
function mostOf(
  caller: string,
  taken: number,
  { total, each = total, anonymous: strangers, guaranteed }: ShareLimits,
): number {
  const mostNow = taken < total ? each : taken < 1.5 * total ? guaranteed : taken < 2 * total ? 1 : 0;
  return Math.min(caller === anonymousKey ? strangers : each, mostNow);
}

/** How many of these each caller has. */
export function countByCaller(callers: Iterable<string>): Held {
  const held = new Map<string, number>();
  for (const caller of callers) held.set(caller, (held.get(caller) ?? 0) + 1);
  return held;
}

/** Places that are taken and given back. */
export class Shares {
  readonly #limits: ShareLimits;
  readonly #held = new Map<string, number>();
  #taken = 0;

  constructor(limits: ShareLimits) {
    this.#limits = limits;
  }

  mayTake(caller: string): boolean {
    return this.heldBy(caller) < mostOf(caller, this.#taken, this.#limits);
  }

  /** Takes a place, whether there is one or not; the returned function gives it back, once. */
  take(caller: string): () => void {
    this.#held.set(caller, this.heldBy(caller) + 1);
    this.#taken += 1;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#taken -= 1;
      const left = this.heldBy(caller) - 1;
      if (left > 0) this.#held.set(caller, left);
      else this.#held.delete(caller);
    };
  }

  heldBy(caller: string): number {
    return this.#held.get(caller) ?? 0;
  }
}

interface Waiting {
  /** Who came first has the lowest. */
  readonly number: number;
  readonly begin: (leave: () => void) => void;
}

/** Those who wait for a place: the next is for who holds fewest, and of those for who has waited longest. */
export class FairQueue {
  readonly #shares: Shares;
  /** By caller, so that it is looked at once each, however many of theirs wait. */
  readonly #waiting = new Map<string, Waiting[]>();
  #count = 0;

  constructor(limits: ShareLimits) {
    this.#shares = new Shares(limits);
  }

  /** Resolves, once there is a place, with what gives it back. */
  enter(caller: string): Promise<() => void> {
    return new Promise((begin) => {
      const own = this.#waiting.get(caller) ?? [];
      own.push({ number: ++this.#count, begin });
      this.#waiting.set(caller, own);
      this.#letIn();
    });
  }

  #letIn(): void {
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { caller, own } = next;
      const first = own.shift();
      if (own.length === 0) this.#waiting.delete(caller);
      const giveBack = this.#shares.take(caller);
      first?.begin(() => {
        giveBack();
        this.#letIn();
      });
    }
  }

  #next(): { readonly caller: string; readonly own: Waiting[] } | undefined {
    const ready = [...this.#waiting]
      .filter(([caller]) => this.#shares.mayTake(caller))
      .map(([caller, own]) => ({ caller, own }));
    const heldBy = ({ caller }: { caller: string }) => this.#shares.heldBy(caller);
    const numberOf = ({ own }: { own: Waiting[] }) => own[0]?.number ?? 0;
    return ready.sort((a, b) => heldBy(a) - heldBy(b) || numberOf(a) - numberOf(b))[0];
  }
}

/** Callers remembered at most; who is forgotten comes first again. */
const maxRemembered = 100;

/** Whose turn it is: who runs least, and of those who run the same, who was served longest ago. */
export class Turns {
  /** Served last comes last. */
  readonly #served = new Map<string, number>();
  #count = 0;

  serve(caller: string): void {
    this.#served.delete(caller);
    this.#served.set(caller, ++this.#count);
    const [longestAgo] = this.#served.keys();
    if (this.#served.size > maxRemembered && longestAgo !== undefined) this.#served.delete(longestAgo);
  }

  /** A number for each caller who is not simply first; the lowest is next. */
  order(running: Held): readonly (readonly [caller: string, turn: number])[] {
    const callers = new Set([...running.keys(), ...this.#served.keys()]);
    return [...callers].map((caller) => [
      caller,
      (running.get(caller) ?? 0) * 2 ** 40 + (this.#served.get(caller) ?? 0),
    ]);
  }
}
