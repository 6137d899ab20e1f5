import { openCatalog } from "../../src/command/catalog.ts";
import { silentLog } from "../../src/log.ts";
import { servedCatalog } from "../../src/project/project-commands.ts";
import { loadSettings } from "../../src/settings/settings.ts";

/** Loads a project's commands as `meanwhile tools` does, so that help and completion know them. */
export async function loadOnce(project: {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}): Promise<void> {
  await openCatalog(servedCatalog(await loadSettings({ ...project, flags: {} }), silentLog));
}
