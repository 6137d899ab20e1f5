import { expect, test } from "vitest";
import { retryAfterMs } from "../../src/client/http-request.ts";
import { closest } from "../../src/client/tools.ts";
import { cut } from "../../src/wire/errors.ts";

test("Retry-After is a number of seconds, or a date", () => {
  expect(retryAfterMs("3")).toBe(3000);
  expect(retryAfterMs("Thu, 01 Jan 1970 00:00:00 GMT")).toBe(0);
  expect(retryAfterMs("soon")).toBeUndefined();
  expect(retryAfterMs(undefined)).toBeUndefined();
});

test("a server's words are cut to one line of sane length", () => {
  expect(cut(`a\n\n  b${"x".repeat(1000)}`)).toMatch(/^a bx{295}x?…$/);
  expect(cut("short")).toBe("short");
});

test.each([
  ["vault_idnex", "vault_index"],
  ["vaultindex", "vault_index"],
  ["ehco", "echo"],
  ["xyz", undefined],
])("for %s the nearest tool is %s", (name, expected) => {
  expect(closest(name, ["echo", "vault_index", "vault_status"])).toBe(expected);
});
