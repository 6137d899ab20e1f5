import { readFileSync } from "node:fs";

const pollMs = 500;

/**
 * Calls `listener` once a process that started this one has ended, even by `kill -9`: the parent, or the parent of the
 * shell in which npm runs a script, because that shell goes on without npm.
 */
export function onParentEnd(listener) {
  const parent = process.ppid;
  const grandparent = parentOf(parent);
  const timer = setInterval(() => {
    if (process.ppid === parent && parentOf(parent) === grandparent) return;
    clearInterval(timer);
    listener();
  }, pollMs);
  timer.unref();
}

/** Undefined where there is no `/proc`. */
function parentOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1).split(" ")[1];
  } catch {
    return undefined;
  }
}
