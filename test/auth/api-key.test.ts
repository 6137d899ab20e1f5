import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createApiKey, parseApiKey } from "../../src/auth/api-key.ts";

test("a key is mw_<id>_<secret>, and what is kept of it is its ID and the secret's SHA-256", () => {
  const { id, key, hash } = createApiKey();
  expect(key).toMatch(/^mw_[0-9A-Za-z]{16}_[0-9A-Za-z]{43}$/);
  const secret = key.slice(-43);
  expect(key).toBe(`mw_${id}_${secret}`);
  expect(hash).toBe(createHash("sha256").update(secret).digest("base64url"));
  expect(parseApiKey(key)).toEqual({ id, hash });
});

test("no two keys are alike, and every character of the alphabet occurs", () => {
  const keys = Array.from({ length: 200 }, () => createApiKey());
  expect(new Set(keys.map(({ id }) => id)).size).toBe(200);
  expect(new Set(keys.map(({ hash }) => hash)).size).toBe(200);
  expect(new Set(keys.flatMap(({ id, key }) => [...id, ...key.slice(-43)])).size).toBe(62);
});

test("a key for an ID has that ID and another secret", () => {
  const first = createApiKey();
  const second = createApiKey(first.id);
  expect(second.id).toBe(first.id);
  expect(second.hash).not.toBe(first.hash);
});

const { key } = createApiKey();

test.each([
  ["nothing", ""],
  ["the prefix alone", "mw_"],
  ["a character too few", key.slice(0, -1)],
  ["a character too many", `${key}0`],
  ["a character of no key", `${key.slice(0, -1)}-`],
  ["a line break behind it", `${key}\n`],
  ["a space before it", ` ${key}`],
  ["another prefix", `sk_${key.slice(3)}`],
  ["an ID that is too short", `mw_${key.slice(4)}`],
  ["no secret", key.slice(0, 20)],
  ["64 kB", `mw_${"a".repeat(65_536)}`],
  ["letters that are no ASCII", key.replace(/.$/, "é")],
])("%s is no key", (_, text) => {
  expect(parseApiKey(text)).toBeUndefined();
});
