import path from "node:path";
import { Worker } from "node:worker_threads";
import type { ThreadWork } from "../fixtures/daemon/thread-client.ts";
import { cleanUp } from "./home.ts";
import { type Fields, type Message, modernMeta, type WireOptions } from "./wire.ts";

/** Where a client in a thread connects to: the socket of a daemon, or a URL with its headers. */
export type ThreadTarget = ThreadWork["target"];

/** A client in a thread of its own: it reads and writes while the main thread is blocked. */
export interface ThreadClient {
  /** Resolves with the answers, in the order of the calls. */
  readonly answers: Promise<readonly Message[]>;
  /**
   * Blocks the main thread until the client has received this many answers. Returns false after `limitMs`, a limit that
   * only guards against hanging.
   */
  blockUntilAnswered(count: number, limitMs?: number): boolean;
}

const program = path.resolve(import.meta.dirname, "../fixtures/daemon/thread-client.ts");

/** Connects, sends these calls of one tool at once and waits for their answers. */
export function callInThread(
  target: ThreadTarget,
  { revision, capabilities = {} }: WireOptions,
  calls: readonly Fields[],
): ThreadClient {
  const isModern = revision === "2026-07-28";
  const clientInfo = { name: "thread", version: "1" };
  const initialize = { protocolVersion: revision, capabilities, clientInfo };
  const opening = [{ id: 0, method: "initialize", params: initialize }, { method: "notifications/initialized" }];
  const toLine = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message });
  const received = new Int32Array(new SharedArrayBuffer(4));
  const toCall = (params: Fields, at: number) =>
    toLine({
      id: at + 1,
      method: "tools/call",
      params: isModern ? { ...params, _meta: modernMeta(capabilities) } : params,
    });
  const modernHeaders = { "mcp-method": "tools/call", "mcp-name": String(calls[0]?.name) };
  const workerData: ThreadWork = {
    target,
    received,
    opening: isModern ? [] : opening.map(toLine),
    calls: calls.map(toCall),
    callHeaders: { "mcp-protocol-version": revision, ...(isModern && modernHeaders) },
  };
  const worker = new Worker(program, { workerData });
  const answers = new Promise<readonly Message[]>((resolve, reject) => {
    worker.on("message", resolve);
    worker.on("error", reject);
  });
  cleanUp(() => worker.terminate());
  return {
    answers,
    blockUntilAnswered(count, limitMs = 5_000) {
      const end = performance.now() + limitMs;
      for (let seen = Atomics.load(received, 0); seen < count; seen = Atomics.load(received, 0))
        if (Atomics.wait(received, 0, seen, end - performance.now()) === "timed-out") return false;
      return true;
    },
  };
}
