import type { JsonObject } from "../command/foreign.ts";
import type { ClientRequest } from "./request.ts";

/** These speak of requests and tasks of the server's own, by ids that mean something else to our client. */
const itsOwn = /^notifications\/(progress|cancelled|initialized|tasks\/.*|tool_result|subscriptions\/.*)$/;

/** Hands a client what a server behind its call tells; log lines from the level on that it has asked for. */
export function passNotice(method: string, params: JsonObject, request: ClientRequest): void {
  if (!method.startsWith("notifications/") || itsOwn.test(method)) return;
  if (method === "notifications/message" && !request.hears(params.level)) return;
  request.notify(method, params);
}
