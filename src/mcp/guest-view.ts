import { fieldsOf, type Json } from "../wire/json.ts";
import type { GuestClient } from "./guest-client.ts";
import type { ClientConnection, ClientIdentity, ClientRequest, Result } from "./request.ts";

/** What a client of ours sees of somebody else's server: a guest's, or that of an upstream. */
export interface GuestView {
  /** Its tools as it lists them, by name. */
  readonly tools: ReadonlyMap<string, Json>;
  readonly prompts: ReadonlySet<string>;
  /** It is all there is behind this server: what it does not have it says itself. */
  readonly isAlone?: boolean;
  /** Whether it has what a method asks for. */
  capabilityOf(method: string): boolean;
  /** What it declares beside what is ours. */
  mergeCapabilities(ours: Json): Json;
  /** Asks it in the name of a client. */
  request(method: string, params: Json, client?: GuestClient): Promise<Result>;
  /** Has it tell what it lets a client of 2026-07-28 listen to; what of that it honours. */
  listen(wanted: Json, tell: (method: string, params: Json) => void, over: AbortSignal): Promise<Json>;
}

/** What one conversation has of somebody else's servers. */
export interface ConversationGuest {
  /** Names the conversation to whoever works on its calls. */
  readonly session: string;
  for(client: ClientIdentity): Promise<GuestView>;
  /** Once it is there. */
  openFor(client: ClientIdentity): GuestView | undefined;
  /** Its client has shaken hands as `params` say; what it is told then. */
  greet(hello: Json, params: Json): Promise<Json>;
  /** A request that is none of ours. */
  answer(method: string, params: Json, request: ClientRequest): Promise<Result>;
  notify(method: string, params: Json): void;
  setLevel(params: Json): Promise<void>;
  close(): void;
}

/** Somebody else's servers, for every conversation there is. */
export interface GuestCompany {
  join(connection: ClientConnection): ConversationGuest;
  /** The schema of a tool's arguments, where it is known without asking. */
  schemaOf(tool: string): Json | undefined;
  close(): void;
}

/**
 * What somebody else's server and ours declare together: ours wins. Its tasks, where it has some, are ours to follow; and
 * where it is alone and has no tools, there are none.
 */
export function joinCapabilities({ tasks: _tasks, ...theirs }: Json, ours: Json, isAlone: boolean): Json {
  const merged: Record<string, unknown> = { ...theirs, ...ours };
  for (const [name, own] of Object.entries(ours)) merged[name] = { ...fieldsOf(theirs[name]), ...fieldsOf(own) };
  if (isAlone && theirs.tools === undefined) delete merged.tools;
  return merged;
}
