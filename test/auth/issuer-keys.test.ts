import { describe, expect, test } from "vitest";
import { createTokenVerifier } from "../../src/auth/access-token.ts";
import { AuthenticationError } from "../../src/auth/authentication.ts";
import type { IssuerSettings } from "../../src/auth/issuers.ts";
import { type Logger, silentLog } from "../../src/log.ts";
import { FakeClock, pass, settled, turns } from "../helpers/fake-clock.ts";
import { audience, sendJson, startTokenIssuer, type TokenIssuer } from "../helpers/token-issuer.ts";
import { waitFor } from "../helpers/wait-for.ts";

const metadata = "/.well-known/oauth-authorization-server";
const openId = "/.well-known/openid-configuration";
const minute = 60_000;
const hour = 60 * minute;
const toBase64 = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** A verifier of an issuer, which `prepare` changes before its keys are read. It may return settings. */
async function open(prepare: (issuer: TokenIssuer) => unknown = () => undefined) {
  const clock = new FakeClock();
  const issuer = await startTokenIssuer(clock);
  const settings = (await prepare(issuer)) as Partial<IssuerSettings> | undefined;
  const reasons: string[] = [];
  const log: Logger = {
    ...silentLog,
    warn: (_text, facts = {}) => void reasons.push(String((facts as { reason?: string }).reason)),
  };
  const issuers = [{ issuer: issuer.issuer, ...settings }];
  const verifier = createTokenVerifier({ issuers, publicUrl: () => audience, clock, log });
  let count = 0;
  /** The kind of the caller of a new token, or why it is refused. */
  const outcome = async (header: Record<string, unknown> = {}) => {
    return await outcomeOf(await issuer.token({ jti: `${count++}` }, header));
  };
  const outcomeOf = async (token: string) =>
    await Promise.resolve(verifier.verify(token)).then(
      ({ caller }) => caller.kind,
      (error: unknown) => (error instanceof AuthenticationError ? error.kind : error),
    );
  return { clock, issuer, reasons, outcome, outcomeOf };
}

describe("discovery", () => {
  test.each([
    ["", metadata],
    ["", openId],
    ["/", metadata],
    ["/", openId],
    ["/realms/one", `${metadata}/realms/one`],
    ["/realms/one", `${openId}/realms/one`],
    ["/realms/one", `/realms/one${openId}`],
    ["/tenant/", `${metadata}/tenant`],
    ["/tenant/", `/tenant${openId}`],
  ])("of an issuer with the path %j finds its metadata at %s", async (path, place) => {
    const { issuer, outcome } = await open((it) => {
      it.path = path;
      it.instead.set(`${metadata}${path.replace(/\/$/, "")}`, (response) => response.writeHead(404).end());
      it.instead.set(place, (response) => sendJson(response, { issuer: it.issuer, jwks_uri: `${it.origin}/keys` }));
    });
    expect(await outcome()).toBe("user");
    expect(issuer.requests.slice(-2)).toEqual([place, "/keys"]);
  });

  test("does not happen where the settings name the keys", async () => {
    const { issuer, outcome } = await open((it) => ({ jwksUri: `${it.origin}/keys` }));
    expect(await outcome()).toBe("user");
    expect(issuer.requests).toEqual(["/keys"]);
  });

  test("skips a page that is not JSON", async () => {
    const { outcome } = await open((it) => {
      it.instead.set(metadata, (response) => response.writeHead(200).end("<!doctype html>"));
      it.instead.set(openId, (response) => sendJson(response, { issuer: it.issuer, jwks_uri: `${it.origin}/keys` }));
    });
    expect(await outcome()).toBe("user");
  });

  test("trusts no metadata that names another issuer, not even one with a slash more", async () => {
    const { issuer, outcome, reasons } = await open((it) => {
      const answer = { issuer: `${it.issuer}/`, jwks_uri: `${it.origin}/keys` };
      for (const place of [metadata, openId]) it.instead.set(place, (response) => sendJson(response, answer));
    });
    expect(await outcome()).toBe("unavailable");
    expect(reasons[0]).toContain(`names the issuer "${issuer.issuer}/", not "${issuer.issuer}"`);
    expect(issuer.countOf("/keys")).toBe(0);
  });

  test.each([["http://example.com/keys"], ["file:///etc/passwd"], ["/keys"], [7], [undefined]])(
    "refuses %s as the address of the keys",
    async (uri) => {
      const { outcome, reasons } = await open((it) =>
        it.instead.set(metadata, (response) => sendJson(response, { issuer: it.issuer, jwks_uri: uri })),
      );
      expect(await outcome()).toBe("unavailable");
      expect(reasons[0]).toMatch(/has no `jwks_uri` that may be read/);
    },
  );
});

