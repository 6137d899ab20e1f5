import { createHmac, createPublicKey } from "node:crypto";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import { createTokenVerifier } from "../../src/auth/access-token.ts";
import { AuthenticationError } from "../../src/auth/authentication.ts";
import type { IssuerSettings } from "../../src/auth/issuers.ts";
import { callerKey } from "../../src/command/caller.ts";
import { type Logger, silentLog } from "../../src/log.ts";
import { FakeClock, turns } from "../helpers/fake-clock.ts";
import { audience, startTokenIssuer } from "../helpers/token-issuer.ts";

type Settings = Omit<IssuerSettings, "issuer">;

async function open(settings: Settings = {}, { publicUrl = audience, path = "" } = {}) {
  const clock = new FakeClock();
  const issuer = await startTokenIssuer(clock);
  issuer.path = path;
  const warnings: { text: string; facts: object }[] = [];
  const log: Logger = { ...silentLog, warn: (text, facts = {}) => void warnings.push({ text, facts }) };
  const issuers = [{ issuer: issuer.issuer, ...settings }];
  const verifier = createTokenVerifier({ issuers, publicUrl: () => publicUrl, clock, log });
  const verify = async (token: string) => await verifier.verify(token);
  const refusal = async (token: string) => {
    const error = await verify(token).catch((cause: unknown) => cause);
    if (!(error instanceof AuthenticationError)) throw new Error("the token was accepted", { cause: error });
    return { kind: error.kind, message: error.message, cause: error.cause };
  };
  return { clock, issuer, warnings, verifier, verify, refusal };
}

