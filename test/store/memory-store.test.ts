import { test } from "vitest";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { exerciseStore } from "../../src/testing/store-suite.ts";

exerciseStore(test, ({ clock }) => new MemoryStore(clock), { hasPlaces: false });
