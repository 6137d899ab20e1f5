import type { Job, Queue, Worker } from "bullmq";
import { RuntimeError } from "../errors.ts";
import { parseAddress } from "../store/postgres/address.ts";
import { connectionTerms } from "../store/postgres/connection-terms.ts";

/** What is asked of BullMQ: tickets are added at one end and taken at the other. */
export interface BullQueue {
  /** One ticket for each id that is not there already, after so many milliseconds. */
  add(ids: readonly string[], delayMs: number): Promise<void>;
  /** Has `take` called for every ticket that this process is given, until it is closed. */
  work(take: () => Promise<void>, onTrouble: (error: Error) => void): BullWorker;
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
/** What a node opens at most where the queue is on PostgreSQL. */
export const queueConnections = 2 * poolSize + 1;
/** Each is one look at the store; those that are left in the queue are there for others. */
const takenAtOnce = 4;
const lockMs = 30_000;
const stalledCheckMs = 15_000;
/** Who takes a ticket and dies has done it no harm. */
const anyNumber = 1_000_000;
/** What BullMQ keeps of what has happened, for others who watch it. */
const keptEvents = 100;

export interface BullTerms {
  /** postgres:// or redis:// */
  readonly url: string;
  readonly name: string;
  readonly onTrouble: (error: Error) => void;
}

type Bullmq = typeof import("bullmq");

/** Both ends of a queue. Nothing is reached yet. */
export function openBullQueue(bullmq: Bullmq, { url, name, onTrouble }: BullTerms): BullQueue {
  const { connection, classes } = isRedis(url)
    ? { connection: { url, maxRetriesPerRequest: null }, classes: bullmq }
    : { connection: postgresOptions(url), classes: bullmq.withBackend(bullmq.createPostgresBackend) };
  const { Queue: QueueClass, Worker: WorkerClass } = classes as unknown as Pick<Bullmq, "Queue" | "Worker">;
  const queue: Queue = new QueueClass(name, {
    connection,
    streams: { events: { maxLen: keptEvents } },
    defaultJobOptions: { removeOnComplete: true, removeOnFail: true, attempts: 1 },
  });
  queue.on("error", onTrouble);
  const options = {
    connection,
    concurrency: takenAtOnce,
    lockDuration: lockMs,
    stalledInterval: stalledCheckMs,
    maxStalledCount: anyNumber,
  };
  return {
    async add(ids, delayMs) {
      await queue.addBulk(ids.map((jobId) => ({ name: "run", data: {}, opts: { jobId, delay: delayMs } })));
    },
    work: (take, onWorkersTrouble) => {
      const worker: Worker = new WorkerClass(name, (_job: Job) => take(), options);
      worker.on("error", onWorkersTrouble);
      return {
        pause: () => worker.pause(true),
        resume: () => void worker.resume(),
        close: () => worker.close(true),
      };
    },
    close: () => queue.close(),
  };
}

const isRedis = (url: string) => /^rediss?:\/\//i.test(url);

/** Beside the tables of the store, in a schema of their own. */
function postgresOptions(url: string) {
  const { access, schema } = parseAddress(url);
  // How numbers come, and how long an answer may take, is BullMQ's own affair.
  const { types: _types, query_timeout: _limit, ...terms } = connectionTerms(access);
  return { ...terms, schema: `${schema}_queue`, migrate: true, max: poolSize };
}

/** BullMQ, and what it reaches this address with. Throws, in one sentence, where one of them is not installed. */
export async function loadBullmq(url: string): Promise<Bullmq> {
  const driver = isRedis(url) ? "ioredis" : "pg";
  try {
    await import(driver);
    return await import("bullmq");
  } catch (error) {
    throw new RuntimeError(
      "QUEUE_UNAVAILABLE",
      `Tasks are to be handed out by BullMQ, which is not installed, or the ${driver} that it needs here is not: npm install bullmq ${driver}`,
      { cause: error },
    );
  }
}
