/** Who asks: the user of this machine, somebody without a name, or whom a token names. */
export type Caller =
  | { readonly kind: "local" }
  | { readonly kind: "anonymous" }
  | {
      readonly kind: "token";
      readonly issuer: string;
      readonly client: string;
      readonly subject: string;
      /** What they were granted, where that is known. It does not tell callers apart. */
      readonly scopes?: readonly string[];
    };

export const localUser: Caller = Object.freeze({ kind: "local" });
/** Callers who cannot be told apart must not be given each other's runs. */
export const anonymous: Caller = Object.freeze({ kind: "anonymous" });

/** What a caller's tasks are kept under: equal for the same caller and no other. */
export function callerKey(caller: Caller): string {
  return caller.kind === "token"
    ? `token:${JSON.stringify([caller.issuer, caller.client, caller.subject])}`
    : caller.kind;
}

export const localKey = callerKey(localUser);
export const anonymousKey = callerKey(anonymous);

/** The caller of such a key, with what they were granted; what is no key of ours is nobody we know. */
export function toCaller(key: string, scopes?: readonly string[]): Caller {
  if (key === localKey) return localUser;
  if (!key.startsWith("token:")) return anonymous;
  const [issuer, client, subject] = JSON.parse(key.slice("token:".length)) as [string, string, string];
  return { kind: "token", issuer, client, subject, ...(scopes !== undefined && { scopes }) };
}

/** False for callers who cannot be told apart: they reach tasks by id alone. */
export function isKnown(caller: Caller): boolean {
  return caller.kind !== "anonymous";
}

/** Whose something is, in a sentence to the caller of such a key. */
export function whose(key: string): string {
  return key === anonymousKey ? "callers without a credential" : "yours";
}
