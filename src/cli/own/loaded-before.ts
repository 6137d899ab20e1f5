import type { ProjectFlags } from "../../project/project.ts";
import { StoredCatalog } from "../../project/stored-catalog.ts";
import { readSettings } from "../../settings/settings.ts";
import type { ProcessContext } from "../process-context.ts";

/**
 * Whether a project's config and command files are, byte by byte, those that this user has run before; true where there
 * are none.
 */
export function isLoadedBefore({ cwd, env }: ProcessContext, flags: ProjectFlags): boolean {
  const { settings, notice } = readSettings({ cwd, env, flags });
  return notice === undefined && new StoredCatalog(settings.home, settings.commandFolders).isComplete();
}
