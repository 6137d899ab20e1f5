import { type MutableToken, OAuth2Server } from "oauth2-mock-server";
import { expect, test } from "vitest";
import { cleanUp, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { startGuardedHttp } from "../../helpers/meanwhile.ts";
import { ModernClient } from "../../helpers/wire.ts";

const whoAmI = `import { defineCommand } from "meanwhile";
export default defineCommand({
  summary: "Names the caller",
  effects: "read",
  run: (_, { caller: { id, scopes } }) => ({ id, scopes }),
});`;

/** A server, and the issuer of its users' tokens. */
async function open(settings: object = {}, { hasSlash = false } = {}) {
  const idp = new OAuth2Server(undefined, undefined, { shouldIssuerUrlBeSuffixedWithATralingSlash: hasSlash });
  await idp.issuer.keys.generate("RS256");
  await idp.start(0, "127.0.0.1");
  cleanUp(() => (idp.listening ? idp.stop() : undefined));
  const issuer = idp.issuer.url ?? "";
  const config = { auth: { issuers: [{ issuer, ...settings }] } };
  const files = { "commands/who/am-i.ts": whoAmI, "meanwhile.config.json": JSON.stringify(config) };
  const { url } = await startGuardedHttp([], { cwd: writeFiles(temporaryFolder(), files) });
  const call = async (token: string) => {
    const client = new ModernClient(url, { headers: { authorization: `Bearer ${token}` } });
    const { status, text, result } = await client.request("tools/call", { name: "who_am_i", arguments: {} });
    return { status, text, data: (result?.structuredContent as { readonly data?: unknown } | undefined)?.data };
  };
  const token = (claims: object = {}, kid?: string) =>
    idp.issuer.buildToken({
      kid,
      scopesOrTransform: (_header, payload) =>
        void Object.assign(payload, { sub: "ada", aud: url, scope: "meanwhile:call", ...claims }),
    });
  return { idp, issuer, url, call, token };
}

test("accepts tokens of an issuer whose name ends in a slash", async () => {
  const { issuer, call, token } = await open({}, { hasSlash: true });
  expect(issuer).toMatch(/\/$/);
  expect((await call(await token())).data).toEqual({ id: `${issuer}#sub:ada`, scopes: ["meanwhile:call"] });
});

test("accepts tokens of a new key at once, and those of the known keys while the issuer is away", async () => {
  const { idp, call, token } = await open();
  expect((await call(await token())).status).toBe(200);
  const { kid } = await idp.issuer.keys.generate("ES256");
  const statuses = await Promise.all(
    Array.from({ length: 10 }, async (_, jti) => (await call(await token({ jti }, kid))).status),
  );
  expect(statuses).toEqual(Array(10).fill(200));
  const later = await token({ jti: "later" });
  await idp.stop();
  expect((await call(later)).status).toBe(200);
});

test("refuses the ID token of a user, also where its audience is the one in the settings", async () => {
  const { idp, issuer, call } = await open({ audience: "app" });
  idp.service.on("beforeTokenSigning", ({ payload }: MutableToken) => {
    payload.aud = "app";
    payload.nonce = "n";
  });
  const form = { grant_type: "password", username: "ada", client_id: "app", scope: "openid" };
  const response = await fetch(`${issuer}/token`, { method: "POST", body: new URLSearchParams(form) });
  const { id_token } = (await response.json()) as { readonly id_token: string };
  const { status, text } = await call(id_token);
  expect(status).toBe(401);
  expect(text).toContain("This is an ID token; send the access token.");
});

test("takes a machine's token as its client's", async () => {
  const { idp, issuer, url, call } = await open();
  idp.service.on("beforeTokenSigning", ({ payload }: MutableToken) => {
    payload.client_id = "nightly";
    payload.aud = url;
  });
  const form = { grant_type: "client_credentials", scope: "meanwhile:call" };
  const response = await fetch(`${issuer}/token`, { method: "POST", body: new URLSearchParams(form) });
  const { access_token } = (await response.json()) as { readonly access_token: string };
  expect((await call(access_token)).data).toEqual({ id: `${issuer}#client:nightly`, scopes: ["meanwhile:call"] });
});

test("grants scopes to groups where the issuer cannot", async () => {
  const grant = [{ groups: ["ops"], scopes: ["meanwhile:call", "repo:admin"] }];
  const { url, call, token } = await open({ grant, groupsClaim: "realm_access.roles" });
  const roles = (list: string[]) => token({ scope: "openid", realm_access: { roles: list } });
  expect((await call(await roles(["ops"]))).data).toMatchObject({ scopes: ["openid", "meanwhile:call", "repo:admin"] });
  const challenge = (await fetch(url, { method: "POST", headers: { "content-type": "application/json" } })).headers;
  expect(challenge.get("www-authenticate")).not.toContain("scope=");
});
