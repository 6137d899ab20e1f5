import { describe, expect, test } from "vitest";
import {
  anonymous,
  appCaller,
  callerKey,
  detailsOf,
  isReadableKey,
  keyCaller,
  localUser,
  localUserOf,
  toCaller,
  userCaller,
} from "../../src/command/caller.ts";

const issuer = "https://issuer.example/";
const details = { name: "Ada", client: "app", scopes: ["read"], groups: ["ops"] };

test.each([
  ["anonymous", anonymous],
  ["the local user of a home", localUserOf(() => "the-id-of-a-home")],
  ["the local user of a version before", localUser],
  ["an API key", keyCaller("3xK9", details)],
  ["a user", userCaller({ issuer, subject: 'a "quoted" # name' }, details)],
  ["a user of one client", userCaller({ issuer, subject: "ada", client: "a #client" }, details)],
  ["a client without a subject", userCaller({ issuer, client: "robot" }, details)],
  ["a user of an app", appCaller("a project # with spaces", "ada#1", details)],
])("the key of %s leads back to the same caller", (_who, caller) => {
  const key = callerKey(caller);
  expect(isReadableKey(key)).toBe(true);
  expect(toCaller(key, detailsOf(caller))).toEqual(caller);
  expect(callerKey(toCaller(key))).toBe(key);
});

describe("two callers never have one key", () => {
  const callers = [
    anonymous,
    localUser,
    localUserOf(() => "one"),
    localUserOf(() => "other"),
    keyCaller("one"),
    keyCaller("two"),
    userCaller({ issuer, subject: "one" }),
    userCaller({ issuer: "https://other.example", subject: "one" }),
    userCaller({ issuer, client: "one" }),
    userCaller({ issuer, client: "one", subject: "one" }),
    userCaller({ issuer, subject: "one#client:one" }),
    userCaller({ issuer, client: "one#sub:one" }),
    appCaller("project", "one"),
    appCaller("project#one", ""),
    appCaller("project", "#one"),
    appCaller("other", "one"),
  ];

  test("of one kind or of two", () => {
    expect(new Set(callers.map(callerKey)).size).toBe(callers.length);
  });
});

test("names, scopes and groups do not tell callers apart", () => {
  expect(callerKey(keyCaller("one", details))).toBe(callerKey(keyCaller("one")));
  expect(callerKey(appCaller("project", "one", details))).toBe(callerKey(appCaller("project", "one")));
});

test("what a command returns of its caller has neither the ID of the home nor the project", () => {
  const local = localUserOf(() => "the-id-of-a-home");
  const shown = '{"kind":"local","id":"local","scopes":[],"groups":[]}';
  expect(JSON.stringify({ caller: local, copy: { ...local } })).toBe(`{"caller":${shown},"copy":${shown}}`);
  expect(JSON.stringify(structuredClone(appCaller("secret-project", "ada")))).not.toContain("secret-project");
});

test.each([
  "",
  "robot:of-a-later-version",
  "localhost",
  'token:["a","b","c"]',
  "app:",
  "app:{}",
  'app:["only one"]',
  "app:[1,2]",
  "__proto__",
])("the key %j is readable to no version, and is not taken for an anonymous caller", (key) => {
  expect(isReadableKey(key)).toBe(false);
  expect(() => toCaller(key)).toThrow(`The caller key ${JSON.stringify(key)} is of a kind that is not known.`);
});
