import path from "node:path";
import { describe, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { openDispatcher } from "../../src/queue/open-dispatcher.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { openStore } from "../../src/store/open.ts";
import { StoreDispatcher } from "../../src/task/dispatcher.ts";
import { exerciseDispatcher } from "../../src/testing/dispatcher-suite.ts";
import { temporaryFolder } from "../helpers/home.ts";

const byStore = {
  openDispatcher: (store: ConstructorParameters<typeof StoreDispatcher>[0]) => new StoreDispatcher(store),
};

describe("a store in memory hands out its tasks itself", () => {
  exerciseDispatcher(test, { openStore: (clock) => new MemoryStore(clock), ...byStore });
});

describe("a store in a file hands out its tasks itself", () => {
  exerciseDispatcher(test, {
    openStore: (clock) => openStore(path.join(temporaryFolder(), "tasks.db"), { clock }),
    ...byStore,
  });
});

const url = process.env.TRY_QUEUE;
if (url)
  describe("BullMQ", () => {
    let project = 0;
    exerciseDispatcher(test, {
      openStore: (clock) => {
        project += 1;
        return new MemoryStore(clock);
      },
      openDispatcher: (store, clock) =>
        openDispatcher(store, { queue: url, project: `t${process.pid}-${project}`, clock, log: silentLog }),
    });
  });
