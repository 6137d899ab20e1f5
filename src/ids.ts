import { randomBytes, randomInt, randomUUID } from "node:crypto";

/** A fresh identifier with 122 random bits, safe in headers and URLs. */
export function createId(): string {
  return randomUUID();
}

/** A secret of 256 random bits, as URL-safe text. */
export function createSecret(): string {
  return randomBytes(32).toString("base64url");
}

/** A number to count from that nobody else counts from. */
export function createFirstNumber(): number {
  return randomInt(2 ** 47);
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Random digits and letters. 43 of them have 256 bits, 16 have 95. */
export function createRandomText(length: number): string {
  return Array.from({ length }, () => base62[randomInt(base62.length)]).join("");
}
