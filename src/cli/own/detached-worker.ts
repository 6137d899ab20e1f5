import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { ensureHome } from "../../paths.ts";
import { executable, flagWords, type ProjectFlags } from "../../project/project.ts";
import type { Settings } from "../../settings/settings.ts";
import { nobodys } from "../../system/child-environment.ts";

/** Starts a process of its own that runs this project's tasks until nothing is left to do. */
export function startDetachedWorker(settings: Settings, flags: ProjectFlags): void {
  ensureHome(settings.home);
  const log = openSync(settings.home.workerLog, "a", 0o600);
  const child = spawn(process.execPath, [executable(), ...flagWords(flags), "_work"], {
    detached: true,
    windowsHide: true,
    stdio: ["ignore", log, log],
    cwd: process.cwd(),
    env: { ...process.env, ...nobodys },
  });
  child.unref();
  closeSync(log);
}
