import { messageOf, RuntimeError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { findOwnFile, requireOwn } from "../system/own-module.ts";

/** The file of a thread, by its path in `dist` and in `src`. */
export interface ThreadFile {
  readonly built: string;
  readonly source: string;
}

/** Returns the file of a thread. Throws where a bundler has left it behind. */
export function findThread(file: ThreadFile): URL {
  const found = findOwnFile(file);
  if (found !== undefined) return found;
  throw new RuntimeError(
    "STORE_UNAVAILABLE",
    `The file ${file.built} of the package meanwhile is missing, which renews the leases of running tasks; copy it from node_modules/meanwhile/dist to the folder of your bundle.`,
    { forClients: "The task database cannot be opened; whoever runs the server finds the reason in its log." },
  );
}

/**
 * Starts a thread that renews a worker's leases, where a command that blocks the event loop cannot stop it; what is
 * returned stops it, and resolves when it has ended. `leases` go from thread to thread in memory, never as an argument.
 */
export function startLeaseThread(file: ThreadFile, leases: object, log: Logger): () => Promise<void> {
  // Loaded here, because most processes answer their first call before they have a lease; and without waiting, because
  // a command may block the event loop next.
  const { Worker: Thread } = requireOwn("node:worker_threads") as typeof import("node:worker_threads");
  const thread = new Thread(findThread(file), { workerData: leases, stdout: true });
  thread.unref();
  // Silence would look like health until the first lease has run out.
  thread.on("error", (error) =>
    log.error(
      `leases cannot be renewed, so tasks that run here for longer than theirs are taken by others: ${messageOf(error)}`,
    ),
  );
  const exited = new Promise<void>((resolve) => thread.once("exit", () => resolve()));
  // Asked, not ended: a thread that is cut off while it loads a native module takes the whole process with it.
  return async () => {
    thread.ref();
    thread.postMessage("stop");
    await exited;
  };
}
