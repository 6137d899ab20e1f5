import { type Clock, within } from "../clock.ts";
import type { Logger } from "../log.ts";
import { followUpNames } from "../mcp/generation/follow-up-names.ts";
import type { GuestEra } from "../mcp/guest-host.ts";
import { GuestTools } from "../mcp/guest-tools.ts";
import { Guests } from "../mcp/guests.ts";
import { createHookHost, type GuestHook } from "../mcp/hook-host.ts";
import { thisProgram } from "../program/program.ts";
import { hookFileOf } from "../project/project-commands.ts";
import { StoredCatalog } from "../project/stored-catalog.ts";
import { identityOf, type Settings } from "../settings/settings.ts";
import { loadSdk } from "./hook-sdk.ts";

/** What an author registers in the config's `mcp` hook: the servers that are made for it, and their tools as commands. */
export interface Hook {
  readonly guests: Guests;
  readonly tools: GuestTools;
}

/** A hook that takes longer is served when it is done; what else there is, is served now. */
const hookLimitMs = 10_000;

/** Nothing is run yet; undefined where there is no hook. What it lists is kept, for help and completion. */
export function createHook(settings: Settings, log: Logger): Hook | undefined {
  const { mcp: hook, home, commandFolders } = settings;
  if (hook === undefined) return undefined;
  // Never as of the folder that somebody has started us in.
  const hookFile = hookFileOf(settings);
  const name = `the \`mcp\` hook of ${thisProgram.authors === undefined ? "the config file" : thisProgram.name}`;
  const facts = identityOf(settings);
  const host = createHookHost({ name, facts, hook: hook as GuestHook, log, loadSdk: () => loadSdk(hookFile) });
  const guests = new Guests({ host, log });
  const tools = new GuestTools(guests, { taken: followUpNames(settings), log });
  const keep = new StoredCatalog(home, commandFolders).keeperOf(hookFile);
  tools.onChange(() => keep(tools.entries));
  return { guests, tools };
}

/** Has a hook say what tools it has. One that fails, or takes too long to say it, is in trouble. */
export async function openHook({ tools }: Hook, clock: Clock, era?: GuestEra): Promise<void> {
  await within(clock, hookLimitMs, tools.open(era), () =>
    tools.fail(
      `It has not said within ${hookLimitMs / 1000} s what it registers, so its tools are missing until it has; does it wait for something that never comes?`,
    ),
  );
}
