import crypto, { createHmac } from "node:crypto";
import http from "node:http";
import { syncBuiltinESMExports } from "node:module";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { createApiKey } from "../../src/auth/api-key.ts";
import { systemClock } from "../../src/clock.ts";
import { SqliteKeys } from "../../src/store/sqlite/sqlite-keys.ts";
import { runCli, startHttpHere } from "../helpers/cli.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startTokenIssuer, type TokenIssuer } from "../helpers/token-issuer.ts";

/** What wrong credentials cost a server, and what other callers notice of a flood of them. */

const echo = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Names the caller", effects: "read", run: (_, { caller }) => ({ kind: caller.kind }) });`;
const call = JSON.stringify({
  ...{ jsonrpc: "2.0", id: 1, method: "tools/call" },
  params: { name: "who_am_i", arguments: {} },
});

async function open() {
  const issuer = await startTokenIssuer(systemClock);
  const other = await startTokenIssuer(systemClock);
  const config = { auth: { issuers: [{ issuer: issuer.issuer }] } };
  const cwd = writeFiles(temporaryFolder(), {
    "commands/who/am-i.ts": echo,
    "meanwhile.config.json": JSON.stringify(config),
  });
  const { url, home } = await startHttpHere([], { cwd });
  const added = await runCli(["keys", "add", "ci", "--json"], { cwd, env: { MEANWHILE_HOME: home } });
  const { key } = JSON.parse(added.stdout) as { key: string };
  const agent = new http.Agent({ keepAlive: true, maxSockets: 50 });
  cleanUp(() => agent.destroy());
  const ask = (token: string) => statusOf(url, agent, token);
  const token = await issuer.token({ aud: url });
  // Both are known to the server, and so are the keys of the issuer.
  expect(await Promise.all([ask(key), ask(token)])).toEqual([200, 200]);
  return { issuer, other, url, key, token, ask };
}

function statusOf(url: string, agent: http.Agent, token: string): Promise<number> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: `Bearer ${token}`,
  };
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method: "POST", headers, agent }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    request.on("error", reject).end(call);
  });
}

/** Counts calls of a function of `node:crypto`, also where it is imported by name. */
function countHashes(): () => number {
  let count = 0;
  const spies = (["hash", "createHash"] as const).map((name) => {
    const original = crypto[name] as (...parts: unknown[]) => unknown;
    return vi.spyOn(crypto, name).mockImplementation(((...parts: unknown[]) => {
      count += 1;
      return original(...parts);
    }) as never);
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    for (const spy of spies) spy.mockRestore();
    syncBuiltinESMExports();
  });
  return () => count;
}

function countCosts() {
  const hashes = countHashes();
  const signatures = vi.spyOn(crypto.webcrypto.subtle, "verify");
  const reads = vi.spyOn(SqliteKeys.prototype, "list");
  onTestFinished(() => {
    signatures.mockRestore();
    reads.mockRestore();
  });
  return () => ({ hashes: hashes(), signatures: signatures.mock.calls.length, reads: reads.mock.calls.length });
}

const server = shareAmongTests(open);
type Server = Awaited<ReturnType<typeof open>>;

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claimsOf = ({ issuer, url }: Server, jti: number) => ({
  ...{ iss: issuer.issuer, aud: url, sub: "eve", client_id: "x", exp: issuer.seconds(600), jti: String(jti) },
});
/** A token without a signature of the issuer's key. */
const unsigned = (opened: Server, jti: number, header: object) =>
  `${encode({ typ: "at+jwt", ...header })}.${encode(claimsOf(opened, jti))}`;
const ownToken = ({ issuer, url }: Server, claims: object) => issuer.token({ aud: url, ...claims });
/** Signed with a key of another issuer. */
async function foreignSigned(opened: Server, signer: TokenIssuer, jti: number): Promise<string> {
  return await signer.token(claimsOf(opened, jti), { kid: "first" });
}

const flood = 200;
const nothing = { hashes: 0, signatures: 0, reads: 0 };
const oneHash = { hashes: flood, signatures: 0, reads: 0 };
const oneCheck = { hashes: flood, signatures: flood, reads: 0 };
type Make = (opened: Server, at: number) => string | Promise<string>;
const floods: readonly [string, typeof nothing, Make][] = [
  ["opaque tokens", nothing, (_, at) => `opaque-token-${at}`],
  ["texts that begin like a key", nothing, (_, at) => `mw_${at}_${"x".repeat(43)}`],
  ["texts that look like a JWT", oneHash, (_, at) => `${at}.b.c`],
  ["tokens of another issuer", oneHash, ({ other, url }, at) => other.token({ aud: url, jti: String(at) })],
  ["unsigned tokens", oneHash, (opened, at) => `${unsigned(opened, at, { alg: "none" })}.`],
  [
    "tokens signed with a secret",
    oneHash,
    (opened, at) => {
      const text = unsigned(opened, at, { alg: "HS256", kid: "first" });
      return `${text}.${createHmac("sha256", "public").update(text).digest("base64url")}`;
    },
  ],
  ["tokens signed with another key", oneCheck, (opened, at) => foreignSigned(opened, opened.other, at)],
  ["expired tokens", oneCheck, (opened, at) => ownToken(opened, { jti: String(at), exp: opened.issuer.seconds(-120) })],
  ["tokens for another audience", oneCheck, (opened, at) => ownToken(opened, { aud: `https://x.example/${at}` })],
];

describe(`${flood} wrong credentials`, () => {
  test.each(floods)("%s cost %o", async (_title, expected, make) => {
    const opened = await server();
    const wrong = await Promise.all(Array.from({ length: flood }, (_, at) => make(opened, at)));
    const costs = countCosts();
    expect(new Set(await Promise.all(wrong.map(opened.ask)))).toEqual(new Set([401]));
    expect(costs()).toEqual(expected);
  });
});

test("unknown keys cost one hash each and a read of the list a second", async () => {
  const opened = await server();
  expect(await opened.ask(opened.key)).toBe(200);
  const wrong = Array.from({ length: 90 }, () => createApiKey().key);
  const costs = countCosts();
  const startedAt = performance.now();
  expect(new Set(await Promise.all(wrong.map(opened.ask)))).toEqual(new Set([401]));
  const { hashes, signatures, reads } = costs();
  expect({ hashes, signatures }).toEqual({ hashes: wrong.length, signatures: 0 });
  expect(reads).toBeLessThanOrEqual(1 + (performance.now() - startedAt) / 1_000);
});

test("callers with a key and with a token are answered while wrong credentials keep coming", async () => {
  const opened = await server();
  const wrong = await Promise.all(
    floods.flatMap(([, , make]) => [1, 2, 3].map(async (at) => await make(opened, flood + at))),
  );
  let [isOver, refused] = [false, 0];
  const attackers = Array.from({ length: 40 }, async (_, lane) => {
    for (let at = lane; !isOver; at++) {
      expect(await opened.ask(wrong[at % wrong.length] as string)).toBe(401);
      refused += 1;
    }
  });
  for (let at = 0; at < 10; at++)
    expect(await Promise.all([opened.ask(opened.key), opened.ask(opened.token)])).toEqual([200, 200]);
  isOver = true;
  await Promise.all(attackers);
  expect(refused).toBeGreaterThan(100);
});
