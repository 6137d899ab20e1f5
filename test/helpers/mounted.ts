import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { createHttpMount, type HttpMount, type HttpMountOptions } from "../../src/transport/http/mount.ts";
import { FakeClock } from "./fake-clock.ts";
import { cleanUp } from "./home.ts";
import { moving, openInMemory, turns } from "./in-memory.ts";
import { type Fields, modernMeta, overHttp, WireClient, type WireOptions } from "./wire.ts";

/** MCP mounted inside an app of this process, on a clock that we move. */
export interface Mounted {
  readonly mount: HttpMount;
  readonly clock: FakeClock;
  readonly logged: { readonly text: string; readonly facts: Fields }[];
  /** Runs of `hold`, as they began. */
  readonly held: Held[];
}

export interface Held {
  readonly signal: AbortSignal;
  readonly report: (done: number) => void;
  readonly release: () => void;
}

export async function openMounted(options: Partial<HttpMountOptions> = {}): Promise<Mounted> {
  const clock = new FakeClock();
  const held: Held[] = [];
  const server = await openInMemory(commandsFor(held), clock);
  const logged: Mounted["logged"] = [];
  const keep = (text: string, facts: object = {}) => void logged.push({ text, facts });
  const log = { debug: keep, info: keep, warn: keep, error: keep };
  const mount = createHttpMount({
    serving: server.serving,
    callers: { localUser: server.localUser, project: "mounted" },
    clock,
    log,
    ...options,
  });
  cleanUp(async () => {
    await mount.close();
    for (const { release } of held) release();
    await moving(clock, server.close(), 1_000);
  });
  return { mount, clock, logged, held };
}

function commandsFor(held: Held[]) {
  const numbers = z.object({ a: z.number(), b: z.number() });
  const hold = (_input: object, task: { signal: AbortSignal; progress(report: object): void }) =>
    new Promise<{ isHeld: boolean }>((resolve, reject) => {
      task.signal.addEventListener("abort", () => reject(task.signal.reason as Error));
      const report = (done: number) => task.progress({ done, total: 10 });
      held.push({ signal: task.signal, report, release: () => resolve({ isHeld: true }) });
    });
  return {
    add: defineCommand({ summary: "Add", effects: "read", input: numbers, run: ({ a, b }) => ({ sum: a + b }) }),
    hold: defineCommand({ summary: "Hold", effects: "read", run: hold }),
    later: defineCommand({ summary: "Hold as a task", long: true, run: hold }),
    much: defineCommand({
      summary: "Much",
      effects: "read",
      input: z.object({ bytes: z.number() }),
      run: ({ bytes }) => ({ text: "x".repeat(bytes) }),
    }),
  };
}

/** How an app reaches a mount: a web Request that is never on a wire, or a server of node's. */
export const waysIn = ["fetch", "node"] as const;
export type WayIn = (typeof waysIn)[number];
type Fetch = (url: string, init?: RequestInit) => Promise<Response>;

export interface Reached {
  readonly url: string;
  readonly fetch: Fetch;
  connect(revision: string, options?: Partial<WireOptions> & { headers?: Record<string, string> }): Promise<WireClient>;
}

export async function reach({ mount }: Pick<Mounted, "mount">, way: WayIn, path = "/mcp"): Promise<Reached> {
  if (way === "node") return await serve(mount.node, path);
  return reachedBy(`http://localhost${path}`, (url, init) => mount.fetch(toRequest(url, init)));
}

/** An app of node's own. */
export async function serve(handle: RequestListener, path = "/mcp"): Promise<Reached> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return reachedBy(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, fetch);
}

function reachedBy(url: string, begin: Fetch): Reached {
  return {
    url,
    fetch: begin,
    async connect(revision, { headers = {}, ...options } = {}) {
      const link = overHttp(url, { headers, fetch: begin as typeof fetch });
      cleanUp(() => link.close());
      return await new WireClient(link, { revision, ...options }).begin();
    },
  };
}

/** As servers make one: its signal is its own. One that follows another may be collected, and abort nothing. */
export function toRequest(url: string, { signal, ...init }: RequestInit = {}): Request {
  const request = new Request(url, init);
  return signal ? Object.defineProperty(request, "signal", { value: signal }) : request;
}

/** What a POST of a call of 2026-07-28 is made of. */
export function toCall(name: string, input: object = {}, more: Fields = {}) {
  const message = {
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name, arguments: input, ...more, _meta: { ...modernMeta({}), ...more._meta } },
  };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
  };
  return { message, init: { method: "POST", headers, body: JSON.stringify(message) } };
}

/** The first run of a command that holds. */
export async function firstHeld({ held }: Pick<Mounted, "held">): Promise<Held> {
  for (;;) {
    const [first] = held;
    if (first !== undefined) return first;
    await turns(1);
  }
}
