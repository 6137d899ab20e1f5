/**
 * How often the tests with many rounds repeat. The configuration of Vitest passes them to the tests, which read them
 * with `test/helpers/rounds.ts`.
 */
export interface Rounds {
  /** How many more of many similar cases a test runs than the few that it always runs. */
  readonly furtherCases: number;
  /** How many times more random inputs a test of a property takes than it has in CI. */
  readonly propertyFactor: number;
  /** Near-messages that the fuzz test sends, and the seed that they are made from. */
  readonly fuzzFrames: number;
  readonly fuzzSeed: number;
  /** Progress reports of one call that must not grow the process. */
  readonly progressReports: number;
  /** Connections that do nothing, opened to one server. */
  readonly idleConnections: number;

  /** Random kills on each store: the time, and the number of kills that the run goes on for. */
  readonly chaosSeconds: number;
  readonly chaosKills: number;

  /** Workers that are stopped past their lease, one after the other. */
  readonly stalledWorkers: number;
  /** Tasks whose result and cancel arrive at the same moment. */
  readonly cancelRaces: number;
  /** Tasks of another caller that every method is tried on. */
  readonly foreignTasks: number;
  /** Clients of a daemon that is killed, and how many times it is. */
  readonly daemonClients: number;
  readonly daemonDeaths: number;
  /** Sessions that a daemon without free file descriptors serves. */
  readonly frontsWithoutDescriptors: number;
  /** Hosts that connect to `wrap` and leave. */
  readonly wrappingHosts: number;
  /** Results of 9.5 MiB on one connection, and the most memory that all processes may take. */
  readonly largeResults: number;
  readonly largeResultsPeakMb: number;

  /** How long a tool of an SDK server works, and one of a wrapped server. */
  readonly slowToolSeconds: number;
  readonly wrappedToolSeconds: number;
  /** After how long the clients of both give up. Without it, nothing is set: the SDK's client gives up after 60 s. */
  readonly clientLimitSeconds?: number;

  /** Pages whose commands are not run: a diagnosis starts a server again and again. */
  readonly pagesNotRun: readonly string[];
  /** Commands of other pages that are not run, and examples: other tests run what they show. */
  readonly commandsNotRun: readonly string[];
  readonly examplesNotRun: readonly string[];

  /** The soak test: its length, its clients in each of two homes, and the least number of answers. */
  readonly soakMinutes: number;
  readonly soakClients: number;
  readonly soakPromises: number;

  /** Migrations that are killed before their commit, and the size of the database. */
  readonly migrationCrashes: number;
  readonly migratedMebibytes: number;
  /** Expired tasks of a sweep that is killed, and of one that must keep its log small. */
  readonly sweptTasks: number;
  readonly longSweepTasks: number;
  /** Copies of a database in use that must hold every acknowledged task, and of one whose log is torn. */
  readonly snapshots: number;
  readonly tornSnapshots: number;
  /** New files that six processes open at the same moment. */
  readonly filesOpenedAtOnce: number;
  /** Random histories that all stores are compared in. */
  readonly modelRuns: number;
  /** Files in each of three folders that three processes sync at once. */
  readonly syncedFiles: number;
}

/** The rounds of `npm test`, also in CI. */
export const shortRounds: Rounds = {
  furtherCases: 0,
  propertyFactor: 1,
  fuzzFrames: 2_000,
  fuzzSeed: 20_261_116,
  progressReports: 25_000,
  idleConnections: 300,

  chaosSeconds: 10,
  chaosKills: 10,

  stalledWorkers: 4,
  cancelRaces: 150,
  foreignTasks: 100,
  daemonClients: 5,
  daemonDeaths: 2,
  frontsWithoutDescriptors: 5,
  wrappingHosts: 16,
  largeResults: 16,
  largeResultsPeakMb: 800,

  slowToolSeconds: 12,
  wrappedToolSeconds: 10,
  clientLimitSeconds: 8,

  // scenarios/diagnose.test.ts runs similar commands.
  pagesNotRun: ["docs/diagnose.md"],
  // express-crash.test.ts and wrap-slow-tool.test.ts run servers like these.
  commandsNotRun: ["node examples/embed-express/check.ts", "node examples/wrap/check.ts"],
  // docs.test.ts runs those that the docs show, the conformance tests wrap servers of SDK v2, and
  // embed/create-server.test.ts mounts the handler in other frameworks.
  examplesNotRun: ["embed-sdk-v1", "embed-sdk-v2", "embed-express", "embed-fastify", "embed-hono", "wrap"],

  soakMinutes: 0.6,
  soakClients: 1,
  soakPromises: 4,

  migrationCrashes: 1,
  migratedMebibytes: 96,
  sweptTasks: 1_500,
  longSweepTasks: 3_000,
  snapshots: 8,
  tornSnapshots: 6,
  filesOpenedAtOnce: 30,
  modelRuns: 8,
  syncedFiles: 250,
};

/** The rounds of `npm run check:long`. */
export const longRounds: Rounds = {
  furtherCases: 100,
  propertyFactor: 5,
  fuzzFrames: 20_000,
  fuzzSeed: 20_261_116,
  progressReports: 1_000_000,
  idleConnections: 10_000,

  chaosSeconds: 60,
  chaosKills: 45,

  stalledWorkers: 10,
  cancelRaces: 1_000,
  foreignTasks: 500,
  daemonClients: 20,
  daemonDeaths: 3,
  frontsWithoutDescriptors: 10,
  wrappingHosts: 24,
  largeResults: 40,
  largeResultsPeakMb: 1_000,

  slowToolSeconds: 90,
  wrappedToolSeconds: 75,

  pagesNotRun: [],
  commandsNotRun: [],
  examplesNotRun: [],

  soakMinutes: 1,
  soakClients: 2,
  soakPromises: 10,

  migrationCrashes: 5,
  migratedMebibytes: 400,
  sweptTasks: 6_000,
  longSweepTasks: 20_000,
  snapshots: 40,
  tornSnapshots: 20,
  filesOpenedAtOnce: 300,
  modelRuns: 80,
  syncedFiles: 600,
};
