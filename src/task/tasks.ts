import type { Clock } from "../clock.ts";
import { type Caller, callerKey, localUser } from "../command/caller.ts";
import type { CatalogEntry } from "../command/catalog.ts";
import type { Logger } from "../log.ts";
import { Calls } from "./calls.ts";
import { type DeferralRules, defaultDeferral } from "./deferral.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { EndedTasks } from "./ended.ts";
import { Engine } from "./engine.ts";
import { History } from "./history.ts";
import type { RunIsolated } from "./isolated/isolation.ts";
import { Leaving } from "./leaving.ts";
import type { Limits } from "./limits.ts";
import type { SharedState } from "./shared-state.ts";
import type { TaskStore } from "./store.ts";
import { Sweeper } from "./sweeper.ts";
import type { EnvironmentMarks } from "./task.ts";
import { Worker } from "./worker.ts";

/** The engine on its store, and the parts that keep it going. */
export interface Tasks {
  readonly engine: Engine;
  /** What the tasks of the local user are kept under. */
  readonly localKey: string;
  readonly history: History;
  /** A worker for this project's tasks. `load` loads a command that is not loaded yet; undefined: nothing is to be loaded. */
  createWorker(
    find: (command: string) => CatalogEntry | undefined,
    load?: (command: string) => Promise<void> | undefined,
  ): Worker;
  /** Answers calls, those that somebody waits for by this worker. */
  createCalls(worker: Worker): Calls;
  readonly sweeper: Sweeper;
  /** Closes the store too. */
  close(): Promise<void>;
}

/** What tasks are kept in, what their commands are told, and how those are run. */
export interface TasksParts {
  readonly store: TaskStore;
  /** See `EngineOptions`. */
  readonly shared?: Pick<SharedState, "useOnce">;
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
  readonly log: Logger;
  readonly project: string;
  /** Default: one whom no store tells from that of another home. */
  readonly localUser?: Caller;
  /** See `EngineOptions`. */
  readonly seesAllProjects?: boolean;
  readonly environment?: () => EnvironmentMarks;
  readonly home: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly isDebug: boolean;
  readonly deferral?: DeferralRules;
  readonly questionMs?: number;
  readonly limits?: Limits;
  /** See `EngineOptions`. */
  readonly taskTtlMs?: number | undefined;
  /** How many tasks a worker runs at a time. */
  readonly concurrency?: number | undefined;
  /** False where all work is left to others; see `WorkerOptions`. */
  readonly worksHere?: boolean;
  /** A name that no other worker has, nor ever had. */
  readonly createWorkerName: () => string;
  /** True when the process of a worker is certainly gone. */
  readonly isDead: (worker: string) => boolean;
  /** See `AttemptOptions`. */
  readonly runIsolated?: RunIsolated;
  readonly runApart?: RunIsolated;
}

/** Puts the engine together. Nothing is claimed or swept until a worker or the sweeper is started. */
export function createTasks(parts: TasksParts): Tasks {
  const { store, dispatcher, clock, log, project, environment, isDead } = parts;
  const { home, config, deferral = defaultDeferral, taskTtlMs } = parts;
  const ended = new EndedTasks();
  const leaving = new Leaving();
  const history = new History(store, clock, project, { home, config, log });
  const engine = new Engine({ ...parts, history, ended, leaving });
  return {
    engine,
    get localKey() {
      return callerKey(parts.localUser ?? localUser);
    },
    history,
    createCalls: (worker) => new Calls({ engine, worker, history, clock, log, deferral, taskTtlMs }),
    sweeper: new Sweeper({
      ...{ store, dispatcher, clock, log, isDead, project },
      ...(environment !== undefined && { environment }),
    }),
    createWorker: (find, load) =>
      new Worker({
        ...{ ...parts, history, find, worker: parts.createWorkerName(), ended, leaving },
        ...(load !== undefined && { load }),
      }),
    async close() {
      // Durations are a courtesy.
      await history.flush().catch((error: unknown) => log.debug("durations were not kept", { error }));
      await dispatcher.close();
      await store.close();
    },
  };
}
