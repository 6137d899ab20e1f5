import { systemClock } from "../clock.ts";

/** What comes within this time; undefined when nothing does, or it fails. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const over = Promise.withResolvers<undefined>();
  const stopClock = systemClock.after(ms, () => over.resolve(undefined));
  try {
    return await Promise.race([promise.catch(() => undefined), over.promise]);
  } finally {
    stopClock();
  }
}
