import { onTestFinished } from "vitest";
import type { Command } from "../../src/command/command.ts";
import type { DeferralRules } from "../../src/task/deferral.ts";
import type { Engine } from "../../src/task/engine.ts";
import { FakeClock } from "./fake-clock.ts";
import { moving, openInMemory, turns } from "./in-memory.ts";
import { type CallOptions, type Json, type Message, type Result, WireClient, type WireOptions } from "./wire.ts";

/** What the local user's tasks are kept under. */
export const local = "local";

/** A client on a pipe to a server in this process, whose time we move; it can answer what it is asked. */
export interface Piped {
  readonly clock: FakeClock;
  readonly engine: Engine;
  readonly client: WireClient;
  /** A call, and the time it needs. */
  readonly call: (tool: string, input?: object, options?: CallOptions) => Promise<Result>;
  readonly request: (method: string, params?: Json) => Promise<Message>;
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
}

export async function openPiped({ commands, deferral, clock = new FakeClock(), ...options }: PipedOptions): Promise<Piped> {
  const server = openInMemory(commands, clock, deferral === undefined ? {} : { deferral });
  const link = server.openPipe();
  const client = new WireClient(link, options);
  onTestFinished(async () => {
    await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  });
  await moving(clock, client.begin());
  const of = (method: string) => client.received.filter((message) => message.method === method);
  const pass = async (ms: number) => {
    const end = clock.now() + ms;
    while (clock.now() < end) {
      clock.advance(Math.min(10_000, end - clock.now()));
      await turns();
    }
  };
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
        if (steps === 1_000) throw new Error(`${count} × ${method} did not come; the last were ${JSON.stringify(client.received.slice(-5))}`);
        await pass(10);
      }
      return of(method);
    },
    async respond(asked, result) {
      link.send({ jsonrpc: "2.0", id: asked?.id, result } as unknown as Message, options);
      await turns();
    },
  };
}
