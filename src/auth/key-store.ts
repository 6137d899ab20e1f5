/** An API key as a store keeps it. Times are the store's own, in milliseconds. */
export interface StoredKey {
  /** Part of the key. Tasks belong to it, so it stays when the secret is rotated. */
  readonly id: string;
  /** Unique in the project. */
  readonly name: string;
  /** SHA-256 of the secret, base64url. */
  readonly hash: string;
  /** The hash of the secret before a rotation, and when it stops being valid. */
  readonly earlier?: { readonly hash: string; readonly until: number } | undefined;
  readonly scopes: readonly string[];
  /** Patterns of the tools that the key may call; empty: every tool. */
  readonly commands: readonly string[];
  readonly createdAt: number;
  readonly expiresAt?: number | undefined;
  /** The start of the hour in which the key was last used. */
  readonly usedAt?: number | undefined;
}

export interface NewKey extends Pick<StoredKey, "id" | "name" | "hash" | "scopes" | "commands"> {
  readonly project: string;
  /** Absent: the key does not expire. */
  readonly expiresInMs?: number | undefined;
}

/** The keys of a project, at a time of the store's clock. */
export interface KeyList {
  readonly now: number;
  /** Oldest first. Expired keys are among them. */
  readonly keys: readonly StoredKey[];
}

/** API keys, shared by all nodes of a store. What a write has acknowledged is durable. */
export interface KeyStore {
  /** False where the project has a key of this name. */
  add(key: NewKey): Promise<boolean>;
  list(project: string): Promise<KeyList>;
  /** Replaces the secret; the present one stays valid for `overlapMs`. Undefined where there is no key of this name. */
  rotate(
    project: string,
    name: string,
    change: { readonly hash: string; readonly overlapMs: number },
  ): Promise<StoredKey | undefined>;
  /** Removes a key. False where there is none of this name. */
  revoke(project: string, name: string): Promise<boolean>;
  /** Remembers the hour of a use. */
  noteUse(project: string, id: string): Promise<void>;
}
