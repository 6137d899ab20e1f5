import { expect, test } from "vitest";
import { retryAfterMs } from "../../../src/client/connection/http-request.ts";

test("Retry-After is a number of seconds, or a date", () => {
  expect(retryAfterMs("3")).toBe(3000);
  expect(retryAfterMs("Thu, 01 Jan 1970 00:00:00 GMT")).toBe(0);
  expect(retryAfterMs("soon")).toBeUndefined();
  expect(retryAfterMs(undefined)).toBeUndefined();
});
