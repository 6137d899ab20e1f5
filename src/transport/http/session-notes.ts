import type { Way } from "../../mcp/incoming.ts";
import { Backlog } from "../../mcp/outbound.ts";
import { agreeOn } from "../../mcp/router.ts";
import type { KeptSession, SessionNotes } from "../../mcp/shared.ts";
import { isObject, type Json, textOf } from "../../wire/json.ts";
import type { Message } from "../../wire/message.ts";

/** What a session's client has said that holds for all of its requests, so that any server can go on with it. */

const level = "level";
const isReady = "isReady";
const resource = "resource:";

/** What is kept of a handshake. */
export function toGreeting({ params = {} }: Message): string {
  const { protocolVersion, capabilities, clientInfo } = params;
  return JSON.stringify({ protocolVersion: agreeOn(textOf(protocolVersion) ?? ""), capabilities, clientInfo });
}

/** What is to be noted of a message; undefined for one that changes nothing. */
export function notesOf({ method, params = {} }: Message): SessionNotes | undefined {
  const uri = textOf(params.uri) ?? "";
  if (method === "logging/setLevel") return { [level]: params.level };
  if (method === "notifications/initialized") return { [isReady]: true };
  if (method === "resources/subscribe") return { [`${resource}${uri}`]: true };
  if (method === "resources/unsubscribe") return { [`${resource}${uri}`]: null };
  return undefined;
}

/** What its client has said so far, in short. */
export function saidSoFar({ greeting, notes }: KeptSession): readonly Message[] {
  const greeted: unknown = JSON.parse(greeting);
  const uris = Object.keys(notes).filter((name) => name.startsWith(resource));
  return [
    { id: 0, method: "initialize", params: (isObject(greeted) ? greeted : {}) as Json },
    ...(notes[isReady] === true ? [{ method: "notifications/initialized" }] : []),
    ...(notes[level] === undefined ? [] : [{ id: 0, method: "logging/setLevel", params: { level: notes[level] } }]),
    ...uris.map((name) => ({ id: 0, method: "resources/subscribe", params: { uri: name.slice(resource.length) } })),
  ];
}

/** A way for what was answered elsewhere already: nobody hears the answer but who waits for it. */
export class SilentWay implements Way {
  readonly #answered = Promise.withResolvers<Message>();
  readonly outbound = { backlog: new Backlog(), whenLeft: () => Promise.resolve(true) };
  readonly exchange = undefined;

  get answered(): Promise<Message> {
    return this.#answered.promise;
  }

  send(message: Message): void {
    if (message.method === undefined) this.#answered.resolve(message);
  }
}
