import { expect, test } from "vitest";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { costOfLiveTasks } from "../../helpers/create-cost.ts";
import { postgresStores } from "../../helpers/postgres.ts";
import { exerciseKeys, withKeys } from "../../store-suite/key-suite.ts";
import { exerciseStore } from "../../store-suite/store-suite.ts";

const open = postgresStores();

exerciseStore(test, withKeys(open));
exerciseKeys(test, open);

test("create takes at most 1.5 times as long with 10,000 live tasks as with none", async () => {
  const store = await open({ clock: new FakeClock() });
  expect(await costOfLiveTasks(store)).toBeLessThan(1.5);
  await store.close();
});
