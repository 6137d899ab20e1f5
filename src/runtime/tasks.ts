import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import path from "node:path";
import { getHeapStatistics } from "node:v8";
import { type Clock, systemClock } from "../clock.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import { ownCommand } from "../diagnose/diagnose-command.ts";
import type { Logger } from "../log.ts";
import { isPackFolder, packageFolder } from "../project/project.ts";
import { rememberPlace } from "../project/stored-project.ts";
import { publicSettings } from "../settings/public-settings.ts";
import type { Settings } from "../settings/settings.ts";
import { openStore, type Store } from "../store/open.ts";
import { childEnvironment } from "../system/environment.ts";
import { runVariable } from "../system/run-variable.ts";
import { endStrays } from "../system/strays.ts";
import { system } from "../system/system.ts";
import { createWorkerName, isKnownDead } from "../system/worker-name.ts";
import { Calls } from "../task/calls.ts";
import { EndedTasks } from "../task/ended.ts";
import { Engine } from "../task/engine.ts";
import { History } from "../task/history.ts";
import { createIsolation } from "../task/isolated/isolation.ts";
import { JumpWatch } from "../task/jumps.ts";
import { Leaving } from "../task/leaving.ts";
import { Sweeper } from "../task/sweeper.ts";
import type { EnvironmentMarks } from "../task/task.ts";
import { Worker } from "../task/worker.ts";

/** The engine on its database, and the parts that keep it going. */
export interface Tasks {
  readonly engine: Engine;
  readonly history: History;
  /** A worker for this project's tasks. */
  createWorker(find: (command: string) => CatalogEntry | undefined): Worker;
  /** Answers calls, those that somebody waits for by this worker. */
  createCalls(worker: Worker): Calls;
  readonly sweeper: Sweeper;
  close(): Promise<void>;
}

export interface TasksOptions {
  readonly clock?: Clock;
  /** Default: what the settings name. */
  readonly store?: Store;
  /** What this process has of the variables that the project's code reads. Default: what the settings say. */
  readonly environment?: () => EnvironmentMarks;
  /** Opens the database when it is first needed, and tries again when it could not be. Default: at once, or throws. */
  readonly isPatient?: boolean;
}

/** Where a project lies, in words for a person. */
export function placeOf({ configFile, commandFolders }: Settings): string {
  const own = commandFolders.find((folder) => !isPackFolder(folder) && existsSync(folder));
  return configFile !== undefined
    ? path.dirname(configFile)
    : own !== undefined
      ? path.dirname(own)
      : "the bundled commands";
}

/** Opens the tasks of a home. Nothing is claimed or swept until a worker or the sweeper is started. */
export async function openTasks(settings: Settings, log: Logger, options: TasksOptions = {}): Promise<Tasks> {
  const { clock = systemClock, environment = () => settings.environment, isPatient = false } = options;
  const store = options.store ?? (await openStore(settings.store, { clock, log, isPatient }));
  const ended = new EndedTasks();
  const jumps = new JumpWatch(clock);
  const history = new History(store, clock, settings.project, {
    home: settings.home.folder,
    config: publicSettings(settings),
    log,
  });
  const { project, isDebug } = settings;
  rememberPlace(settings.home, project, placeOf(settings));
  const children = {
    clock,
    log,
    childFile: path.join(packageFolder, "dist", "attempt.js"),
    killGroup: system.killGroup,
    env: (run: string) => ({ ...childEnvironment(), [runVariable]: run }),
    endStrays: (pid: number, run: string) => endStrays(pid, `${runVariable}=${run}`),
  };
  const runIsolated = createIsolation({ ...children, maxChildren: 2 * availableParallelism() });
  // As many as the worker has places: none of them may have to wait for another that never ends.
  const unbounded = Number.POSITIVE_INFINITY;
  const maxHeapMb = Math.round(getHeapStatistics().heap_size_limit / 1024 / 1024);
  const runApart = createIsolation({ ...children, maxChildren: unbounded, maxHeapMb, maxResidentMb: unbounded });
  const leaving = new Leaving();
  const engine = new Engine({ store, history, clock, log, project, environment, jumps, ended, leaving });
  return {
    engine,
    history,
    createCalls: (worker) => new Calls({ engine, worker, history, clock, log, deferral: settings.deferral }),
    sweeper: new Sweeper({ store, clock, log, isDead: (worker) => isKnownDead(worker), jumps }),
    createWorker: (find) =>
      new Worker({
        store,
        dispatcher: store,
        history,
        find: (name) => find(name) ?? ownCommand(name),
        clock,
        log,
        project,
        environment,
        worker: createWorkerName(),
        home: settings.home.folder,
        config: publicSettings(settings),
        isDebug,
        questionMs: settings.questionSeconds * 1000,
        runIsolated,
        ended,
        leaving,
        runApart,
      }),
    async close() {
      // Durations are a courtesy.
      await history.flush().catch((error: unknown) => log.debug("durations were not kept", { error }));
      await store.close();
    },
  };
}
