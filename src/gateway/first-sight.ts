import { type Clock, within } from "../clock.ts";
import type { ClientIdentity } from "../mcp/request.ts";
import type { Upstream } from "./upstream.ts";
import type { UpstreamSession } from "./upstream-session.ts";
import type { UpstreamView } from "./upstream-view.ts";

/** So long a client waits for an upstream of which nothing is known. */
const patienceMs = 5_000;
/** One that could not be started is not tried again before this, unless it is called. */
const againMs = 15_000;

/**
 * Several upstreams must not wait for the slowest. Of one that has never been heard nothing can be told: clients wait
 * for it a little, once, and are told what it has when it comes.
 */
export class FirstSight {
  readonly #clock: Clock;
  /** Until when nobody waits for one. */
  readonly #notBefore = new Map<Upstream, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Undefined while nothing is known of it. */
  async viewOf(
    part: UpstreamSession,
    client: Pick<ClientIdentity, "isModern" | "capabilities">,
  ): Promise<UpstreamView | undefined> {
    const { upstream } = part;
    const isTried = this.#clock.monotonic() < (this.#notBefore.get(upstream) ?? 0);
    if (!part.isKnownTo(client) && !isTried) await this.#wait(part);
    return part.knownView(client);
  }

  async #wait(part: UpstreamSession): Promise<void> {
    const { upstream } = part;
    let isOver = false;
    const settle = (notBefore: number) => {
      isOver = true;
      this.#notBefore.set(upstream, notBefore);
    };
    const opening = part.connect().then(
      () => settle(0),
      () => settle(this.#clock.monotonic() + againMs),
    );
    // Others do not wait for what is under way already.
    await within(this.#clock, patienceMs, opening, () => {
      if (!isOver) this.#notBefore.set(upstream, Number.POSITIVE_INFINITY);
    });
  }
}
