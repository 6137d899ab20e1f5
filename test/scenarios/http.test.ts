import { readFileSync, statSync } from "node:fs";
import { type IncomingHttpHeaders, request } from "node:http";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import type { Logger } from "../../src/log.ts";
import { runCli, startCli } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { httpAddress } from "../helpers/meanwhile.ts";
import { type RawHeaders, RawSocket, toRequest } from "../helpers/raw-socket.ts";
import { openServer } from "../helpers/server.ts";

const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who_am_i" } });
const initialize = JSON.stringify({
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
});
const plain = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** A server whose command counts its runs, and all that the server logs. */
async function open(http: { readonly allowAnonymous: boolean } = { allowAnonymous: true }) {
  let runs = 0;
  const lines: string[] = [];
  const keep = (text: string, facts: object = {}) => void lines.push(JSON.stringify({ text, ...facts }));
  const log: Logger = { debug: keep, info: keep, warn: keep, error: keep };
  const run = () => ({ run: ++runs });
  const server = await openServer({
    in: "http",
    commands: { who_am_i: defineCommand({ summary: "Count its runs", run }) },
    settings: { http: { host: "127.0.0.1", port: 0, publicUrl: undefined, allowedOrigins: [], ...http } },
    log,
  });
  const { token } = server;
  return { url: await server.url(), token, log: () => lines.join("\n"), runs: () => runs };
}

/**
 * Two servers for several tests: one that lets nobody run anything, in all of them, and one in which commands do run.
 */
const untouched = shareAmongTests(() => open());
const visited = shareAmongTests(() => open());

/** A request with whatever headers a hostile page or a careless client would send; fetch() would not let us. */
function send(
  url: string,
  options: { method?: string; path?: string; headers?: Record<string, string | string[] | undefined>; body?: string },
): Promise<{ status: number; text: string; headers: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const all: Record<string, string | string[] | undefined> = { ...plain, ...options.headers };
    const headers = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    const sent = request(
      new URL(options.path ?? "/mcp", url),
      { method: options.method ?? "POST", headers },
      (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (part: string) => (text += part));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, text, headers: response.headers }));
      },
    );
    sent.on("error", reject);
    sent.end(options.method === "GET" || options.method === "DELETE" ? undefined : (options.body ?? ping));
  });
}

