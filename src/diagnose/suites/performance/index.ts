import type { Check } from "../../check.ts";
import { check as callLatency } from "./call-latency.ts";
import { check as coldStart } from "./cold-start.ts";
import { check as listLatency } from "./list-latency.ts";
import { check as listSize } from "./list-size.ts";
import { check as memoryGrowth } from "./memory-growth.ts";
import { check as parallelCalls } from "./parallel-calls.ts";

export const performance: readonly Check[] = [
  coldStart,
  listLatency,
  listSize,
  callLatency,
  parallelCalls,
  memoryGrowth,
];
