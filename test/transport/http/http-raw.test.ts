import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, test } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { type RawAnswer, type RawHeaders, RawSocket, toRequest } from "../../helpers/raw-socket.ts";
import { rounds } from "../../helpers/rounds.ts";
import { openServer } from "../../helpers/server.ts";
import { type Fields, modernMeta } from "../../helpers/wire.ts";

/**
 * The HTTP door as it looks from a socket: what it makes of every head and body that a careless, a broken or a hostile
 * client could send. Whatever it was, the next client is served; that is looked at after each test.
 */

const commands = {
  "good/add.ts": `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({ summary: "Add", effects: "read", input: z.object({ a: z.number(), b: z.number() }), run: ({ a, b }) => ({ sum: a + b }) });`,
  "good/long.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Much", effects: "read", run: () => ({ text: "x".repeat(3_000_000) }) });`,
  "good/nap.ts": `import { defineCommand } from "meanwhile";
import { setImmediate as turn } from "node:timers/promises";
export default defineCommand({ summary: "Nap", effects: "read", run: async () => { for (let turns = 100; turns > 0; turns--) await turn(); return {}; } });`,
  "good/hold.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Holds", effects: "read", run: (_input, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))) });`,
};

const open = shareAmongTests(async () => {
  const server = await openServer({ in: "http", store: "sqlite", commands: writeFiles(temporaryFolder(), commands) });
  return { ...server, url: await server.url() };
});

const usual: RawHeaders = {
  host: "localhost",
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};
const toBody = (message: Fields) => JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
const ping = toBody({ method: "ping" });
const list = toBody({ method: "tools/list" });
const initialize = toBody({
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});

function post(body: string, headers: RawHeaders = {}, first = "POST /mcp HTTP/1.1"): string {
  return toRequest(first, { ...usual, "content-length": String(Buffer.byteLength(body)), ...headers }, body);
}

/** A request of 2026-07-28, with headers in place of its own. */
function modern(method = "tools/list", params: Fields = {}, headers: RawHeaders = {}): string {
  const body = toBody({ method, params: { ...params, _meta: { ...modernMeta({}), ...params._meta } } });
  return post(body, { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...headers });
}

const get = (headers: RawHeaders = {}, first = "GET /mcp HTTP/1.1") =>
  toRequest(first, { host: "localhost", accept: "text/event-stream", ...headers });

async function connect(): Promise<RawSocket> {
  return await RawSocket.open((await open()).url);
}

/** The answer to this on a connection of its own. */
async function ask(...parts: readonly (string | Uint8Array)[]): Promise<RawAnswer> {
  const socket = (await connect()).send(...parts);
  const answer = await socket.answer();
  socket.socket.destroy();
  return answer;
}

