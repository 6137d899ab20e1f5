import { Exit } from "../errors.ts";

/**
 * The first signal stops in good order, a second one at once: unless it says that the terminal is gone, which comes
 * with the first when a person logs out.
 */
export function onStop(stop: () => void): void {
  let isStopping = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => {
      if (isStopping && signal !== "SIGHUP") process.exit(Exit.Cancelled);
      isStopping = true;
      stop();
    });
  }
}
