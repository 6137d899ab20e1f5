import path from "node:path";
import { describe, test } from "vitest";
import { silentLog } from "../../../src/log.ts";
import { openDispatcher } from "../../../src/queue/open-dispatcher.ts";
import { MemoryStore } from "../../../src/store/memory-store.ts";
import { openStore } from "../../../src/store/open.ts";
import { StoreDispatcher } from "../../../src/task/dispatcher.ts";
import { shareAmongTests, temporaryFolder } from "../../helpers/home.ts";
import { newSchema, serverPort, urlOf } from "../../helpers/postgres.ts";
import { hasRedis, startRedis } from "../../helpers/redis.ts";
import { exerciseDispatcher } from "../../store-suite/dispatcher-suite.ts";

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

describe("a store in PostgreSQL hands out its tasks itself", () => {
  exerciseDispatcher(test, { openStore: async (clock) => openStore(urlOf(await serverPort()), { clock }), ...byStore });
});

/** A queue for each case, in one place for all. */
function exerciseBullmq(queue: () => Promise<string>): void {
  let project = 0;
  exerciseDispatcher(test, {
    openStore: (clock) => {
      project += 1;
      return new MemoryStore(clock);
    },
    openDispatcher: async (store, clock) =>
      openDispatcher(store as MemoryStore, { queue: await queue(), project: `case-${project}`, clock, log: silentLog }),
  });
}

describe("BullMQ hands out tasks by PostgreSQL", () => {
  const schema = newSchema();
  exerciseBullmq(async () => urlOf(await serverPort(), schema));
});

describe.runIf(hasRedis())("BullMQ hands out tasks by Redis", () => {
  exerciseBullmq(shareAmongTests(startRedis));
});
