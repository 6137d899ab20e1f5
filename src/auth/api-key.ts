import { createHash } from "node:crypto";
import { createRandomText } from "../ids.ts";

/** Begins every API key, so that scanners find keys in repositories and logs. */
export const keyPrefix = "mw_";
const idLength = 16;
/** 256 bits. */
const secretLength = 43;
const keyForm = new RegExp(`^${keyPrefix}([0-9A-Za-z]{${idLength}})_([0-9A-Za-z]{${secretLength}})$`);

export interface NewApiKey {
  readonly id: string;
  /** All of the key, `mw_<id>_<secret>`: to be shown once and kept nowhere. */
  readonly key: string;
  /** SHA-256 of the secret, base64url: what a store keeps. */
  readonly hash: string;
}

/** Creates a key; with an ID, a key of the same caller with another secret. */
export function createApiKey(id = createRandomText(idLength)): NewApiKey {
  const secret = createRandomText(secretLength);
  return { id, key: `${keyPrefix}${id}_${secret}`, hash: hashOf(secret) };
}

/** The ID and the secret's hash of a text that has the form of an API key; undefined for any other text. */
export function parseApiKey(text: string): { readonly id: string; readonly hash: string } | undefined {
  const [, id, secret] = keyForm.exec(text) ?? [];
  return id === undefined || secret === undefined ? undefined : { id, hash: hashOf(secret) };
}

/** A fast hash is enough: nobody can try all of 2^256 secrets. */
function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("base64url");
}
