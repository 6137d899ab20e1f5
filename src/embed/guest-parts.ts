import { systemClock, within } from "../clock.ts";
import type { ForeignToolOptions } from "../command/foreign.ts";
import { RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { GuestTools } from "../mcp/guest-tools.ts";
import { Guests } from "../mcp/guests.ts";
import { fieldsOf, textOf } from "../wire/json.ts";
import type { EmbeddedParts } from "./open-embedded.ts";
import { type ConnectableServer, type ServerFactory, toHost } from "./server-host.ts";

/** Who has not said by then who it is will not say it. */
const helloLimitMs = 10_000;
const silent = `The server handed to durable() has not answered initialize within ${helloLimitMs / 1000} s.`;

interface GuestPartsOptions {
  readonly tools: Readonly<Record<string, ForeignToolOptions>>;
  /** Names that are taken by tools of ours. */
  readonly taken: readonly string[];
  readonly log: Logger;
}

/** Connects somebody's server, and has it say who it is and what tools it has. */
export async function openGuestParts(
  server: ConnectableServer | ServerFactory<ConnectableServer>,
  { tools, taken, log }: GuestPartsOptions,
): Promise<EmbeddedParts> {
  const guests = new Guests({ host: toHost(server, log), log, isAlone: true });
  const source = new GuestTools(guests, { tools, taken, log });
  // Without knowing who it is nothing of it can be served.
  const { hello } = await within(systemClock, helloLimitMs, guests.shared("legacy"), () => {
    guests.close();
    throw new RuntimeError("SERVER_UNUSABLE", silent, { forClients: silent });
  });
  await source.open();
  const { name, version, ...about } = fieldsOf(hello.serverInfo);
  return {
    sources: [source],
    guests,
    isOnlyFront: true,
    facts: {
      name: textOf(name) ?? "",
      version: textOf(version) ?? "",
      instructions: textOf(hello.instructions),
      about,
    },
  };
}
