import { thisProgram } from "../../program/program.ts";
import type { UpstreamConfig } from "../../project/upstream-config.ts";
import { isObject } from "../change.ts";
import { wrapWordsOf } from "../ownership.ts";
import { toUpstream } from "../servers-file.ts";

/** The server that somebody's entry speaks of. */
export type EntryServer =
  | { readonly kind: "command"; readonly words: readonly string[] }
  | RemoteServer
  /** One that stays as it is; `why` goes behind "was left alone: ". */
  | { readonly kind: "none"; readonly why: string; readonly isWrapped?: boolean };

export interface RemoteServer {
  readonly kind: "url";
  readonly url: string;
  readonly isSse: boolean;
  /** Values as they are written, some of them secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Headers whose values the host takes out of variables: `Bearer ${TOKEN}`. */
  readonly references: Readonly<Record<string, string>>;
}

/** What a host says of a server that has an address; none of it has a meaning for a command. */
export const remoteKeys: readonly string[] = [
  ...["url", "httpUrl", "serverUrl", "type", "transport", "headers", "http_headers", "env_http_headers"],
  ...["bearer_token_env_var", "oauth", "auth", "authProviderType"],
];

/** Reads an entry of any host. `isThere` tells a program whose name has blanks from a line for a shell. */
export function readServer(entry: unknown, isThere: (file: string) => boolean): EntryServer {
  if (!isObject(entry)) return none("it is no object");
  if (wrapWordsOf(entry) !== undefined)
    return { ...none(`it is behind ${thisProgram.title} already`), isWrapped: true };
  const read = toUpstream(entry);
  if (typeof read === "string") return none(read);
  if (read.url !== undefined) return toRemote(entry, { ...read, url: read.url });
  const { command = "", args = [] } = read;
  if (args.length === 0 && /\s/.test(command) && !isThere(command))
    return none("its command is a whole line; write the program in command and the rest in args first");
  return { kind: "command", words: [command, ...args] };
}

function none(why: string) {
  return { kind: "none" as const, why };
}

function toRemote(entry: Readonly<Record<string, unknown>>, read: UpstreamConfig & { url: string }): EntryServer {
  if (entry.headersHelper !== undefined) return none("a program makes its headers, which only its host can run");
  if (signsInItsOwnWay(entry))
    return none("it signs in with settings of its host's; say the same in `upstreams` of a config");
  const isReferred = (name: string) =>
    Object.hasOwn(textsOf(entry.env_http_headers), name) ||
    (name === "Authorization" && entry.bearer_token_env_var !== undefined);
  const headers = Object.entries(read.headers ?? {});
  return {
    kind: "url",
    url: read.url,
    isSse: read.transport === "sse",
    headers: Object.fromEntries(headers.filter(([name]) => !isReferred(name))),
    references: Object.fromEntries(headers.filter(([name]) => isReferred(name))),
  };
}

/** A client of its own is registered there; to find out how to sign in needs no settings, and is done for any server. */
function signsInItsOwnWay({ oauth, auth, authProviderType }: Readonly<Record<string, unknown>>): boolean {
  const isOwn = (value: unknown) => isObject(value) && Object.keys(value).some((key) => key !== "enabled");
  const isProvider = authProviderType !== undefined && authProviderType !== "dynamic_discovery";
  return isOwn(oauth) || isOwn(auth) || isProvider;
}

export function textsOf(values: unknown): Record<string, string> {
  const pairs = Object.entries(isObject(values) ? values : {});
  return Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string"));
}
