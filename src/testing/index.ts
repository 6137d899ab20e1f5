export { FakeClock } from "./fake-clock.ts";
export { createHarness, type Harness } from "./harness.ts";
export { exerciseStore, type OpenStore, storeCases } from "./store-suite.ts";