describe("an issuer that answers badly makes no caller", () => {
  test.each<[string, RegExp, (issuer: TokenIssuer) => void]>([
    [
      "a redirect",
      /redirect \(302\), which is not followed/,
      (it) => it.instead.set("/keys", (response) => response.writeHead(302, { location: "/other" }).end()),
    ],
    ["500", /answered 500/, (it) => it.instead.set("/keys", (response) => response.writeHead(500).end())],
    ["404", /answered 404/, (it) => it.instead.set("/keys", (response) => response.writeHead(404).end())],
    [
      "a page",
      /not a JSON object/,
      (it) => it.instead.set("/keys", (response) => response.writeHead(200).end("<!doctype html>")),
    ],
    ["a list", /not a JSON object/, (it) => it.instead.set("/keys", (response) => sendJson(response, it.keys))],
    ["no keys", /malformed/, (it) => it.instead.set("/keys", (response) => sendJson(response, { keys: "none" }))],
    [
      "a megabyte",
      /larger than 256 kB/,
      (it) => it.instead.set("/keys", (response) => sendJson(response, { keys: it.keys, x: "x".repeat(2 ** 20) })),
    ],
    [
      "deep JSON",
      /not a JSON object/,
      (it) => it.instead.set("/keys", (response) => response.writeHead(200).end("[".repeat(100_000))),
    ],
    [
      "half an answer",
      /cannot be reached/,
      (it) =>
        it.instead.set("/keys", (response) => {
          response.writeHead(200, { "content-length": "1000" }).write('{"keys":[');
          setImmediate(() => response.destroy());
        }),
    ],
  ])("%s", async (_title, reason, prepare) => {
    const { issuer, outcome, reasons } = await open(prepare);
    expect(await outcome()).toBe("unavailable");
    expect(reasons[0]).toMatch(reason);
    expect(issuer.countOf("/other")).toBe(0);
  });

  test("no answer within 10 s", async () => {
    const { clock, outcome, reasons } = await open((it) => it.instead.set("/keys", () => undefined));
    expect(await settled(clock, outcome(), 100)).toBe("unavailable");
    expect(reasons[0]).toMatch(/did not answer in time/);
    expect(clock.pendingTimers).toBe(0);
  });

  test("an answer of a byte at a time", async () => {
    let stop = () => undefined as unknown;
    const { clock, outcome, reasons } = await open((it) =>
      it.instead.set("/keys", (response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write(" "), 1);
        stop = () => clearInterval(timer);
      }),
    );
    expect(await settled(clock, outcome(), 100)).toBe("unavailable");
    expect(reasons[0]).toMatch(/did not answer in time/);
    stop();
  });
});

