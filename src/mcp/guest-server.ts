import { messageOf, RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { Id } from "../wire/in-flight.ts";
import type { ServerIdentity } from "./parts.ts";

/**
 * What an author has registered by hand, on the SDK's server. That server is a guest: it sits at the other end of a
 * pair in memory and is asked as any other would be, for what is not ours. It is loaded where there is a hook, and only
 * there.
 */

export type GuestEra = "legacy" | "modern";

/** The guest's end of the pair, as the SDK wants it. */
export interface GuestPair {
  onmessage?: (message: unknown, extra?: { readonly closeSSEStream: () => void }) => void;
  onclose?: () => void;
  start(): Promise<void>;
  send(message: unknown, options?: { readonly relatedRequestId?: Id }): Promise<void>;
  close(): Promise<void>;
}

interface SdkServer {
  connect(pair: GuestPair): Promise<void>;
}

/** What is used of the SDK. */
export interface Sdk {
  readonly McpServer: new (
    facts: { name: string; version: string },
    options: { capabilities: object; instructions?: string },
  ) => SdkServer;
  readonly serveStdio: (
    factory: (facts: { era: GuestEra }) => unknown,
    options: { transport: GuestPair; onerror: (error: Error) => void; maxSubscriptions: number },
  ) => unknown;
}

/** What an author registers things with. */
export type GuestHook = (server: object, facts: { readonly era: GuestEra }) => void | Promise<void>;

export interface GuestOptions {
  readonly facts: ServerIdentity;
  readonly hook: GuestHook;
  readonly loadSdk: () => Promise<Sdk>;
  readonly log: Logger;
}

/** Puts the author's server at the other end of the pair; `failed` rejects when its hook fails, then or later. */
export async function connectGuest(
  { facts, hook, loadSdk, log }: GuestOptions,
  era: GuestEra,
  pair: GuestPair,
): Promise<{ readonly failed: Promise<never> }> {
  const { McpServer, serveStdio } = await loadSdk().catch((error: unknown) => {
    log.error(messageOf(error));
    throw error;
  });
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const create = async (about: { era: GuestEra }) => {
    const { name, version, instructions } = facts;
    const server = new McpServer(
      { name, version },
      { capabilities: { logging: {} }, ...(instructions !== undefined && { instructions }) },
    );
    try {
      await hook(server, { era: about.era });
    } catch (error) {
      log.error("the `mcp` hook of the config file failed, so no client can be served", { error });
      const failure = new RuntimeError("CONFIG_INVALID", "The `mcp` hook of the config file failed.", {
        cause: error,
        forClients: "The `mcp` hook of this server failed; its log says why.",
      });
      failed.reject(failure);
      throw failure;
    }
    return server;
  };
  if (era === "legacy") await (await create({ era })).connect(pair);
  // How many may listen, our own doors say.
  else
    serveStdio(create, {
      transport: pair,
      onerror: (error) => log.debug(`mcp: ${error.message}`),
      maxSubscriptions: Number.POSITIVE_INFINITY,
    });
  return { failed: failed.promise };
}
