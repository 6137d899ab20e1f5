import { onTestFinished } from "vitest";
import type { Caller } from "../../src/command/caller.ts";
import type { Command } from "../../src/command/command.ts";
import type { ClientConnection } from "../../src/mcp/request.ts";
import type { Serving } from "../../src/mcp/serving.ts";
import type { ServedTasks } from "../../src/runtime/served-tasks.ts";
import type { Settings } from "../../src/settings/settings.ts";
import type { Store } from "../../src/store/open.ts";
import type { DeferralRules } from "../../src/task/deferral.ts";
import type { Engine } from "../../src/task/engine.ts";
import { FakeClock, settled as moving, pass as passTime, turns } from "./fake-clock.ts";
import { openServer } from "./server.ts";
import {
  type Answer,
  type CallOptions,
  type Json,
  type Link,
  type Message,
  overHttp,
  overStreams,
  type Result,
  WireClient,
  type WireOptions,
} from "./wire.ts";

/** A whole server in this process whose time we move, on a store in memory. */
export interface InMemoryServer {
  /** The working folder of its clients over stdio. */
  readonly cwd: string;
  readonly engine: Engine;
  readonly tasks: ServedTasks;
  readonly serving: Serving;
  readonly localUser: Caller;
  /** Those with a handshake, as they came. */
  readonly connections: readonly ClientConnection[];
  /** Calls that were sent back with a question. */
  readonly parked: { readonly size: number };
  /** A connection over a pair of streams. */
  openPipe(): Link;
  /** The HTTP door; who calls has the home's token. */
  openHttp(): Promise<Link>;
  close(): Promise<void>;
}

export async function openInMemory(
  commands: Readonly<Record<string, Command>>,
  clock: FakeClock,
  changed: Partial<Settings> = {},
  store?: Store,
): Promise<InMemoryServer> {
  const settings = { prompts: false, ...changed };
  const server = await openServer({ in: "memory", commands, clock, settings, ...(store !== undefined && { store }) });
  const { tasks, serving, localUser } = server.runtime;
  const connections: ClientConnection[] = [];
  const { createTasks2025 } = serving.served;
  Object.assign(serving.served, {
    createTasks2025(connection: ClientConnection) {
      connections.push(connection);
      return createTasks2025(connection);
    },
  });
  return {
    cwd: server.cwd,
    engine: await server.engine(),
    ...{ tasks, serving, localUser, connections },
    parked: serving.parked,
    openPipe() {
      const { stdin, stdout, close } = server.openPipes();
      return overStreams(stdin, stdout, close);
    },
    openHttp: async () => overHttp(await server.url(), { token: server.token() }),
    close: server.close,
  };
}

export { settled as moving, turns } from "./fake-clock.ts";

export { localKey as local } from "./server.ts";

/** A client on a pipe to a server in this process, whose time we move; it can answer what it is asked. */
export interface Piped {
  readonly clock: FakeClock;
  readonly engine: Engine;
  readonly client: WireClient;
  /** A call, and the time it needs. */
  readonly call: (tool: string, input?: object, options?: CallOptions) => Promise<Result>;
  readonly request: (method: string, params?: Json) => Promise<Answer>;
  /** Waits for it, and lets time pass until then. */
  readonly settled: <T>(promise: Promise<T>) => Promise<T>;
  /** Lets time pass, in small steps, with all that is due. */
  readonly pass: (ms: number) => Promise<void>;
  /** What came by this method so far. */
  readonly of: (method: string) => Message[];
  /** So many of a method, as soon as they have come; time passes until then. */
  readonly comes: (method: string, count?: number) => Promise<Message[]>;
  /** Answers a request of the server's. */
  readonly respond: (asked: Message | undefined, result: object) => Promise<void>;
}

export interface PipedOptions extends WireOptions {
  readonly commands: Readonly<Record<string, Command>>;
  readonly deferral?: DeferralRules;
  /** For commands that know the time. */
  readonly clock?: FakeClock;
  /** For several servers on one. */
  readonly store?: Store;
}

export async function openPiped({
  commands,
  deferral,
  clock = new FakeClock(),
  store,
  ...options
}: PipedOptions): Promise<Piped> {
  const server = await openInMemory(commands, clock, deferral === undefined ? {} : { deferral }, store);
  const link = server.openPipe();
  const client = new WireClient(link, options);
  onTestFinished(async () => {
    await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  });
  await moving(clock, client.begin());
  const of = (method: string) => client.received.filter((message) => message.method === method);
  const pass = (ms: number) => passTime(clock, ms);
  return {
    clock,
    engine: server.engine,
    client,
    call: (tool, input = {}, more = {}) => moving(clock, client.call(tool, input, more)),
    request: (method, params = {}) => moving(clock, client.request(method, params)),
    settled: (promise) => moving(clock, promise),
    pass,
    of,
    async comes(method, count = 1) {
      for (let steps = 0; of(method).length < count; steps++) {
        if (steps === 1_000)
          throw new Error(
            `${count} × ${method} did not come; the last were ${JSON.stringify(client.received.slice(-5))}`,
          );
        await pass(10);
      }
      return of(method);
    },
    async respond(asked, result) {
      void client.respond(asked?.id, result);
      await turns();
    },
  };
}
