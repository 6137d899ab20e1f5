export { FakeClock } from "./fake-clock.ts";
export { createHarness, type Harness } from "./harness.ts";
export { type ExerciseOptions, exerciseStore, type OpenOptions, type OpenStore, type StoreCase, storeCases } from "./store-suite.ts";
