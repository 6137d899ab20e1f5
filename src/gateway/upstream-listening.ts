import { toError } from "../mcp/guest-answer.ts";
import type { GuestAudience } from "../mcp/guest-audience.ts";
import type { Id, InFlight } from "../wire/in-flight.ts";
import { fieldsOf, type Json, listOf } from "../wire/json.ts";
import type { Message } from "../wire/message.ts";
import { metaKeys } from "../wire/request-envelope.ts";

type Tell = (method: string, params: Json) => void;

/** What a listening is made with. */
interface ListenWays {
  readonly inFlight: InFlight<Message>;
  send(message: Message): Promise<void>;
  /** Ends a request that is never answered. */
  end(id: Id): void;
}

/** What is listened to at an upstream of 2026-07-28. */
export class UpstreamListening {
  readonly #ways: ListenWays;
  readonly #listens = new Map<Id, Tell>();

  constructor(ways: ListenWays) {
    this.#ways = ways;
  }

  /** Resolves with what of it the upstream honours. */
  async listen(params: Json, tell: Tell, over: AbortSignal): Promise<Json> {
    const { id, answer, forget } = this.#ways.inFlight.open();
    const acknowledged = Promise.withResolvers<Json>();
    answer.then(
      ({ error }) => (error === undefined ? acknowledged.resolve({}) : acknowledged.reject(toError(error))),
      acknowledged.reject,
    );
    this.#listens.set(id, (method, news) => {
      if (method === "notifications/subscriptions/acknowledged") acknowledged.resolve(fieldsOf(news.notifications));
      else tell(method, news);
    });
    over.addEventListener("abort", () => {
      forget();
      if (this.#listens.delete(id)) this.#ways.end(id);
    });
    this.#ways.send({ id, method: "subscriptions/listen", params }).catch(acknowledged.reject);
    return await acknowledged.promise;
  }

  /** True for what somebody listens to, who is told. */
  heed(method: string, params: Json): boolean {
    const listen = this.#listens.get(fieldsOf(params._meta)[metaKeys.subscription] as Id);
    listen?.(method, params);
    return listen !== undefined;
  }
}

/** The same of a server that tells without being listened to. */
export async function hearUnasked(
  { audience, capabilities }: { readonly audience: GuestAudience; readonly capabilities: Json },
  wanted: Json,
  tell: Tell,
  over: AbortSignal,
): Promise<Json> {
  const lists = (["prompts", "resources"] as const).filter(
    (name) => wanted[`${name}ListChanged`] === true && fieldsOf(capabilities[name]).listChanged === true,
  );
  const canSubscribe = fieldsOf(capabilities.resources).subscribe === true;
  const uris = canSubscribe ? listOf(wanted.resourceSubscriptions).filter((uri) => typeof uri === "string") : [];
  const hearing = audience.add(lists, tell);
  over.addEventListener("abort", () => hearing.stop());
  const honoured = await hearing.subscribeToEach(uris);
  return {
    ...Object.fromEntries(lists.map((name) => [`${name}ListChanged`, true])),
    ...(honoured.length > 0 && { resourceSubscriptions: honoured }),
  };
}
