import type { Clock } from "../../src/clock.ts";
import { type Logger, silentLog } from "../../src/log.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { StoreDispatcher } from "../../src/task/dispatcher.ts";
import { Engine, type EngineOptions } from "../../src/task/engine.ts";
import { History } from "../../src/task/history.ts";
import type { TaskStore } from "../../src/task/store.ts";

/** What a worker is made of, but for its commands. */
export function workerFacts<S extends TaskStore>(store: S, clock: Clock, log: Logger = silentLog) {
  const history = new History(store, clock);
  return {
    store,
    dispatcher: new StoreDispatcher(store),
    history,
    clock,
    log,
    project: "p",
    worker: "w",
    home: "/",
    config: {},
    isDebug: false,
  };
}

/** An engine on a store in memory, and what its workers are made of. */
export function openEngine(clock: Clock, more: Partial<EngineOptions> = {}) {
  const facts = workerFacts(new MemoryStore(clock), clock, more.log);
  const { store, dispatcher, history, log, project } = facts;
  return { store, history, facts, engine: new Engine({ store, dispatcher, history, clock, log, project, ...more }) };
}
