/**
 * Which roots a server that clients share has. It has those of one client at a time:
 *
 * | state  | asked without client | call   | asking ended | only session |
 * | ------ | -------------------- | ------ | ------------ | ------------ |
 * | unused | wanted               |        |              | given        |
 * | wanted |                      | asking |              | given        |
 * | asking |                      |        | given        | given        |
 * | given  |                      |        |              | given        |
 *
 * An event without an entry changes nothing.
 */
export type SharedRoots<Client> =
  /** The server has none, and has not asked for any while it had no client. */
  | { readonly state: "unused" }
  /** It has none, and asked while it had no client: it uses roots. */
  | { readonly state: "wanted" }
  /** It asks this client for its roots, whose first call waits until `ended`. */
  | { readonly state: "asking"; readonly client: Client; readonly ended: Promise<void> }
  /** It has those of this client, or was told to ask for them. */
  | { readonly state: "given"; readonly client: Client };

export type RootsEvent<Client> =
  /** The server asks for roots, and there is no client. */
  | { readonly event: "asked without client" }
  /** A client of 2026-07-28 that has declared roots calls, and no session shares the server. */
  | { readonly event: "call"; readonly client: Client; readonly ended: Promise<void> }
  | { readonly event: "asking ended"; readonly client: Client }
  /** A session that gives roots is the only one that shares the server. */
  | { readonly event: "only session"; readonly client: Client };

/** Returns the state after the event: the same object where it changes nothing. */
export function nextRoots<Client>(from: SharedRoots<Client>, event: RootsEvent<Client>): SharedRoots<Client> {
  switch (event.event) {
    case "asked without client":
      return from.state === "unused" ? { state: "wanted" } : from;
    case "call":
      return from.state === "wanted" ? { state: "asking", client: event.client, ended: event.ended } : from;
    case "asking ended":
      return from.state === "asking" && from.client === event.client ? { state: "given", client: event.client } : from;
    case "only session":
      return from.state === "given" && from.client === event.client ? from : { state: "given", client: event.client };
  }
}
