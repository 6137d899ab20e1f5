const pollMs = 500;

/** Calls `listener` once the process that started this one has ended, even by `kill -9`. */
export function onParentEnd(listener) {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    listener();
  }, pollMs);
  timer.unref();
}
