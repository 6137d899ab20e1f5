/** How often the tests with many rounds repeat. `vitest.config.ts` passes them to the tests. */
export interface Rounds {
  /** How many times more random inputs a test of a property takes than it has in CI. */
  readonly propertyFactor: number;
  /** Near-messages that the fuzz test sends, and the seed that they are made from. */
  readonly fuzzFrames: number;
  readonly fuzzSeed: number;
  /** Progress reports of one call that must not grow the process. */
  readonly progressReports: number;
  /** Connections that do nothing, opened to one server. */
  readonly idleConnections: number;
}

/** The rounds of `npm test`, also in CI. */
export const shortRounds: Rounds = {
  propertyFactor: 1,
  fuzzFrames: 6_000,
  fuzzSeed: 20_261_116,
  progressReports: 25_000,
  idleConnections: 300,
};

/** The rounds of `npm run check:long`. */
export const longRounds: Rounds = {
  propertyFactor: 5,
  fuzzFrames: 20_000,
  fuzzSeed: 20_261_116,
  progressReports: 1_000_000,
  idleConnections: 10_000,
};
