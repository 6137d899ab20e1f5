import { besidePool, isPostgresUrl, parseAddress } from "../store/postgres/address.ts";

interface NodeParts {
  readonly store: string;
  /** Undefined where nobody has named one: then it is the store's own server. */
  readonly queue: string | undefined;
  /** Default: it works. */
  readonly worksHere?: boolean;
}

/** How many connections a node opens at most to its store's server beside the store's pool. */
export async function connectionsBesidePool({ store, queue, worksHere = true }: NodeParts): Promise<number> {
  if (!isPostgresUrl(store)) return 0;
  const own = worksHere ? besidePool.working : besidePool.serving;
  const at = queue ?? store;
  if (serverOf(at) === undefined || serverOf(at) !== serverOf(store)) return own;
  const { loadBullmq, queueConnections } = await import("./bull-queue.ts");
  const isInstalled = await loadBullmq(at).then(
    () => true,
    () => false,
  );
  return !isInstalled ? own : own + (worksHere ? queueConnections.working : queueConnections.serving);
}

/** Undefined for what is no PostgreSQL server, or none that can be reached. */
function serverOf(url: string): string | undefined {
  if (!isPostgresUrl(url)) return undefined;
  try {
    const { host = "localhost", port = 5432 } = parseAddress(url).access;
    return `${host}:${port}`;
  } catch {
    // Whoever opens it says why.
    return undefined;
  }
}
