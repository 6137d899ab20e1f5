import { test } from "vitest";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { exerciseKeys, withKeys } from "../store-suite/key-suite.ts";
import { exerciseStore } from "../store-suite/store-suite.ts";

exerciseStore(
  test,
  withKeys(({ clock }) => new MemoryStore(clock)),
  { hasPlaces: false },
);
exerciseKeys(test, ({ clock }) => new MemoryStore(clock), { hasPlaces: false });
