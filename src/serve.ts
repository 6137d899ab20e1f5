import { existsSync, linkSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import type { McpServerFactory } from "@modelcontextprotocol/server";
import { type Clock, systemClock } from "./clock.ts";
import { type Catalog, openLiveCatalog } from "./command/catalog.ts";
import { watchLoop } from "./command/loop-watch.ts";
import { publicSettings, type Settings } from "./config.ts";
import { messageOf, RuntimeError, ShuttingDown } from "./errors.ts";
import { createId, createSecret } from "./ids.ts";
import type { Logger } from "./log.ts";
import { CommandServer } from "./mcp/server.ts";
import { createTools } from "./mcp/tools.ts";
import { ensureHome, type Home } from "./paths.ts";
import type { HttpDoor } from "./transport/http.ts";

/** Catalog, tools and the SDK's servers put together; doors are opened on it. */
export interface Runtime {
  readonly settings: Settings;
  readonly catalog: Catalog;
  readonly factory: McpServerFactory;
  readonly clock: Clock;
  readonly log: Logger;
  /** Ends every call that still runs, with "shutting down" as its reason. */
  close(): void;
}

export async function openRuntime(settings: Settings, log: Logger, clock: Clock = systemClock): Promise<Runtime> {
  const catalog = await openLiveCatalog({ folders: settings.commandFolders, toolPrefix: settings.toolPrefix, log, clock });
  const stop = new AbortController();
  const tools = createTools({
    catalog,
    clock,
    log,
    home: settings.home.folder,
    config: publicSettings(settings),
    isDebug: settings.isDebug,
    signal: stop.signal,
  });
  const factory: McpServerFactory = async ({ era }) => {
    const server = new CommandServer(settings, tools);
    try {
      await settings.mcp?.(server, { era });
    } catch (error) {
      log.error("the `mcp` hook of the config file failed, so no client can be served", { error });
      throw error;
    }
    server.serveTools();
    return server;
  };
  const stopWatching = watchLoop(clock, log);
  const close = () => {
    stopWatching();
    stop.abort(new ShuttingDown());
    catalog.close();
  };
  return { settings, catalog, factory, clock, log, close };
}

/** One MCP connection over a pair of streams; resolves when the client has closed it. */
export async function serveStreams(runtime: Runtime, streams: { input: Readable; output: Writable; write: (text: string) => boolean }): Promise<void> {
  const [{ serveStdio }, { LineTransport }] = await Promise.all([import("@modelcontextprotocol/server/stdio"), import("./transport/stdio.ts")]);
  const { log, catalog } = runtime;
  const servers = new Set<CommandServer>();
  const factory: McpServerFactory = async (facts) => {
    const server = (await runtime.factory(facts)) as CommandServer;
    servers.add(server);
    return server;
  };
  const stopListening = catalog.onChange(() => {
    for (const server of servers) if (server.isConnected()) server.sendToolListChanged();
  });
  const transport = new LineTransport({ ...streams, log });
  await new Promise<void>((resolve) => {
    serveStdio(factory, { transport, onerror: (error) => log.debug(`mcp: ${error.message}`) });
    const closeConnection = transport.onclose;
    transport.onclose = () => {
      closeConnection?.();
      resolve();
    };
  });
  stopListening();
}

/** Opens the HTTP door on a runtime. */
export async function serveRuntimeOverHttp(runtime: Runtime): Promise<HttpDoor> {
  const { settings, factory, clock, log } = runtime;
  const token = readToken(settings.home);
  const { serveHttp } = await import("./transport/http.ts");
  const door = await serveHttp({ factory, host: settings.http.host, port: settings.http.port, token, requireToken: settings.requireToken, clock, log });
  runtime.catalog.onChange(() => door.notifyToolsChanged());
  return door;
}

/** Written aside and linked into place, so that nobody ever reads half of it, and the first of two makers wins. */
function makeToken(home: Home): void {
  const aside = `${home.tokenFile}.${createId()}`;
  writeFileSync(aside, `${createSecret()}\n`, { mode: 0o600, flag: "wx" });
  try {
    linkSync(aside, home.tokenFile);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(aside);
  }
}

/** The home's own secret, made at first use and readable by its user alone. */
export function readToken(home: Home): string {
  try {
    ensureHome(home);
    if (!existsSync(home.tokenFile)) makeToken(home);
    const token = readFileSync(home.tokenFile, "utf8").trim();
    if (token.length < 32) throw new Error(`${home.tokenFile} holds no token; delete it, and a new one is made`);
    return token;
  } catch (cause) {
    throw new RuntimeError("HOME_UNUSABLE", `Cannot use the home folder ${home.folder}: ${messageOf(cause)}; set MEANWHILE_HOME to a folder you may write.`, {
      cause,
    });
  }
}
