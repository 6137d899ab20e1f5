import { callerKey } from "../command/caller.ts";
import { connectionsBesidePool } from "../queue/node-connections.ts";
import type { HomelessSettings, Settings } from "../settings/settings.ts";
import { isStoreFile, openStore, type Store, type StoreOptions } from "../store/open.ts";
import { localUserIn } from "./home-id.ts";

/** Opens the store of a node, which says so where its server has fewer connections left than the node may need. */
export async function openNodeStore(settings: NodeSettings, options: StoreOptions): Promise<Store> {
  const besidePool = await connectionsBesidePool(settings);
  return await openStore(settings.store, { ...options, besidePool, owner: ownerOf(settings) });
}

type NodeSettings = Pick<Settings | HomelessSettings, "home" | "project" | "store" | "queue"> & {
  readonly worksHere?: boolean;
};

/** Whose own a store is: the home's database is its local user's, and the file of an embedded server its project's. */
function ownerOf(settings: NodeSettings): StoreOptions["owner"] {
  const { home, project, store } = settings;
  const key = () => callerKey(localUserIn(settings));
  if (home === undefined) return isStoreFile(store) ? () => ({ key: key(), project }) : undefined;
  return store === home.tasksFile ? () => ({ key: key() }) : undefined;
}