function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("verification", () => {
  test("returns the user, their scopes and the end of validity", async () => {
    const { issuer, verify } = await open();
    const token = await issuer.token({ name: "Ada", groups: ["ops"], scope: "meanwhile:call repo:read" });
    const { caller, scopesFrom, validUntil } = await verify(token);
    expect(caller).toEqual({
      kind: "user",
      id: `${issuer.issuer}#sub:ada`,
      name: "Ada",
      client: "editor",
      scopes: ["meanwhile:call", "repo:read"],
      groups: ["ops"],
    });
    expect(scopesFrom).toBe("the claim `scope`");
    expect(validUntil).toBe((issuer.seconds(3_600) + 60) * 1000);
  });

  test.each(["RS256", "PS256", "ES256", "ES384", "EdDSA"])("accepts %s", async (alg) => {
    const { issuer, verify } = await open();
    await issuer.rotate(alg, alg);
    expect((await verify(await issuer.token())).caller.kind).toBe("user");
  });

  test.each(["at+jwt", "AT+JWT", "application/at+jwt", "JWT", undefined])("accepts the type %s", async (typ) => {
    const { issuer, verify } = await open();
    expect((await verify(await issuer.token({}, { typ }))).caller.kind).toBe("user");
  });

  test("refuses an algorithm that the settings do not name", async () => {
    const { issuer, refusal } = await open({ algorithms: ["ES256"] });
    expect(await refusal(await issuer.token())).toMatchObject({ kind: "invalid" });
  });

  test.each<[string, Record<string, unknown>, RegExp]>([
    [
      "for another audience",
      { aud: "https://example.com/other" },
      /not for this server; .* https:\/\/example.com\/mcp/,
    ],
    ["for an audience that begins with ours", { aud: `${audience}/x` }, /not for this server/],
    ["for a list of other audiences", { aud: ["a", "b"] }, /not for this server/],
    ["without an audience", { aud: undefined }, /not for this server/],
    ["of an issuer that is not configured", { iss: "https://evil.example" }, /issuer that this server does not accept/],
    ["whose issuer is a number", { iss: 7 as never }, /issuer that this server does not accept/],
    ["without an issuer", { iss: undefined }, /issuer that this server does not accept/],
    ["without an end", { exp: undefined }, /is not valid/],
    ["whose end is text", { exp: "tomorrow" }, /is not valid/],
    ["with the claim of an ID token: nonce", { nonce: "n" }, /ID token/],
    ["with the claim of an ID token: at_hash", { at_hash: "h" }, /ID token/],
    ["with the claim of an ID token: c_hash", { c_hash: "h" }, /ID token/],
    ["whose payload says ID", { typ: "ID" }, /ID token/],
    ["without a user and a client", { sub: undefined, client_id: undefined }, /neither a user .* nor a client/],
    ["whose subject is a number", { sub: 7 }, /no usable `sub`/],
    ["whose subject has a NUL", { sub: "a\0b" }, /no usable `sub`/],
    ["whose subject is long", { sub: "a".repeat(1_001) }, /no usable `sub`/],
    ["whose subject is long in UTF-8", { sub: "\u6f22".repeat(334) }, /no usable `sub`/],
  ])("refuses a token %s", async (_title, claims, message) => {
    const { issuer, refusal } = await open();
    const { kind, message: told } = await refusal(await issuer.token(claims));
    expect(kind).toBe("invalid");
    expect(told).toMatch(message);
  });

  test.each(["id+jwt", "logout+jwt", "dpop+jwt", "secevent+jwt", 7])("refuses the type %s", async (typ) => {
    const { issuer, refusal } = await open();
    expect(await refusal(await issuer.token({}, { typ }))).toMatchObject({ kind: "invalid" });
  });

  test("allows 60 s between the clocks, and not 2 minutes", async () => {
    const { issuer, verify, refusal } = await open();
    const accepted = [{ exp: issuer.seconds(-59) }, { nbf: issuer.seconds(59) }];
    for (const claims of accepted) expect((await verify(await issuer.token(claims))).caller.id).toMatch(/ada$/);
    expect((await refusal(await issuer.token({ exp: issuer.seconds(-120) }))).message).toMatch(/has expired/);
    expect((await refusal(await issuer.token({ nbf: issuer.seconds(120) }))).message).toMatch(/not valid yet/);
  });

  test("refuses `none`, and HS256 with the public key as the secret", async () => {
    const { issuer, refusal } = await open();
    const payload = encode({ iss: issuer.issuer, aud: audience, sub: "ada", exp: issuer.seconds(60) });
    const unsigned = `${encode({ alg: "none", typ: "at+jwt" })}.${payload}.`;
    const [jwk] = issuer.keys;
    const pem = createPublicKey({ key: jwk as never, format: "jwk" }).export({ type: "spki", format: "pem" });
    const signed = `${encode({ alg: "HS256", kid: jwk?.kid, typ: "at+jwt" })}.${payload}`;
    const hmac = `${signed}.${createHmac("sha256", pem).update(signed).digest("base64url")}`;
    for (const token of [unsigned, hmac]) expect(await refusal(token)).toMatchObject({ kind: "invalid" });
  });

  test("refuses a token with one changed character, and one that another key has signed", async () => {
    const { issuer, verify, refusal } = await open();
    const token = await issuer.token();
    const [header, payload = "", signature] = token.split(".");
    const changed = `${header}.${payload.slice(0, 20)}${payload[20] === "A" ? "B" : "A"}${payload.slice(21)}.${signature}`;
    await verify(token);
    expect(await refusal(changed)).toMatchObject({ kind: "invalid" });
    const { keys } = issuer;
    await issuer.rotate("first");
    issuer.keys = keys;
    expect(await refusal(await issuer.token())).toMatchObject({ kind: "invalid" });
  });

  test.each(["a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", `${"a".repeat(20_000)}.b.c`])(
    "refuses what is no token: %.30s",
    async (token) => {
      const { refusal } = await open();
      expect(await refusal(token)).toMatchObject({ kind: "invalid" });
    },
  );

  test("refuses a token of more than 16 kB before it is decoded", async () => {
    const { issuer, refusal } = await open();
    const token = await issuer.token({ padding: "x".repeat(20_000) });
    expect(await refusal(token)).toMatchObject({ kind: "invalid", message: "The access token is too long." });
  });

  test("names no part of the token in an error", async () => {
    const { issuer, refusal } = await open();
    const token = await issuer.token({ aud: "secret-audience", sub: "secret-subject" });
    const { message, cause } = await refusal(token);
    expect(cause).toBeUndefined();
    for (const part of [...token.split("."), "secret"]) expect(message).not.toContain(part);
  });

  test("logs the audience that was found, once a minute", async () => {
    const { clock, issuer, warnings, refusal } = await open();
    for (let count = 0; count < 3; count++)
      await refusal(await issuer.token({ aud: "00000000-guid", jti: `${count}` }));
    const facts = { audience: "00000000-guid", expected: [audience, `${audience}/`] };
    expect(warnings).toMatchObject([{ text: expect.stringContaining("another audience"), facts }]);
    clock.advance(60_000);
    await refusal(await issuer.token({ aud: "00000000-guid" }));
    expect(warnings).toHaveLength(2);
  });

  test("logs the issuer that was found, such as ours with a slash, once a minute", async () => {
    const { clock, issuer, warnings, refusal } = await open();
    const slashed = await issuer.token({ iss: `${issuer.issuer}/` });
    expect((await refusal(slashed)).message).toContain("issuer that this server does not accept");
    await refusal(await issuer.token({ iss: "https://evil.example" }));
    const facts = { found: `${issuer.issuer}/`, expected: [issuer.issuer] };
    expect(warnings).toMatchObject([{ text: expect.stringContaining("another issuer"), facts }]);
    clock.advance(60_000);
    await refusal(await issuer.token({ iss: `https://${"x".repeat(10_000)}.example` }));
    expect(JSON.stringify(warnings[1]).length).toBeLessThan(500);
  });

  test("accepts JWTs alone", async () => {
    const { issuer, verifier } = await open();
    expect(verifier.accepts(await issuer.token())).toBe(true);
    expect(verifier.accepts("a.b.")).toBe(true);
    for (const token of ["opaque", "mw_abc_def", "a.b", "a.b.c.d.e", "a b.c.d", ""])
      expect(verifier.accepts(token)).toBe(false);
  });
});

