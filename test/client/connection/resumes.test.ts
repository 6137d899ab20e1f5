import { expect, onTestFinished, test } from "vitest";
import { HttpLink } from "../../../src/client/connection/http-link.ts";
import type { Clock } from "../../../src/clock.ts";
import type { Message } from "../../../src/wire/message.ts";
import { legacy, type Received, serveLoopback, text } from "../loopback.ts";

/** Every wait is over at once, and is remembered. */
class HastyClock implements Clock {
  readonly waits: number[] = [];
  #now = 0;
  now = () => this.#now;
  monotonic = () => this.#now;
  after(ms: number, callback: () => void): () => void {
    this.waits.push(ms);
    this.#now += ms;
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  }
}

/** A server of one endless call: it hands out a fresh id and `retry: 0`, and closes, however often it is asked. */
function hasty(more: (call: Received, resumes: number) => string = () => "") {
  let resumes = 0;
  const stream = (call: Received) => {
    call.response.writeHead(200, { "content-type": "text/event-stream" });
    call.response.end(`id: ${resumes}\nretry: 0\ndata:\n\n${more(call, resumes)}`);
  };
  const server = legacy({ "tools/call": stream });
  const handle = (call: Received) => {
    if (call.request.method !== "GET") return server.handle(call);
    resumes += 1;
    stream(call);
  };
  return { handle, resumes: () => resumes };
}

async function openLink(handle: (call: Received) => void) {
  const { url } = await serveLoopback(handle);
  const clock = new HastyClock();
  const received: Message[] = [];
  const link = new HttpLink(
    new URL(url),
    {},
    { onMessage: (message) => received.push(message), onClose: () => undefined },
    { clock },
  );
  onTestFinished(() => link.close());
  return { link, clock, received };
}

const call: Message = { id: 1, method: "tools/call", params: { name: "slow" } };

test("a server that wants its stream opened again at once is not hurried after, and is given up when nothing ever comes", async () => {
  const server = hasty();
  const { link, clock } = await openLink(server.handle);
  await expect(link.send(call)).rejects.toThrow(
    /closed the stream 50 times in a row without anything on it, and has not answered tools\/call\.$/,
  );
  expect(server.resumes()).toBe(50);
  expect(clock.waits.slice(0, 6)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000]);
  expect(Math.max(...clock.waits)).toBe(10_000);
});

test("a stream that brings something each time is followed as long as it takes, half a second apart", async () => {
  const progress = `data: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } })}\n\n`;
  const answered = `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: text("after all") })}\n\n`;
  const server = hasty((_, resumes) => (resumes < 120 ? progress : answered));
  const { link, clock, received } = await openLink(server.handle);
  await link.send(call);
  expect(received.at(-1)).toMatchObject({ id: 1, result: text("after all") });
  expect(clock.waits).toEqual(Array(120).fill(500));
});

test("a server that asks for more patience gets it", async () => {
  const answered = `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: {} })}\n\n`;
  const server = hasty((_, resumes) => (resumes < 2 ? "retry: 7000\n\n" : answered));
  const { link, clock } = await openLink(server.handle);
  await link.send(call);
  expect(clock.waits).toEqual([7_000, 7_000]);
});

test("the stream for a server's own messages is left alone when it only ever closes", async () => {
  const server = hasty();
  const { link, clock } = await openLink(server.handle);
  await link.send({ id: 0, method: "initialize", params: {} });
  await link.begin("2025-11-25");
  await expect.poll(() => link.isPushed || server.resumes() < 51, { timeout: 40_000 }).toBe(false);
  // It waits once more after the last of them, and then opens nothing.
  await expect.poll(() => clock.waits.length, { timeout: 40_000 }).toBe(51);
  // Whatever it opened would be there before this is answered.
  await link.send({ method: "notifications/cancelled", params: { requestId: 9 } });
  expect({ resumes: server.resumes(), waits: clock.waits.length }).toEqual({ resumes: 51, waits: 51 });
  expect(clock.waits[0]).toBe(500);
});
