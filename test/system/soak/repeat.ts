import { type Fields, takesTasks, WireClient, type WireOptions } from "../../helpers/wire.ts";
import type { Place } from "./places.ts";

/** One look at a heap, after all garbage was collected. */
export interface HeapLook {
  /** How many requests of the kind were answered before. */
  readonly requests: number;
  readonly heapBytes: number;
}

/** What a request of one kind leaves in the heap of a server. */
export interface Kept {
  readonly server: "daemon" | "HTTP server";
  readonly kind: string;
  readonly bytes: number;
  readonly looks: readonly HeapLook[];
}

/** More than this for each request is a leak: a cache that has filled by then takes nothing more. */
export const maxKeptBytes = 130;

const looksEach = 12;
const inFlight = 16;

interface Kind {
  readonly name: string;
  readonly wire: WireOptions;
  /** Requests between two looks: the caches that a kind fills are full after the first half of the looks. */
  readonly between: number;
  readonly send: (client: WireClient, at: number) => Promise<void>;
}

const modern = { revision: "2026-07-28", capabilities: {}, name: "soak" } as const;

async function callQuick(client: WireClient, at: number): Promise<void> {
  await client.request("tools/call", { name: "soak_quick", arguments: { at } });
}

/** Asks for a task, and for its result until it is there. */
async function runTask(client: WireClient, at: number): Promise<void> {
  const meta = { "meanwhile/task": {} };
  const { result } = await client.request("tools/call", { name: "soak_quick", arguments: { at }, _meta: meta });
  const { taskId } = result as Fields;
  for (let status = "working"; status === "working"; )
    status = ((await client.request("tasks/get", { taskId })).result as Fields).status as string;
}

const calls: Kind = { name: "call", wire: modern, between: 1_000, send: callQuick };
const sessionCalls: Kind = {
  name: "call of a session",
  wire: { ...modern, revision: "2025-11-25" },
  // What is kept for replay has its bound of bytes after some 8,000.
  between: 2_000,
  send: callQuick,
};
const tasks: Kind = {
  name: "task",
  wire: { ...modern, capabilities: takesTasks },
  // The last 1,000 ended tasks are kept.
  between: 500,
  send: runTask,
};

/** Repeats each kind of request at servers that have nothing else to do, and says what of it stays. */
export async function repeatRequests(place: Place): Promise<readonly Kept[]> {
  const found: Kept[] = [];
  for (const kind of [calls, tasks]) found.push({ server: "daemon", ...(await repeat(place, "stdio", kind)) });
  for (const kind of [calls, sessionCalls, tasks])
    found.push({ server: "HTTP server", ...(await repeat(place, "http", kind)) });
  return found;
}

async function repeat(place: Place, door: "stdio" | "http", kind: Kind): Promise<Omit<Kept, "server">> {
  const { link } = place.connect(door);
  const client = await new WireClient(link, kind.wire).begin();
  const looks: HeapLook[] = [];
  for (let requests = 0; looks.length < looksEach; requests += kind.between) {
    looks.push({ requests, heapBytes: await readHeap(client) });
    await sendAll(client, kind, requests);
  }
  await client.close();
  return { kind: kind.name, bytes: bytesKept(looks), looks };
}

async function sendAll(client: WireClient, kind: Kind, from: number): Promise<void> {
  let next = from;
  const sendNext = async () => {
    while (next < from + kind.between) await kind.send(client, next++);
  };
  await Promise.all(Array.from({ length: inFlight }, sendNext));
}

async function readHeap(client: WireClient): Promise<number> {
  const { result } = await client.request("tools/call", { name: "soak_memory", arguments: {} });
  const { heapUsed, external } = (result as Fields).structuredContent.data as { heapUsed: number; external: number };
  return heapUsed + external;
}

/** A heap that becomes smaller by more than this from one look to the next has emptied a cache. */
const emptiedBytes = 500_000;

/**
 * The bytes that stay of each request: the median of all slopes between two looks of the second half. A cache grows in
 * the first half and is full in the second; a leak grows in both. What a cache gave back is added again.
 */
export function bytesKept(looks: readonly HeapLook[]): number {
  const late = looks.slice(Math.floor(looks.length / 2));
  let emptied = 0;
  const points = late.map(({ requests, heapBytes }, at) => {
    const less = (late[at - 1]?.heapBytes ?? heapBytes) - heapBytes;
    if (less > emptiedBytes) emptied += less;
    return { requests, bytes: heapBytes + emptied };
  });
  const slopes = points.flatMap((a, at) =>
    points.slice(at + 1).map((b) => (b.bytes - a.bytes) / (b.requests - a.requests)),
  );
  return slopes.toSorted((a, b) => a - b)[Math.floor(slopes.length / 2)] ?? 0;
}
