import { openCatalog } from "../../src/command/catalog.ts";
import { loadSettings } from "../../src/config.ts";
import { silentLog } from "../../src/log.ts";
import { StoredCatalog } from "../../src/stored-catalog.ts";

/** Loads a project's commands as `meanwhile tools` does, so that help and completion know them. */
export async function loadOnce(project: { readonly cwd: string; readonly env: Readonly<Record<string, string>> }): Promise<void> {
  const { commandFolders: folders, home, toolPrefix } = await loadSettings({ ...project, flags: {} });
  const stored = new StoredCatalog(home, folders);
  await openCatalog({ folders, toolPrefix, log: silentLog, onLoad: (loaded) => stored.keep(loaded) });
}
