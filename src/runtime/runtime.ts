import { type Clock, systemClock } from "../clock.ts";
import type { Caller } from "../command/caller.ts";
import { type Catalog, mergeSources } from "../command/catalog.ts";
import type { CommandSource } from "../command/source.ts";
import type { Gateway } from "../gateway/gateway.ts";
import type { UpstreamsControl } from "../gateway/upstreams-control.ts";
import { type Logger, silentLog } from "../log.ts";
import type { GuestCompany } from "../mcp/guest-view.ts";
import type { ServedIdentity } from "../mcp/parts.ts";
import { createServing, type Serving } from "../mcp/serving.ts";
import { codeSources, openServedFolders, unknownLongTools } from "../project/project-commands.ts";
import { type HomelessSettings, identityOf, type Settings } from "../settings/settings.ts";
import type { Store } from "../store/open.ts";
import type { Dispatcher } from "../task/dispatcher.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { gatewayOf } from "./gateway-of.ts";
import { localUserIn } from "./home-id.ts";
import { watchToken } from "./home-token.ts";
import { LearnedHosts } from "./learned-hosts.ts";
import { createHook, type Hook, openHook } from "./open-hook.ts";
import type { OpenTasksOptions } from "./open-tasks.ts";
import { ServedTasks } from "./served-tasks.ts";
import { warnOfUnmatchedRules } from "./unmatched-rules.ts";

/** Catalog, tools and tasks put together; doors are opened on it. */
export interface RuntimeCore {
  readonly catalog: Catalog;
  readonly serving: Serving;
  readonly tasks: ServedTasks;
  /** Who calls by stdio, by the home's token, or in the program around the server. */
  readonly localUser: Caller;
  readonly project: string;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Hands out calls, gives back what is safe to run again, and lets the rest go on for this long; how many tasks nobody
   * works on then. Runs that wait for a person stay as long as `keepQuestions` is there and not aborted. `endNow`
   * ends the grace period.
   */
  close(graceMs: number, keepQuestions?: AbortSignal, endNow?: AbortSignal): Promise<{ readonly waiting: number }>;
  /** Ends as in a crash, see `ServedTasks.kill`. Needs `isKillable`. */
  kill(): Promise<void>;
}

/** The same for a project of this user's. */
export interface Runtime extends RuntimeCore {
  readonly settings: Settings;
  /** The servers that stand behind it, for a person who asks; undefined where there are none. */
  readonly upstreams?: UpstreamsControl | undefined;
  /** The home's own secret, as it is now; made where there is none. */
  token(): string;
}

/** What a runtime is made of, where it is not what the settings say. Sources and store are closed with it. */
export interface RuntimeParts {
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Where commands come from, beside the config's `mcp` hook. Default: the project's folders, kept up to date. */
  readonly sources?: readonly CommandSource[];
  /**
   * Default false. True: a command file is loaded when it is needed, and the others after the first answer or one second.
   * Where upstreams or a hook stand beside the files, they are all loaded first.
   */
  readonly loadsLate?: boolean;
  /** See `openLiveFolders`. */
  readonly mayReload?: (folders: readonly string[]) => boolean;
  /** Default: what the settings name, opened when first needed. */
  readonly store?: Store;
  /** Default: the store. */
  readonly dispatcher?: Dispatcher;
  /** What this process has of the variables that the project's code reads. Default: what the settings say. */
  readonly environment?: () => EnvironmentMarks;
  /** See `OpenTasksOptions`. */
  readonly isKillable?: boolean | undefined;
  /** See `OpenTasksOptions`. */
  readonly startsChildren?: boolean | undefined;
}

/** A server that nobody calls loads its command files after this time. */
const loadAllAfterMs = 1_000;

export async function openRuntime(settings: Settings, parts: RuntimeParts = {}): Promise<Runtime> {
  const { log = silentLog, clock = systemClock } = parts;
  const hook = createHook(settings, log);
  const gateway = await gatewayOf(settings, { beside: hook?.guests, clock, log });
  const catalog = await openSources(settings, { hook, gateway }, { ...parts, clock, log });
  const token = watchToken(settings.home);
  const guests = gateway ?? hook?.guests;
  const identity = identityOf(settings);
  const facts = gateway?.factsBeside(identity) ?? identity;
  const isOnlyFront = gateway?.isOnlyFront ?? false;
  const { isWrap } = settings;
  const areToolsKnown = () => gateway?.upstreams.every(({ memory }) => memory.latest !== undefined) !== false;
  const served = { catalog, guests, facts, isOnlyFront, isWrap, areToolsKnown };
  const core = createRuntime(settings, { ...parts, ...served, clock, log });
  return { ...core, settings, token, upstreams: gateway };
}

