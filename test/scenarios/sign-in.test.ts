import http from "node:http";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { parseChallenge } from "../../src/gateway/oauth/upstream-challenge.ts";
import { startHttpHere } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startTokenIssuer } from "../helpers/token-issuer.ts";

const wellKnown = "/.well-known/oauth-protected-resource";
const app = "https://app.example.com";
const publicUrl = "https://tools.example.com/mcp";
const whoAmI = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Names the caller", effects: "read", run: (_, { caller }) => ({ kind: caller.kind, id: caller.id }) });`;

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly text: string;
}

/** Unlike `fetch`, sends Host and Origin as they are given. */
function send(url: string, method: string, headers: http.OutgoingHttpHeaders = {}, body?: object): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    request.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });
}

const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who_am_i", arguments: {} } };
const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function open({ config = {}, words = [] }: { config?: object; words?: readonly string[] } = {}) {
  const issuer = await startTokenIssuer(systemClock);
  const files = {
    "commands/who/am-i.ts": whoAmI,
    "meanwhile.config.json": JSON.stringify({
      auth: { issuers: [{ issuer: issuer.issuer }] },
      http: { allowedOrigins: [app] },
      ...config,
    }),
  };
  const { url, token } = await startHttpHere(words, { cwd: writeFiles(temporaryFolder(), files) });
  const { origin } = new URL(url);
  const post = (headers: http.OutgoingHttpHeaders = {}) => send(url, "POST", { ...json, ...headers }, call);
  const tokenFor = (claims: object = {}) => issuer.token({ aud: url, ...claims });
  return { issuer, url, origin, post, homeToken: token(), tokenFor };
}

const server = shareAmongTests(() => open());

describe("a server with an issuer", () => {
  test("knows a user by the access token", async () => {
    const { issuer, post, tokenFor, homeToken } = await server();
    const answer = await post(bearer(await tokenFor()));
    expect(answer.status).toBe(200);
    expect(answer.text).toContain(`${issuer.issuer}#sub:ada`);
    expect((await post(bearer(homeToken))).text).toContain("local");
  });

  test("answers 401 with the metadata and the scopes to a request without a credential", async () => {
    const { origin, post } = await server();
    const { status, headers } = await post();
    expect(status).toBe(401);
    expect(parseChallenge(headers["www-authenticate"])).toEqual({
      error: undefined,
      resourceMetadata: `${origin}${wellKnown}/mcp`,
      scopes: ["meanwhile:read", "meanwhile:call"],
    });
  });

  test.each<[string, (tools: Awaited<ReturnType<typeof open>>) => Promise<string> | string, RegExp]>([
    ["is for another server", ({ tokenFor }) => tokenFor({ aud: "https://example.com/mcp" }), /not for this server/],
    ["has expired", ({ tokenFor, issuer }) => tokenFor({ exp: issuer.seconds(-120) }), /has expired/],
    ["is opaque", () => "0123456789abcdef", /opaque access tokens are not accepted; sign in at http/],
  ])("answers 401 with the reason to a token that %s", async (_title, make, reason) => {
    const opened = await server();
    const { status, headers, text } = await opened.post(bearer(await make(opened)));
    expect(status).toBe(401);
    expect(text).toMatch(reason);
    expect(headers["www-authenticate"]).toMatch(/^Bearer error="invalid_token", error_description="/);
    expect(parseChallenge(headers["www-authenticate"]).resourceMetadata).toBe(`${opened.origin}${wellKnown}/mcp`);
  });

  test("answers 403 with all scopes that are needed to a token with too few, and names the claim", async () => {
    const { origin, post, tokenFor } = await server();
    const { status, headers, text } = await post(bearer(await tokenFor({ scope: "meanwhile:read other" })));
    expect(status).toBe(403);
    expect(parseChallenge(headers["www-authenticate"])).toEqual({
      error: "insufficient_scope",
      resourceMetadata: `${origin}${wellKnown}/mcp`,
      scopes: ["meanwhile:call"],
    });
    expect(text).toContain("`scope` has meanwhile:read, other");
  });

  test("takes no token from the URL, and no second Authorization header", async () => {
    const { url, tokenFor } = await server();
    const token = await tokenFor();
    expect((await send(`${url}?access_token=${token}`, "POST", json, call)).status).toBe(401);
    const twice = { ...json, authorization: [`Bearer ${token}`, `Bearer ${token}`] };
    expect((await send(url, "POST", twice as never, call)).status).toBe(401);
  });

  test("answers 431 to a header of 64 kB", async () => {
    const { url } = await server();
    const answer = await send(url, "POST", { ...json, ...bearer("x".repeat(65_536)) }, call).catch(
      (error: NodeJS.ErrnoException) => error.code,
    );
    // The connection may be reset before the answer is read.
    expect([431, "ECONNRESET", "EPIPE"]).toContain(typeof answer === "object" ? answer.status : answer);
  });

  test("serves the same metadata at both paths to pages of every origin", async () => {
    const { issuer, origin, url } = await server();
    const answers = await Promise.all(
      [wellKnown, `${wellKnown}/mcp`].map((path) => send(`${origin}${path}`, "GET", { origin: "https://any.example" })),
    );
    for (const { status, headers, text } of answers) {
      expect(status).toBe(200);
      expect(headers["access-control-allow-origin"]).toBe("*");
      expect(text).toBe(answers[0]?.text);
      expect(JSON.parse(text)).toMatchObject({ resource: url, authorization_servers: [issuer.issuer] });
    }
    expect(answers).toHaveLength(2);
  });

  test("lets pages ask whether they may read the metadata, and nothing else be done with it", async () => {
    const { origin } = await server();
    const page = { origin: "https://any.example", "access-control-request-method": "GET" };
    const preflight = await send(`${origin}${wellKnown}`, "OPTIONS", page);
    expect([preflight.status, preflight.headers["access-control-allow-headers"]]).toEqual([204, "*"]);
    expect((await send(`${origin}${wellKnown}`, "HEAD")).status).toBe(200);
    expect((await send(`${origin}${wellKnown}`, "POST", json, call)).status).toBe(405);
    expect((await send(`${origin}${wellKnown}/other`, "GET")).status).toBe(404);
    expect((await send(`${origin}${wellKnown}`, "GET", { host: "evil.example" })).status).toBe(403);
  });

  test("lets pages of an allowed origin call it, without cookies", async () => {
    const { url, post, tokenFor } = await server();
    const asked = {
      origin: app,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization, content-type, mcp-protocol-version, x-other",
    };
    const preflight = await send(url, "OPTIONS", asked);
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": app,
      "access-control-allow-headers": "authorization, content-type, mcp-protocol-version",
      "access-control-allow-methods": "GET, POST, DELETE",
      vary: "Origin",
    });
    for (const headers of [bearer(await tokenFor()), {}]) {
      const answer = await post({ ...headers, origin: app });
      expect(answer.headers["access-control-allow-origin"]).toBe(app);
      expect(answer.headers["access-control-expose-headers"]).toContain("WWW-Authenticate");
      expect(answer.headers).not.toHaveProperty("access-control-allow-credentials");
    }
  });

  test.each([
    "https://evil.example",
    "null",
    "https://app.example.com.evil.example",
    `${app}:8443`,
    "http://app.example.com",
  ])("refuses pages of %s", async (origin) => {
    const { url, post, tokenFor } = await server();
    const answer = await post({ ...bearer(await tokenFor()), origin });
    expect(answer.status).toBe(403);
    expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
    const preflight = await send(url, "OPTIONS", { origin, "access-control-request-method": "POST" });
    expect(preflight.status).toBe(403);
  });

  test("lets a page of another server of this machine send requests, and read no answer", async () => {
    const { url, post, tokenFor } = await server();
    const origin = "http://localhost:5173";
    const answer = await post({ ...bearer(await tokenFor()), origin });
    expect(answer.status).toBe(200);
    expect(answer.headers).not.toHaveProperty("access-control-allow-origin");
    const preflight = await send(url, "OPTIONS", { origin, "access-control-request-method": "POST" });
    expect(preflight.status).toBe(401);
    expect(preflight.headers).not.toHaveProperty("access-control-allow-origin");
  });
});

