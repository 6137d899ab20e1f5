import { ensureHome } from "../../paths.ts";
import { flagWords, type ProjectFlags } from "../../project/project.ts";
import type { Settings } from "../../settings/settings.ts";
import type { ProcessContext } from "../process-context.ts";

/** Starts a background process that runs this project's tasks until none is left. */
export function startDetachedWorker(context: ProcessContext, settings: Settings, flags: ProjectFlags): void {
  ensureHome(settings.home);
  context.startInBackground([...flagWords(flags), "_work"], settings.home.workerLog);
}
