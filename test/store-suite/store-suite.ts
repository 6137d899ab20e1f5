import type { Clock } from "../../src/clock.ts";
import type { TaskStore } from "../../src/task/store.ts";
import { askingCases } from "./cases/asking.ts";
import { callCases } from "./cases/calling.ts";
import { changeCases } from "./cases/changes.ts";
import { claimingCases } from "./cases/claiming.ts";
import { cleaningCases } from "./cases/cleaning.ts";
import { creatingCases } from "./cases/creating.ts";
import { durationCases } from "./cases/durations.ts";
import { endingCases } from "./cases/ending.ts";
import { fenceCases } from "./cases/fences.ts";
import { handOutCases } from "./cases/handing-out.ts";
import { interruptingCases } from "./cases/interrupting.ts";
import { textCases } from "./cases/keeping-texts.ts";
import { listingCases } from "./cases/listing.ts";
import { scopeCases } from "./cases/scope.ts";
import { sharingCases } from "./cases/sharing.ts";
import { stepCases } from "./cases/steps.ts";
import { unclaimableCases } from "./cases/unclaimable.ts";
import { workingCases } from "./cases/working.ts";

interface OpenOptions {
  /** The clock of the store. The cases move it. */
  readonly clock: Clock;
  /** Stores with the same place share their tasks. Without a place, the store is empty and no other store shares it. */
  readonly place?: string;
}

/** Opens a store. The case closes it; the test that passes this function removes the store's files or tables. */
export type OpenStore = (options: OpenOptions) => TaskStore | Promise<TaskStore>;

/** A behaviour of every store. `run` rejects with an AssertionError if the store behaves differently. */
export interface StoreCase {
  readonly title: string;
  /** True if the case opens the same place more than once. A store in memory cannot run it. */
  readonly needsPlaces?: true;
  run(open: OpenStore): Promise<void>;
}

export interface ExerciseOptions {
  /** False for a store in memory, which ends with its object. Default true. */
  readonly hasPlaces?: boolean;
}

/** The cases that every store must pass. */
const storeCases: readonly StoreCase[] = [
  ...creatingCases,
  ...scopeCases,
  ...listingCases,
  ...claimingCases,
  ...workingCases,
  ...askingCases,
  ...endingCases,
  ...textCases,
  ...fenceCases,
  ...stepCases,
  ...interruptingCases,
  ...unclaimableCases,
  ...callCases,
  ...handOutCases,
  ...cleaningCases,
  ...durationCases,
  ...changeCases,
  ...sharingCases,
];

/** Registers every case with Vitest's `test`. */
export function exerciseStore(
  test: (title: string, run: () => Promise<void>) => void,
  open: OpenStore,
  options: ExerciseOptions = {},
): void {
  const { hasPlaces = true } = options;
  for (const storeCase of storeCases)
    if (hasPlaces || storeCase.needsPlaces !== true) test(storeCase.title, () => storeCase.run(open));
}
