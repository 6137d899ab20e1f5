import type { IncomingMessage, ServerResponse } from "node:http";
import { brotliCompressSync, gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { HttpMount } from "../../../src/transport/http/mount.ts";
import { openMounted, serve, toCall, toRequest } from "../../helpers/mounted.ts";

/** Bodies that an app has had before us, as its parsers leave them. */

const { message, init } = toCall("add", { a: 1, b: 2 });
const answered = { status: 200, told: { result: { structuredContent: { data: { sum: 3 } } } } };

async function read(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

type App = (mount: HttpMount, request: IncomingMessage, response: ServerResponse) => void | Promise<void>;

/** What a client is answered by an app that does this. */
async function ask(app: App, body = init.body) {
  const { mount } = await openMounted();
  const { url } = await serve((request, response) => void app(mount, request, response));
  const response = await fetch(url, { ...init, body });
  return { status: response.status, told: (await response.json()) as unknown };
}

const next = () => {
  throw new Error("`next` was called");
};
/** As Express hands it over, after a parser that made this of the body. */
const parsedTo =
  (parse: (bytes: Buffer) => unknown): App =>
  async (mount, request, response) => {
    Object.assign(request, { body: parse(await read(request)) });
    mount.node(request, response, next);
  };

describe("node", () => {
  test.each<[string, App]>([
    ["nothing: no parser was there", (mount, request, response) => mount.node(request, response, next)],
    ["an object, as express.json() does", parsedTo((bytes) => JSON.parse(String(bytes)) as unknown)],
    ["text, as express.text() does", parsedTo(String)],
    ["bytes, as express.raw() does", parsedTo((bytes) => bytes)],
    ["bytes that are no Buffer", parsedTo((bytes) => new Uint8Array(bytes))],
    [
      "an empty object, as a parser of forms does with what it leaves unread",
      (mount, request, response) => mount.node(Object.assign(request, { body: {} }), response, next),
    ],
    [
      "nothing on the request: it is handed over, as from Fastify",
      async (mount, request, response) =>
        mount.node(request, response, JSON.parse(String(await read(request))) as unknown),
    ],
    [
      "something else on the request: what is handed over counts",
      async (mount, request, response) => {
        await read(request);
        mount.node(Object.assign(request, { body: { other: true } }), response, message);
      },
    ],
    [
      "an object before anything was read, as some hosts do",
      (mount, request, response) => mount.node(Object.assign(request, { body: message }), response),
    ],
    ["null, handed over where nothing was read", (mount, request, response) => mount.node(request, response, null)],
  ])("the app has made of it %s", async (_what, app) => {
    expect(await ask(app)).toMatchObject(answered);
  });

  test("who has read it and hands over nothing is told what to hand over", async () => {
    const app: App = async (mount, request, response) => {
      await read(request);
      mount.node(request, response, next);
    };
    const told = { error: { code: -32603, message: expect.stringContaining("`node(request, response, body)`") } };
    expect(await ask(app)).toMatchObject({ status: 500, told });
  });

  test("who has read none, because there was none, is not waited for", async () => {
    const app: App = async (mount, request, response) => {
      await read(request);
      mount.node(request, response);
    };
    expect(await ask(app, "")).toMatchObject({ status: 500 });
  });

  const nested = (depth: number): object => (depth === 0 ? {} : { a: nested(depth - 1) });
  test.each<[string, unknown, string]>([
    ["a list", [message], "Batches are not supported"],
    ["null", null, "A message must be a JSON object."],
    ["a number", 5, "A message must be a JSON object."],
    ["no JSON", "{", "The message is not JSON"],
    ["what is too deep", { ...message, deep: nested(100) }, "is nested more than 64 levels deep"],
    ["what holds too much", { ...message, many: Array(100_001).fill(0) }, "holds more than 100,000 values"],
    [
      "an object with too many members",
      { ...message, wide: Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [n, 0])) },
      "has an object with more than 10,000 members",
    ],
    [
      "what goes round in circles",
      Object.assign(
        { ...message },
        {
          get self() {
            return this;
          },
        },
      ),
      "levels deep",
    ],
  ])("a parser's %s is refused as the text of it would be", async (_what, body, sentence) => {
    const told = { error: { message: expect.stringContaining(sentence) } };
    expect(await ask(parsedTo(() => body))).toMatchObject({ status: 400, told });
  });

  test.each<[string, unknown]>([
    ["text", "x".repeat(4 * 1024 * 1024 + 1)],
    ["an object", { ...message, long: "x".repeat(4 * 1024 * 1024 + 1) }],
  ])("a parser's %s of more than 4 MiB is refused with the size", async (_what, body) => {
    expect(await ask(parsedTo(() => body))).toMatchObject({ status: 413 });
  });

  test("what a client says about itself may be as long as anywhere", async () => {
    const meta = { "io.modelcontextprotocol/clientInfo": { name: "x".repeat(17_000), version: "1" } };
    const long = toCall("add", { a: 1, b: 2 }, { _meta: meta }).message;
    const told = { error: { message: expect.stringContaining("What the client says about itself") } };
    expect(await ask(parsedTo(() => long))).toMatchObject({ told });
  });

  test("returns 415 for a compressed body that no parser has read", async () => {
    const { mount } = await openMounted();
    const { url } = await serve((request, response) => mount.node(request, response, next));
    const headers = { ...init.headers, "content-encoding": "gzip" };
    const response = await fetch(url, { ...init, headers, body: gzipSync(init.body) });
    expect([response.status, await response.json()]).toMatchObject([415, { error: { code: -32600 } }]);
  });

  test("a compressed body that a parser has decoded is read", async () => {
    const { mount } = await openMounted();
    const { url } = await serve(async (request, response) => {
      Object.assign(request, { body: JSON.parse(String(gunzipSync(await read(request)))) as unknown });
      mount.node(request, response, next);
    });
    const headers = { ...init.headers, "content-encoding": "gzip" };
    const response = await fetch(url, { ...init, headers, body: gzipSync(init.body) });
    expect([response.status, await response.json()]).toMatchObject([200, answered.told]);
  });

  test("another framework's request is refused with the cure, before anything is answered", async () => {
    const { mount } = await openMounted();
    const [request, response] = [{ raw: {} }, { raw: {} }] as unknown as [IncomingMessage, ServerResponse];
    expect(() => mount.node(request, response)).toThrow(
      new TypeError(
        "`node` takes node's own request and response; in Fastify these are `request.raw` and `reply.raw`.",
      ),
    );
  });
});

