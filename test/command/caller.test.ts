import { expect, test } from "vitest";
import {
  anonymous,
  type Caller,
  callerKey,
  isReadableKey,
  localUser,
  localUserOf,
  toCaller,
} from "../../src/command/caller.ts";

const ada: Caller = { kind: "token", issuer: "https://issuer.example", client: "app", subject: 'a "quoted" name' };

test.each([
  ["anonymous", anonymous],
  ["the local user of a home", localUserOf(() => "the-id-of-a-home")],
  ["the local user of a version before", localUser],
  ["a signed-in caller", ada],
])("the key of %s leads back to the same caller", (_who, caller) => {
  const key = callerKey(caller);
  expect(isReadableKey(key)).toBe(true);
  expect(toCaller(key)).toEqual(caller);
  expect(callerKey(toCaller(key))).toBe(key);
});

test("two homes have two local users", () => {
  expect(callerKey(localUserOf(() => "one"))).not.toBe(callerKey(localUserOf(() => "other")));
});

test("what a command returns of its caller does not have the ID of the home", () => {
  const caller = localUserOf(() => "the-id-of-a-home");
  expect(JSON.stringify({ caller, copy: { ...caller } })).toBe('{"caller":{"kind":"local"},"copy":{"kind":"local"}}');
  expect(structuredClone(caller)).toEqual({ kind: "local" });
});

test.each([
  "",
  "key:of-a-later-version",
  "localhost",
  "token:",
  "token:{}",
  'token:["only one"]',
  "token:[1,2,3]",
  "__proto__",
])("the key %j is readable to nobody, and is not taken for an anonymous caller", (key) => {
  expect(isReadableKey(key)).toBe(false);
  expect(() => toCaller(key)).toThrow(`The caller key ${JSON.stringify(key)} is of a kind that is not known.`);
});
