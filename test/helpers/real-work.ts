import { setTimeout as wait } from "node:timers/promises";

/** A file, name or connection that the system or a thread is busy with. */
const isRequest = (resource: string) => /Req|ConnectWrap/.test(resource);
const countRequests = () => process.getActiveResourcesInfo().filter(isRequest).length;
/** The real clock, also in tests that replace it. */
const { now } = Date;
/** A request that takes longer may wait for the test itself. */
const requestMs = 1_000;
/** Requests that nothing waits for any more. */
let givenUp = 0;

/**
 * Waits until no request to the system is under way. Tests whose time passes quickly call this before it does: such work
 * takes seconds on a busy machine.
 */
export async function realWorkEnds(): Promise<void> {
  const begun = now();
  for (;;) {
    const requests = countRequests();
    if (now() - begun > requestMs) givenUp = requests;
    givenUp = Math.min(givenUp, requests);
    if (requests === givenUp) return;
    await new Promise(setImmediate);
  }
}

/** Lets a real millisecond pass: what was sent on a socket may be on its way although no request is left. */
export async function passRealMillisecond(): Promise<void> {
  await wait(1);
}
