import { endlessPlaces, taskPlaces } from "./limits.ts";
import { countByCaller, type ShareLimits, Turns, whoIsFull } from "./shares.ts";
import type { ClaimShares } from "./store.ts";
import type { Task } from "./task.ts";

/** Whose task takes a place, and of which kind. */
export type Occupant = Pick<Task, "caller" | "isEndless">;

/** How many tasks a worker runs at a time, whose they are, and whose turn is next. */
export class WorkerPlaces {
  readonly #ordinary: ShareLimits;
  readonly #endless: ShareLimits;
  readonly #turns = new Turns();
  /** Tasks that are being made under this worker's claim. */
  readonly #kept = new Set<Occupant>();
  readonly #busy: () => readonly Occupant[];

  /** `busy` are the tasks that take a place now. */
  constructor(concurrency: number | undefined, busy: () => readonly Occupant[]) {
    this.#ordinary = taskPlaces(concurrency);
    this.#endless = endlessPlaces(concurrency);
    this.#busy = busy;
  }

  /** True while one more of anybody's would not be more than there are places. */
  get hasRoom(): boolean {
    return this.#taken() < this.#ordinary.total;
  }

  /** True while more than half of the places are free: who takes one of these keeps nobody in the queue waiting. */
  get isRoomy(): boolean {
    return this.#taken() * 2 < this.#ordinary.total;
  }

  /** Whose turn it is; undefined when nobody may have one more. */
  shares(): ClaimShares | undefined {
    const { running, full, fullOfEndless } = this.#full();
    return full === "everybody" && fullOfEndless === "everybody"
      ? undefined
      : { full, fullOfEndless, turns: this.#turns.order(running) };
  }

  /** It was this caller's turn. */
  serve(caller: string): void {
    this.#turns.serve(caller);
  }

  /** Keeps a place for a task that is about to be made; undefined when there is none for it. */
  keep(occupant: Occupant): (() => void) | undefined {
    const { full, fullOfEndless } = this.#full();
    const list = occupant.isEndless ? fullOfEndless : full;
    if (list === "everybody" || list.includes(occupant.caller)) return undefined;
    this.#kept.add(occupant);
    return () => void this.#kept.delete(occupant);
  }

  #taken(): number {
    return [...this.#busy(), ...this.#kept].filter(({ isEndless }) => !isEndless).length;
  }

  #full() {
    const all = [...this.#busy(), ...this.#kept];
    const heldBy = (isEndless: boolean) =>
      countByCaller(all.filter((task) => task.isEndless === isEndless).map(({ caller }) => caller));
    const running = heldBy(false);
    return {
      running,
      full: whoIsFull(running, this.#ordinary),
      fullOfEndless: whoIsFull(heldBy(true), this.#endless),
    };
  }
}
