export type { Clock } from "../clock.ts";
export type { ContentBlock } from "../command/content.ts";
export type { Answer, LogLine, Origin, ProgressReport, Question, Root } from "../command/context.ts";
export type { Envelope } from "../command/envelope.ts";
export type { RunMessage } from "../command/outcome.ts";
export type { SourcePlace } from "../command/place.ts";
export { MemoryStore } from "../store/memory-store.ts";
export { type Dispatcher, StoreDispatcher, ticketOf } from "../task/dispatcher.ts";
export { BadCursor } from "../task/limits.ts";
export type {
  CallerScope,
  Claim,
  ClaimRequest,
  ClaimShares,
  Created,
  CreateOptions,
  DurationCount,
  FullStore,
  KeptTasks,
  ListFilter,
  TaskPage,
  TaskStore,
  UnclaimableRequest,
} from "../task/store.ts";
export type {
  CancelledOutcome,
  CompletedOutcome,
  EndedTask,
  EnvironmentMarks,
  FailedOutcome,
  Lease,
  LimitedQuestion,
  LiveStatus,
  LiveTask,
  NewTask,
  Task,
  TaskFailure,
  TaskOutcome,
  TaskProgress,
  TaskQuestion,
  TaskRules,
  TaskStatus,
  TerminalStatus,
} from "../task/task.ts";
export { apply, begin, type TaskEvent } from "../task/transitions.ts";
export { type CallToolOptions, callTool } from "./call-tool.ts";
export { FakeClock } from "./fake-clock.ts";
export { createHarness, type Harness, type HarnessOptions } from "./harness.ts";
