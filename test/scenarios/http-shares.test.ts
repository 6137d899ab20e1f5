import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { type Caller, localUser, anonymous as stranger } from "../../src/command/caller.ts";
import { Connections } from "../../src/transport/http/connections.ts";
import { HttpExchange, OpenStreams } from "../../src/transport/http/http-exchange.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { cleanUp } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";

/** What the HTTP door counts, on real sockets and a clock that we move. Who sends `who: me` is the local user. */
async function open(handle: (request: IncomingMessage, response: ServerResponse, caller: Caller) => void) {
  const clock = new FakeClock();
  const connections = new Connections(clock);
  const errors: string[] = [];
  const server = createServer((request, response) => {
    const over = { onClose: (listener: () => void) => void response.once("close", listener) };
    if (!connections.begin(request, over)) return;
    const caller = request.headers.who === "me" ? localUser : stranger;
    try {
      if (request.url === "/401") return void response.writeHead(401).end();
      connections.admit(request, over, caller);
      handle(request, response, caller);
    } catch (error) {
      errors.push((error as Error).message);
      response.writeHead(429).end();
    }
  });
  let accepted = 0;
  server.on("connection", (socket) => {
    accepted += 1;
    connections.add(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  /** A connection that has sent this. */
  const dial = async (text: string): Promise<Socket & { received: string }> => {
    const socket = Object.assign(connect(port, "127.0.0.1"), { received: "" });
    cleanUp(() => void socket.destroy());
    socket.on("error", () => undefined);
    socket.on("data", (part) => (socket.received += part));
    await once(socket, "connect");
    if (text !== "") socket.write(text);
    return socket;
  };
  return { clock, connections, dial, errors, isKnown: (count: number) => waitFor(() => accepted >= count) };
}

const get = (path: string, who = "") =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${who === "" ? "" : `who: ${who}\r\n`}\r\n`;

test("connections that say nothing, or a part of a head, make room for others; who sends a request at once is served among thousands", async () => {
  const { clock, dial, isKnown } = await open((_request, response) => void response.end("served"));
  const silent = [];
  for (let n = 0; n < 251; n++) silent.push(await dial(n % 2 === 0 ? "" : "POST /mcp HTTP/1.1\r\n"));
  await isKnown(251);
  expect(silent.filter(({ destroyed }) => destroyed)).toEqual([]);
  clock.advance(1_000);
  const closed = once(silent[0] as Socket, "close");
  const mine = await dial(get("/", "me"));
  await waitFor(() => mine.received.includes("served"));
  await closed;
  expect(silent[1]?.destroyed).toBe(false);
});

test("a connection that was refused stays one that nobody knows", async () => {
  const { clock, dial, isKnown } = await open(() => undefined);
  const wrong = await dial(get("/401"));
  await waitFor(() => wrong.received.includes("401"));
  for (let n = 0; n < 249; n++) await dial("");
  await isKnown(250);
  clock.advance(1_000);
  const closed = once(wrong, "close");
  await dial("");
  await closed;
});

test("strangers lose their own idle connections, and their next request is refused where too many run; the local user is served", async () => {
  const held: ServerResponse[] = [];
  const { dial, errors } = await open((request, response) =>
    request.url === "/hold" ? void held.push(response) : void response.end("served"),
  );
  const idle = await dial(get("/"));
  await waitFor(() => idle.received.includes("served"));
  const idleToo = await Promise.all(Array.from({ length: 249 }, () => dial(get("/"))));
  await waitFor(() => idleToo.every(({ received }) => received.includes("served")));
  const closed = once(idle, "close");
  const next = await dial(get("/"));
  await waitFor(() => next.received.includes("served"));
  await closed;
  for (const socket of [...idleToo, next].slice(0, 200)) socket.write(get("/hold"));
  await waitFor(() => held.length === 200);
  const more = await dial(get("/"));
  await waitFor(() => more.received.includes("429"));
  expect(errors.at(-1)).toBe(
    "There are 200 requests of callers without a credential without an answer already, the most there may be; wait for one to end.",
  );
  const mine = await dial(get("/", "me"));
  await waitFor(() => mine.received.includes("served"));
  held[0]?.end("over");
  const again = await dial(get("/"));
  await waitFor(() => again.received.includes("served"));
});

test("a connection that sends on without waiting for answers is closed", async () => {
  const { dial } = await open(() => undefined);
  const fine = await dial(get("/").repeat(16));
  const flooding = await dial(get("/").repeat(17));
  await once(flooding, "close");
  expect(fine.destroyed).toBe(false);
});

test("streams and tasks that are listened to are counted for each caller, until they are over", async () => {
  const { connections } = await open(() => undefined);
  const over: (() => void)[] = [];
  const first = { onClose: (listener: () => void) => void over.push(listener) };
  const standing = { onClose: () => undefined };
  connections.holdStream(stranger, first);
  connections.holdTaskIds(stranger, 1_000, first);
  for (let n = 1; n < 100; n++) connections.holdStream(stranger, standing);
  expect(() => connections.holdStream(stranger, standing)).toThrow(
    "There are 100 open streams of callers without a credential already, the most there may be; close one, then open another.",
  );
  expect(() => connections.holdTaskIds(stranger, 1, standing)).toThrow("listen to fewer");
  connections.holdStream(localUser, standing);
  connections.holdTaskIds(localUser, 1_000, standing);
  for (const tell of over) tell();
  connections.holdStream(stranger, standing);
  connections.holdTaskIds(stranger, 1_000, standing);
});

/** A stream to a client, and a way to write to it as somebody does who does not wait. */
async function openStream(begin = (exchange: HttpExchange) => exchange.openStream()) {
  const clock = new FakeClock();
  let exchange: HttpExchange | undefined;
  const over = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    exchange = new HttpExchange({ response, clock, streams: new OpenStreams(clock) });
    exchange.onClose(() => over.resolve());
    begin(exchange);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanUp(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  cleanUp(() => void client.destroy());
  client.on("error", () => undefined);
  client.write(get("/"));
  await once(client, "readable");
  return {
    client,
    clock,
    over: over.promise,
    write: (text: string) => exchange?.write(text),
    isOver: () => exchange?.isOver === true,
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));
const megabyte = "x".repeat(1024 * 1024);

test("a stream that nobody reads is closed once too much is unread, and nobody writes to it any more", async () => {
  const { write, over, isOver } = await openStream();
  let written = 0;
  for (; written < 200 && !isOver(); written++) {
    write(megabyte);
    await turn();
  }
  await over;
  // What the system keeps of a connection comes on top.
  expect(written).toBeLessThan(60);
});

test("one that has a little unread for long is closed; one that is read goes on, whatever comes", async () => {
  const slow = await openStream();
  // More than the system takes, less than is too much at once.
  for (let n = 0; n < 14; n++) slow.write(megabyte);
  await turn();
  slow.clock.advance(10_001);
  slow.write("more");
  slow.clock.advance(10_001);
  slow.write("and more");
  await slow.over;
  const read = await openStream();
  let received = 0;
  read.client.on("data", (part) => (received += part.length));
  for (let n = 1; n <= 60; n++) {
    read.write(megabyte);
    await waitFor(() => received >= n * megabyte.length);
    read.clock.advance(1_000);
  }
  expect(read.isOver()).toBe(false);
});

test("an answer of 30 MiB that nobody reads is closed after 10 seconds without a part taken, and one that is read arrives whole", async () => {
  const answer = (exchange: HttpExchange) =>
    exchange.answer(200, { id: 1, result: { text: "x".repeat(30 * 1024 * 1024) } });
  const unread = await openStream(answer);
  let isClosed = false;
  void unread.over.then(() => (isClosed = true));
  await waitFor(() => {
    unread.clock.advance(10_001);
    return isClosed;
  });
  const read = await openStream(answer);
  let received = 0;
  read.client.on("data", (part) => (received += part.length));
  await waitFor(() => received > 30 * 1024 * 1024);
});

test("what a caller has sent and has no answer to is counted until it has one", async () => {
  const { connections } = await open(() => undefined);
  const over: (() => void)[] = [];
  const sent = { onClose: (listener: () => void) => void over.push(listener) };
  const mib = 1024 * 1024;
  for (let n = 0; n < 16; n++) connections.holdBody(stranger, 4 * mib, sent);
  expect(() => connections.holdBody(stranger, mib, sent)).toThrow("is as much as it may be; wait for an answer");
  connections.holdBody(stranger, 1_000, sent);
  connections.holdBody(localUser, 4 * mib, sent);
  over[0]?.();
  connections.holdBody(stranger, mib, sent);
});
