/** When the answers to requests over HTTP have been written, as the door says. */
const deliveries = new WeakMap<Request, Promise<void>>();

/** To be said by the door before it hands a request on: `closed` is aborted when the response is over, whichever way. */
export function noteDelivery(request: Request, closed: AbortSignal): void {
  deliveries.set(request, new Promise((resolve) => closed.addEventListener("abort", () => resolve(), { once: true })));
}

/** Resolves when the answer to this request has been written, or cannot be any more. */
export function deliveryOf(request: Request): Promise<void> | undefined {
  return deliveries.get(request);
}
