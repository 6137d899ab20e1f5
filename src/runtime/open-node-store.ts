import { connectionsBesidePool } from "../queue/node-connections.ts";
import type { HomelessSettings, Settings } from "../settings/settings.ts";
import { openStore, type Store, type StoreOptions } from "../store/open.ts";

/** Opens the store of a node, which says so where its server has fewer connections left than the node may need. */
export async function openNodeStore(
  settings: Pick<Settings | HomelessSettings, "store" | "queue"> & { readonly worksHere?: boolean },
  options: StoreOptions,
): Promise<Store> {
  return await openStore(settings.store, { ...options, besidePool: await connectionsBesidePool(settings) });
}
