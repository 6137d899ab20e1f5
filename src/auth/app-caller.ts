import { anonymous, appCaller, type Caller } from "../command/caller.ts";

/** A user whom the app around a server has identified. Their tasks are theirs alone, in every session and on every device. */
export interface AppUser {
  readonly kind: "app";
  /** Tells the app's users apart, inside the `project` of the server. */
  readonly id: string;
  /** For people to read. */
  readonly name?: string | undefined;
  /** The program that acts for the user. It does not tell users apart. */
  readonly client?: string | undefined;
  /** What the user was granted; commands read it as `task.caller.scopes`. */
  readonly scopes?: readonly string[] | undefined;
  readonly groups?: readonly string[] | undefined;
}

/** A user of the app, the user that this process belongs to, or all callers without a credential together. */
export type AppCaller = AppUser | { readonly kind: "local" } | { readonly kind: "anonymous" };

/** Whose call or task it is. */
export interface ForCaller {
  /** Default: the user that this process belongs to. */
  readonly caller?: AppCaller | undefined;
}

/** PostgreSQL indexes no text of more than 2,704 bytes, and the ID is part of one. */
const maxIdBytes = 1_000;

const isText = (value: unknown): value is string => typeof value === "string";
const isOptionalText = (value: unknown) => value === undefined || isText(value);
const isOptionalList = (value: unknown) => value === undefined || (Array.isArray(value) && value.every(isText));

/** The caller that an app names; without one the local user of the server. Throws a TypeError for any other value. */
export function callerIn(server: CallersOfServer, caller: AppCaller | undefined): Caller {
  return caller === undefined ? server.localUser : toCaller(server, caller);
}

/** What a server knows of the callers that an app names. */
export interface CallersOfServer {
  readonly localUser: Caller;
  readonly project: string;
}

/** The caller that an app names. Throws a TypeError for any other value: it must not become a caller. */
export function toCaller({ localUser, project }: CallersOfServer, caller: AppCaller): Caller {
  const { kind, id, name, client, scopes, groups } = (caller ?? {}) as Partial<Omit<AppUser, "kind">> & {
    readonly kind?: unknown;
  };
  if (kind === "local") return localUser;
  if (kind === "anonymous") return anonymous;
  const isUser = kind === "app" && isText(id) && id !== "" && isOptionalText(name) && isOptionalText(client);
  if (!isUser || !isOptionalList(scopes) || !isOptionalList(groups))
    throw new TypeError(
      'A caller must be { kind: "app", id }, with `name`, `client`, `scopes` and `groups` if they are known, or { kind: "local" }, or { kind: "anonymous" }.',
    );
  if (Buffer.byteLength(id) > maxIdBytes)
    throw new TypeError(
      `The \`id\` of a caller has at most ${maxIdBytes} bytes; return a shorter one, for example a hash.`,
    );
  return appCaller(project, id, {
    ...(name !== undefined && { name }),
    ...(client !== undefined && { client }),
    ...(scopes !== undefined && { scopes: [...scopes] }),
    ...(groups !== undefined && { groups: [...groups] }),
  });
}
