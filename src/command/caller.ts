/**
 * How the caller was identified. `local`: the user of the home, or the program that embeds the server. `key`: an API key.
 * `user`: an access token of an issuer. `app`: the `identify` of an embedding app. `anonymous`: not at all.
 */
type CallerKind = "local" | "key" | "user" | "app" | "anonymous";

/** Who asked for a call or task. */
export interface Caller {
  readonly kind: CallerKind;
  /** Equal for the same caller, different for every other caller of its kind. */
  readonly id: string;
  /** For people to read: the name of the key, or of the user. */
  readonly name?: string;
  /** The program that acts for the caller. */
  readonly client?: string;
  /** What the caller was granted. The local user needs no scope. */
  readonly scopes: readonly string[];
  readonly groups: readonly string[];
  /**
   * Of a local user the ID of the home, or the project of the embedded server; of an app's caller the project. Not
   * enumerable, so a command that returns its caller does not send it to a client.
   */
  readonly owner?: string;
}

/** What is known about a caller beside the ID. It is kept with each task. */
export type CallerDetails = Partial<Pick<Caller, "name" | "client" | "scopes" | "groups">>;

const prefixes = { local: "local:", key: "key:", user: "user:", app: "app:" };

function createCaller(kind: CallerKind, id: string, details: CallerDetails = {}): Caller {
  const { name, client, scopes = [], groups = [] } = details;
  return { kind, id, ...(name !== undefined && { name }), ...(client !== undefined && { client }), scopes, groups };
}

function withOwner(caller: Caller, owner: () => string): Caller {
  return Object.freeze(Object.defineProperty(caller, "owner", { get: owner }));
}

/** The local user where no store tells one home from another. */
export const localUser: Caller = Object.freeze(createCaller("local", "local"));

/** The local user of a home, or of the embedded servers of a project. */
export function localUserOf(owner: () => string): Caller {
  return withOwner(createCaller("local", "local"), owner);
}

/** The caller of requests without a credential. Nothing tells one such client from another. */
export const anonymous: Caller = Object.freeze(createCaller("anonymous", "anonymous"));

/** The caller of an API key. */
export function keyCaller(id: string, details?: CallerDetails): Caller {
  return Object.freeze(createCaller("key", id, details));
}

/** What tells the users of an issuer apart. Without a subject the client is the caller. */
export interface UserIdentity {
  readonly issuer: string;
  readonly subject?: string | undefined;
  readonly client?: string | undefined;
}

/**
 * The caller of an access token. An issuer has no `#`, and a client is percent-encoded, so two identities never have one
 * ID.
 */
export function userCaller({ issuer, subject, client }: UserIdentity, details?: CallerDetails): Caller {
  const ofClient = client === undefined ? "" : `#client:${encodeURIComponent(client)}`;
  const ofSubject = subject === undefined ? "" : `#sub:${subject}`;
  return Object.freeze(createCaller("user", `${issuer}${ofClient}${ofSubject}`, details));
}

/** A caller whom an embedding app has identified. The ID counts inside the project only. */
export function appCaller(project: string, id: string, details?: CallerDetails): Caller {
  return withOwner(createCaller("app", id, details), () => project);
}

/** What a caller's tasks are stored under: equal for the same caller and no other. */
export function callerKey({ kind, id, owner }: Caller): string {
  if (kind === "local") return owner === undefined ? kind : localKeyOf(owner);
  if (kind === "anonymous") return kind;
  return kind === "app" ? appKeyOf(owner ?? "", id) : `${prefixes[kind]}${id}`;
}

/** What the tasks of the local user of a home, or of a project's embedded servers, are stored under. */
export function localKeyOf(owner: string): string {
  return `${prefixes.local}${owner}`;
}

/** What the tasks of an app's caller are stored under. */
function appKeyOf(project: string, id: string): string {
  return `${prefixes.app}${JSON.stringify([project, id])}`;
}

/** The key of every local user in the versions that did not tell homes apart. */
export const earlierLocalKey = callerKey(localUser);
export const anonymousKey = callerKey(anonymous);

/** The caller of such a key. Throws where `isReadableKey` is false. */
export function toCaller(key: string, details?: CallerDetails): Caller {
  const caller = readKey(key, details);
  if (caller === undefined) throw new Error(`The caller key ${JSON.stringify(key)} is of a kind that is not known.`);
  return caller;
}

/** False for the key of a caller that only a later version knows. Its tasks must not run as those of another caller. */
export function isReadableKey(key: string): boolean {
  return readKey(key) !== undefined;
}

function readKey(key: string, details?: CallerDetails): Caller | undefined {
  if (key === anonymousKey) return anonymous;
  if (key === earlierLocalKey) return localUser;
  const prefix = Object.values(prefixes).find((one) => key.startsWith(one));
  if (prefix === undefined) return undefined;
  const id = key.slice(prefix.length);
  if (prefix === prefixes.local) return localUserOf(() => id);
  if (prefix === prefixes.app) return readAppKey(id, details);
  return Object.freeze(createCaller(prefix === prefixes.key ? "key" : "user", id, details));
}

function readAppKey(text: string, details?: CallerDetails): Caller | undefined {
  try {
    const parts = JSON.parse(text) as unknown;
    if (!Array.isArray(parts) || parts.length !== 2) return undefined;
    const [project, id] = parts as unknown[];
    return typeof project === "string" && typeof id === "string" ? appCaller(project, id, details) : undefined;
  } catch {
    return undefined;
  }
}

/** False for callers who cannot be told apart: they reach tasks by ID alone. */
export function isKnown(caller: Caller): boolean {
  return caller.kind !== "anonymous";
}

/** What is known about a caller beside the ID; undefined where nothing is. */
export function detailsOf({ name, client, scopes, groups }: Caller): CallerDetails | undefined {
  const details = {
    ...(name !== undefined && { name }),
    ...(client !== undefined && { client }),
    ...(scopes.length > 0 && { scopes }),
    ...(groups.length > 0 && { groups }),
  };
  return Object.keys(details).length === 0 ? undefined : details;
}

/** Whose something is, in a sentence to the caller of such a key. */
export function whose(key: string): string {
  return key === anonymousKey ? "callers without a credential" : "yours";
}
