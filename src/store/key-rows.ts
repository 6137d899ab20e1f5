import type { NewKey, StoredKey } from "../auth/key-store.ts";

/** A row of the table `api_keys`, as both databases give it. */
export interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly hash: string;
  readonly earlier_hash: string | null;
  readonly earlier_until: number | null;
  /** Lists are JSON. */
  readonly scopes: string;
  readonly commands: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly used_at: number | null;
}

export const keyColumns: readonly (keyof KeyRow)[] = [
  ...(["id", "name", "hash", "earlier_hash", "earlier_until", "scopes", "commands"] as const),
  ...(["created_at", "expires_at", "used_at"] as const),
];

/** A use is remembered to the hour. */
export const useHourMs = 3_600_000;

/** The start of the hour of a time. */
export function hourOf(now: number): number {
  return now - (now % useHourMs);
}

/** A new key as a database takes it. */
export function fromNewKey({ id, project, name, hash, scopes, commands, expiresInMs }: NewKey) {
  return {
    ...{ id, project, name, hash, expiresInMs: expiresInMs ?? null },
    ...{ scopes: JSON.stringify(scopes), commands: JSON.stringify(commands) },
  };
}

export function toKey(row: KeyRow): StoredKey {
  const { id, name, hash, earlier_hash: earlierHash, earlier_until: until } = row;
  const { created_at: createdAt, expires_at: expiresAt, used_at: usedAt } = row;
  return {
    ...{ id, name, hash, createdAt },
    ...{ scopes: JSON.parse(row.scopes) as string[], commands: JSON.parse(row.commands) as string[] },
    ...(earlierHash !== null && until !== null && { earlier: { hash: earlierHash, until } }),
    ...(expiresAt !== null && { expiresAt }),
    ...(usedAt !== null && { usedAt }),
  };
}
