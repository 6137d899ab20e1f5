import { BeyondLimit, type Limits } from "./limits.ts";
import { type Answer, type Document, ReaderProcess, TooMuchMemory } from "./reader-process.ts";

/**
 * Documents of others are read in processes of their own, bounded in memory and time, so that none can slow or end the
 * one that serves. There are two lanes with a process each: the wide one has all the memory that a document may take,
 * the narrow one less, so that both together stay within bounds; what turns out to need more there is read anew in the
 * wide one. A document that is too much costs its process, and the next one gets another. A lane without work lets its
 * process go.
 */
interface Lane {
  readonly isWide: boolean;
  process: Reader | undefined;
  isBusy: boolean;
  idle: NodeJS.Timeout | undefined;
}

/** Reads one document at a time; not usable any more once it has ended or holds too much memory. */
export type Reader = Pick<ReaderProcess, "memoryMb" | "isUsable" | "read" | "close">;

interface Waiting {
  readonly needsWide: boolean;
  readonly enter: (lane: Lane) => void;
}

const idleMs = 5_000;
const narrowShare = 0.5;
/** Less than this, and the program alone would be too much. */
const minMemoryMb = 112;

let openReader = (memoryMb: number): Reader => new ReaderProcess(memoryMb);

/** Replaces the reader process with another reader. For tests that may start no process. */
export function replaceReaderProcess(open: (memoryMb: number) => Reader): void {
  openReader = open;
}

const lanes: readonly Lane[] = [true, false].map((isWide) => ({
  isWide,
  process: undefined,
  isBusy: false,
  idle: undefined,
}));
const waiting: Waiting[] = [];

/**
 * Reads a document in a process of its own. What is wrong with it is an `Unreadable`; an abort ends the work at once.
 */
export async function readDocument<Head, Item = never>(
  document: Document,
  limits: Limits,
  signal: AbortSignal,
): Promise<Answer<Head, Item>> {
  for (let needsWide = false; ; needsWide = true) {
    const lane = await enter(needsWide, signal);
    try {
      return await processOf(lane, limits).read<Head, Item>(document, limits, signal);
    } catch (error) {
      if (!(error instanceof TooMuchMemory)) throw error;
      if (lane.isWide) throw new BeyondLimit(`reading it takes more than ${limits.memoryMb} MB of memory`, "memoryMb");
    } finally {
      leave(lane);
    }
  }
}

function enter(needsWide: boolean, signal: AbortSignal): Promise<Lane> {
  signal.throwIfAborted();
  const free = lanes.find((lane) => !lane.isBusy && (lane.isWide || !needsWide));
  if (free !== undefined) {
    free.isBusy = true;
    return Promise.resolve(free);
  }
  const { promise, resolve, reject } = Promise.withResolvers<Lane>();
  const onAbort = () => {
    waiting.splice(waiting.indexOf(entry), 1);
    reject(signal.reason);
  };
  const entry: Waiting = {
    needsWide,
    enter(lane) {
      signal.removeEventListener("abort", onAbort);
      resolve(lane);
    },
  };
  waiting.push(entry);
  signal.addEventListener("abort", onAbort, { once: true });
  return promise;
}

/** Hands the lane to whoever waits longest and may use it. */
function leave(lane: Lane): void {
  const at = waiting.findIndex(({ needsWide }) => lane.isWide || !needsWide);
  if (at !== -1) {
    waiting.splice(at, 1)[0]?.enter(lane);
    return;
  }
  lane.isBusy = false;
  lane.idle = setTimeout(() => dismiss(lane), idleMs).unref();
}

function processOf(lane: Lane, limits: Limits): Reader {
  clearTimeout(lane.idle);
  const memoryMb = Math.max(minMemoryMb, lane.isWide ? limits.memoryMb : Math.round(limits.memoryMb * narrowShare));
  if (lane.process?.isUsable !== true || lane.process.memoryMb !== memoryMb) {
    dismiss(lane);
    lane.process = openReader(memoryMb);
  }
  return lane.process;
}

function dismiss(lane: Lane): void {
  void lane.process?.close();
  lane.process = undefined;
}
