import type { ProbeAnswer, ProbeSession } from "../wire/probe-session.ts";

/** Conversations over pipes that gentle checks hand on to each other. */
export class SessionPool {
  readonly #kept = new Map<string, { readonly session: ProbeSession; readonly answer: ProbeAnswer }>();

  take(key: string): { readonly session: ProbeSession; readonly answer: ProbeAnswer } | undefined {
    const kept = this.#kept.get(key);
    if (kept?.session.pipe?.isEnded !== false) return undefined;
    kept.session.forgetHeard();
    return kept;
  }

  keep(key: string, greeted: { readonly session: ProbeSession; readonly answer: ProbeAnswer }): void {
    this.#kept.set(key, greeted);
  }

  /** After a check that found something nobody knows what state a conversation is in. */
  async empty(): Promise<void> {
    const kept = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.allSettled(kept.map(({ session }) => session.close()));
  }
}
