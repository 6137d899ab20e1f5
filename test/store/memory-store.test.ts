import { test } from "vitest";
import { openMemoryStore } from "../../src/store/memory-store.ts";
import { exerciseStore } from "../../src/testing/store-suite.ts";

exerciseStore(test, ({ clock }) => openMemoryStore(clock), { hasPlaces: false });
