import type { Clock } from "../clock.ts";
import type { TaskStore } from "../task/store.ts";
import { askingCases } from "./store-cases/asking.ts";
import { callCases } from "./store-cases/calling.ts";
import { changeCases } from "./store-cases/changes.ts";
import { claimingCases } from "./store-cases/claiming.ts";
import { cleaningCases } from "./store-cases/cleaning.ts";
import { creatingCases } from "./store-cases/creating.ts";
import { durationCases } from "./store-cases/durations.ts";
import { endingCases } from "./store-cases/ending.ts";
import { exactTextCases } from "./store-cases/exact-text.ts";
import { fenceCases } from "./store-cases/fences.ts";
import { handOutCases } from "./store-cases/handing-out.ts";
import { interruptingCases } from "./store-cases/interrupting.ts";
import { listingCases } from "./store-cases/listing.ts";
import { scopeCases } from "./store-cases/scope.ts";
import { sharingCases } from "./store-cases/sharing.ts";
import { stepCases } from "./store-cases/steps.ts";
import { workingCases } from "./store-cases/working.ts";

export interface OpenOptions {
  /** Moved by the cases; what the store does by itself, it does by this clock. */
  readonly clock: Clock;
  /** Stores opened at the same place share their tasks. Without a place, a store is empty and nobody else's. */
  readonly place?: string;
}

/** Opens a store. The case closes it; what it leaves behind is for whoever wrote this function to remove. */
export type OpenStore = (options: OpenOptions) => TaskStore | Promise<TaskStore>;

/** One thing that holds for every store. Rejects with an AssertionError where it does not. */
export interface StoreCase {
  readonly title: string;
  /** Opens one place more than once: only for stores that outlive their object. */
  readonly needsPlaces?: true;
  run(open: OpenStore): Promise<void>;
}

export interface ExerciseOptions {
  /** False for a store that ends with its object. */
  readonly hasPlaces?: boolean;
}

/** What every store must do, as data: run them with any test runner. */
export const storeCases: readonly StoreCase[] = [
  ...creatingCases,
  ...scopeCases,
  ...listingCases,
  ...claimingCases,
  ...workingCases,
  ...askingCases,
  ...endingCases,
  ...exactTextCases,
  ...fenceCases,
  ...stepCases,
  ...interruptingCases,
  ...callCases,
  ...handOutCases,
  ...cleaningCases,
  ...durationCases,
  ...changeCases,
  ...sharingCases,
];

/** Registers every case with a test runner's `test(title, run)`. */
export function exerciseStore(
  test: (title: string, run: () => Promise<void>) => void,
  open: OpenStore,
  options: ExerciseOptions = {},
): void {
  const { hasPlaces = true } = options;
  for (const storeCase of storeCases)
    if (hasPlaces || storeCase.needsPlaces !== true) test(storeCase.title, () => storeCase.run(open));
}
