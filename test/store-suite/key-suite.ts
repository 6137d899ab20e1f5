import assert from "node:assert/strict";
import { createApiKey } from "../../src/auth/api-key.ts";
import type { Clock } from "../../src/clock.ts";
import type { Store } from "../../src/store/open.ts";
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

type Open = (options: { readonly clock: Clock; readonly place?: string }) => Store | Promise<Store>;

/** Opens stores that have API keys, of which none may be changed by what happens to tasks. */
export function withKeys(open: Open): Open {
  const project = "of the keys";
  return async (options) => {
    const store = await open(options);
    const { keys } = store.shared;
    const { id, hash } = createApiKey();
    await keys.add({ id, hash, project, name: id, scopes: ["meanwhile:call"], commands: ["report_*"] });
    const close = store.close.bind(store);
    store.close = async () => {
      store.close = close;
      const { keys: left } = await keys.list(project);
      await close();
      assert.deepEqual(
        left.filter((key) => key.id === id).map((key) => [key.hash, key.scopes, key.commands]),
        [[hash, ["meanwhile:call"], ["report_*"]]],
      );
    };
    return store;
  };
}