export interface CoreParts extends OpenTasksOptions {
  readonly catalog: Catalog;
  readonly guests: GuestCompany | undefined;
  /** See `ServingOptions`. */
  readonly isOnlyFront?: boolean;
  /** See `ServingOptions`. */
  readonly isWrap?: boolean;
  /** Who it is to its clients. Default: who the settings say. */
  readonly facts?: ServedIdentity | undefined;
  /** See `warnOfUnmatchedRules`. Default: they are known when all files are loaded. */
  readonly areToolsKnown?: () => boolean;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Puts together what serves these commands. Opens nothing yet. */
export function createRuntime(settings: Settings | HomelessSettings, parts: CoreParts): RuntimeCore {
  const { catalog, guests, log } = parts;
  void catalog.whenLoaded.then(() => {
    const unknown = unknownLongTools(settings.deferral.tools, catalog);
    if (unknown !== undefined) log.warn(unknown);
  });
  const { areToolsKnown = () => true } = parts;
  const stopWarning = warnOfUnmatchedRules({ auth: settings.auth, catalog, log, areToolsKnown });
  const localUser = localUserIn(settings, log);
  const tasks = new ServedTasks(settings, catalog, { ...parts, localUser });
  const { clock } = tasks;
  const cancelLoading =
    catalog.pending.length === 0 ? () => {} : parts.clock.after(loadAllAfterMs, () => void catalog.loadAll());
  // Not all settings: to copy `environment` would read all files of the project.
  const { project, toolPrefix, errorsAsCompleted, hosts, hostName, deferral, isDebug, limits, auth } = settings;
  const serving = createServing({
    ...{ project, toolPrefix, errorsAsCompleted, hosts, hostName, deferral, isDebug, limits, auth },
    facts: parts.facts ?? settings,
    catalog,
    openCalls: () => tasks.calls(),
    readStats: () => tasks.stats(),
    openShared: () => tasks.shared(),
    guests,
    isOnlyFront: parts.isOnlyFront ?? false,
    isWrap: parts.isWrap ?? false,
    hasPrompts: settings.prompts && parts.isOnlyFront !== true,
    hasFollowUpTools: settings.followUpTools,
    keepInlineMs: deferral.keepInlineMs,
    learnedLimits:
      settings.home !== undefined && deferral.learns
        ? new LearnedHosts({ home: settings.home, project, clock, log })
        : undefined,
    clock,
    log,
  });
  tasks.onClosing(() => serving.leaveShared());
  const close = async (graceMs: number, keepQuestions?: AbortSignal, endNow?: AbortSignal) => {
    cancelLoading();
    stopWarning();
    catalog.close();
    const waiting = await tasks.close(graceMs, keepQuestions, endNow);
    serving.close();
    return { waiting };
  };
  const kill = async () => {
    const killed = tasks.kill();
    cancelLoading();
    stopWarning();
    catalog.close();
    serving.close();
    await killed;
  };
  return { catalog, serving, tasks, localUser, project, clock, log, close, kill };
}

async function openSources(
  settings: Settings,
  { hook, gateway }: { readonly hook: Hook | undefined; readonly gateway: Gateway | undefined },
  parts: RuntimeParts & { readonly clock: Clock; readonly log: Logger },
): Promise<Catalog> {
  const { clock, log, mayReload, loadsLate = false } = parts;
  const isLoadedLate = loadsLate && hook === undefined && gateway === undefined;
  const folders = () => openServedFolders(settings, { clock, log, mayReload, isLoadedLate });
  const own = parts.sources ?? [await folders(), ...codeSources(settings)];
  gateway?.standBeside(hook === undefined ? own : [...own, hook.tools]);
  const sources = [...own, ...(gateway?.sources ?? [])];
  if (hook === undefined) return mergeSources(sources, { log });
  const catalog = mergeSources([...sources, hook.tools], { log });
  await openHook(hook, clock);
  return catalog;
}
