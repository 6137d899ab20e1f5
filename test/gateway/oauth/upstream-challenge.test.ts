import { expect, test } from "vitest";
import { parseChallenge } from "../../../src/gateway/oauth/upstream-challenge.ts";

test.each([
  ['Bearer resource_metadata="https://a/b", scope="x y  x"', { resourceMetadata: "https://a/b", scopes: ["x", "y"] }],
  [
    'bearer scope=x,error=insufficient_scope , Resource_Metadata = "https://a"',
    { scopes: ["x"], error: "insufficient_scope", resourceMetadata: "https://a" },
  ],
  ['Basic realm="Bearer scope=\\"evil\\"", Bearer scope="good"', { scopes: ["good"] }],
  ['Negotiate abc==, Bearer error="invalid_token"', { error: "invalid_token" }],
  ['Bearer scope="first", scope="second"', { scopes: ["first"] }],
  ['Bearer scope="a\\"b \u0007 c"', { scopes: ["c"] }],
  ['Basic realm="x", scope="other"', {}],
  ["Bearer", {}],
  ['Bearer scope="never closed', {}],
  [`${"Bearer ,".repeat(50_000)} scope=x`, {}],
  [undefined, {}],
])("%.60s", (header, expected) => {
  const none = { resourceMetadata: undefined, scopes: undefined, error: undefined };
  const { scopes, ...rest } = parseChallenge(header);
  expect({ ...rest, scopes: scopes?.length === 0 ? undefined : scopes }).toEqual({ ...none, ...expected });
});
