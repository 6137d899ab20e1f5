import { expect, test } from "vitest";
import { challenge } from "../../src/auth/challenge.ts";
import { parseChallenge } from "../../src/gateway/oauth/upstream-challenge.ts";

test("without parameters is the scheme alone", () => {
  expect(challenge({})).toBe("Bearer");
  expect(challenge({ scope: [] })).toBe("Bearer");
});

test("is read by our own client as it was meant", () => {
  const header = challenge({
    error: "insufficient_scope",
    description: "More scopes are needed",
    scope: ["meanwhile:call", "repo:admin"],
    metadataUrl: "https://example.com/.well-known/oauth-protected-resource/mcp",
  });
  expect(header).toBe(
    'Bearer error="insufficient_scope", error_description="More scopes are needed", scope="meanwhile:call repo:admin", resource_metadata="https://example.com/.well-known/oauth-protected-resource/mcp"',
  );
  expect(parseChallenge(header)).toEqual({
    error: "insufficient_scope",
    scopes: ["meanwhile:call", "repo:admin"],
    resourceMetadata: "https://example.com/.well-known/oauth-protected-resource/mcp",
  });
});

test("has no quote, backslash, line break or letter beyond ASCII in a description", () => {
  expect(challenge({ description: 'a "b" \\ c\r\nX-Evil: é' })).toBe(
    "Bearer error_description=\"a 'b' ' c??X-Evil: ?\"",
  );
  expect(challenge({ description: "Bearer …" })).toBe('Bearer error_description="Bearer ..."');
});
