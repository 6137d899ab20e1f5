import type pg from "pg";
import { importNow } from "../../system/own-module.ts";

/**
 * The driver of PostgreSQL, which is installed only where it is needed. It is imported by name at run time: an `import`
 * at the top of a file would need it for every bundle.
 */
let loaded: typeof pg | undefined;

/** Loads the driver. Rejects with ERR_MODULE_NOT_FOUND where it is not installed. */
export async function loadDriver(): Promise<typeof pg> {
  loaded ??= ((await importNow("pg")) as { readonly default: typeof pg }).default;
  return loaded;
}

/** Returns the driver, once it is loaded. */
export function driver(): typeof pg {
  if (loaded === undefined) throw new Error("The driver of PostgreSQL is used before it is loaded.");
  return loaded;
}
