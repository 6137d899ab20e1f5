import { onTestFinished } from "vitest";
import { type Command, defineCommand } from "../../src/command/command.ts";
import { type ForeignTool, type JsonObject, toForeignCommand } from "../../src/command/foreign.ts";
import type { Settings } from "../../src/settings/settings.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import { FakeClock } from "./fake-clock.ts";
import { type InMemoryServer, moving, openInMemory } from "./in-memory.ts";
import { WireClient, type WireOptions } from "./wire.ts";

/** A tool of somebody else's server, by what it does with a call. */
export function foreign(
  call: ForeignTool["call"],
  listing: JsonObject = {},
  options: Parameters<typeof toForeignCommand>[1] = {},
  more: Partial<ForeignTool> = {},
): Command {
  return toForeignCommand(
    { listing: { name: "their_tool", inputSchema: { type: "object" }, ...listing }, call, ...more },
    options,
    defineCommand as Parameters<typeof toForeignCommand>[2],
  );
}

export interface ForeignServer extends InMemoryServer {
  readonly clock: FakeClock;
  connect(options: WireOptions & { readonly door?: "stdio" | "http" }): Promise<WireClient>;
  /** Waits for it, and lets time pass until then. */
  settled<T>(promise: Promise<T>): Promise<T>;
}

export interface ForeignServerOptions {
  readonly settings?: Partial<Settings>;
  /** An SQLite file; in memory by default. */
  readonly file?: string;
  readonly clock?: FakeClock;
}

/** A server in this process that has such tools. */
export async function serveForeign(
  commands: Readonly<Record<string, Command>>,
  { settings = {}, file, clock = new FakeClock() }: ForeignServerOptions = {},
): Promise<ForeignServer> {
  const store: Store | undefined = file === undefined ? undefined : await openStore(file, { clock });
  const server = await openInMemory(commands, clock, settings, store);
  const clients: WireClient[] = [];
  let isClosed = false;
  const close = async () => {
    if (isClosed) return;
    isClosed = true;
    for (const client of clients) await moving(clock, client.close());
    await moving(clock, server.close(), 1_000);
  };
  onTestFinished(close);
  return {
    ...server,
    clock,
    close,
    settled: (promise) => moving(clock, promise),
    async connect({ door = "stdio", ...options }) {
      const client = new WireClient(door === "stdio" ? server.openPipe() : await server.openHttp(), options);
      clients.push(client);
      return await moving(clock, client.begin());
    },
  };
}
