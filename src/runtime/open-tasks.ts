import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { getHeapStatistics } from "node:v8";
import { type Clock, systemClock } from "../clock.ts";
import type { Caller } from "../command/caller.ts";
import { messageOf } from "../errors.ts";
import { type Logger, silentLog } from "../log.ts";
import { packageFolder } from "../paths.ts";
import { thisProgram } from "../program/program.ts";
import { isPackFolder } from "../project/project.ts";
import { rememberPlace } from "../project/stored-project.ts";
import { describeWrap } from "../project/wrap.ts";
import { byStore, openDispatcher } from "../queue/open-dispatcher.ts";
import { publicSettings } from "../settings/public-settings.ts";
import type { HomelessSettings, Settings } from "../settings/settings.ts";
import { isAcrossMachines, type Store } from "../store/open.ts";
import { childEnvironment, runVariable } from "../system/child-environment.ts";
import { endStrays } from "../system/strays.ts";
import { system } from "../system/system.ts";
import { createWorkerName, isKnownDead } from "../system/worker-name.ts";
import type { Dispatcher } from "../task/dispatcher.ts";
import { createIsolation } from "../task/isolated/isolation.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { createTasks, type Tasks } from "../task/tasks.ts";
import { localUserIn } from "./home-id.ts";
import { openNodeStore } from "./open-node-store.ts";

export interface OpenTasksOptions {
  readonly log?: Logger;
  readonly clock?: Clock;
  /** Default: what the settings name. */
  readonly store?: Store;
  /** Default: the store. */
  readonly dispatcher?: Dispatcher;
  /** Default: who the settings say. */
  readonly localUser?: Caller;
  /** Default false: a caller sees the tasks of this project. True: those of all projects, for the terminal. */
  readonly seesAllProjects?: boolean;
  /** What this process has of the variables that the project's code reads. Default: what the settings say. */
  readonly environment?: () => EnvironmentMarks;
  /** Default false. True: the runtime can be killed, for tests; each use of the store then takes one more call. */
  readonly isKillable?: boolean | undefined;
  /** Default true. False: isolated commands, and tasks whose worker has crashed, run in this process too; for tests. */
  readonly startsChildren?: boolean | undefined;
}

/** Opens the tasks of a home, or of who has none, with the commands that are ours and run in processes of their own. */
export async function openTasks(settings: Settings | HomelessSettings, options: OpenTasksOptions = {}): Promise<Tasks> {
  const { log = silentLog, clock = systemClock } = options;
  const { project, isDebug, deferral } = settings;
  const store = options.store ?? (await openNodeStore(settings, { clock, log }));
  if (settings.home !== undefined) rememberPlace(settings.home, project, placeOf(settings));
  const tasks = createTasks({
    store,
    shared: store.shared,
    dispatcher: options.dispatcher ?? (await openQueue(settings, store, { clock, log })),
    clock,
    log,
    project,
    localUser: options.localUser ?? localUserIn(settings, log),
    seesAllProjects: options.seesAllProjects ?? false,
    environment: options.environment ?? (() => settings.environment),
    ...(settings.home === undefined
      ? { home: settings.folder, config: settings.config }
      : { home: settings.home.folder, config: publicSettings(settings) }),
    isDebug,
    deferral,
    questionMs: settings.questionSeconds * 1000,
    limits: settings.limits,
    createWorkerName,
    isDead: (worker) => isKnownDead(worker, { isOneMachine: !isAcrossMachines(settings.store) }),
    concurrency: settings.concurrency,
    worksHere: settings.worksHere,
    ...(settings.home === undefined && { taskTtlMs: settings.taskTtlMs }),
    ...(options.startsChildren !== false && createIsolations(clock, log)),
  });
  const { createWorker } = tasks;
  return Object.assign(tasks, {
    createWorker: (...given: Parameters<typeof createWorker>) => createWorker(...withOwnCommands(...given)),
  });
}

/** Adds the commands of ours that run as tasks. They are loaded with the first task that no other command is known for. */
function withOwnCommands(...[find, load]: Parameters<Tasks["createWorker"]>): Parameters<Tasks["createWorker"]> {
  let ownCommand: typeof find = () => undefined;
  const loadOwn = async () => {
    ownCommand = (await import("../diagnose/diagnose-command.ts")).ownCommand;
  };
  return [
    (name) => find(name) ?? ownCommand(name),
    (name) => {
      const loading = load?.(name);
      if (find(name) !== undefined) return loading;
      return Promise.resolve(loading).then(() => (find(name) === undefined ? loadOwn() : undefined));
    },
  ];
}

/** Who hands out the tasks: what the settings name, else BullMQ in a database that is shared, where it is installed. */
async function openQueue(
  { queue, store, project }: Pick<Settings, "queue" | "store" | "project">,
  opened: Store,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<Dispatcher> {
  const terms = { project, clock, log };
  if (queue !== undefined || !isAcrossMachines(store))
    return await openDispatcher(opened, { ...terms, queue: queue ?? byStore });
  return await openDispatcher(opened, { ...terms, queue: store }).catch((error: unknown) => {
    log.info(`${messageOf(error)}. Until then the database itself hands out its tasks.`);
    return openDispatcher(opened, { ...terms, queue: byStore });
  });
}

/** Where a project lies, in words for a person. */
export function placeOf({ configFile, commandFolders, isWrap, upstreams }: Settings): string {
  if (thisProgram.authors !== undefined) return thisProgram.name;
  if (isWrap) return describeWrap(upstreams);
  const own = commandFolders.find((folder) => !isPackFolder(folder) && existsSync(folder));
  return configFile !== undefined
    ? path.dirname(configFile)
    : own !== undefined
      ? path.dirname(own)
      : "the bundled commands";
}

function createIsolations(clock: Clock, log: Logger) {
  const children = {
    clock,
    log,
    childFile: path.join(packageFolder(), "dist", "attempt.js"),
    killGroup: system.killGroup,
    env: (run: string) => ({ ...childEnvironment(), [runVariable]: run }),
    endStrays: (pid: number, run: string) => endStrays(pid, `${runVariable}=${run}`),
  };
  // As many as the worker has places: none of them may have to wait for another that never ends.
  const unbounded = Number.POSITIVE_INFINITY;
  const maxHeapMb = Math.round(getHeapStatistics().heap_size_limit / 1024 / 1024);
  return {
    runIsolated: createIsolation({ ...children, maxChildren: 2 * availableParallelism() }),
    runApart: createIsolation({ ...children, maxChildren: unbounded, maxHeapMb, maxResidentMb: unbounded }),
  };
}
