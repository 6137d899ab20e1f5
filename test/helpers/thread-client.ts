import { Worker } from "node:worker_threads";
import { cleanUp } from "./home.ts";
import { type Fields, type Message, modernMeta, type WireOptions } from "./wire.ts";

/** Where a client in a thread connects to: the socket of a daemon, or a URL with its headers. */
export type ThreadTarget =
  | { readonly socket: string }
  | { readonly url: string; readonly headers: Readonly<Record<string, string>> };

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

/** Connects, sends these calls of a tool at once and waits for their answers. */
export function callInThread(
  target: ThreadTarget,
  { revision, capabilities = {} }: WireOptions,
  calls: readonly Fields[],
): ThreadClient {
  const isModern = revision === "2026-07-28";
  const clientInfo = { name: "thread", version: "1" };
  const opening = isModern
    ? []
    : [
        { id: 0, method: "initialize", params: { protocolVersion: revision, capabilities, clientInfo } },
        { method: "notifications/initialized" },
      ];
  const asked = calls.map((params, at) => ({
    id: at + 1,
    method: "tools/call",
    params: isModern ? { ...params, _meta: modernMeta(capabilities) } : params,
  }));
  const toText = (message: object) => JSON.stringify({ jsonrpc: "2.0", ...message });
  const shared = new SharedArrayBuffer(4);
  const received = new Int32Array(shared);
  const routing = { "mcp-protocol-version": revision, ...(isModern && { "mcp-method": "tools/call" }) };
  const worker = new Worker(program, {
    eval: true,
    workerData: { target, shared, routing, opening: opening.map(toText), calls: asked.map(toText), asked },
  });
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

const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { target, shared, routing, opening, calls, asked } = workerData;
const received = new Int32Array(shared);
const answers = new Map();
function take(message) {
  if (typeof message.id !== "number" || message.method !== undefined || message.id === 0) return;
  answers.set(message.id, message);
  Atomics.add(received, 0, 1);
  Atomics.notify(received, 0);
  if (answers.size === calls.length) parentPort.postMessage(asked.map(({ id }) => answers.get(id)));
}
function overSocket() {
  const socket = require("node:net").connect(target.socket);
  let rest = "";
  let isOpen = opening.length === 0;
  const send = (texts) => socket.write(texts.map((text) => text + "\\n").join(""));
  socket.on("connect", () => send(isOpen ? calls : opening.slice(0, 1)));
  socket.setEncoding("utf8").on("data", (text) => {
    const lines = (rest + text).split("\\n");
    rest = lines.pop();
    for (const line of lines) {
      take(JSON.parse(line));
      if (isOpen) continue;
      isOpen = true;
      send([...opening.slice(1), ...calls]);
    }
  });
}
async function overHttp() {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...target.headers };
  const post = async (body, more) => {
    const response = await fetch(target.url, { method: "POST", headers: { ...headers, ...more }, body });
    const text = await response.text();
    const data = /^data: (\\{.*)$/m.exec(text)?.[1] ?? text;
    return { session: response.headers.get("mcp-session-id"), message: data === "" ? {} : JSON.parse(data) };
  };
  const more = { ...routing };
  for (const text of opening) {
    const { session } = await post(text, more["mcp-session-id"] === undefined ? {} : more);
    if (session !== null) more["mcp-session-id"] = session;
  }
  await Promise.all(
    calls.map(async (text, at) => {
      const named = routing["mcp-method"] === undefined ? {} : { "mcp-name": asked[at].params.name };
      take((await post(text, { ...more, ...named })).message);
    }),
  );
}
if (target.socket === undefined) void overHttp();
else overSocket();
`;
