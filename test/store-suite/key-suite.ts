import type { Clock } from "../../src/clock.ts";
import type { SharedState } from "../../src/task/shared-state.ts";
import { keyCases } from "./cases/keys.ts";

/** The part of a store that has the keys. The case closes it. */
export interface KeyPlace {
  readonly shared: SharedState;
  close(): Promise<void>;
}

/** Opens an empty store, or the one that is at a place. */
export type OpenKeys = (options: { readonly clock: Clock; readonly place?: string }) => KeyPlace | Promise<KeyPlace>;

/** A behaviour of the API keys of every store. */
export interface KeyCase {
  readonly title: string;
  /** True if the case opens the same place more than once. A store in memory cannot run it. */
  readonly needsPlaces?: true;
  run(open: OpenKeys): Promise<void>;
}

/** Registers every case with Vitest's `test`. */
export function exerciseKeys(
  test: (title: string, run: () => Promise<void>) => void,
  open: OpenKeys,
  { hasPlaces = true }: { readonly hasPlaces?: boolean } = {},
): void {
  for (const { title, needsPlaces, run } of keyCases)
    if (hasPlaces || needsPlaces !== true) test(`keys: ${title}`, () => run(open));
}
