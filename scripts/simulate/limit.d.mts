import type { Busy, Costs, Simulated, Terms } from "./model.mjs";

export interface Limit {
  readonly idle: Simulated;
  readonly limit: Simulated;
  readonly tasksPerSecond: number;
  readonly first: keyof Busy;
}

export declare function findLimit(fleet: {
  readonly nodes: number;
  readonly runMs: number;
  readonly costs: Costs;
  readonly terms: Terms;
  readonly seed: number;
}): Limit;