/** A session of 2025-11-25: its headers, and what it began with. */
async function begin(more: RawHeaders = {}): Promise<{ readonly own: RawHeaders; readonly begun: RawAnswer }> {
  const begun = await ask(post(initialize, more));
  return { own: { "mcp-session-id": begun.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25" }, begun };
}

const eventIdsIn = (text: string) => [...text.matchAll(/^id: (\S+)/gm)].map(([, id]) => id as string);
const withToken = async (): Promise<RawHeaders> => ({ authorization: `Bearer ${(await open()).token()}` });
const refused = (status: number, code: number, sentence: unknown = expect.any(String), id: unknown = null) => ({
  status,
  messages: [{ jsonrpc: "2.0", id, error: { code, message: sentence } }],
});
const served = { status: 200, messages: [{ id: 1, result: {} }] };
/** What the parser of HTTP cannot read is refused below MCP, and nothing more is read from its connection. */
const malformed = /^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/;

afterEach(async () => {
  const call = { name: "good_add", arguments: { a: 1, b: 2 } };
  const sum = { result: { structuredContent: { data: { sum: 3 } } } };
  expect(
    await ask(modern("tools/call", call, { "mcp-name": "good_add" })),
    "a client of 2026-07-28 after that",
  ).toMatchObject({
    status: 200,
    messages: [sum],
  });
  expect(await ask(post(toBody({ method: "tools/call", params: call }))), "an older client after that").toMatchObject({
    status: 200,
    messages: [sum],
  });
});

describe("whose page and which name", () => {
  test.for(["localhost", "localhost:1", "LOCALHOST", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:80"])(
    "Host: %s is this machine",
    async (host) => {
      expect(await ask(post(ping, { host }))).toMatchObject(served);
    },
  );

  test.for([
    "",
    "evil.example",
    "evil.example:7337",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "localhost.",
    "0.0.0.0",
    "::1",
    "[::ffff:127.0.0.1]",
    "[::2]",
    "127.0.0.1:99999",
    "evil.example#localhost",
    "localhost, evil.example",
  ])("Host: %s is not, and is refused before anything is said", async (host) => {
    expect(await ask(post(ping, { host }))).toMatchObject(
      refused(403, -32600, expect.stringMatching(/^The Host header must name this machine, e\.g\. localhost/)),
    );
  });

  test("no Host at all is a bad request; of HTTP/1.0, which need not have one, it is refused like a foreign one", async () => {
    const socket = (await connect()).send(post(ping, { host: undefined }));
    expect(await socket.closed()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(await ask(post(ping, { host: undefined }, "POST /mcp HTTP/1.0"))).toMatchObject({ status: 403 });
  });

  test("RFC 9112, 3.2: two Host headers are a bad request", async () => {
    const { status } = await ask(post(ping, { host: ["localhost", "evil.example"] }));
    expect([400, 403]).toContain(status);
  });

  test.for(["user@localhost", "localhost/x", "localhost?x"])("RFC 9112, 3.2: Host: %s is no host", async (host) => {
    const { status } = await ask(post(ping, { host }));
    expect([400, 403]).toContain(status);
  });

  test("RFC 9112, 3.2.2: a target with the whole address is served by its path, and its host counts, not the header's", async () => {
    expect(await ask(post(ping, {}, "POST http://localhost/mcp HTTP/1.1"))).toMatchObject(served);
    expect(await ask(post(ping, {}, "POST http://evil.example/mcp HTTP/1.1"))).toMatchObject({ status: 403 });
  });

  test.for([
    "http://localhost",
    "https://localhost:8443",
    "http://LOCALHOST:3000",
    "http://127.0.0.1:6274",
    "http://[::1]:5",
  ])("a page of %s may ask", async (origin) => {
    expect(await ask(post(ping, { origin }))).toMatchObject(served);
  });

  test.for<[string | string[]]>([
    ["https://evil.example"],
    ["http://localhost.evil.example"],
    ["http://127.0.0.1.evil.example"],
    ["http://localhost@evil.example"],
    ["null"],
    ["file://"],
    ["moz-extension://localhost.evil"],
    ["localhost"],
    [["http://localhost", "https://evil.example"]],
    [["https://evil.example", "http://localhost"]],
  ])("a page of %s may not, with the token neither", async ([origin]) => {
    for (const own of [{}, await withToken()])
      expect(await ask(post(ping, { origin, ...own }))).toMatchObject(
        refused(403, -32600, expect.stringMatching(/^Requests from other web pages are refused/)),
      );
  });
});

describe("Content-Type and Accept", () => {
  test.for([
    "application/json",
    "application/json; charset=utf-8",
    "application/json;charset=UTF-8",
    "APPLICATION/JSON",
    " application/json ",
  ])("a body of %s is read", async (type) => {
    expect(await ask(post(ping, { "content-type": type }))).toMatchObject(served);
  });

  test.for<[string | string[] | undefined]>([
    [undefined],
    [""],
    ["text/plain"],
    ["text/json"],
    ["application/jsonx"],
    ["application/json-rpc"],
    ["application/json, text/plain"],
    ["text/plain; application/json"],
    ["application/x-www-form-urlencoded"],
    ["multipart/form-data; boundary=application/json"],
    [["text/plain", "application/json"]],
  ])("a body of %s is refused: 415", async ([type]) => {
    expect(await ask(post(ping, { "content-type": type }))).toMatchObject(
      refused(415, -32600, "Content-Type must be application/json."),
    );
  });

  test.for([
    'application/json; charset="utf-8"',
    "application/json; charset=utf8",
    "application/json; charset=us-ascii",
  ])("a body of %s is read", async (type) => {
    expect(await ask(post(ping, { "content-type": type }))).toMatchObject(served);
  });

  test.for(["utf-16", '"UTF-16LE"', "iso-8859-1", "utf-8; charset=utf-16"])(
    "returns 415 for a body in charset %s",
    async (charset) => {
      expect(await ask(post(ping, { "content-type": `application/json; charset=${charset}` }))).toMatchObject(
        refused(415, -32600, expect.stringMatching(/^The charset "[\w-]+" is not decoded; send UTF-8\.$/)),
      );
    },
  );

  test.for(["identity", "IDENTITY", ""])("a body with Content-Encoding %j is read", async (encoding) => {
    expect(await ask(post(ping, { "content-encoding": encoding }))).toMatchObject(served);
  });

  test.for<[string | string[]]>([["gzip"], ["br"], ["x-gzip"], ["identity, gzip"], [["identity", "deflate"]]])(
    "returns 415 for a body with Content-Encoding %s, to a client of any revision, and serves the next request of its connection",
    async ([encoding]) => {
      const { own } = await begin();
      const packed = gzipSync(ping);
      const head = { "content-encoding": encoding, "content-length": String(packed.length) };
      for (const revision of [{}, own, { "mcp-protocol-version": "2026-07-28", "mcp-method": "ping" }]) {
        const socket = (await connect()).send(post("", { ...revision, ...head }), packed, post(ping));
        expect(await socket.answer()).toMatchObject({
          ...refused(415, -32600, expect.stringMatching(/^Content-Encoding "[\w-]+" is not decoded; send the body/)),
          headers: { "accept-encoding": "identity" },
        });
        expect(await socket.answer()).toMatchObject(served);
        socket.socket.destroy();
      }
    },
  );

  const both = [
    "application/json, text/event-stream",
    "text/event-stream;q=0.5,application/json;q=0.1",
    ["application/json", "text/event-stream"],
    "application/json, text/event-stream, */*",
  ];
  const notBoth = [undefined, "", "application/json", "text/event-stream", "text/html"];

  test("who speaks a revision before 2026-07-28 has to accept both forms of an answer: 406 to any message without, in a session or not", async () => {
    const { own } = await begin();
    const note = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
    for (const accept of notBoth) {
      for (const request of [
        post(initialize, { accept }),
        post(list, { accept }),
        post(list, { ...own, accept }),
        post(note, { ...own, accept }),
      ])
        expect(await ask(request), String(accept)).toMatchObject({
          status: 406,
          messages: [{ id: null, error: { code: expect.any(Number) } }],
        });
    }
    for (const accept of both)
      expect(await ask(post(list, { ...own, accept })), String(accept)).toMatchObject({
        status: 200,
        messages: [{ id: 1 }],
      });
    expect(await ask(post(note, own))).toMatchObject({ status: 202, text: "" });
  });

  test("for the stream of a session it is text/event-stream alone", async () => {
    const { own } = await begin();
    for (const accept of [undefined, "", "application/json", "text/html"])
      expect(await ask(get({ ...own, accept })), String(accept)).toMatchObject({
        status: 406,
        messages: [{ id: null }],
      });
    const stream = (await connect()).send(get(own));
    expect(await stream.shows("\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 200 OK\r\n(?:.*\r\n)*content-type: text\/event-stream\r\n/i,
    );
  });

  test("on 2026-07-28 nobody is turned away for want of it: an answer alone is JSON, whatever is accepted", async () => {
    for (const accept of [...both, ...notBoth, "*/*"]) {
      const answer = await ask(modern("tools/list", {}, { accept }));
      expect(answer, String(accept)).toMatchObject({
        status: 200,
        messages: [{ id: 1, result: { resultType: "complete" } }],
      });
      expect(answer.headers["content-type"]).toBe("application/json");
    }
  });

  test("RFC 9110, 8.3.1: the names of media types have no case", async () => {
    expect(await ask(post(list, { accept: "APPLICATION/JSON, Text/Event-Stream" }))).toMatchObject({ status: 200 });
  });

  test("RFC 9110, 12.5.1: a type that only begins like one is another", async () => {
    expect(await ask(post(list, { accept: "application/jsonx, text/event-streamx" }))).toMatchObject({ status: 406 });
  });
});

describe("sessions of revisions before 2026-07-28", () => {
  const notFound = refused(404, -32001, "Session not found; begin a new one with initialize.");

  test("one that is unknown, and one of another caller, are not there: 404 to every method, and the owner's goes on", async () => {
    const [strangers, mine] = [await begin(), await begin(await withToken())];
    for (const headers of [
      { "mcp-session-id": "unknown" },
      { "mcp-session-id": "" },
      { "mcp-session-id": "x".repeat(10_000) },
      { ...strangers.own, ...(await withToken()) },
      mine.own,
      { ...strangers.own, "mcp-session-id": [String(strangers.own["mcp-session-id"]), "unknown"] },
      {
        ...strangers.own,
        "mcp-session-id": [String(strangers.own["mcp-session-id"]), String(mine.own["mcp-session-id"])],
      },
    ]) {
      expect(await ask(post(list, headers))).toMatchObject(notFound);
      expect(await ask(get(headers))).toMatchObject(notFound);
      expect(await ask(get(headers, "DELETE /mcp HTTP/1.1"))).toMatchObject(notFound);
    }
    expect(await ask(post(ping, strangers.own))).toMatchObject(served);
    expect(await ask(post(ping, { ...mine.own, ...(await withToken()) }))).toMatchObject(served);
  });

  test("a request ID of 256 characters is answered, a longer one is refused with 400, and its session goes on", async () => {
    const { own } = await begin();
    const withId = (length: number) => post(toBody({ id: "x".repeat(length), method: "ping" }), own);
    expect(await ask(withId(256))).toMatchObject({ status: 200, messages: [{ id: "x".repeat(256), result: {} }] });
    for (const length of [257, 3_900_000])
      expect(await ask(withId(length))).toMatchObject(
        refused(
          400,
          -32600,
          `\`id\` has ${length} characters, and 256 are the most; use a shorter one, such as a number.`,
        ),
      );
    expect(await ask(post(ping, own))).toMatchObject(served);
  });

  test("without one a message stands alone, and gets no session; there is no stream to open and nothing to end: 405", async () => {
    const alone = await ask(post(list));
    expect(alone).toMatchObject({ status: 200, messages: [{ id: 1, result: { tools: expect.any(Array) } }] });
    expect(alone.headers).not.toHaveProperty("mcp-session-id");
    expect(eventIdsIn(alone.text)).toEqual([]);
    for (const method of ["GET", "DELETE"]) {
      const { status, headers } = await ask(get({}, `${method} /mcp HTTP/1.1`));
      expect({ status, allow: headers.allow }).toMatchObject({ status: 405, allow: expect.stringContaining("POST") });
    }
  });

  test("DELETE ends one: its streams end, it is not found any more, and a second DELETE finds nothing", async () => {
    const { own } = await begin();
    const stream = (await connect()).send(get(own));
    await stream.shows("\r\n\r\n");
    expect(await ask(get(own, "DELETE /mcp HTTP/1.1"))).toMatchObject({ status: 200, text: "" });
    expect(await stream.answer()).toMatchObject({ status: 200, messages: [] });
    expect(await ask(post(ping, own))).toMatchObject(notFound);
    expect(await ask(get(own))).toMatchObject(notFound);
    expect(await ask(get(own, "DELETE /mcp HTTP/1.1"))).toMatchObject(notFound);
  });

  test("a second stream of its own is refused while the first is open: 409", async () => {
    const { own } = await begin();
    const first = (await connect()).send(get(own));
    await first.shows("\r\n\r\n");
    expect(await ask(get(own))).toMatchObject({ status: 409, messages: [{ id: null, error: {} }] });
  });

  test("a second initialize in it is refused, and harms it not", async () => {
    const { own } = await begin();
    expect(await ask(post(initialize, own))).toMatchObject({ status: 400, messages: [{ error: { code: -32600 } }] });
    expect(await ask(post(ping, own))).toMatchObject(served);
  });

  test("a version header that names no revision it could speak is a bad request: 400, also of one that stands alone; 2026-07-28 has neither GET nor DELETE: 405", async () => {
    const { own } = await begin();
    for (const version of ["2099-01-01", "garbage", "", "2026-07-28", ["2025-11-25", "2025-11-25"]]) {
      const header = { "mcp-protocol-version": version };
      const refusedWith = (status: number) => ({ status, messages: [{ error: { code: expect.any(Number) } }] });
      for (const request of [post(list, { ...own, ...header }), post(list, header)])
        expect(await ask(request), JSON.stringify(version)).toMatchObject(refusedWith(400));
      for (const method of ["GET", "DELETE"])
        expect(
          await ask(get({ ...own, ...header }, `${method} /mcp HTTP/1.1`)),
          `${method} ${JSON.stringify(version)}`,
        ).toMatchObject(refusedWith(version === "2026-07-28" ? 405 : 400));
    }
    for (const version of ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", undefined])
      expect(await ask(post(ping, { ...own, "mcp-protocol-version": version })), version).toMatchObject(served);
  });

  test("an initialize without params is refused by its code and a sentence", async () => {
    const [{ error }] = (await ask(post(toBody({ method: "initialize" })))).messages as [Fields];
    expect(error).toMatchObject({ code: -32602, message: expect.not.stringContaining("\n") });
  });
});

describe("Last-Event-ID", () => {
  test("who comes back gets what its stream had after it, and nothing else", async () => {
    const { own, begun } = await begin();
    const [first, second] = eventIdsIn(begun.text);
    expect(await ask(get({ ...own, "last-event-id": first }))).toMatchObject({
      status: 200,
      messages: [{ id: 1, result: { protocolVersion: "2025-11-25" } }],
    });
    expect(await ask(get({ ...own, "last-event-id": second }))).toMatchObject({ status: 200, messages: [] });
  });

  test("an id of another session gives nothing of that session, whoever asks", async () => {
    const [theirs, mine] = [await begin(), await begin()];
    const strangers = await begin(await withToken());
    for (const id of [...eventIdsIn(theirs.begun.text), ...eventIdsIn(strangers.begun.text)]) {
      const { status, messages } = await ask(get({ ...mine.own, "last-event-id": id }));
      expect([200, 400, 404]).toContain(status);
      expect(messages.filter(({ result }) => result !== undefined)).toEqual([]);
    }
  });

  test.for(["garbage", "1", "99999.x", "-1.x", "1e3.x", "0.x", `${"9".repeat(5_000)}.x`, "../1.x", "é"])(
    "%s names no event: 400",
    async (id) => {
      const { own } = await begin();
      expect(await ask(get({ ...own, "last-event-id": id }))).toMatchObject({
        status: 400,
        messages: [{ id: null, error: { code: expect.any(Number) } }],
      });
      expect(await ask(post(ping, own))).toMatchObject(served);
    },
  );

  test("the name of no stream brings nothing, also where it looks like a part of the language", async () => {
    const { own } = await begin();
    for (const stream of ["x", "__proto__", "constructor"]) {
      const { messages } = await ask(get({ ...own, "last-event-id": `1.${stream}` }));
      expect(messages.filter(({ result }) => result !== undefined)).toEqual([]);
    }
  });
});

describe("headers of 2026-07-28", () => {
  const mismatch = (name: string) => ({
    status: 400,
    messages: [{ jsonrpc: "2.0", id: 1, error: { code: -32020, message: expect.stringContaining(name) } }],
  });

  test.for<[string | string[] | undefined]>([
    [undefined],
    [""],
    ["2025-11-25"],
    ["2099-01-01"],
    ["garbage"],
    [["2026-07-28", "2026-07-28"]],
  ])("MCP-Protocol-Version: %s on a message of 2026-07-28 disagrees with it: -32020", async ([version]) => {
    expect(await ask(modern("tools/list", {}, { "mcp-protocol-version": version }))).toMatchObject(
      mismatch("MCP-Protocol-Version"),
    );
  });

  test.for(["2099-01-01", "2025-11-25", "1"])(
    "a message of %s, in body and header, is refused by what is spoken here: -32022",
    async (requested) => {
      const _meta = { "io.modelcontextprotocol/protocolVersion": requested };
      const data = { supported: expect.arrayContaining(["2026-07-28"]), requested };
      expect(await ask(modern("tools/list", { _meta }, { "mcp-protocol-version": requested }))).toMatchObject({
        status: 400,
        messages: [{ id: 1, error: { code: -32022, message: `Unsupported protocol version: ${requested}`, data } }],
      });
      expect(await ask(modern("tools/list", { _meta }))).toMatchObject(mismatch("MCP-Protocol-Version"));
    },
  );

  test("a header that names 2026-07-28 on a message without its envelope, or with a part of it: -32602", async () => {
    const header = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" };
    const [version, capabilities] = [
      "io.modelcontextprotocol/protocolVersion",
      "io.modelcontextprotocol/clientCapabilities",
    ];
    for (const params of [
      undefined,
      {},
      { _meta: {} },
      { _meta: { [version]: "2026-07-28" } },
      { _meta: { [version]: 7, [capabilities]: {} } },
    ])
      expect(await ask(post(toBody({ method: "tools/list", params }), header)), JSON.stringify(params)).toMatchObject(
        refused(400, -32602, expect.any(String), 1),
      );
  });

  test.for<[string | string[] | undefined]>([
    [undefined],
    [""],
    ["tools/call"],
    ["Tools/List"],
    ["tools/list, tools/list"],
    [["tools/list", "tools/list"]],
  ])("Mcp-Method: %s on tools/list: -32020", async ([method]) => {
    expect(await ask(modern("tools/list", {}, { "mcp-method": method }))).toMatchObject(mismatch("Mcp-Method"));
  });

  const call = { name: "good_add", arguments: { a: 2, b: 2 } };

  test.for<[string | string[] | undefined]>([
    [undefined],
    [""],
    ["good_hold"],
    ["GOOD_ADD"],
    ["=?base64?Z29vZF9hZGQ?="],
    ["=?base64?!!!?="],
    [`=?base64?${btoa("good_hold")}?=`],
    ["good_add, good_add"],
    [["good_add", "good_hold"]],
  ])("Mcp-Name: %s on a call of good_add: -32020, and nothing runs", async ([name]) => {
    expect(await ask(modern("tools/call", call, { "mcp-name": name }))).toMatchObject(mismatch("Mcp-Name"));
  });

  test("the name may come as base64; where a method has none, the header is not looked at", async () => {
    const encoded = { "mcp-name": `=?base64?${btoa("good_add")}?=` };
    expect(await ask(modern("tools/call", call, encoded))).toMatchObject({
      status: 200,
      messages: [{ result: { structuredContent: { data: { sum: 4 } } } }],
    });
    expect(await ask(modern("tools/list", {}, { "mcp-name": "anything" }))).toMatchObject({ status: 200 });
  });

  test("a method that nobody knows is 404 with -32601, and a handshake is one; a note is taken without a word", async () => {
    for (const method of ["nobody/knows", "initialize", "ping"])
      expect(await ask(modern(method)), method).toMatchObject(refused(404, -32601, "Method not found", 1));
    const note = JSON.stringify({
      jsonrpc: "2.0",
      method: "notifications/cancelled",
      params: { requestId: 1, _meta: modernMeta({}) },
    });
    expect(
      await ask(post(note, { "mcp-protocol-version": "2026-07-28", "mcp-method": "notifications/cancelled" })),
    ).toMatchObject({ status: 202, text: "" });
  });
});

describe("methods and paths", () => {
  test.for(["/", "/mcp/", "/MCP", "/%6dcp", "/x/../mcp", "//mcp", "/mcp%00", "/mcp;x"])(
    "there is nothing at %s",
    async (path) => {
      expect(await ask(post(ping, {}, `POST ${path} HTTP/1.1`))).toMatchObject(
        refused(404, -32600, "There is nothing here; MCP is at /mcp."),
      );
    },
  );

  test("a query changes nothing; health is told to who asks", async () => {
    expect(await ask(post(ping, {}, "POST /mcp?a=1 HTTP/1.1"))).toMatchObject(served);
    expect(await ask(get({}, "GET /healthz HTTP/1.1"))).toMatchObject({ status: 200, text: '{"status":"ok"}' });
  });

  test.for(["PUT", "PATCH", "TRACE", "PROPFIND"])("%s is no way to ask: 405, with those that are", async (method) => {
    const answer = await ask(post(ping, {}, `${method} /mcp HTTP/1.1`));
    expect(answer).toMatchObject(refused(405, -32600, "MCP is asked by POST, GET and DELETE."));
    expect(answer.headers.allow).toMatch(/\bPOST\b/);
  });

  test("OPTIONS is answered with 405, and HEAD with its head alone", async () => {
    expect(await ask(get({}, "OPTIONS /mcp HTTP/1.1"))).toMatchObject({ status: 405 });
    const socket = (await connect()).send(get({ connection: "close" }, "HEAD /mcp HTTP/1.1"));
    expect(await socket.closed()).toMatch(/^HTTP\/1\.1 405 [^\0]*\r\n\r\n$/);
  });

  test.for([
    ["a method that HTTP does not have", post(ping, {}, "FOO /mcp HTTP/1.1")],
    ["a version that HTTP does not have", post(ping, {}, "POST /mcp HTTP/1.2")],
    ["the beginning of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["the beginning of TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["something else", "hello\r\n\r\n"],
  ] as const)("%s is no request: 400, and the connection is closed", async ([_name, text]) => {
    const socket = (await connect()).send(Buffer.from(text, "latin1"));
    expect(await socket.closed()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  });
});

describe("heads", () => {
  test("names of headers have no case", async () => {
    const request = post(ping)
      .replace("host", "HOST")
      .replace("content-type", "cOnTeNt-TyPe")
      .replace("content-length", "Content-Length")
      .replace("accept", "ACCEPT");
    expect(await ask(request)).toMatchObject(served);
  });

  test.for([
    ["a folded header", post(ping, { accept: "application/json,\r\n text/event-stream" })],
    ["a folded token", post(ping, { authorization: "Bearer\r\n x" })],
    ["a space before the colon", post(ping).replace("accept:", "accept :")],
    ["a bare line feed", post(ping).replaceAll("\r\n", "\n")],
    ["a bare carriage return", post(ping, { x: "a\rb" })],
    ["a NUL", post(ping, { x: "a\0b" })],
    ["a header without a colon", post(ping).replace("accept:", "accept")],
    ["a name with a space", post(ping, { "x y": "1" })],
  ] as const)("%s is refused: 400, and nothing more is read", async ([_name, request]) => {
    const socket = (await connect()).send(request + post(ping));
    expect(await socket.closed()).toMatch(malformed);
    expect(socket.received).not.toContain("result");
  });

  test.for([
    ["64 kB in one header", post(ping, { x: "a".repeat(65_536) })],
    [
      "64 kB in many",
      post(ping, Object.fromEntries(Array.from({ length: 2_500 }, (_, n) => [`x-${n}`, "a".repeat(20)]))),
    ],
    ["an address of 64 kB", post(ping, {}, `POST /mcp?${"a".repeat(65_536)} HTTP/1.1`)],
  ] as const)("a head with %s is refused: 431", async ([_name, request]) => {
    const socket = (await connect()).send(request);
    expect(await socket.closed()).toMatch(/^HTTP\/1\.1 431 Request Header Fields Too Large\r\nConnection: close\r\n/);
  });

  test("a head of 10 kB is read", async () => {
    expect(await ask(post(ping, { x: "a".repeat(10_000) }))).toMatchObject(served);
  });

  test("two Authorization headers are refused, whichever is right", async () => {
    const right = String((await withToken()).authorization);
    for (const authorization of [
      [right, "Bearer x"],
      ["Bearer x", right],
      [right, right],
      [right, ""],
    ])
      expect(await ask(post(ping, { authorization }))).toMatchObject(
        refused(401, -32600, expect.stringMatching(/^There is more than one Authorization header/)),
      );
  });

  test("letters beyond ASCII in a header are no reason to fall over", async () => {
    expect(await ask(post(ping, { x: "é", "x-y": "\u{1f600}" }))).toMatchObject(served);
    expect(await ask(post(ping, { "mcp-session-id": "é" }))).toMatchObject({ status: 404 });
    expect(await ask(post(ping, { authorization: "Bearer é" }))).toMatchObject({ status: 401 });
    expect(await ask(modern("tools/call", { name: "é" }, { "mcp-name": "é" }))).toMatchObject({
      status: 400,
      messages: [{ error: { code: -32020 } }],
    });
  });
});

describe("bodies", () => {
  const mib = 1024 * 1024;
  const ofSize = (bytes: number) => {
    const empty = toBody({ method: "ping", params: { x: "" } });
    return empty.replace('"x":""', `"x":"${"x".repeat(bytes - empty.length)}"`);
  };

  test("4 MiB are read, and a byte more is refused: 413, and the connection is closed", async () => {
    expect(await ask(post(ofSize(4 * mib)))).toMatchObject(served);
    const socket = (await connect()).send(post(ofSize(4 * mib + 1)));
    expect(await socket.answer()).toMatchObject(refused(413, -32600, "The body is larger than 4 MiB."));
    expect(await socket.closed()).toBe("");
  });

  test("the same in chunks, which nobody has announced", async () => {
    const chunked = { "content-length": undefined, "transfer-encoding": "chunked" };
    const socket = (await connect()).send(post("", chunked));
    const chunk = `100000\r\n${"x".repeat(mib)}\r\n`;
    socket.send(chunk, chunk, chunk, chunk, chunk, "0\r\n\r\n");
    expect(await socket.answer()).toMatchObject({ status: 413 });
  });

  test("a length that nobody would read is refused before the body comes", async () => {
    expect(await ask(post("", { "content-length": String(100 * mib) }))).toMatchObject({ status: 413 });
  });

  test("a length that is too short: what is there is no message, the rest no request, and nothing runs", async () => {
    const socket = (await connect()).send(post(ping, { "content-length": "10" }));
    expect(await socket.closed()).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(socket.received).not.toContain("result");
  });

  test("a length that is too long: the rest is waited for; who hangs up instead gets 400, and nothing runs", async () => {
    const socket = (await connect()).send(post(ping, { "content-length": String(ping.length + 3) }));
    expect(await ask(post(ping))).toMatchObject(served);
    expect(socket.received).toBe("");
    socket.send(" \n ");
    expect(await socket.answer()).toMatchObject(served);
    const leaving = (await connect()).send(post(ping, { "content-length": "500" }));
    leaving.socket.end();
    expect(await leaving.closed()).not.toContain("result");
  });

  test("who closes its own side after a whole request is still answered", async () => {
    const socket = (await connect()).send(post(ping));
    socket.socket.end();
    expect(await socket.answer()).toMatchObject(served);
  });

  test("no body, and an empty one in chunks, are no message: -32700", async () => {
    expect(await ask(post(""))).toMatchObject(refused(400, -32700));
    expect(await ask(post("0\r\n\r\n", { "content-length": undefined, "transfer-encoding": "chunked" }))).toMatchObject(
      refused(400, -32700),
    );
  });

  test.for(["abc", "-5", "+42", "42,42", "0x2a", "", "4.2e1", "9".repeat(30)])(
    "Content-Length: %s is no length: 400",
    async (length) => {
      const socket = (await connect()).send(post(ping, { "content-length": length }));
      expect(await socket.closed()).toMatch(malformed);
    },
  );

  test("two lengths, equal or not, and a length beside chunks are refused: one of the two would be somebody else's request", async () => {
    const size = String(ping.length);
    for (const headers of [
      { "content-length": [size, size] },
      { "content-length": ["5", size] },
      { "transfer-encoding": "chunked" },
      { "transfer-encoding": "identity" },
    ]) {
      const socket = (await connect()).send(post(ping, headers));
      expect(await socket.closed(), JSON.stringify(headers)).toMatch(malformed);
    }
  });

  /** Every byte a chunk of its own. */
  const inChunks = (body: string, trailers = "") =>
    post(`${Array.from(body, (letter) => `1\r\n${letter}\r\n`).join("")}0\r\n${trailers}\r\n`, {
      "content-length": undefined,
      "transfer-encoding": "chunked",
    });

  test("chunks are put together; what a trailer says about who asks, and where, is not heard", async () => {
    expect(await ask(inChunks(ping))).toMatchObject(served);
    expect(
      await ask(
        inChunks(
          ping,
          "host: evil.example\r\norigin: https://evil.example\r\nmcp-session-id: x\r\nauthorization: Bearer x\r\n",
        ),
      ),
    ).toMatchObject(served);
    const { own } = await begin(await withToken());
    const token = String((await withToken()).authorization);
    expect(
      await ask(inChunks(ping, `authorization: ${token}\r\nmcp-session-id: ${String(own["mcp-session-id"])}\r\n`)),
    ).toMatchObject(served);
    expect(
      await ask(
        inChunks(ping, `authorization: ${token}\r\n`).replace(
          "\r\n\r\n",
          `\r\nmcp-session-id: ${String(own["mcp-session-id"])}\r\n\r\n`,
        ),
      ),
    ).toMatchObject({
      status: 404,
    });
  });

  test.for(["zz\r\n", "-1\r\n", "5\r\nabcdefg\r\n", `${"f".repeat(20)}\r\n`])(
    "a chunk that is none, %j: 400",
    async (chunk) => {
      const socket = (await connect()).send(
        post(chunk, { "content-length": undefined, "transfer-encoding": "chunked" }),
      );
      expect(await socket.closed()).toMatch(malformed);
    },
  );

  test("Expect: 100-continue is told to go on, and then answered; of another expectation nothing is known: 417", async () => {
    const socket = (await connect()).send(post("", { "content-length": String(ping.length), expect: "100-continue" }));
    expect(await socket.answer()).toMatchObject({ status: 100 });
    expect(await socket.send(ping).answer()).toMatchObject(served);
    expect(await ask(post(ping, { expect: "200-maybe" }))).toMatchObject({ status: 417 });
  });

  test("a head and a body that come a byte at a time are read", async () => {
    const socket = await connect();
    for (const byte of Buffer.from(modern())) {
      socket.send(Buffer.of(byte));
      await new Promise(setImmediate);
    }
    expect(await socket.answer()).toMatchObject({ status: 200, messages: [{ id: 1 }] });
  });

  test("a head and a body that stop hold nobody up, and their connections wait for the rest", async () => {
    const half = post(ping).length - 20;
    const slow = [
      (await connect()).send("POST /mcp HTTP/1.1\r\nhost: loc"),
      (await connect()).send(post(ping).slice(0, half)),
    ];
    for (let n = 0; n < 5; n++) expect(await ask(post(ping))).toMatchObject(served);
    slow[0]?.send("alhost\r\n", post(ping).slice(post(ping).indexOf("content-type")));
    slow[1]?.send(post(ping).slice(half));
    for (const socket of slow) expect(await socket.answer()).toMatchObject(served);
  });
});

describe("connections", { timeout: 240_000 }, () => {
  test("what is sent without waiting is answered, all of it and in its order, refusals among it", async () => {
    const { own } = await begin();
    const socket = (await connect()).send(
      [
        post(toBody({ id: "a", method: "ping" })),
        post("nonsense"),
        modern(),
        post(ping, { "content-type": "text/plain" }),
        post(toBody({ id: "b", method: "ping" }), own),
        get({}, "GET /nowhere HTTP/1.1"),
        post(toBody({ id: "c", method: "ping" }), { "mcp-session-id": "unknown" }),
        post(toBody({ id: "d", method: "ping" })),
      ].join(""),
    );
    const seen = [];
    for (let n = 0; n < 8; n++) {
      const { status, messages } = await socket.answer();
      seen.push([status, messages[0]?.id]);
    }
    expect(seen).toEqual([
      [200, "a"],
      [400, null],
      [200, 1],
      [415, null],
      [200, "b"],
      [404, null],
      [404, null],
      [200, "d"],
    ]);
    expect(socket.received).toBe("");
  });

  test("a slow call is not overtaken by the next on its connection", async () => {
    const { own } = await begin();
    const nap = toBody({ id: "slow", method: "tools/call", params: { name: "good_nap" } });
    const socket = (await connect()).send(post(nap, own) + post(toBody({ id: "next", method: "ping" }), own));
    expect(await socket.answer()).toMatchObject({ messages: [{ id: "slow", result: {} }] });
    expect(await socket.answer()).toMatchObject({ messages: [{ id: "next", result: {} }] });
  });

  test("an answer of JSON keeps the connection, and one to `Connection: close`, or to HTTP/1.0, ends it", async () => {
    const socket = await connect();
    for (let n = 0; n < 3; n++) expect(await socket.send(modern()).answer()).toMatchObject({ status: 200 });
    socket.send(modern("tools/list", {}, { connection: "close" }));
    expect(await socket.answer()).toMatchObject({ status: 200, headers: { connection: "close" } });
    expect(await socket.closed()).toBe("");
    for (const body of [ping, list]) {
      const old = (await connect()).send(post(body, {}, "POST /mcp HTTP/1.0"));
      expect(await old.closed()).toMatch(/^HTTP\/1\.1 200 OK\r\n(?!.*transfer-encoding)/is);
      expect(await old.answer()).toMatchObject({ status: 200, messages: [{ id: 1 }] });
    }
  });

  test("RFC 9112, 9.6: `Connection: close` ends it also where the answer is a stream", async () => {
    const { headers } = await ask(post(ping, { connection: "close" }));
    expect(headers.connection).toBe("close");
  });

  test("a client that never reads, not its answers and not its stream, keeps nobody waiting", async () => {
    const { own } = await begin();
    const deaf = await Promise.all(Array.from({ length: 6 }, connect));
    for (const { socket } of deaf) socket.pause();
    const long = toBody({ method: "tools/call", params: { name: "good_long" } });
    for (const socket of deaf.slice(0, 3)) socket.send(post(long), post(long));
    for (const socket of deaf.slice(3, 5))
      socket.send(modern("tools/call", { name: "good_long" }, { "mcp-name": "good_long" }).repeat(2));
    deaf[5]?.send(get(own));
    for (let n = 0; n < 5; n++) expect(await ask(post(ping, own))).toMatchObject(served);
    // Who begins to read after all gets all of it.
    deaf[0]?.socket.resume();
    expect(await deaf[0]?.answer()).toMatchObject({
      status: 200,
      messages: [{ result: { structuredContent: { success: true } } }],
    });
  });

  test("a client that leaves, in its head, its body, its call or its stream, is missed by nobody", async () => {
    const { own } = await begin();
    const hold = { name: "good_hold" };
    for (const sent of [
      "",
      "POST /mcp HTT",
      post(ping).slice(0, -5),
      post(toBody({ method: "tools/call", params: hold })),
      modern("tools/call", hold, { "mcp-name": "good_hold" }),
      get(own),
      post(ping).repeat(5),
    ]) {
      const socket = (await connect()).send(sent);
      await new Promise(setImmediate);
      socket.socket.resetAndDestroy();
    }
    expect(await ask(post(ping, own))).toMatchObject(served);
  });

  test("idle connections are kept, of strangers 250: the idlest make room, and the local user's stays among them", async () => {
    const [mine, own] = [await connect(), await withToken()];
    const idle = new Set<RawSocket>();
    let most = 0;
    for (let n = 0; n < rounds.idleConnections; n++) {
      if (n % 10 === 0) expect(await mine.send(post(ping, own)).answer()).toMatchObject(served);
      const socket = (await connect()).send(modern());
      await socket.answer();
      idle.add(socket);
      for (const one of idle) if (one.isClosed) idle.delete(one);
      most = Math.max(most, idle.size);
    }
    // The end of one may be heard of a moment after the next was served.
    expect(most).toBeLessThanOrEqual(260);
    expect(await mine.send(post(ping, own)).answer()).toMatchObject(served);
    for (const { socket } of idle) socket.destroy();
  });

  test("connections that say nothing, or half a head, keep nobody out", async () => {
    const silent: RawSocket[] = [];
    for (let n = 0; n < rounds.idleConnections; n++)
      silent.push((await connect()).send(n % 2 === 0 ? "" : "POST /mcp HTTP/1.1\r\nhost: l"));
    expect(await ask(post(ping))).toMatchObject(served);
    expect(silent.filter(({ isClosed }) => !isClosed).length).toBeLessThanOrEqual(2_010);
    for (const { socket } of silent) socket.destroy();
  });
});
