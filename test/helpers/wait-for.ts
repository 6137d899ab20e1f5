/** The real one, also where a test has replaced the clock: not everything that is waited for runs on that. */
const { now } = Date;

/**
 * Calls `look` until it returns something other than undefined and false, and returns that. For conditions without an
 * event. Throws the sentence of `why` after `guardMs`, a limit that only guards against hanging.
 */
export async function waitFor<T>(
  look: () => T | undefined | false | Promise<T | undefined | false>,
  why: () => string = () => "it never came",
  guardMs = 50_000,
): Promise<T> {
  const began = now();
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) return found;
    const waitedMs = now() - began;
    if (waitedMs > guardMs) throw new Error(why());
    // A long wait polls less often: a look may cost as much as what it waits for.
    await new Promise((resolve) => setTimeout(resolve, Math.min(10 + waitedMs / 50, 50)));
  }
}
