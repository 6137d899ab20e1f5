import { expect, test } from "vitest";
import {
  anonymous,
  appCaller,
  callerKey,
  keyCaller,
  localUser,
  localUserOf,
  userCaller,
} from "../../src/command/caller.ts";
import { taskLimitOf } from "../../src/task/limits.ts";

test.each([
  ["the local user", localUser, "localTasks"],
  ["the local user of a home", localUserOf(() => "home-1"), "localTasks"],
  ["an API key", keyCaller("0123456789abcdef"), "localTasks"],
  ["an API key whose ID looks like another kind", keyCaller("user:ada"), "localTasks"],
  ["a user of an issuer", userCaller({ issuer: "https://id.example", subject: "ada" }), "signedInTasks"],
  ["a user of an app", appCaller("home", "ada"), "signedInTasks"],
  ["anonymous callers", anonymous, "anonymousTasks"],
] as const)("the live tasks of %s are limited by the setting for them", (_, caller, limit) => {
  expect(taskLimitOf(callerKey(caller))).toBe(limit);
});
