import { describe, expect, test } from "vitest";
import { metadataPaths, metadataUrl, requestableScopes, resourceMetadata } from "../../src/auth/metadata.ts";

const wellKnown = "/.well-known/oauth-protected-resource";
const issuer = "https://id.example.com";

test.each([
  ["https://example.com/mcp", `https://example.com${wellKnown}/mcp`, [wellKnown, `${wellKnown}/mcp`]],
  ["https://example.com/mcp/", `https://example.com${wellKnown}/mcp`, [wellKnown, `${wellKnown}/mcp`]],
  ["https://example.com", `https://example.com${wellKnown}`, [wellKnown, `${wellKnown}/mcp`]],
  [
    "https://example.com:8443/tools/mcp",
    `https://example.com:8443${wellKnown}/tools/mcp`,
    [wellKnown, `${wellKnown}/mcp`, `${wellKnown}/tools/mcp`],
  ],
])("of %s is at %s", (publicUrl, url, paths) => {
  expect(metadataUrl(publicUrl)).toBe(url);
  expect(metadataPaths(publicUrl)).toEqual(paths);
});

describe("names", () => {
  const facts = { publicUrl: "https://example.com/mcp/", name: "reports", scopes: ["repo:read"] };

  test("the resource, its issuers and the scopes that clients ask for", () => {
    expect(resourceMetadata({ ...facts, issuers: [{ issuer }, { issuer: `${issuer}/two` }] })).toEqual({
      resource: "https://example.com/mcp",
      authorization_servers: [issuer, `${issuer}/two`],
      scopes_supported: ["meanwhile:read", "meanwhile:call", "repo:read"],
      bearer_methods_supported: ["header"],
      resource_name: "reports",
    });
  });

  test("no scope where no issuer can issue it", () => {
    const issuers = [{ issuer, grant: [{ scopes: ["meanwhile:call"] }] }];
    expect(resourceMetadata({ ...facts, issuers })).not.toHaveProperty("scopes_supported");
    expect(requestableScopes(issuers)).toEqual([]);
    expect(requestableScopes([...issuers, { issuer: `${issuer}/two` }])).toEqual(["meanwhile:read", "meanwhile:call"]);
  });
});
