import { StoredCatalog } from "../project/stored-catalog.ts";
import { readSettings } from "../settings/settings.ts";
import type { GlobalFlags } from "./main.ts";

/**
 * Whether a project's config and command files are, byte by byte, those that this user has run before; true where there
 * are none.
 */
export function isLoadedBefore(flags: GlobalFlags): boolean {
  const { settings, notice } = readSettings({ cwd: process.cwd(), env: process.env, flags });
  return notice === undefined && new StoredCatalog(settings.home, settings.commandFolders).isComplete();
}
