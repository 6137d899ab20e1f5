import { mkdirSync, readFileSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import type { IssuerSettings } from "../../src/auth/issuers.ts";
import { callerOfClaims } from "../../src/auth/token-claims.ts";
import type { UserConfig } from "../../src/config.ts";
import { checkConfig } from "../../src/settings/check-config.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";

/** The configs of the guide in docs/security.md, with the claims that the providers document. */

const root = path.resolve(import.meta.dirname, "../..");
const page = readFileSync(path.join(root, "docs/security.md"), "utf8");
const texts = [...page.matchAll(/^```ts meanwhile\.config\.ts\n([\s\S]*?)^```$/gm)].map((match) => match[1] as string);

/** A folder in which the package is installed. */
const project = shareAmongTests(() => {
  const folder = temporaryFolder();
  mkdirSync(path.join(folder, "node_modules"));
  symlinkSync(root, path.join(folder, "node_modules/meanwhile"));
  return folder;
});

async function load(text: string, name: string): Promise<UserConfig> {
  const folder = writeFiles(await project(), { [name]: text });
  return ((await import(path.join(folder, name))) as { default: UserConfig }).default;
}

test("every config of the guide is accepted", async () => {
  expect(texts.length).toBeGreaterThan(5);
  for (const [at, text] of texts.entries()) checkConfig(await load(text, `all-${at}.ts`), "docs/security.md");
});

test.each<[string, string, object, { scopes: readonly string[]; groups: readonly string[]; client: string }]>([
  [
    "Keycloak",
    "https://id.example.com/realms/team",
    {
      ...{ typ: "Bearer", azp: "claude-code", sub: "5f1c", scope: "profile meanwhile:read meanwhile:call" },
      realm_access: { roles: ["ops", "offline_access"] },
    },
    {
      scopes: ["profile", "meanwhile:read", "meanwhile:call"],
      groups: ["ops", "offline_access"],
      client: "claude-code",
    },
  ],
  [
    "Microsoft Entra",
    "https://login.microsoftonline.com/00000000-0000-0000-0000-000000000000/v2.0",
    { ver: "2.0", azp: "2222", sub: "AbC", oid: "3333", scp: "access", roles: ["Tools.Call"] },
    { scopes: ["access", "meanwhile:call"], groups: ["Tools.Call"], client: "2222" },
  ],
  [
    "Auth0",
    "https://acme.eu.auth0.com/",
    { azp: "app", sub: "auth0|1", scope: "openid offline_access", permissions: ["meanwhile:call"] },
    { scopes: ["meanwhile:call"], groups: [], client: "app" },
  ],
  [
    "Okta",
    "https://acme.okta.com/oauth2/aus1234567890",
    { ver: 1, cid: "0oa1", uid: "00u1", sub: "00u1", scp: ["meanwhile:read", "meanwhile:call"], groups: ["ops"] },
    { scopes: ["meanwhile:read", "meanwhile:call"], groups: ["ops"], client: "0oa1" },
  ],
])("the config for %s reads the scopes, groups and client of its tokens", async (name, issuer, claims, expected) => {
  const text = texts.find((one) => one.includes(`"${issuer}"`)) ?? expect.fail(`no config names ${issuer}`);
  const [settings] = (await load(text, `${name.replaceAll(" ", "-")}.ts`)).auth?.issuers ?? [];
  const { caller } = callerOfClaims({ ...claims, iss: issuer }, settings as IssuerSettings);
  expect(caller).toMatchObject({ kind: "user", ...expected });
});
