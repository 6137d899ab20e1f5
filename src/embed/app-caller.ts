import { anonymous, type Caller } from "../command/caller.ts";

/** Somebody whom the app around a server knows: tasks are theirs alone, from one session and device to the next. */
export interface AppCaller {
  /** Tells users apart. */
  readonly subject: string;
  /** The program that acts for them, where that is to be told apart. */
  readonly client?: string | undefined;
  /** Who vouches for them, where there is more than one who does. */
  readonly issuer?: string | undefined;
  /** What they were granted; commands see it as `task.caller.scopes`. */
  readonly scopes?: readonly string[] | undefined;
}

/** For whom something is done, in the app's own name by default: then as the user that this process belongs to. */
export interface ForCaller {
  readonly caller?: AppCaller | undefined;
}

/** All callers without a credential together: those over HTTP where there is no `identify`. */
export interface AnonymousCallers {
  readonly kind: "anonymous";
}

/** Whose progress is meant: that of the user that this process belongs to by default. */
export interface ForAnyCaller {
  readonly caller?: AppCaller | AnonymousCallers | undefined;
}

const isText = (value: unknown): value is string => typeof value === "string";

/** Throws for what is no caller: it must not become one whom others are taken for. */
export function toTokenCaller(caller: AppCaller): Caller {
  const { subject, client = "", issuer = "", scopes } = (caller ?? {}) as Partial<AppCaller>;
  const areTexts = isText(subject) && subject !== "" && isText(client) && isText(issuer);
  if (!areTexts || (scopes !== undefined && !(Array.isArray(scopes) && scopes.every(isText))))
    throw new TypeError(
      "A caller must be { subject, client, issuer, scopes }: `subject` a text that is not empty, the others may be left out.",
    );
  return { kind: "token", issuer, client, subject, ...(scopes !== undefined && { scopes }) };
}

/** The caller that the app names; without one the local user of the server. */
export function toCallerOrOwn(caller: AppCaller | undefined, localUser: Caller): Caller {
  return caller === undefined ? localUser : toTokenCaller(caller);
}

/** Like `toCallerOrOwn`, and `{ kind: "anonymous" }` is all callers without a credential. */
export function toAnyCaller(caller: AppCaller | AnonymousCallers | undefined, localUser: Caller): Caller {
  const { kind, subject } = (caller ?? {}) as { readonly kind?: unknown; readonly subject?: unknown };
  if (kind === "anonymous" && subject === undefined) return anonymous;
  return toCallerOrOwn(caller as AppCaller | undefined, localUser);
}