describe("who may come in", () => {
  const routes = ["/mcp", "/healthz", "/", "/nowhere"];

  test.each([
    ["another page's Origin", { origin: "https://evil.example" }],
    ["an Origin that only looks local", { origin: "http://localhost.evil.example" }],
    ["an opaque Origin", { origin: "null" }],
    ["a rebound Host", { host: "evil.example:7337" }],
    ["a Host that only looks local", { host: "localhost.evil.example" }],
  ])("%s is refused on every route, before anything runs", async (_name, headers) => {
    const server = await untouched();
    for (const route of routes)
      for (const method of ["POST", "GET"])
        expect(await send(server.url, { path: route, method, headers }), route).toMatchObject({ status: 403 });
    expect(server.runs()).toBe(0);
  });

  test("local pages and programs are let in", async () => {
    const { url } = await visited();
    for (const headers of [
      { origin: "http://localhost:3000" },
      { origin: "http://127.0.0.1:6274" },
      { host: "localhost:9" },
      { host: "[::1]:9" },
      {},
    ])
      expect(await send(url, { headers })).toMatchObject({ status: 200 });
  });

  test.each([["text/plain"], ["text/plain; a=application/json"], ["application/x-www-form-urlencoded"], [undefined]])(
    "a body of type %s is refused on every route: a form on a page could send it",
    async (type) => {
      const server = await untouched();
      for (const route of routes)
        expect(await send(server.url, { path: route, headers: { "content-type": type } }), route).toMatchObject({
          status: 415,
        });
      expect(server.runs()).toBe(0);
    },
  );

  test("only loopback is listened on, and another address is refused with the reason", async () => {
    const { url } = await visited();
    const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0");
    const listening = readFileSync("/proc/self/net/tcp", "utf8")
      .split("\n")
      .filter((line) => / 0A /.test(line) && line.includes(`:${port} `));
    expect(listening.map((line) => line.trim().split(/\s+/)[1])).toEqual([`0100007F:${port}`]);
    expect(await runCli(["serve", "--http", "--host", "0.0.0.0", "--port", "0"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(
        "--host 0.0.0.0 would be reachable from other machines without TLS; use 127.0.0.1, and a reverse proxy",
      ),
    });
  });

  test("a port in use: one sentence that names --port, exit 70", async () => {
    const { url } = await visited();
    const { port } = new URL(url);
    expect(await runCli(["serve", "--http", "--port", port])).toMatchObject({
      code: 70,
      stdout: "",
      stderr: `✗ Port ${port} is in use; choose another one with --port.\n`,
    });
    expect(await runCli(["serve", "--http", "--port", "99999"])).toMatchObject({
      code: 2,
      stderr: "✗ --port must be a whole number from 0 to 65535, not 99999.\n",
    });
  });
});

describe("who is calling", () => {
  test("the home's token is a secret of its user: made once, 0600 in a 0700 folder", async () => {
    const home = path.join(temporaryFolder(), "home");
    const first = await runCli(["token"], { env: { MEANWHILE_HOME: home } });
    const second = await runCli(["token"], { env: { MEANWHILE_HOME: home } });
    expect(first.stdout).toMatch(/^[\w-]{43}\n$/);
    expect(second.stdout).toBe(first.stdout);
    expect(statSync(path.join(home, "token")).mode & 0o777).toBe(0o600);
    expect(statSync(home).mode & 0o777).toBe(0o700);
  });

  test("with the token a caller is the local user, without it, where strangers are let in, anonymous", async () => {
    const server = await open();
    const token = server.token();
    expect(await send(server.url, { headers: { authorization: `Bearer ${token}` } })).toMatchObject({ status: 200 });
    expect(await send(server.url, {})).toMatchObject({ status: 200 });
    expect(await send(server.url, { headers: { authorization: `Bearer ${token}x` } })).toMatchObject({ status: 401 });
    const callers = [...server.log().matchAll(/"caller":"(\w+)"/g)].map((match) => match[1]);
    expect(callers).toEqual(["local", "anonymous"]);
    expect(server.log()).not.toContain(token);
  });

  test("an empty token file lets nobody in: it is refused at start", async () => {
    const home = writeFiles(temporaryFolder(), { token: "" });
    expect(await runCli(["serve", "--http", "--port", "0"], { env: { MEANWHILE_HOME: home } })).toMatchObject({
      code: 70,
      stderr: expect.stringContaining("holds no token; restore it from a backup, or delete it"),
    });
  });

  test("--require-token and requireToken say that they are not needed any more", async () => {
    const { code, stderr } = await runCli(["serve", "--http", "--port", "0", "--require-token"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(
      /^✗ --require-token is no flag any more, because HTTP asks for the token by itself; leave it out [^\n]+\n$/,
    );
    const cwd = writeFiles(temporaryFolder(), { "meanwhile.config.json": '{ "requireToken": true }' });
    expect(await runCli(["serve", "--http", "--port", "0"], { cwd })).toMatchObject({
      code: 70,
      stderr: expect.stringContaining(
        "`requireToken` is no setting any more, because HTTP asks for the token by itself; take it out",
      ),
    });
  });

  test("a session belongs to who began it: with another identity it does not exist", async () => {
    const server = await visited();
    const own = { authorization: `Bearer ${server.token()}` };
    const begun = await fetch(server.url, {
      method: "POST",
      headers: { ...plain, ...own },
      body: initialize,
    });
    await begun.text();
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id") as string };
    const stolen = await send(server.url, { headers: session });
    const invented = await send(server.url, { headers: { "mcp-session-id": "11111111-1111-4111-8111-111111111111" } });
    expect(stolen.text).toBe(invented.text);
    expect(stolen.status).toBe(404);
    expect(await send(server.url, { headers: { ...session, ...own } })).toMatchObject({ status: 200 });
  });
});

describe("a server as users start it asks every caller for the token", () => {
  const guarded = shareAmongTests(() => open({ allowAnonymous: false }));
  type Sent = { readonly path?: string; readonly headers?: Record<string, string | string[]> };
  const bearer = (value: string) => ({ headers: { authorization: value } });

  test.for<[string, (token: string) => Sent, string]>([
    ["no token", () => ({}), "This server wants to know who calls"],
    [
      "another token",
      (token) => bearer(`Bearer ${token.slice(0, -1)}${token.endsWith("A") ? "B" : "A"}`),
      "not this home's",
    ],
    ["the beginning of the token", (token) => bearer(`Bearer ${token.slice(0, -1)}`), "not this home's"],
    ["a token with something behind it", (token) => bearer(`Bearer ${token}x`), "not this home's"],
    ["a token with another word behind it", (token) => bearer(`Bearer ${token} extra`), "holds no bearer token"],
    ["two tokens with a comma", (token) => bearer(`Bearer ${token},Bearer ${token}`), "holds no bearer token"],
    ["an empty bearer", () => bearer("Bearer"), "holds no bearer token"],
    ["an empty header", () => bearer(""), "holds no bearer token"],
    ["the token without a scheme", (token) => bearer(token), "holds no bearer token"],
    ["Basic", (token) => bearer(`Basic ${Buffer.from(`me:${token}`).toString("base64")}`), "holds no bearer token"],
    ["a token in the URL", (token) => ({ path: `/mcp?access_token=${token}` }), "A token in the URL is not taken"],
    [
      "a token in the URL by another name",
      (token) => ({ path: `/mcp?a=1&token=${token}` }),
      "A token in the URL is not taken",
    ],
    [
      "a token in the URL, beside the header",
      (token) => ({ path: `/mcp?token=${token}`, ...bearer(`Bearer ${token}`) }),
      "A token in the URL is not taken",
    ],
    [
      "a token in a cookie",
      (token) => ({ headers: { cookie: `token=${token}; access_token=${token}` } }),
      "This server wants to know who calls",
    ],
    [
      "a token in other headers",
      (token) => ({ headers: { "x-api-key": token, "proxy-authorization": `Bearer ${token}` } }),
      "This server wants to know who calls",
    ],
    [
      "two Authorization headers, the right one first",
      (token) => ({ headers: { authorization: [`Bearer ${token}`, "Bearer other"] } }),
      "more than one Authorization",
    ],
    [
      "two Authorization headers, the right one last",
      (token) => ({ headers: { authorization: ["Bearer other", `Bearer ${token}`] } }),
      "more than one Authorization",
    ],
    [
      "the same Authorization header twice",
      (token) => ({ headers: { authorization: [`Bearer ${token}`, `Bearer ${token}`] } }),
      "more than one Authorization",
    ],
  ])("%s: 401, and a sentence that says what to send", async ([_title, make, sentence]) => {
    const server = await guarded();
    const sent = make(server.token());
    for (const method of ["POST", "GET", "DELETE"]) {
      const { status, text, headers } = await send(server.url, { ...sent, method });
      const { error } = JSON.parse(text) as { error: { message: string } };
      expect({ status, challenge: headers["www-authenticate"] }).toEqual({ status: 401, challenge: "Bearer" });
      expect(error.message).toContain(sentence);
      expect(error.message).toMatch(
        /^[^.]+; send `Authorization: Bearer …` with what `meanwhile token` prints[^.]*\.$/,
      );
      expect(text).not.toContain(server.token());
    }
    expect(server.runs()).toBe(0);
    expect(server.log()).not.toContain(server.token());
  });

  const withoutType = { headers: { "content-type": undefined } };
  test.for<[string, number, Parameters<typeof send>[1]]>([
    ["another path", 404, { method: "GET", path: "/nowhere" }],
    ["a session that does not exist", 404, { headers: { "mcp-session-id": "11111111-1111-4111-8111-111111111111" } }],
    ["another method", 405, { method: "PUT" }],
    ["a client that takes no JSON", 406, { headers: { accept: "text/html" }, body: initialize }],
    ["a body of more than 4 MiB", 413, { body: " ".repeat(5 * 1024 * 1024) }],
    ["a body without a type", 415, withoutType],
    ["a body without a type at another path", 415, { ...withoutType, path: "/nowhere" }],
    ["a body of another type", 415, { headers: { "content-type": "text/plain" } }],
    ["a compressed body", 415, { headers: { "content-encoding": "gzip" } }],
    ["a body in another charset", 415, { headers: { "content-type": "application/json; charset=utf-16" } }],
    ["a body that is not JSON", 400, { body: "{" }],
    ["a batch", 400, { body: `[${ping}]` }],
    ["an unknown revision", 400, { headers: { "mcp-protocol-version": "1999-01-01" } }],
  ])("returns 401 and nothing else for %s, which gets %i with the token", async ([_what, status, sent]) => {
    const server = await guarded();
    const own = { authorization: `Bearer ${server.token()}` };
    expect(await send(server.url, { ...sent, headers: { ...sent.headers, ...own } })).toMatchObject({ status });
    const refused = await send(server.url, sent);
    expect([refused.status, refused.text]).toEqual([401, (await send(server.url, {})).text]);
    expect(server.runs()).toBe(0);
  });

  test.for<[string, number, string, RawHeaders]>([
    ["another Host", 403, "POST /mcp", { host: "evil.example" }],
    ["two Host headers", 400, "POST /mcp", { host: ["localhost", "localhost"] }],
    ["a page of another origin", 403, "POST /mcp", { origin: "https://evil.example" }],
    ["a target of another host", 403, "POST http://evil.example/mcp", {}],
    ["a target that is no path", 400, "OPTIONS *", {}],
    ["an expectation that Node does not know", 417, "POST /mcp", { expect: "nothing" }],
    ["a head of more than 16 KiB", 431, "POST /mcp", { "x-long": "x".repeat(20_000) }],
    ["/healthz", 200, "GET /healthz", {}],
    ["/healthz with a body of another type", 415, "POST /healthz", { "content-type": "text/plain" }],
  ])("answers %s before it asks for the token, by %i", async ([_what, status, first, headers]) => {
    const server = await guarded();
    const body = first.startsWith("POST") ? ping : "";
    const all = { host: "localhost", ...plain, "content-length": String(body.length), connection: "close", ...headers };
    const socket = (await RawSocket.open(server.url)).send(toRequest(`${first} HTTP/1.1`, all, body));
    expect(await socket.closed()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(server.runs()).toBe(0);
  });

  test("a client that waits before it sends its body is asked for it only with the token", async () => {
    const server = await guarded();
    const ask = async (more: RawHeaders) => {
      const headers = { host: "localhost", ...plain, "content-length": String(ping.length), expect: "100-continue" };
      return (await RawSocket.open(server.url)).send(toRequest("POST /mcp HTTP/1.1", { ...headers, ...more }));
    };
    expect(await (await ask({})).answer()).toMatchObject({ status: 401 });
    const socket = await ask({ authorization: `Bearer ${server.token()}`, "content-type": "text/plain" });
    expect(await socket.answer()).toMatchObject({ status: 415 });
    const known = await ask({ authorization: `Bearer ${server.token()}` });
    expect(await known.answer()).toMatchObject({ status: 100 });
    expect(await known.send(ping).answer()).toMatchObject({ status: 200 });
  });

  test("the scheme may be written in small letters", async () => {
    const server = await open({ allowAnonymous: false });
    for (const scheme of ["bearer", "BEARER", "Bearer  "])
      expect(
        await send(server.url, { headers: { authorization: `${scheme} ${server.token()}` } }),
        scheme,
      ).toMatchObject({ status: 200 });
  });

  test("a stream, and the end of a session, need it like everything else", async () => {
    const server = await guarded();
    const own = { authorization: `Bearer ${server.token()}` };
    const begun = await send(server.url, { headers: own, body: initialize });
    const session = { "mcp-session-id": begun.headers["mcp-session-id"] as string };
    for (const method of ["GET", "DELETE", "POST"])
      expect(await send(server.url, { method, headers: session })).toMatchObject({ status: 401 });
    expect(await send(server.url, { method: "DELETE", headers: { ...session, ...own } })).toMatchObject({
      status: 200,
    });
  });
});

test("a request that is refused does not use up its id", async () => {
  const server = await visited();
  const begun = await fetch(server.url, {
    method: "POST",
    headers: plain,
    body: initialize,
  });
  await begun.text();
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id") as string };
  expect(await send(server.url, { headers: { ...session, accept: "application/json" } })).toMatchObject({
    status: 406,
  });
  expect(await send(server.url, { headers: session })).toMatchObject({ status: 200 });
});

test("health says ok, other paths say where MCP is", async () => {
  const { url } = await visited();
  expect(await send(url, { method: "GET", path: "/healthz" })).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  expect(await send(url, { method: "GET", path: "/" })).toMatchObject({
    status: 404,
    text: expect.stringContaining("MCP is at /mcp"),
  });
});

describe("what `serve --http` prints", () => {
  const entryIn = (printed: string) => JSON.parse(/^ {4}\{[\s\S]+?^ {4}\}$/m.exec(printed)?.[0] as string) as object;
  const home = shareAmongTests(() => path.join(temporaryFolder(), "a home's"));

  /** Serves until its address and what follows are printed, then stops as by Ctrl-C. */
  async function serve({ words = [], isTerminal = false }: { words?: string[]; isTerminal?: boolean } = {}) {
    const started = startCli(["serve", "--http", "--port", "0", ...words], {
      env: { MEANWHILE_HOME: await home(), NO_COLOR: "1" },
      ...(isTerminal && { screen: { columns: 100, rows: 40 } }),
    });
    await started.says(/Ctrl-C/);
    const printed = started.stderr();
    started.signal("SIGINT");
    expect(await started.exited).toBe(0);
    expect(started.stdout()).toBe("");
    const url = httpAddress.exec(printed)?.[0] as string;
    /** The line for a shell, as it stands there. */
    const shellLine = /^ {4}(sed [\s\S]+?\}')$/m.exec(printed)?.[1]?.replace(url, "<url>");
    return { printed, url, token: readFileSync(path.join(await home(), "token"), "utf8").trim(), shellLine };
  }

  test("to a pipe: an address, a header and a host's entry, without the token", async () => {
    const { printed, url, token } = await serve();
    expect(printed).toContain(`at ${url}\n`);
    expect(printed).toContain("    Authorization: Bearer <token>\n");
    expect(entryIn(printed)).toEqual({
      mcpServers: { meanwhile: { type: "http", url, headers: { Authorization: "Bearer <token>" } } },
    });
    // A pipe may end in a log.
    expect(printed).not.toContain(token);
  });

  test("to a terminal: the token itself, and the same line for a shell, which keeps the token off the command line", async () => {
    const { printed, token, shellLine } = await serve({ isTerminal: true });
    expect(printed).toContain(`    Authorization: Bearer ${token}\n`);
    expect(entryIn(printed)).toMatchObject({
      mcpServers: { meanwhile: { headers: { Authorization: `Bearer ${token}` } } },
    });
    expect(shellLine).toContain("<url>");
    expect(shellLine).not.toContain(token);
    expect(shellLine).toBe((await serve()).shellLine);
  });

  test("says who is let in, where strangers are", async () => {
    expect((await serve({ words: ["--allow-anonymous"] })).printed).toContain(
      "Strangers are let in, but to no bundled command; who sends this header is you:",
    );
  });
});
