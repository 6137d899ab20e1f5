import type { JsonObject, Relay } from "../command/foreign.ts";

/** So many sessions' folders are remembered, those that told them last. */
const maxKept = 1_000;

/** The folders of clients that have gone: who is asked for them later is told what they were. */
export class KeptRoots {
  readonly #roots = new Map<string, JsonObject>();
  readonly #isThere: (session: string) => boolean;

  constructor(isThere: (session: string) => boolean) {
    this.#isThere = isThere;
  }

  /** The same call, whose client is asked for its folders while it is there. */
  for(relay: Relay): Relay {
    const { session } = relay.origin.client ?? {};
    if (session === undefined || relay.origin.client?.capabilities?.roots === undefined) return relay;
    return {
      ...relay,
      ask: async (request, options) => {
        if (request.method !== "roots/list") return await relay.ask(request, options);
        const kept = this.#isThere(session) ? undefined : this.#roots.get(session);
        const roots = kept ?? (await relay.ask(request, options));
        this.#keep(session, roots);
        return roots;
      },
    };
  }

  #keep(session: string, roots: JsonObject): void {
    this.#roots.delete(session);
    this.#roots.set(session, roots);
    for (const oldest of [...this.#roots.keys()].slice(0, -maxKept)) this.#roots.delete(oldest);
  }
}
