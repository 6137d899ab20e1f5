import { describePlace, placeOf } from "../command/place.ts";
import { messageOf, RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import type { GuestEra, GuestHost, GuestPair } from "./guest-host.ts";
import type { ServerIdentity } from "./parts.ts";

/** What an author registers by hand, in the config's `mcp` hook: a server is made for it, and the SDK loaded, only then. */

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

interface HookOptions {
  /** In a sentence. */
  readonly name: string;
  readonly facts: ServerIdentity;
  readonly hook: GuestHook;
  readonly loadSdk: () => Promise<Sdk>;
  readonly log: Logger;
}

export function createHookHost({ name: hookName, facts, hook, loadSdk, log }: HookOptions): GuestHost {
  return {
    name: hookName,
    eras: ["modern", "legacy"],
    isOne: false,
    isPerCaller: false,
    async connect(era, pair) {
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
          const failure = hookFailed(error, { name: hookName, log });
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
    },
  };
}

function hookFailed(error: unknown, { name, log }: Pick<HookOptions, "name" | "log">): RuntimeError {
  log.error(`${name} failed, so no client can be served`, { error });
  return new RuntimeError("CONFIG_INVALID", `The \`mcp\` hook failed: ${messageOf(error)}${whereIn(error)}`, {
    cause: error,
    forClients: "The `mcp` hook of this server failed; its log says why.",
  });
}

/** The line of the author's that threw. */
function whereIn(error: unknown): string {
  const place = placeOf(error);
  return place === undefined ? "" : ` (${describePlace(place)})`;
}
