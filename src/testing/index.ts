export type { Answer, ProgressReport, Question } from "../command/context.ts";
export type { Envelope } from "../command/envelope.ts";
export { MemoryStore } from "../store/memory-store.ts";
export type { TaskStore } from "../task/store.ts";
export { type CallToolOptions, callTool } from "./call-tool.ts";
export { FakeClock } from "./fake-clock.ts";
export { createHarness, type Harness } from "./harness.ts";
export {
  type ExerciseOptions,
  exerciseStore,
  type OpenOptions,
  type OpenStore,
  type StoreCase,
  storeCases,
} from "./store-suite.ts";
