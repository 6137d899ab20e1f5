import { timingSafeEqual } from "node:crypto";
import { keyCaller } from "../command/caller.ts";
import { thisProgram } from "../program/program.ts";
import { keyPrefix, parseApiKey } from "./api-key.ts";
import { type Authentication, AuthenticationError, type TokenVerifier } from "./authentication.ts";
import type { StoredKey } from "./key-store.ts";
import { RecentKeys, type RecentKeysOptions, type RecentList } from "./recent-keys.ts";

/** A list of keys that is older is read again. */
const freshMs = 2_000;
/** A key that is not in the list is looked for in a newer one: unknown keys cost one read in this time at most. */
const unknownMs = 1_000;
/** More unknown keys than this are refused at once, by the list that is there. */
const maxUnknown = 100;
const hourMs = 3_600_000;
/** The same reason is logged once in this time. */
const logMs = 60_000;

type ParsedKey = NonNullable<ReturnType<typeof parseApiKey>>;

/** Verifies API keys of one project. The store is opened with the first key. */
export function createKeyVerifier(options: RecentKeysOptions): TokenVerifier {
  const { clock } = options;
  const recent = new RecentKeys(options);
  const noteUse = createUseNotes(options);
  const logRefusal = createRefusalLog(options);
  /** The number of requests with an unknown key that wait for a newer list. */
  let unknown = 0;

  const toAuthentication = (parsed: ParsedKey, list: RecentList): Authentication | undefined => {
    const key = list.byId.get(parsed.id);
    const until = key === undefined ? undefined : validUntil(key, parsed.hash, list.now);
    if (key === undefined || until === undefined) return undefined;
    noteUse(key, list.now);
    const { id, name, scopes, commands } = key;
    return {
      caller: keyCaller(id, { name, scopes: [...scopes] }),
      scopesFrom: `the API key ${name}`,
      isStillValid: () => isStillValid(parsed),
      ...(commands.length > 0 && { commands: [...commands] }),
      ...(until !== Number.POSITIVE_INFINITY && { validUntil: clock.now() + (until - list.now) }),
    };
  };

  const verifyBy = async (parsed: ParsedKey, reading: Promise<RecentList | undefined>): Promise<Authentication> => {
    const list = listOrThrow(await reading);
    const found = toAuthentication(parsed, list);
    if (found !== undefined) return found;
    logRefusal(parsed, list);
    throw invalidKey();
  };

  const isStillValid = (parsed: ParsedKey): boolean | Promise<boolean> => {
    const isIn = ({ byId, now }: RecentList) => {
      const key = byId.get(parsed.id);
      return key !== undefined && validUntil(key, parsed.hash, now) !== undefined;
    };
    const list = recent.youngerThan(freshMs);
    return list === undefined ? recent.refresh().then((latest) => isIn(listOrThrow(latest))) : isIn(list);
  };

  return {
    accepts: (token) => token.startsWith(keyPrefix),
    verify(token) {
      const parsed = parseApiKey(token);
      if (parsed === undefined) throw invalidKey();
      const list = recent.youngerThan(freshMs);
      if (list === undefined) return verifyBy(parsed, recent.refresh());
      const found = toAuthentication(parsed, list);
      if (found !== undefined) return found;
      if (unknown >= maxUnknown) throw invalidKey();
      // It may have been added, or rotated, a moment ago.
      unknown += 1;
      return verifyBy(parsed, recent.readAnew(unknownMs)).finally(() => (unknown -= 1));
    },
  };
}

function listOrThrow(list: RecentList | undefined): RecentList {
  if (list !== undefined) return list;
  throw new AuthenticationError("unavailable", "The API key cannot be checked at the moment; try again in a second.");
}

/** The same for a key that is unknown, expired or revoked, and for a text that is no key. */
function invalidKey(): AuthenticationError {
  return new AuthenticationError(
    "invalid",
    `The API key is unknown, expired or revoked; \`${thisProgram.name} keys add <name>\` on the server's machine makes a new one.`,
  );
}

/** Returns a function that logs why a key was refused. Callers are not told. */
function createRefusalLog({ clock, log }: RecentKeysOptions): (parsed: ParsedKey, list: RecentList) => void {
  const loggedAt = new Map<string, number>();
  return ({ id }, { byId, now }) => {
    const key = byId.get(id);
    const reason =
      key === undefined
        ? "this project has no key of this ID; a project is its folders of commands, its options and its config file"
        : (key.expiresAt ?? Number.POSITIVE_INFINITY) <= now
          ? "it has expired"
          : "its secret is not valid, or not any more";
    const at = clock.monotonic();
    if (at - (loggedAt.get(reason) ?? Number.NEGATIVE_INFINITY) < logMs) return;
    loggedAt.set(reason, at);
    log.warn(`an API key was refused: ${reason}`, { id });
  };
}

/** When a secret stops being valid, by the store's clock; undefined where it is not valid. */
function validUntil({ hash, earlier, expiresAt = Number.POSITIVE_INFINITY }: StoredKey, given: string, now: number) {
  const until = isSameHash(given, hash)
    ? expiresAt
    : earlier !== undefined && isSameHash(given, earlier.hash)
      ? Math.min(earlier.until, expiresAt)
      : Number.NEGATIVE_INFINITY;
  return now < until ? until : undefined;
}

function isSameHash(given: string, stored: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(stored)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Returns a function that remembers the hour of a use, once an hour and key, while the request goes on. */
function createUseNotes({ openKeys, project, log }: RecentKeysOptions): (key: StoredKey, now: number) => void {
  /** The last hour that was noted, by the key's ID. */
  const noted = new Map<string, number>();
  return ({ id, usedAt = Number.NEGATIVE_INFINITY }, now) => {
    const hour = now - (now % hourMs);
    if (Math.max(usedAt, noted.get(id) ?? usedAt) >= hour) return;
    noted.set(id, hour);
    openKeys()
      .then((keys) => keys.noteUse(project, id))
      .catch((error: unknown) => log.debug("the use of an API key was not noted", { error }));
  };
}
