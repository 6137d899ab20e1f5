import { timingSafeEqual } from "node:crypto";
import { keyCaller } from "../command/caller.ts";
import { thisProgram } from "../program/program.ts";
import { keyPrefix, parseApiKey } from "./api-key.ts";
import { type Authentication, AuthenticationError, type TokenVerifier } from "./authentication.ts";
import type { StoredKey } from "./key-store.ts";
import { RecentKeys, type RecentKeysOptions, type RecentList } from "./recent-keys.ts";

/** A list of keys that is older is read again. */
const freshMs = 2_000;
/** For a key that is not in the list, it is read again from this age on: unknown keys cost one read a second at most. */
const freshForUnknownMs = 1_000;
const hourMs = 3_600_000;

type ParsedKey = NonNullable<ReturnType<typeof parseApiKey>>;

/** Verifies API keys of one project. The store is opened with the first key. */
export function createKeyVerifier(options: RecentKeysOptions): TokenVerifier {
  const { clock } = options;
  const recent = new RecentKeys(options);
  const noteUse = createUseNotes(options);

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

  const isStillValid = (parsed: ParsedKey): boolean | Promise<boolean> => {
    const isIn = ({ byId, now }: RecentList) => {
      const key = byId.get(parsed.id);
      return key !== undefined && validUntil(key, parsed.hash, now) !== undefined;
    };
    const list = recent.youngerThan(freshMs);
    return list === undefined ? refreshed(recent).then(isIn) : isIn(list);
  };

  return {
    accepts: (token) => token.startsWith(keyPrefix),
    verify(token) {
      const parsed = parseApiKey(token);
      if (parsed === undefined) throw invalidKey();
      const list = recent.youngerThan(freshMs);
      const found = list === undefined ? undefined : toAuthentication(parsed, list);
      if (found !== undefined) return found;
      if (recent.youngerThan(freshForUnknownMs) !== undefined) throw invalidKey();
      return refreshed(recent).then((latest) => {
        const verified = toAuthentication(parsed, latest);
        if (verified === undefined) throw invalidKey();
        return verified;
      });
    },
  };
}

async function refreshed(recent: RecentKeys): Promise<RecentList> {
  const list = await recent.refresh();
  if (list === undefined)
    throw new AuthenticationError("unavailable", "The API key cannot be checked at the moment; try again in a second.");
  return list;
}

/** The same for a key that is unknown, expired or revoked, and for a text that is no key. */
function invalidKey(): AuthenticationError {
  return new AuthenticationError(
    "invalid",
    `The API key is unknown, expired or revoked; \`${thisProgram.name} keys add <name>\` on the server's machine makes a new one.`,
  );
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
