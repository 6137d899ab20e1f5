export { FakeClock } from "./fake-clock.ts";
export { createHarness, type Harness } from "./harness.ts";
