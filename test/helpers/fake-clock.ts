export { FakeClock } from "../../src/testing/fake-clock.ts";
