import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Caller, localUser, anonymous as stranger } from "../../../src/command/caller.ts";
import { MemoryStore } from "../../../src/store/memory-store.ts";
import { NodeRequest } from "../../../src/transport/http/door-request.ts";
import { HttpExchange, OpenStreams } from "../../../src/transport/http/http-exchange.ts";
import { HttpRefusal } from "../../../src/transport/http/http-refusal.ts";
import { Sessions } from "../../../src/transport/http/http-sessions.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { openInMemory, turns } from "../../helpers/in-memory.ts";

/** The sessions of a door without its socket, and what clients do with them. */
async function setUp(clock = new FakeClock(), store?: MemoryStore) {
  const server = await openInMemory({}, clock, {}, store);
  const sessions = new Sessions(server.serving.served);
  onTestFinished(async () => {
    sessions.close();
    await server.close();
  });
  const send = async (caller: Caller, message: object | undefined, id?: string, method = "GET") => {
    clock.advance(1);
    const request = new IncomingMessage(new Socket());
    request.method = message === undefined ? method : "POST";
    request.headers = {
      accept: "application/json, text/event-stream",
      ...(id !== undefined && { "mcp-session-id": id }),
    };
    const response = new ServerResponse(request);
    let session = "";
    const writeHead = response.writeHead.bind(response);
    response.writeHead = ((status: number, headers: Record<string, string>) => {
      session = headers["mcp-session-id"] ?? "";
      return writeHead(status, headers);
    }) as typeof response.writeHead;
    const exchange = new HttpExchange({ response, clock, streams: new OpenStreams(clock) });
    const over = async () => {
      response.destroy();
      await turns(2);
    };
    try {
      await sessions.handle({
        authentication: { caller },
        request: new NodeRequest(request),
        exchange,
        ...(message !== undefined && { message }),
      });
    } catch (error) {
      if (!(error instanceof HttpRefusal)) throw error;
      return { status: error.status, id: "", over };
    }
    await turns(2);
    return { status: response.statusCode, id: session, over };
  };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } };
  const begin = async (caller: Caller) => (await send(caller, { id: 0, method: "initialize", params })).id;
  const statusOf = async (caller: Caller, id: string) => (await send(caller, { id: 1, method: "ping" }, id)).status;
  const end = async (caller: Caller, id: string) => (await send(caller, undefined, id, "DELETE")).status;
  return { clock, begin, statusOf, end, openStream: (caller: Caller, id: string) => send(caller, undefined, id) };
}

/** Two servers on one store. */
async function setUpTwo() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  return { clock, a: await setUp(clock, store), b: await setUp(clock, store) };
}

test("a stranger's sessions push out the stranger's own, oldest first, and never somebody else's", async () => {
  const { begin, statusOf } = await setUp();
  const own = await begin(localUser);
  const others: string[] = [];
  for (let n = 0; n < 203; n++) others.push(await begin(stranger));
  expect(await Promise.all(others.slice(0, 4).map((id) => statusOf(stranger, id)))).toEqual([404, 404, 404, 200]);
  expect(await statusOf(stranger, others.at(-1) ?? "")).toBe(200);
  expect(await statusOf(localUser, own)).toBe(200);
});

test("an open stream protects its session as long as it is open", async () => {
  const { begin, statusOf, openStream } = await setUp();
  const [held, dropped] = [await begin(stranger), await begin(stranger)];
  await openStream(stranger, held);
  await (await openStream(stranger, dropped)).over();
  for (let n = 0; n < 200; n++) await begin(stranger);
  expect([await statusOf(stranger, held), await statusOf(stranger, dropped)]).toEqual([200, 404]);
});

