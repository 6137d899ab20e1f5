import { ProtocolError } from "../errors.ts";
import { type Json, textOf } from "../wire/json.ts";

/** Somebody who hears what a guest tells without being asked. */
export interface Hearing {
  readonly tell: (method: string, params: Json) => void;
  subscribe(uri: string): Promise<void>;
  /** Resolves with those that are not refused: one that is takes nothing from the others. */
  subscribeToEach(uris: readonly string[]): Promise<readonly string[]>;
  unsubscribe(uri: string): Promise<void>;
  stop(): void;
}

interface Hearer {
  /** Lists whose changes it wants to hear of. */
  readonly lists: readonly string[];
  /** Resources whose changes it wants to hear of. */
  readonly uris: Set<string>;
  readonly tell: Hearing["tell"];
}

/** Who hears what of a guest that many share: nobody hears what was meant for another. */
export class GuestAudience {
  readonly #hearers = new Set<Hearer>();
  readonly #ask: (method: string, params: Json) => Promise<unknown>;

  /** `ask`: the guest is asked for what nobody had wanted before. */
  constructor(ask: (method: string, params: Json) => Promise<unknown>) {
    this.#ask = ask;
  }

  add(lists: readonly string[], tell: Hearing["tell"]): Hearing {
    const hearer: Hearer = { lists, uris: new Set(), tell };
    this.#hearers.add(hearer);
    const forget = async (uri: string) => {
      if (!hearer.uris.delete(uri) || this.#isWanted(uri)) return;
      await this.#ask("resources/unsubscribe", { uri });
    };
    const subscribe = async (uri: string) => {
      const isFirst = !this.#isWanted(uri);
      hearer.uris.add(uri);
      if (!isFirst) return;
      await this.#ask("resources/subscribe", { uri }).catch((error: unknown) => {
        hearer.uris.delete(uri);
        throw error;
      });
    };
    return {
      tell,
      subscribe,
      subscribeToEach: async (uris) => {
        const honoured: string[] = [];
        for (const uri of uris) {
          try {
            await subscribe(uri);
            honoured.push(uri);
          } catch (error) {
            if (!(error instanceof ProtocolError)) throw error;
          }
        }
        return honoured;
      },
      unsubscribe: forget,
      stop: () => {
        this.#hearers.delete(hearer);
        // It may be closed by now, and then it tells nothing more.
        for (const uri of hearer.uris) forget(uri).catch(() => undefined);
      },
    };
  }

  tell(method: string, params: Json): void {
    const list = /^notifications\/(\w+)\/list_changed$/.exec(method)?.[1];
    const uri = method === "notifications/resources/updated" ? textOf(params.uri) : undefined;
    for (const { lists, uris, tell } of this.#hearers) {
      const wantsIt = (list !== undefined && lists.includes(list)) || (uri !== undefined && isAmong(uris, uri));
      if (wantsIt) tell(method, params);
    }
  }

  #isWanted(uri: string): boolean {
    return [...this.#hearers].some(({ uris }) => uris.has(uri));
  }
}

/** What is told of a part is told to who wants the whole. */
function isAmong(uris: ReadonlySet<string>, uri: string): boolean {
  return uris.has(uri) || [...uris].some((whole) => uri.startsWith(whole.endsWith("/") ? whole : `${whole}/`));
}