describe("the audience", () => {
  test.each([
    [audience, audience],
    [audience, `${audience}/`],
    [`${audience}/`, audience],
    ["https://example.com", "https://example.com/"],
  ])("of a server at %s may be %s", async (publicUrl, aud) => {
    const { issuer, verify } = await open({}, { publicUrl });
    expect((await verify(await issuer.token({ aud: ["other", aud] }))).caller.kind).toBe("user");
  });

  test("of the settings replaces the public URL", async () => {
    const { issuer, verify, refusal } = await open({ audience: ["00000000-guid", "api://mcp"] });
    for (const aud of ["00000000-guid", "api://mcp"]) await verify(await issuer.token({ aud }));
    expect(await refusal(await issuer.token())).toMatchObject({ kind: "invalid" });
  });
});

describe("the caller", () => {
  const ids = async (settings: Settings, claims: Record<string, unknown>) => {
    const { issuer, verify } = await open(settings);
    const { caller } = await verify(await issuer.token(claims));
    return { id: caller.id.replace(issuer.issuer, "ISSUER"), key: callerKey(caller).replace(issuer.issuer, "ISSUER") };
  };

  test("is one user in every client", async () => {
    expect(await ids({}, { client_id: "one" })).toEqual(await ids({}, { client_id: "two" }));
  });

  test("is a user of one client with `separateClients`", async () => {
    const separateClients = true;
    expect((await ids({ separateClients }, { client_id: "one" })).id).toBe("ISSUER#client:one#sub:ada");
    const { issuer, refusal } = await open({ separateClients });
    expect((await refusal(await issuer.token({ client_id: undefined }))).message).toMatch(
      /client that it was issued to/,
    );
  });

  test("is the client where there is no user, and never a user of the same name", async () => {
    const client = await ids({}, { sub: undefined, client_id: "ada" });
    expect(client.id).toBe("ISSUER#client:ada");
    expect(client.key).not.toBe((await ids({}, { sub: "ada", client_id: undefined })).key);
  });

  test.each(["client_id", "azp", "appid", "cid"])("reads the client from `%s`", async (claim) => {
    expect((await ids({}, { sub: undefined, client_id: undefined, [claim]: "editor" })).id).toBe(
      "ISSUER#client:editor",
    );
  });

  test.each<[string, Settings, Record<string, unknown>, string[], string]>([
    ["`scope`, a string", {}, { scope: "a b  a" }, ["a", "b"], "the claim `scope`"],
    ["`scp`, a string", {}, { scope: undefined, scp: "a b" }, ["a", "b"], "the claim `scp`"],
    ["`scp`, a list", {}, { scope: undefined, scp: ["a", "b", 7] }, ["a", "b"], "the claim `scp`"],
    ["`permissions`", {}, { scope: undefined, permissions: ["a"] }, ["a"], "the claim `permissions`"],
    ["the first of them", {}, { scope: "", permissions: ["a"] }, [], "the claim `scope`"],
    [
      "the claim of the settings",
      { scopesClaim: "permissions" },
      { permissions: ["a"] },
      ["a"],
      "the claim `permissions`",
    ],
    ["one that is missing", { scopesClaim: "roles" }, {}, [], "the claim `roles`"],
    ["a claim inside of another", { scopesClaim: "x.y" }, { x: { y: ["a"] } }, ["a"], "the claim `x.y`"],
    [
      "a list, where a role with a space in its name is no scope",
      {},
      { scope: undefined, permissions: ["a", "trainee meanwhile:admin"] },
      ["a"],
      "the claim `permissions`",
    ],
    ["a string, where only spaces separate", {}, { scope: "a b\u00a0meanwhile:admin" }, ["a"], "the claim `scope`"],
    ["none of them", {}, { scope: undefined }, [], "each of the claims `scope`, `scp` and `permissions`"],
    ["an object", {}, { scope: { a: 1 } }, [], "each of the claims `scope`, `scp` and `permissions`"],
  ])("reads scopes from %s", async (_title, settings, claims, scopes, from) => {
    const { issuer, verify } = await open(settings);
    const { caller, scopesFrom } = await verify(await issuer.token(claims));
    expect({ scopes: caller.scopes, scopesFrom }).toEqual({ scopes, scopesFrom: from });
  });

  test.each<[string, string | undefined, Record<string, unknown>, string[]]>([
    ["a list", undefined, { groups: ["a", "b", "a", 7] }, ["a", "b"]],
    ["text", undefined, { groups: "a" }, ["a"]],
    ["a claim with a dot in its name", "https://x.example/groups", { "https://x.example/groups": ["a"] }, ["a"]],
    ["a claim inside of another", "realm_access.roles", { realm_access: { roles: ["a"] } }, ["a"]],
    ["nothing", "__proto__.toString", {}, []],
  ])("reads groups from %s", async (_title, groupsClaim, claims, groups) => {
    const { issuer, verify } = await open(groupsClaim === undefined ? {} : { groupsClaim });
    expect((await verify(await issuer.token(claims))).caller.groups).toEqual(groups);
  });

  test("has the scopes that the settings grant to their groups", async () => {
    const grant = [{ scopes: ["meanwhile:read"] }, { groups: ["ops", "dev"], scopes: ["meanwhile:call"] }];
    const { issuer, verify } = await open({ grant });
    const scopesOf = async (groups: string[]) =>
      (await verify(await issuer.token({ scope: "openid", groups }))).caller.scopes;
    expect(await scopesOf([])).toEqual(["openid", "meanwhile:read"]);
    expect(await scopesOf(["dev"])).toEqual(["openid", "meanwhile:read", "meanwhile:call"]);
    expect((await verify(await issuer.token())).scopesFrom).toBe(
      "the claim `scope`, with the setting `grant` of its issuer,",
    );
  });

  test("keeps no control character of a name, and at most 200 characters", async () => {
    const { issuer, verify } = await open();
    const { caller } = await verify(await issuer.token({ name: `A\u001b[31m${"b".repeat(300)}` }));
    expect(caller.name).toMatch(/^A \[31mb+$/);
    expect(caller.name).toHaveLength(200);
    const cut = await verify(await issuer.token({ name: `${"b".repeat(199)}\u{1f600}` }));
    expect(cut.caller.name?.isWellFormed()).toBe(true);
  });
});

describe("the cache", () => {
  test("returns a verified token at once for 60 s", async () => {
    const { clock, issuer, verifier, verify } = await open();
    const token = await issuer.token();
    const first = await verify(token);
    clock.advance(59_000);
    expect(verifier.verify(token)).toBe(first);
    clock.advance(1_000);
    expect(verifier.verify(token)).toBeInstanceOf(Promise);
  });

  test("forgets a token when it expires", async () => {
    const { clock, issuer, verifier, verify, refusal } = await open();
    const token = await issuer.token({ exp: issuer.seconds(10) });
    await verify(token);
    clock.advance(10_000);
    const again = verifier.verify(token);
    expect(again).toBeInstanceOf(Promise);
    await again;
    clock.advance(60_000);
    expect((await refusal(token)).message).toMatch(/has expired/);
  });

  test("drops what it knew of a token after that", async () => {
    const { clock, issuer, verify } = await open();
    const verified = async (sub: string) => new WeakRef(await verify(await issuer.token({ sub })));
    const [ada, bob] = [await verified("ada"), await verified("bob")];
    clock.advance(61_000);
    const eve = await verified("eve");
    await turns();
    collectGarbage();
    expect([ada, bob, eve].map((ref) => ref.deref() !== undefined)).toEqual([false, false, true]);
  });

  test("verifies a token once for requests at the same time", async () => {
    const { issuer, verifier } = await open();
    const token = await issuer.token();
    const both = [verifier.verify(token), verifier.verify(token)];
    expect(both[0]).toBe(both[1]);
    await Promise.all(both);
  });
});

test("refuses a token of one issuer that the key of another has signed", async () => {
  const clock = new FakeClock();
  const [one, two] = [await startTokenIssuer(clock), await startTokenIssuer(clock)];
  const issuers = [{ issuer: one.issuer }, { issuer: two.issuer }];
  const verifier = createTokenVerifier({ issuers, publicUrl: () => audience, clock, log: silentLog });
  expect((await verifier.verify(await two.token())).caller.id).toBe(`${two.issuer}#sub:ada`);
  await expect(verifier.verify(await two.token({ iss: one.issuer }))).rejects.toThrow(/is not valid/);
});

test("a token without `kid` is accepted where the issuer has one key", async () => {
  const { issuer, verify, refusal, clock } = await open();
  const token = await issuer.token({}, { kid: undefined });
  await verify(token);
  await issuer.rotate("second");
  clock.advance(11 * 60_000);
  expect(await refusal(token)).toMatchObject({ kind: "invalid" });
});
