import { expect, test } from "vitest";
import { HttpExchange, OpenStreams } from "../../../src/transport/http/http-exchange.ts";
import { WebResponse } from "../../../src/transport/http/web-response.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { turns } from "../../helpers/in-memory.ts";

/** An answer as a web Response: who reads it slowly, not at all, or no longer. */

const mib = 1024 * 1024;

function open() {
  const clock = new FakeClock();
  const response = new WebResponse();
  const exchange = new HttpExchange({ response, clock, streams: new OpenStreams(clock) });
  let isLeft: boolean | undefined;
  void exchange.whenLeft().then((hasLeft) => {
    isLeft = hasLeft;
  });
  return { clock, response, exchange, isLeft: () => isLeft };
}

test("a whole answer is text, and has left when it is handed over", async () => {
  const { response, exchange, isLeft } = open();
  exchange.answer(404, { id: 1, result: {} }, { "x-some": "thing" });
  const made = await response.made;
  expect([made.status, made.headers.get("x-some"), made.headers.get("content-length")]).toEqual([404, "thing", null]);
  expect(await made.json()).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  expect([isLeft(), exchange.isBroken]).toEqual([true, false]);
});

test("a large answer leaves as fast as it is read, and has left when it was", async () => {
  const { response, exchange, isLeft } = open();
  exchange.answer(200, { id: 1, result: { text: "x".repeat(3 * mib) } });
  const reader = ((await response.made).body as ReadableStream<Uint8Array>).getReader();
  await turns();
  expect(response.writableLength).toBe(mib);
  let bytes = (await reader.read()).value?.length ?? 0;
  await turns();
  expect([bytes, response.writableLength, isLeft()]).toEqual([mib, mib, undefined]);
  for (let part = await reader.read(); !part.done; part = await reader.read()) bytes += part.value.length;
  await turns();
  expect([bytes > 3 * mib, isLeft()]).toEqual([true, true]);
});

test("who reads nothing of a large answer is closed after a while", async () => {
  const { clock, response, exchange, isLeft } = open();
  exchange.answer(200, { id: 1, result: { text: "x".repeat(3 * mib) } });
  const { body } = await response.made;
  clock.advance(9_999);
  await turns();
  expect(exchange.isBroken).toBe(false);
  clock.advance(1);
  await turns();
  expect([exchange.isBroken, isLeft(), exchange.exchange.aborted]).toEqual([true, false, true]);
  await expect(new Response(body).text()).rejects.toThrow();
});

test("a stream that too much waits on is closed at once", async () => {
  const { response, exchange } = open();
  exchange.openStream();
  await response.made;
  for (let n = 0; n < 17; n++) exchange.write("x".repeat(mib));
  expect(exchange.isOver).toBe(false);
  for (let n = 0; n < 2; n++) exchange.write("x".repeat(mib));
  expect([exchange.isOver, exchange.isBroken]).toEqual([true, true]);
});

test("a stream is there before anything is on it, and is kept alive by a comment", async () => {
  const { clock, response, exchange } = open();
  exchange.openStream({ "mcp-session-id": "s" });
  const made = await response.made;
  expect([made.headers.get("content-type"), made.headers.get("mcp-session-id")]).toEqual(["text/event-stream", "s"]);
  const reader = (made.body as ReadableStream<Uint8Array>).getReader();
  clock.advance(15_000);
  expect(String(Buffer.from((await reader.read()).value ?? []))).toBe(": keepalive\n\n");
  exchange.end();
  expect((await reader.read()).done).toBe(true);
});

test("a reader who cancels has gone", async () => {
  const { clock, response, exchange, isLeft } = open();
  const gone = exchange.exchange;
  exchange.openStream();
  await (await response.made).body?.cancel();
  await turns();
  expect([exchange.isBroken, gone.aborted, isLeft()]).toEqual([true, true, false]);
  exchange.write("for nobody");
  exchange.end();
  clock.advance(60_000);
});

test("a client that goes before there is an answer is answered, so that nobody waits", async () => {
  const { response, exchange, isLeft } = open();
  const stop = new AbortController();
  response.watch(Object.defineProperty(new Request("http://localhost/"), "signal", { value: stop.signal }));
  await turns();
  stop.abort();
  expect((await response.made).status).toBe(499);
  await turns();
  expect([exchange.isBroken, isLeft()]).toEqual([true, false]);
  exchange.answer(200, { id: 1, result: {} });
});

test("what the server breaks off is lost, whoever is told so", async () => {
  const { response, exchange, isLeft } = open();
  const gone = exchange.exchange;
  exchange.breakOff(503, { id: null, error: { code: -32603, message: "closed" } });
  expect((await response.made).status).toBe(503);
  await turns();
  expect([exchange.isBroken, gone.aborted, isLeft()]).toEqual([true, true, false]);
});

test("a client that goes in the middle of a stream leaves nothing behind that a server would print", async () => {
  const { response, exchange } = open();
  const stop = new AbortController();
  response.watch(Object.defineProperty(new Request("http://localhost/"), "signal", { value: stop.signal }));
  await turns();
  exchange.openStream({}, "data: 1\n\n");
  const { body } = await response.made;
  stop.abort();
  expect(exchange.isBroken).toBe(true);
  expect(await new Response(body).text()).toBe("data: 1\n\n");
});
