/** Who asks: the user of this machine, somebody without a name, or whom a token names. */
export type Caller =
  | {
      readonly kind: "local";
      /** Whose local user: the ID of a home, or the project of an embedded server. Not enumerable, see `localUserOf`. */
      readonly owner?: string;
    }
  | { readonly kind: "anonymous" }
  | {
      readonly kind: "token";
      readonly issuer: string;
      readonly client: string;
      readonly subject: string;
      /** What they were granted, where that is known. It does not tell callers apart. */
      readonly scopes?: readonly string[];
    };

const tokenPrefix = "token:";
const localPrefix = "local:";

/** The local user where no store tells one home from another. */
export const localUser: Caller = Object.freeze({ kind: "local" });

/**
 * The local user of one home, or of one project's embedded servers. The owner is not enumerable, so a command that
 * returns its caller does not send the ID of a home to a client.
 */
export function localUserOf(owner: () => string): Caller {
  const caller: Caller = { kind: "local" };
  return Object.freeze(Object.defineProperty(caller, "owner", { get: owner }));
}

/** Callers who cannot be told apart must not be given each other's runs. */
export const anonymous: Caller = Object.freeze({ kind: "anonymous" });

/** What a caller's tasks are kept under: equal for the same caller and no other. */
export function callerKey(caller: Caller): string {
  if (caller.kind === "token") return `${tokenPrefix}${JSON.stringify([caller.issuer, caller.client, caller.subject])}`;
  return caller.kind === "local" && caller.owner !== undefined ? localKeyOf(caller.owner) : caller.kind;
}

/** What the tasks of the local user of a home, or of a project's embedded servers, are kept under. */
export function localKeyOf(owner: string): string {
  return `${localPrefix}${owner}`;
}

/** The key of every local user in the versions that did not tell homes apart. */
export const earlierLocalKey = callerKey(localUser);
export const anonymousKey = callerKey(anonymous);

/** The caller of such a key, with what they were granted. Throws where `isReadableKey` is false. */
export function toCaller(key: string, scopes?: readonly string[]): Caller {
  if (key === anonymousKey) return anonymous;
  if (key === earlierLocalKey) return localUser;
  if (key.startsWith(localPrefix)) return localUserOf(() => key.slice(localPrefix.length));
  const token = readToken(key);
  if (token === undefined) throw new Error(`The caller key ${JSON.stringify(key)} is of a kind that is not known.`);
  const [issuer, client, subject] = token;
  return { kind: "token", issuer, client, subject, ...(scopes !== undefined && { scopes }) };
}

/** False for the key of a caller that a later version knows: a task of theirs must not run as somebody else's. */
export function isReadableKey(key: string): boolean {
  return key === anonymousKey || key === earlierLocalKey || key.startsWith(localPrefix) || readToken(key) !== undefined;
}

function readToken(key: string): [string, string, string] | undefined {
  if (!key.startsWith(tokenPrefix)) return undefined;
  try {
    const parts = JSON.parse(key.slice(tokenPrefix.length)) as unknown;
    const isToken = Array.isArray(parts) && parts.length === 3 && parts.every((part) => typeof part === "string");
    return isToken ? (parts as [string, string, string]) : undefined;
  } catch {
    return undefined;
  }
}

/** False for callers who cannot be told apart: they reach tasks by id alone. */
export function isKnown(caller: Caller): boolean {
  return caller.kind !== "anonymous";
}

/** Whose something is, in a sentence to the caller of such a key. */
export function whose(key: string): string {
  return key === anonymousKey ? "callers without a credential" : "yours";
}
