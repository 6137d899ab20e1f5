import { isDeepStrictEqual } from "node:util";
import { at, isObject } from "../change.ts";
import type { Entry, Launch, SetupHost } from "../host.ts";
import { wrapWordsOf } from "../ownership.ts";
import { type EntryServer, type RemoteServer, remoteKeys, textsOf } from "./entry-server.ts";
import { fromWrapWords, toWrapWords, withoutOurVariables } from "./entry-words.ts";

type Server = Exclude<EntryServer, { kind: "none" }>;

/** An entry as it is to be, and which of its values are to be set for that; none where it is written anew. */
export interface EntryPlan {
  readonly entry: Entry;
  readonly steps: readonly { readonly keys: readonly string[]; readonly value: unknown }[];
}

/** The entry of a server that is put behind us: what else it says stays, and where it says it. */
export function toWrapped(
  found: Entry,
  given: { host: SetupHost; name: string; server: Server; toLaunch(words: readonly string[]): Launch },
): EntryPlan {
  const { host, name, server } = given;
  const { words, env, needed } = toWrapWords(name, server);
  const launch = given.toLaunch(words);
  const variables = { ...launch.env, ...env };
  if (server.kind === "command") return withCommand(found, [launch.command, ...launch.args], variables);
  const earlier = found[envKeyOf(found, host)] as Launch["env"] | undefined;
  const made = {
    ...host.toEntry({ ...launch, env: { ...earlier, ...variables } }),
    ...(needed.length > 0 && { env_vars: [...textList(found.env_vars), ...needed] }),
  };
  // What says where it is comes as one piece, at the place of the first of it.
  const others = Object.entries(found).filter(
    ([key]) => ![...remoteKeys, "env", "environment", "env_vars"].includes(key),
  );
  const first = Object.keys(found).findIndex((key) => remoteKeys.includes(key));
  const front = others.filter(([key]) => Object.keys(found).indexOf(key) < first);
  const entry = { ...Object.fromEntries(front), ...made, ...Object.fromEntries(others) };
  return { entry, steps: [] };
}

/** Only what is run is another; a list stays a list, and what an object holds stays in it. */
export function withCommand(found: Entry, words: readonly string[], env: Readonly<Record<string, string>>): EntryPlan {
  const [program, ...args] = words;
  const isInner = isObject(found.command);
  const said = Array.isArray(found.command)
    ? [{ keys: ["command"], value: [...words] }]
    : isInner
      ? [
          { keys: ["command", "path"], value: program },
          { keys: ["command", "args"], value: args },
        ]
      : [
          { keys: ["command"], value: program },
          { keys: ["args"], value: args },
        ];
  const envKey = Array.isArray(found.command) ? "environment" : "env";
  const steps = [
    ...said,
    ...Object.entries(env).map(([name, value]) => ({
      keys: [...(isInner ? ["command"] : []), envKey, name],
      value,
    })),
  ];
  return { entry: steps.reduce((entry, { keys, value }) => withValue(entry, keys, value), found), steps };
}

function withValue(entry: Entry, [key = "", ...rest]: readonly string[], value: unknown): Entry {
  const inner = entry[key];
  return { ...entry, [key]: rest.length === 0 ? value : withValue(isObject(inner) ? inner : {}, rest, value) };
}

export function envKeyOf(found: Entry, { toEntry }: SetupHost): string {
  if (isObject(found.environment)) return "environment";
  return Object.hasOwn(toEntry({ command: "", args: [], env: { a: "" } }), "environment") ? "environment" : "env";
}

function textList(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}

/**
 * What an entry was, out of what it is now; undefined where it does not say so. `own` are the variables of ours that an
 * earlier version wrote under names that an entry may have had before.
 */