describe("a server with a public URL", () => {
  const known = shareAmongTests(() => open({ words: ["--public-url", publicUrl] }));

  test("names it as the resource, and takes tokens for it alone", async () => {
    const { url, origin, post, tokenFor } = await known();
    const { text } = await send(`${origin}${wellKnown}`, "GET");
    expect(JSON.parse(text)).toMatchObject({ resource: publicUrl });
    const { headers } = await post();
    expect(parseChallenge(headers["www-authenticate"]).resourceMetadata).toBe(
      `https://tools.example.com${wellKnown}/mcp`,
    );
    expect((await post(bearer(await tokenFor({ aud: publicUrl })))).status).toBe(200);
    expect((await post(bearer(await tokenFor({ aud: url })))).status).toBe(401);
  });

  test("takes requests for its host, and for no other", async () => {
    const { post, tokenFor } = await known();
    const token = bearer(await tokenFor({ aud: publicUrl }));
    expect((await post({ ...token, host: "tools.example.com" })).status).toBe(200);
    expect((await post({ ...token, host: "evil.example" })).status).toBe(403);
  });
});

test("starts while its issuer is away, and refuses its users with 503 until it is back", async () => {
  const issuer = await startTokenIssuer(systemClock);
  await issuer.stop();
  const { post, homeToken, url } = await open({ config: { auth: { issuers: [{ issuer: issuer.issuer }] } } });
  const token = bearer(await issuer.token({ aud: url }));
  const { status, headers, text } = await post(token);
  expect([status, headers["retry-after"]]).toEqual([503, "1"]);
  expect(text).toContain(`The keys of the issuer ${issuer.issuer} cannot be read at the moment`);
  expect((await post(bearer(homeToken))).status).toBe(200);
});

test("without an issuer there is no metadata, and the challenge is plain", async () => {
  const { url, origin, post, tokenFor } = await open({ config: { auth: {} } });
  for (const path of [wellKnown, `${wellKnown}/mcp`]) expect((await send(`${origin}${path}`, "GET")).status).toBe(404);
  expect((await post()).headers["www-authenticate"]).toBe("Bearer");
  expect((await post(bearer(await tokenFor()))).status).toBe(401);
  expect((await send(`${url}/x`, "GET")).status).toBe(401);
});
