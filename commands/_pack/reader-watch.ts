import { workerData } from "node:worker_threads";

/**
 * A thread beside the one that parses, which may not come back for long: it ends the process when it holds too much
 * memory, and when the process that started it is gone. The signal says which.
 */
const { maxBytes, parent } = workerData as { readonly maxBytes: number; readonly parent: number };
const checkMs = 10;

setInterval(() => {
  if (process.memoryUsage.rss() > maxBytes) process.kill(process.pid, "SIGUSR2");
  if (process.ppid !== parent) process.kill(process.pid, "SIGKILL");
}, checkMs);
