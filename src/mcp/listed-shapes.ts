import { callerKey } from "../command/caller.ts";
import { fieldsOf } from "../wire/json.ts";
import { metaKeys } from "../wire/request-envelope.ts";
import { takesJobNotifications } from "./generation/task-support.ts";
import { takesTasks } from "./generation/tasks-2026.ts";
import type { ClientConnection, ClientRequest } from "./request.ts";

/** Clients over HTTP that are remembered; the one that listed longest ago is forgotten first. */
const maxClients = 10_000;
const maxInfoLength = 200;

/**
 * Whether the last list of each client was made for one that takes tasks. Such a list has the tools' own output schemas,
 * which the envelope of a handle does not fit, and one follow-up tool. A later call of the same client need not declare
 * what its list request did.
 */
export class ListedShapes {
  readonly #byConnection = new WeakMap<ClientConnection, boolean>();
  readonly #byClient = new Map<string, boolean>();

  note(request: ClientRequest): void {
    if (!request.client.isModern) return;
    const declares = declaresTasks(request);
    if (!request.connection.isOfOneRequest) {
      this.#byConnection.set(request.connection, declares);
      return;
    }
    const key = clientKey(request);
    this.#byClient.delete(key);
    this.#byClient.set(key, declares);
    const [oldest] = this.#byClient.keys();
    if (this.#byClient.size > maxClients) this.#byClient.delete(oldest as string);
  }

  /** True when the last list of this client was for one that takes tasks. */
  wasForTasks(request: ClientRequest): boolean {
    if (!request.client.isModern) return false;
    const { connection } = request;
    return (
      (connection.isOfOneRequest ? this.#byClient.get(clientKey(request)) : this.#byConnection.get(connection)) === true
    );
  }
}

/** True when this very request declares the tasks extension. */
export function declaresTasks({ client }: Pick<ClientRequest, "client">): boolean {
  return client.isModern && takesTasks(client.capabilities);
}

/** Whether this client can get a handle, or the answer that announces a job, in place of a result. */
export function admitsHandle(request: Pick<ClientRequest, "client">, hasFollowUps: boolean): boolean {
  return !declaresTasks(request) && (hasFollowUps || takesJobNotifications(request.client));
}

/** Over HTTP a client of 2026-07-28 has no connection: it is known by its caller, and by what it says of itself. */
function clientKey({ caller, meta }: ClientRequest): string {
  const { name, version } = fieldsOf(meta[metaKeys.clientInfo]);
  return JSON.stringify([callerKey(caller), ...[name, version].map((text) => String(text).slice(0, maxInfoLength))]);
}
