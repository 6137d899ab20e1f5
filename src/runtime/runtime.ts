import { type Clock, systemClock } from "../clock.ts";
import type { Catalog } from "../command/catalog.ts";
import { type Logger, silentLog } from "../log.ts";
import type { GuestHook } from "../mcp/guest-server.ts";
import { Guests } from "../mcp/guests.ts";
import { createServing, type Serving } from "../mcp/serving.ts";
import { openServedCatalog, unknownLongTools } from "../project/project-commands.ts";
import type { Settings } from "../settings/settings.ts";
import type { Store } from "../store/open.ts";
import type { Dispatcher } from "../task/dispatcher.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { readToken } from "./home-token.ts";
import { loadSdk } from "./hook-sdk.ts";
import { ServedTasks } from "./served-tasks.ts";

/** Catalog, tools and tasks put together; doors are opened on it. */
export interface Runtime {
  readonly settings: Settings;
  readonly catalog: Catalog;
  readonly serving: Serving;
  readonly tasks: ServedTasks;
  readonly clock: Clock;
  readonly log: Logger;
  /** The home's own secret; made where there is none. */
  token(): string;
  /**
   * Hands out calls, gives back what is safe to run again, and lets the rest go on for this long; how many tasks nobody
   * works on then.
   */
  close(graceMs: number): Promise<{ readonly waiting: number }>;
}

/** What a runtime is made of, where it is not what the settings say. Catalog and store are closed with it. */
export interface RuntimeParts {
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Default: the commands of the project's folders, kept up to date. */
  readonly catalog?: Catalog;
  /** Default: what the settings name, opened when first needed. */
  readonly store?: Store;
  /** Default: the store. */
  readonly dispatcher?: Dispatcher;
  /** What this process has of the variables that the project's code reads. Default: what the settings say. */
  readonly environment?: () => EnvironmentMarks;
}

export async function openRuntime(settings: Settings, parts: RuntimeParts = {}): Promise<Runtime> {
  const { log = silentLog, clock = systemClock } = parts;
  const catalog = parts.catalog ?? (await openServedCatalog(settings, { clock, log }));
  const unknown = unknownLongTools(settings.deferral.tools, catalog);
  if (unknown !== undefined) log.warn(unknown);
  const tasks = new ServedTasks(settings, catalog, parts);
  // Read once: a home that was moved away is not made anew for the sake of its token.
  let known: string | undefined;
  const token = () => (known ??= readToken(settings.home));
  const serving = createServing({
    ...settings,
    facts: settings,
    catalog,
    openCalls: () => tasks.calls(),
    readStats: () => tasks.stats(),
    secret: token,
    guests: createGuests(settings, log),
    hasPrompts: settings.prompts,
    hasFollowUpTools: settings.followUpTools,
    keepInlineMs: settings.deferral.keepInlineMs,
    clock,
    log,
  });
  const close = async (graceMs: number) => {
    catalog.close();
    const waiting = await tasks.close(graceMs);
    serving.close();
    return { waiting };
  };
  return { settings, catalog, serving, tasks, clock, log, token, close };
}

function createGuests(settings: Settings, log: Logger): Guests | undefined {
  const { mcp: hook, configFile } = settings;
  if (hook === undefined) return undefined;
  return new Guests({ facts: settings, hook: hook as GuestHook, loadSdk: () => loadSdk(configFile), log });
}
