import { describe, expect, test } from "vitest";
import type { UserConfig } from "../../src/config.ts";
import { changeableBy, checkConfig } from "../../src/settings/check-config.ts";

describe("who may change a setting", () => {
  /** Every setting there is: a new one has to be put here, and is closed to tools unless somebody opens it. */
  const settings: Record<keyof UserConfig, "tool" | "person"> = {
    name: "tool",
    instructions: "tool",
    version: "person",
    project: "person",
    toolPrefix: "tool",
    logLevel: "tool",
    deferral: "tool",
    hosts: "tool",
    followUpTools: "tool",
    errorsAsCompleted: "tool",
    prompts: "tool",
    commands: "person",
    env: "person",
    bundled: "person",
    mcp: "person",
    http: "person",
    auth: "person",
    diagnose: "person",
    pack: "person",
    graceSeconds: "person",
    logFiles: "person",
    questionSeconds: "person",
    limits: "person",
    upstreams: "person",
    upstreamPrefix: "person",
  };

  test.each(Object.entries(settings))("%s: %s, and so for all that is inside it", (name, who) => {
    expect([changeableBy(name), changeableBy(`${name}.x.y`)]).toEqual([who, who]);
  });

  test("what is no setting, nobody", () => {
    for (const key of ["", "HTTP", " http", "__proto__", "constructor.name", "toString"])
      expect(changeableBy(key), key).toBe("nobody");
  });
});

describe("what is said of an upstream", () => {
  const check = (upstream: unknown) => checkConfig({ upstreams: { a: upstream } }, "the config");

  test("may be all that there is", () => {
    const policy = { share: "caller", allow: ["a*"], deny: ["b"], rerun: ["c"], long: ["d"], timeLimitSeconds: 0.5 };
    expect(() =>
      check({ command: "x", args: ["", "y"], cwd: "~", env: { A: "", B: "1\n2" }, ...policy }),
    ).not.toThrow();
    const oauth = { grant: "device", clientId: "i", clientSecret: "${S}", scopes: ["s"] };
    expect(() => check({ url: "https://${HOST}/mcp", headers: { A: "b" }, transport: "sse", oauth })).not.toThrow();
  });

  test.each<[unknown, string]>([
    ["npx x", "`upstreams.a` must be an object { command, … } or { url, … }"],
    [{}, "`upstreams.a` must be an object with either `command` or `url`, and this has neither"],
    [{ command: "x", url: "http://a" }, "and this has both"],
    [{ command: "x", headers: {} }, "`upstreams.a` must be without `headers`, which is for a `url`"],
    [{ url: "http://a", args: [] }, "`upstreams.a` must be without `args`, which is for a `command`"],
    [{ command: "x", args: "y" }, "`upstreams.a.args` must be a list of texts"],
    [{ command: "x", env: { A: 1 } }, "`upstreams.a.env.A` must be text"],
    [{ url: "http://a", headers: { A: "b\nC: d" } }, "`upstreams.a.headers.A` must be text in one line"],
    [{ url: "ftp://a" }, "`upstreams.a.url` must be an address that begins with http:// or https://"],
    [{ url: "https://me:secret@a.b" }, "without a name and password in it"],
    [{ command: "x", share: "me" }, '`upstreams.a.share` must be one of "session", "caller", "all"'],
    [{ command: "x", allow: "y" }, "`upstreams.a.allow` must be a list of tool names"],
    [{ command: "x", timeLimitSeconds: 0 }, "`upstreams.a.timeLimitSeconds` must be seconds above 0"],
    [{ url: "http://a", oauth: { grant: "x" } }, "`upstreams.a.oauth.grant` must be one of"],
    [{ command: "x", argz: [] }, "`upstreams.a.argz` is not a setting; did you mean `upstreams.a.args`?"],
  ])("%j is refused", (upstream, sentence) => {
    expect(() => check(upstream)).toThrow(sentence);
    expect(() => check(upstream)).not.toThrow("secret@");
  });

  test("has a name that can stand before a tool's", () => {
    expect(() => checkConfig({ upstreams: { "a b": { command: "x" } } }, "the config")).toThrow(
      '`upstreams` must be upstreams by names of up to 32 letters, digits, - and _, not "a b"',
    );
  });
});

