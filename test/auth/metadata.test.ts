import { describe, expect, test } from "vitest";
import { describeResource } from "../../src/auth/metadata.ts";

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
])("the metadata of %s is at %s", (publicUrl, metadataUrl, metadataPaths) => {
  expect(describeResource({ publicUrl, issuers: [{ issuer }], name: "x" })).toMatchObject({
    metadataUrl,
    metadataPaths,
  });
});

describe("the metadata names", () => {
  const facts = { publicUrl: "https://example.com/mcp/", name: "reports" };

  test("the resource, its issuers and the scopes that clients ask for", () => {
    expect(describeResource({ ...facts, issuers: [{ issuer }, { issuer: `${issuer}/two` }] }).metadata).toEqual({
      resource: "https://example.com/mcp",
      authorization_servers: [issuer, `${issuer}/two`],
      scopes_supported: ["meanwhile:read", "meanwhile:call"],
      bearer_methods_supported: ["header"],
      resource_name: "reports",
    });
  });

  test("no scope where no issuer can issue it", () => {
    const issuers = [{ issuer, grant: [{ scopes: ["meanwhile:call"] }] }];
    expect(describeResource({ ...facts, issuers }).metadata).not.toHaveProperty("scopes_supported");
    expect(describeResource({ ...facts, issuers }).scopes).toEqual([]);
    const both = [...issuers, { issuer: `${issuer}/two` }];
    expect(describeResource({ ...facts, issuers: both }).scopes).toEqual(["meanwhile:read", "meanwhile:call"]);
  });
});