describe("an issuer that is away", () => {
  test("at the start: tokens are refused as unavailable, with one attempt in 10 s, until it is back", async () => {
    const { clock, issuer, outcome, reasons } = await open((it) => it.stop());
    expect(await outcome()).toBe("unavailable");
    await issuer.start();
    clock.advance(9_000);
    expect(await outcome()).toBe("unavailable");
    expect(issuer.requests).toEqual([]);
    clock.advance(1_000);
    expect(await outcome()).toBe("user");
    expect(reasons).toHaveLength(1);
  });

  test("later: its keys stay in use for 24 h", async () => {
    const { clock, issuer, outcome } = await open();
    await outcome();
    await issuer.stop();
    for (const hours of [1, 12, 10.9]) {
      clock.advance(hours * hour);
      expect(await outcome()).toBe("user");
    }
    clock.advance(0.2 * hour);
    expect(await outcome()).toBe("unavailable");
    await issuer.start();
    clock.advance(minute);
    expect(await outcome()).toBe("user");
  });

  test("and hangs: a request waits 1 s for newer keys, then uses those at hand", async () => {
    const { clock, issuer, outcome } = await open();
    await outcome();
    issuer.instead.set("/keys", () => undefined);
    clock.advance(11 * minute);
    const startedAt = clock.now();
    const answer = outcome();
    await waitFor(() => issuer.countOf("/keys") === 2);
    expect(await settled(clock, answer, 100)).toBe("user");
    expect(clock.now() - startedAt).toBeLessThan(5_000);
    await pass(clock, 10_000);
    await waitFor(() => clock.pendingTimers === 0);
    const requests = issuer.countOf("/keys");
    expect(await outcome()).toBe("user");
    expect(issuer.countOf("/keys")).toBe(requests);
  });
});

describe("keys", () => {
  test("are read once for requests at the same time, and again after 10 min", async () => {
    const { clock, issuer, outcome } = await open();
    expect(await Promise.all(Array.from({ length: 20 }, () => outcome()))).toEqual(Array(20).fill("user"));
    expect(issuer.countOf("/keys")).toBe(1);
    clock.advance(9 * minute);
    await outcome();
    expect(issuer.countOf("/keys")).toBe(1);
    clock.advance(minute);
    await outcome();
    expect(issuer.countOf("/keys")).toBe(2);
  });

  test("that are unknown, a thousand of them, cause one request", async () => {
    const { clock, issuer, outcome, outcomeOf } = await open();
    await outcome();
    const token = await issuer.token();
    const forged = (kid: string) => token.replace(/^[^.]+/, toBase64({ alg: "RS256", kid, typ: "at+jwt" }));
    const before = issuer.requests.length;
    for (let count = 0; count < 20; count++) expect(await outcomeOf(forged(`${count}`))).toBe("invalid");
    const many = Array.from({ length: 980 }, (_, count) => outcomeOf(forged(`other-${count}`)));
    expect(new Set(await Promise.all(many))).toEqual(new Set(["invalid"]));
    expect(issuer.requests.length - before).toBe(1);
    clock.advance(30_000);
    expect(await outcomeOf(forged("again"))).toBe("invalid");
    expect(issuer.requests.length - before).toBe(2);
  });

  test("that are new are found without a refused request", async () => {
    const { clock, issuer, outcome } = await open();
    await outcome();
    await issuer.rotate("second", "ES256");
    expect(await Promise.all(Array.from({ length: 20 }, () => outcome()))).toEqual(Array(20).fill("user"));
    expect(issuer.countOf("/keys")).toBe(2);
    clock.advance(hour);
    await issuer.rotate("third");
    expect(await outcome()).toBe("user");
  });

  test("that are withdrawn are refused 10 min later", async () => {
    const { clock, issuer, outcome } = await open();
    await outcome();
    issuer.keys = [];
    clock.advance(10 * minute);
    expect(await outcome()).toBe("invalid");
  });

  test("that cannot be looked for, because the issuer is away, make the token unavailable", async () => {
    const { issuer, outcome } = await open();
    await outcome();
    await issuer.stop();
    expect(await outcome({ kid: "unknown" })).toBe("unavailable");
    expect(await outcome({ kid: "unknown" })).toBe("unavailable");
    expect(await outcome()).toBe("user");
  });

  test.each([
    ["are for encryption", { use: "enc" }],
    ["are private", { d: "AQAB" }],
    ["are secrets", { kty: "oct", k: "c2VjcmV0" }],
    ["are for another algorithm", { alg: "RS512" }],
    ["are broken", { n: "AQAB" }],
  ])("that %s verify nothing", async (_title, change) => {
    const { outcome } = await open((it) => {
      it.keys = it.keys.map((key) => ({ ...key, ...change }));
    });
    expect(await outcome()).toBe("invalid");
  });

  test("leave no timer behind", async () => {
    const { clock, outcome } = await open();
    await outcome();
    await turns();
    expect(clock.pendingTimers).toBe(0);
  });
});
