import type { Job, Queue, Worker } from "bullmq";
import type pg from "pg";
import { type Clock, within } from "../clock.ts";
import { RuntimeError } from "../errors.ts";
import { parseAddress } from "../store/postgres/address.ts";
import type { connectionTerms } from "../store/postgres/connection-terms.ts";
import { importNow } from "../system/own-module.ts";

/** What is asked of BullMQ: tickets are added at one end and taken at the other. */
export interface BullQueue {
  /** One ticket for each id that is not there already, after so many milliseconds. */
  add(ids: readonly string[], delayMs: number): Promise<void>;
  /** Has `take` called for every ticket that this process is given, until it is closed. */
  work(take: () => Promise<void>, onTrouble: (error: Error) => void): Promise<BullWorker>;
  close(): Promise<void>;
}

export interface BullWorker {
  /** Takes no more tickets; what was taken goes on. */
  pause(): Promise<void>;
  resume(): void;
  close(): Promise<void>;
}

/** Connections of each end to PostgreSQL; BullMQ has one more for each worker, to listen. */
const poolSize = 2;
/** What a node opens at most where the queue is on PostgreSQL: who only serves takes no tickets. */
export const queueConnections = { working: 2 * poolSize + 1, serving: poolSize };
/** Each is one look at the store; those that are left in the queue are there for others. */
const takenAtOnce = 4;
const lockMs = 30_000;
const stalledCheckMs = 15_000;
/** Who takes a ticket and dies has done it no harm. */
const anyNumber = 1_000_000;
/** After trouble a worker asks again this soon; BullMQ's own is a quarter of a minute. */
const retryMs = 1_000;
/** Who cannot be reached within this time is tried again later: BullMQ itself remembers for good that it could not. */
const reachMs = 10_000;
/** What could not be added in so many connections is given up: whoever waits for it would wait for ever. */
const triesAtRedis = 2;
/** What BullMQ keeps of what has happened, for others who watch it. */
const keptEvents = 100;

export interface BullTerms {
  /** postgres:// or redis:// */
  readonly url: string;
  readonly name: string;
  readonly clock: Clock;
  readonly onTrouble: (error: Error) => void;
}

/** BullMQ, and what reaches PostgreSQL where that is asked for. */
export interface Bullmq {
  readonly bullmq: typeof import("bullmq");
  readonly postgres: PostgresDriver | undefined;
}

interface PostgresDriver {
  readonly pg: typeof pg;
  readonly connectionTerms: typeof connectionTerms;
}

/** Both ends of a queue that could be reached; rejects where it could not. */
export async function openBullQueue({ bullmq, postgres }: Bullmq, terms: BullTerms): Promise<BullQueue> {
  const { url, name, clock, onTrouble } = terms;
  const { connection, adding, classes } =
    postgres === undefined
      ? {
          connection: { url, maxRetriesPerRequest: null },
          adding: { url, maxRetriesPerRequest: triesAtRedis },
          classes: bullmq,
        }
      : {
          connection: postgresOptions(postgres, url),
          adding: postgresOptions(postgres, url),
          classes: bullmq.withBackend(bullmq.createPostgresBackend),
        };
  const { Queue: QueueClass, Worker: WorkerClass } = classes as unknown as Pick<typeof bullmq, "Queue" | "Worker">;
  const queue: Queue = new QueueClass(name, {
    connection: adding,
    streams: { events: { maxLen: keptEvents } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
  });
  queue.on("error", onTrouble);
  await reach(queue, clock);
  const options = {
    connection,
    autorun: false,
    runRetryDelay: retryMs,
    concurrency: takenAtOnce,
    lockDuration: lockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: anyNumber,
  };
  return {
    async add(ids, delayMs) {
      await queue.addBulk(ids.map((jobId) => ({ name: "run", data: {}, opts: { jobId, delay: delayMs } })));
    },
    async work(take, onWorkersTrouble) {
      const worker: Worker = new WorkerClass(name, (_job: Job) => take(), options);
      worker.on("error", onWorkersTrouble);
      await reach(worker, clock);
      worker.run().catch(onWorkersTrouble);
      return {
        pause: () => worker.pause(true),
        resume: () => void worker.resume(),
        close: () => worker.close(true),
      };
    },
    close: () => queue.close(),
  };
}

/** Closes what cannot be reached. */
async function reach(end: Pick<Queue, "waitUntilReady" | "close">, clock: Clock): Promise<void> {
  try {
    await within(clock, reachMs, end.waitUntilReady(), () => {
      throw new Error(`it did not answer within ${reachMs / 1000} s`);
    });
  } catch (error) {
    void end.close().catch(() => undefined);
    throw error;
  }
}

const isRedis = (url: string) => /^rediss?:\/\//i.test(url);

/** Beside the tables of the store, in a schema of their own. */
function postgresOptions(driver: PostgresDriver, url: string) {
  const { access, schema } = parseAddress(url);
  // How numbers come, and how long an answer may take, is BullMQ's own affair.
  const { types: _types, query_timeout: _limit, ...terms } = driver.connectionTerms(access);
  return { ...terms, Client: sturdy(driver.pg), schema: `${schema}_queue`, migrate: true, max: poolSize };
}

/**
 * A connection that breaks says so to whoever uses it, and then to everybody; BullMQ does not always listen, and what
 * nobody listens to would end this process.
 */
function sturdy(driver: typeof pg): typeof pg.Client {
  function SturdyClient(config?: pg.ClientConfig) {
    return new driver.Client(config).on("error", () => undefined);
  }
  return SturdyClient as unknown as typeof pg.Client;
}

/** BullMQ, and what it reaches this address with. Throws, in one sentence, where one of them is not installed. */
export async function loadBullmq(url: string): Promise<Bullmq> {
  const driver = isRedis(url) ? "ioredis" : "pg";
  try {
    if (driver === "ioredis") await importNow(driver);
    const bullmq = (await importNow("bullmq")) as typeof import("bullmq");
    return { bullmq, postgres: driver === "pg" ? await loadPostgres() : undefined };
  } catch (error) {
    throw new RuntimeError(
      "QUEUE_UNAVAILABLE",
      `Tasks are to be handed out by BullMQ, which is not installed, or the ${driver} that it needs here is not: npm install bullmq ${driver}`,
      { cause: error },
    );
  }
}

async function loadPostgres(): Promise<PostgresDriver> {
  const [{ loadDriver }, { connectionTerms: terms }] = await Promise.all([
    import("../store/postgres/driver.ts"),
    import("../store/postgres/connection-terms.ts"),
  ]);
  return { pg: await loadDriver(), connectionTerms: terms };
}