describe("what is said of issuers", () => {
  const issuer = "https://id.example.com/realms/one";
  const check = (one: unknown) => checkConfig({ auth: { issuers: [one] } }, "the config");

  test("may be all that there is", () => {
    const claims = { scopesClaim: "scp", groupsClaim: "realm_access.roles", separateClients: true };
    const keys = { jwksUri: `${issuer}/keys?v=1`, algorithms: ["ES256", "EdDSA"] };
    const grant = [{ scopes: ["meanwhile:read"] }, { groups: ["ops"], scopes: ["meanwhile:call", "repo:admin"] }];
    for (const audience of ["api://mcp", ["00000000-guid", "https://example.com/mcp"]])
      expect(() => check({ issuer, audience, ...keys, ...claims, grant })).not.toThrow();
    for (const local of ["http://127.0.0.1:8080", "http://localhost:8080/", "http://[::1]:8080/x"])
      expect(() => check({ issuer: local })).not.toThrow();
  });

  test.each<[unknown, string]>([
    [issuer, "`auth.issuers.0` must be an object with `issuer`, the URL of an authorization server"],
    [{}, "`auth.issuers.0` must be an object with `issuer`"],
    [{ issuer: undefined }, "`auth.issuers.0` must be an object with `issuer`"],
    [{ issuer: "http://id.example.com" }, "`auth.issuers.0.issuer` must be an https URL without a query"],
    [{ issuer: "http://127.0.0.1.example.com" }, "`auth.issuers.0.issuer` must be"],
    [{ issuer: "http://10.0.0.1" }, "`auth.issuers.0.issuer` must be"],
    [{ issuer: `${issuer}?a` }, "`auth.issuers.0.issuer` must be"],
    [{ issuer: `${issuer}#a` }, "`auth.issuers.0.issuer` must be"],
    [{ issuer: "https://me:secret@id.example.com" }, "`auth.issuers.0.issuer` must be"],
    [{ issuer, jwksUri: "http://id.example.com/keys" }, "`auth.issuers.0.jwksUri` must be an https URL"],
    [{ issuer, audience: [] }, "`auth.issuers.0.audience` must be text, or a list of texts that is not empty"],
    [{ issuer, audience: "" }, "`auth.issuers.0.audience` must be"],
    [{ issuer, algorithms: ["none"] }, "`auth.issuers.0.algorithms` must be a list of RS256, "],
    [{ issuer, algorithms: ["HS256"] }, "`auth.issuers.0.algorithms` must be"],
    [{ issuer, algorithms: [] }, "`auth.issuers.0.algorithms` must be"],
    [{ issuer, grant: {} }, "`auth.issuers.0.grant` must be a list of { groups, scopes }"],
    [{ issuer, grant: [{ groups: ["a"] }] }, "`auth.issuers.0.grant.0` must be { groups, scopes }"],
    [{ issuer, grant: [{ groups: [], scopes: ["a"] }] }, "`auth.issuers.0.grant.0.groups` must be a list of groups"],
    [{ issuer, grant: [{ scopes: ["a b"] }] }, "`auth.issuers.0.grant.0.scopes` must be a list of scopes"],
    [
      { issuer, grant: [{ scopes: ["meanwhile:cal"] }] },
      "`auth.issuers.0.grant.0.scopes` must be a list of scopes that is not empty; those that begin with meanwhile: are meanwhile:read, meanwhile:call, meanwhile:metrics, meanwhile:admin",
    ],
    [{ issuer, scopeClaim: "x" }, "did you mean `auth.issuers.0.scopesClaim`?"],
  ])("%j is refused", (one, sentence) => {
    expect(() => check(one)).toThrow(sentence);
    expect(() => check(one)).not.toThrow("secret");
  });

  test("names each issuer once", () => {
    expect(() => checkConfig({ auth: { issuers: [{ issuer }, { issuer }] } }, "the config")).toThrow(
      `without two entries of one issuer, and has two of "${issuer}"`,
    );
  });
});

describe("what is said of HTTP", () => {
  test.each(["https://example.com/mcp", "https://example.com", "http://tools.internal:8080/a/mcp/"])(
    "the public URL may be %s",
    (publicUrl) => expect(() => checkConfig({ http: { publicUrl } }, "the config")).not.toThrow(),
  );

  test.each(["example.com/mcp", "/mcp", "ftp://a", "https://a/mcp?x", "https://a/mcp#x", "https://u:p@a/mcp", 7])(
    "%s is no public URL",
    (publicUrl) =>
      expect(() => checkConfig({ http: { publicUrl } }, "the config")).toThrow(
        "`http.publicUrl` must be the http or https URL that clients know",
      ),
  );

  test.each([
    ["*"],
    ["null"],
    ["https://a.example/"],
    ["https://a.example/x"],
    ["HTTPS://A.example"],
    ["a.example"],
    "x",
  ])("%j is no list of origins", (...allowedOrigins) =>
    expect(() =>
      checkConfig({ http: { allowedOrigins: allowedOrigins[0] === "x" ? "x" : allowedOrigins } }, "the config"),
    ).toThrow("`http.allowedOrigins` must be a list of origins such as https://app.example.com"),
  );

  test("origins have a scheme, a host and perhaps a port", () => {
    const allowedOrigins = ["https://app.example.com", "http://localhost:3000"];
    expect(() => checkConfig({ http: { allowedOrigins } }, "the config")).not.toThrow();
  });
});
