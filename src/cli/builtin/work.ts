import { openCatalog } from "../../command/catalog.ts";
import { loadSettings } from "../../config.ts";
import { Exit, type ExitCode } from "../../errors.ts";
import { openLog } from "../../log.ts";
import { openTasks } from "../../tasks.ts";
import type { GlobalFlags } from "../main.ts";

/** The detached worker behind `--detach`: runs this project's tasks until there are none. */
export async function run(call: { flags: GlobalFlags; protectStdout(): Promise<void> }): Promise<ExitCode> {
  await call.protectStdout();
  const settings = await loadSettings({ cwd: process.cwd(), env: process.env, flags: call.flags });
  const log = openLog({ level: settings.logLevel, isTerminal: false, write: (text) => process.stderr.write(text) });
  const catalog = await openCatalog({ folders: settings.commandFolders, toolPrefix: settings.toolPrefix, log });
  const tasks = openTasks(settings, log);
  const worker = tasks.createWorker((name) => catalog.get(name));
  tasks.sweeper.start();
  worker.start();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void worker.stop().then(() => process.exit(Exit.Ok)));
  await worker.runUntilIdle();
  tasks.sweeper.stop();
  await worker.stop();
  await tasks.close();
  return Exit.Ok;
}
