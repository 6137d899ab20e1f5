import type { Relay } from "../command/foreign.ts";
import type { Json } from "../wire/json.ts";
import { type GuestClient, whoAsks } from "./guest-client.ts";
import type { AskLimits } from "./request.ts";

/** Whom a guest works for when it works for a run. */
export class RunClient implements GuestClient {
  readonly #relay: Relay;

  constructor(relay: Relay) {
    this.#relay = relay;
  }

  get signal(): AbortSignal {
    return this.#relay.signal;
  }

  get who(): string {
    const { caller, origin } = this.#relay;
    return whoAsks(caller, origin.client?.session);
  }

  get caller(): Relay["caller"] {
    return this.#relay.caller;
  }

  get hangUp(): (() => void) | undefined {
    return this.#relay.hangUp;
  }

  notify(method: string, params: Json): void {
    if (method !== "notifications/progress") return void this.#relay.notify(method, params);
    const { progress, total, message } = params;
    if (typeof progress !== "number" || !Number.isFinite(progress)) return;
    const said = typeof message === "string" ? { message } : {};
    this.#relay.progress({ done: progress, ...(typeof total === "number" && { total }), ...said });
  }

  async ask(method: string, params: Json, { signal }: AskLimits): Promise<unknown> {
    return await this.#relay.ask({ method, params }, { signal });
  }
}