test("where all are in use the next is refused with the cure, and others are served", async () => {
  const { begin, statusOf, openStream } = await setUp();
  const streams: { over: () => Promise<void> }[] = [];
  const ids: string[] = [];
  for (let n = 0; n < 200; n++) {
    ids.push(await begin(stranger));
    streams.push(await openStream(stranger, ids[n] ?? ""));
  }
  await expect(begin(stranger)).rejects.toThrow(
    "There are 200 sessions of callers without a credential already, all of them in use; end one with DELETE, then begin another.",
  );
  expect(await statusOf(stranger, ids[0] ?? "")).toBe(200);
  expect(await begin(localUser)).not.toBe("");
  await streams[7]?.over();
  expect(await begin(stranger)).not.toBe("");
  expect(await statusOf(stranger, ids[7] ?? "")).toBe(404);
});

test("a session that was silent for too long is ended: a stranger's after ten minutes, one of a known caller after an hour; a stream protects it", async () => {
  const { clock, begin, statusOf, openStream } = await setUp();
  const [own, used, silent, held] = [
    await begin(localUser),
    await begin(stranger),
    await begin(stranger),
    await begin(stranger),
  ];
  const stream = await openStream(stranger, held);
  clock.advance(6 * 60_000);
  expect(await statusOf(stranger, used)).toBe(200);
  clock.advance(6 * 60_000);
  expect([await statusOf(stranger, used), await statusOf(stranger, silent), await statusOf(localUser, own)]).toEqual([
    200, 404, 200,
  ]);
  clock.advance(59 * 60_000);
  expect([await statusOf(stranger, used), await statusOf(stranger, held), await statusOf(localUser, own)]).toEqual([
    404, 200, 200,
  ]);
  await stream.over();
  clock.advance(62 * 60_000);
  expect([await statusOf(stranger, held), await statusOf(localUser, own)]).toEqual([404, 404]);
});

describe("two servers on one store", () => {
  test("both know a session, for its caller alone; ended on one, it has ended on both", async () => {
    const { a, b } = await setUpTwo();
    const id = await a.begin(localUser);
    expect([await b.statusOf(stranger, id), await b.statusOf(localUser, id), await a.statusOf(localUser, id)]).toEqual([
      404, 200, 200,
    ]);
    expect(await b.end(stranger, id)).toBe(404);
    expect(await b.end(localUser, id)).toBe(200);
    expect([await a.statusOf(localUser, id), await b.statusOf(localUser, id)]).toEqual([404, 404]);
  });

  test("a session that is used on one is not silent on the other, and is silent for both alike", async () => {
    const { clock, a, b } = await setUpTwo();
    const id = await a.begin(localUser);
    for (let n = 0; n < 3; n++) {
      clock.advance(50 * 60_000);
      expect(await b.statusOf(localUser, id)).toBe(200);
      // That it was used is on record within a minute.
      clock.advance(60_000);
      await turns(2);
    }
    expect(await a.statusOf(localUser, id)).toBe(200);
    clock.advance(62 * 60_000);
    await turns(2);
    expect([await a.statusOf(localUser, id), await b.statusOf(localUser, id)]).toEqual([404, 404]);
  });

  test("a caller has no more sessions on two than on one: the one used longest ago makes room, unless its stream is open", async () => {
    const { a, b } = await setUpTwo();
    const [held, first] = [await a.begin(stranger), await a.begin(stranger)];
    await a.openStream(stranger, held);
    for (let n = 0; n < 198; n++) await (n % 2 === 0 ? a : b).begin(stranger);
    expect(await a.statusOf(stranger, first)).toBe(200);
    await b.begin(stranger);
    expect([await a.statusOf(stranger, held), await a.statusOf(stranger, first)]).toEqual([200, 404]);
  });

  test("where the streams of all are open the next is refused, wherever it comes", async () => {
    const { a, b } = await setUpTwo();
    for (let n = 0; n < 200; n++) {
      const server = n % 2 === 0 ? a : b;
      await server.openStream(stranger, await server.begin(stranger));
    }
    await expect(b.begin(stranger)).rejects.toThrow("There are 200 sessions of callers without a credential already");
    expect(await b.begin(localUser)).not.toBe("");
  });
});