describe("fetch", () => {
  const url = "http://localhost/mcp";
  const toAnswer = async (response: Response) => ({
    status: response.status,
    told: (await response.json()) as unknown,
  });

  test.each([
    ["with its length", { "content-length": String(init.body.length) }],
    ["without", {}],
    ["with an encoding that somebody before us has undone", { "content-length": "10", "content-encoding": "gzip" }],
  ])("a body is read %s", async (_how, more) => {
    const { mount } = await openMounted();
    const request = toRequest(url, { ...init, headers: { ...init.headers, ...more } });
    expect(await toAnswer(await mount.fetch(request))).toMatchObject(answered);
  });

  test.each<[string, Record<string, string>, Buffer]>([
    ["gzip", { "content-encoding": "gzip" }, gzipSync(init.body)],
    ["gzip, with its length", { "content-encoding": "gzip", "content-length": "180" }, gzipSync(init.body)],
    ["br", { "content-encoding": "br" }, brotliCompressSync(init.body)],
    ["UTF-16", { "content-type": "application/json; charset=utf-16le" }, Buffer.from(init.body, "utf16le")],
  ])("returns 415 for a body in %s", async (_what, more, body) => {
    const { mount } = await openMounted();
    const request = toRequest(url, { ...init, headers: { ...init.headers, ...more }, body });
    expect(await toAnswer(await mount.fetch(request))).toMatchObject({
      status: 415,
      told: { error: { code: -32600 } },
    });
  });

  test("a body that was read already has to be handed over", async () => {
    const { mount } = await openMounted();
    const request = toRequest(url, init);
    const body = await request.json();
    const told = { error: { code: -32603, message: expect.stringContaining("`fetch(request, { body })`") } };
    expect(await toAnswer(await mount.fetch(request))).toMatchObject({ status: 500, told });
    expect(await toAnswer(await mount.fetch(request, { body }))).toMatchObject(answered);
  });

  test("of a body that comes in parts no more is kept than may be, and none of it is waited for in vain", async () => {
    const { mount, logged } = await openMounted();
    let parts = 0;
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        parts += 1;
        controller.enqueue(new Uint8Array(1024 * 1024));
      },
    });
    const response = await mount.fetch(toRequest(url, { ...init, body, duplex: "half" }));
    expect(response.status).toBe(413);
    expect(parts).toBeLessThan(70);
    const broken = new ReadableStream({ start: (controller) => controller.error(new Error("hung up")) });
    const refused = await mount.fetch(toRequest(url, { ...init, body: broken, duplex: "half" }));
    expect([refused.status, logged]).toEqual([400, []]);
  });

  test("what is no web Request is refused with the cure", async () => {
    const { mount } = await openMounted();
    await expect(mount.fetch({ req: {} } as unknown as Request)).rejects.toThrow(
      new TypeError("`fetch` takes a web Request; in Hono it is `c.req.raw`."),
    );
  });
});
