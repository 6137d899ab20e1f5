import { type Catalog, mergeSources } from "../../src/command/catalog.ts";
import { type LiveFolderOptions, openLiveFolders } from "../../src/command/folder-source.ts";

/** A catalog of folders alone, kept up to date as a server's is. */
export async function openLiveCatalog(options: LiveFolderOptions): Promise<Catalog> {
  return mergeSources([await openLiveFolders(options)], options);
}
