import { chmodSync, mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** Everything Meanwhile keeps on a machine lives in one folder of its user. */
export interface Home {
  readonly folder: string;
  readonly configFile: string;
  readonly tokenFile: string;
  readonly tasksFile: string;
  readonly workerLog: string;
  readonly daemonLog: string;
  /** Sockets, locks and records of daemons. */
  readonly runFolder: string;
  /** The socket of the bundled commands alone. */
  readonly packSocket: string;
}

/** Names the home folder and what is in it; touches nothing. */
export function homeAt(env: Readonly<Record<string, string | undefined>>): Home {
  const folder = path.resolve(env.MEANWHILE_HOME || path.join(homedir(), ".meanwhile"));
  return {
    folder,
    configFile: path.join(folder, "config.json"),
    tokenFile: path.join(folder, "token"),
    tasksFile: path.join(folder, "tasks.db"),
    workerLog: path.join(folder, "worker.log"),
    daemonLog: path.join(folder, "daemon.log"),
    runFolder: path.join(folder, "run"),
    packSocket: path.join(folder, "mcp.sock"),
  };
}

/** Makes the home folder, readable by its user alone. */
export function ensureHome(home: Home): void {
  mkdirSync(home.folder, { recursive: true, mode: 0o700 });
  if ((statSync(home.folder).mode & 0o077) !== 0) chmodSync(home.folder, 0o700);
}
