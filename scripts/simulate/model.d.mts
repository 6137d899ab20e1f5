/** Milliseconds. */
export interface Costs {
  readonly createMs: number;
  readonly claimMs: number;
  readonly settleMs: number;
  readonly commitMs: number;
  readonly noticeMs: number;
  readonly lockMs: number;
  readonly hearMs: number;
  readonly nodeMs: number;
  readonly nodeHearMs: number;
  readonly lookMs: number;
  readonly lookOfWorkerMs: number;
}

export interface Terms {
  readonly cores: number;
  readonly pool: number;
  readonly places: number;
}

/** How much of each was in use, from 0 to 1. */
export type Busy = Readonly<Record<"processor" | "disk" | "lock" | "pool" | "places" | "node", number>>;

export interface Simulated {
  readonly perSecond: number;
  readonly held: number;
  readonly heldMs: number;
  readonly p50: number | undefined;
  readonly p99: number | undefined;
  readonly busy: Busy;
  readonly spent: Readonly<Record<"writes" | "looks" | "notices", number>>;
}

export declare function simulate(load: {
  readonly nodes: number;
  readonly tasksPerSecond: number;
  readonly runMs: number;
  readonly costs: Costs;
  readonly terms: Terms;
  readonly seconds: number;
  readonly seed: number;
}): Simulated;