export function rebuild(found: Entry, host: SetupHost, own: Launch["env"] = {}): Entry | undefined {
  const envKey = envKeyOf(found, host);
  const server = fromWrapWords(wrapWordsOf(found) ?? [], textsOf(found[envKey]));
  if (server === undefined) return undefined;
  if (server.kind === "command") return withoutVariables(withCommand(found, server.words, {}).entry, own);
  const made = toRemote(server, host);
  const env = withoutOurVariables(textsOf(found[envKey]), own);
  const others = Object.entries(found).filter(
    ([key]) => !["type", "command", "args", "env_vars", envKey].includes(key) && !Object.hasOwn(made, key),
  );
  return { ...made, ...(Object.keys(env).length > 0 && { [envKey]: env }), ...Object.fromEntries(others) };
}

/** The entry of a command without the variables that are ours, and without `env` where nothing else is in it. */
export function withoutVariables(entry: Entry, own: Launch["env"]): Entry {
  if (isObject(entry.command)) return { ...entry, command: withoutVariables(entry.command, own) };
  const key = Array.isArray(entry.command) ? "environment" : "env";
  const env = entry[key];
  if (!isObject(env)) return entry;
  const texts = textsOf(env);
  const kept = withoutOurVariables(texts, own);
  const ours = Object.keys(texts).filter((name) => !Object.hasOwn(kept, name));
  if (ours.length === 0) return entry;
  const left = Object.fromEntries(Object.entries(env).filter(([name]) => !ours.includes(name)));
  const { [key]: _env, ...others } = entry;
  return Object.keys(left).length === 0 ? others : { ...entry, [key]: left };
}

function toRemote({ url, isSse, headers, references }: RemoteServer, { remote }: SetupHost): Entry {
  const type = isSse ? remote.sseType : remote.type;
  const bearer = /^Bearer \$\{(\w+)\}$/.exec(references.Authorization ?? "")?.[1];
  const { Authorization: _bearer, ...rest } = references;
  const named = Object.entries(bearer === undefined ? references : rest);
  const isCodex = remote.headers === "http_headers";
  const written = isCodex ? headers : { ...headers, ...references };
  return {
    ...(type !== undefined && { type }),
    [isSse && remote.url === "httpUrl" ? "url" : remote.url]: url,
    ...(isCodex && bearer !== undefined && { bearer_token_env_var: bearer }),
    ...(isCodex &&
      named.length > 0 && {
        env_http_headers: Object.fromEntries(named.map(([name, text]) => [name, text.replace(/^\$\{(\w+)\}$/, "$1")])),
      }),
    ...(Object.keys(written).length > 0 && { [remote.headers]: written }),
  };
}

/**
 * What an entry was, when it is known what we found and what we made of it: ours goes, what somebody has changed since
 * stays. Where they have changed what is run behind us, theirs counts.
 */
export function takeBack(known: { before: Entry; after: Entry }, found: Entry, host: SetupHost): Entry {
  const merged = merge(known.before, known.after, found) as Entry;
  const [then, now] = [rebuild(known.after, host), rebuild(found, host)];
  const theirs = ["command", "args", host.remote.url].filter(
    (key) => now !== undefined && Object.hasOwn(now, key) && !isDeepStrictEqual(now[key], then?.[key]),
  );
  return { ...merged, ...Object.fromEntries(theirs.map((key) => [key, now?.[key]])) };
}

/** Three ways: what we changed goes back, also where it was changed once more. */
function merge(before: unknown, after: unknown, now: unknown): unknown {
  if (isDeepStrictEqual(before, after)) return now;
  if (isDeepStrictEqual(after, now)) return before;
  if (!isObject(after) || !isObject(now) || (before !== undefined && !isObject(before))) return before;
  const keys = new Set([...Object.keys(before ?? {}), ...Object.keys(now)]);
  const pairs = [...keys].map((key) => [key, merge(at(before, [key]), after[key], now[key])] as const);
  const kept = pairs.filter(([, value]) => value !== undefined);
  return before === undefined && kept.length === 0 ? undefined : Object.fromEntries(kept);
}
