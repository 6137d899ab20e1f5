import { PassThrough } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { LineTransport } from "../../src/transport/stdio.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const note = (n: number, text = "") => `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/x", params: { n, text } })}\n`;

/** A transport, what is written to it, and how many messages each turn of the event loop began. */
async function open() {
  const [input, output] = [new PassThrough({ highWaterMark: 64 * 1024 }), new PassThrough()];
  const received: number[] = [];
  const transport = new LineTransport({ input, output, write: (text) => output.write(text), log: silentLog });
  transport.onmessage = (message: JSONRPCMessage) => void received.push((message as unknown as { params: { n: number } }).params.n);
  let isClosed = false;
  transport.onclose = () => (isClosed = true);
  await transport.start();
  return { input, output, received, transport, isClosed: () => isClosed };
}

test("a flood of messages is begun a hundred in a turn, all of them in order, and the end comes after the last", async () => {
  const { input, received, isClosed } = await open();
  const numbers = Array.from({ length: 1_050 }, (_, n) => n);
  input.end(numbers.map((n) => note(n)).join(""));
  let before = received.length;
  expect(before).toBeLessThanOrEqual(100);
  for (let turns = 0; received.length < numbers.length; turns++) {
    expect(isClosed()).toBe(false);
    expect(turns, "it goes on by itself").toBeLessThan(1_000);
    await turn();
    expect(received.length - before).toBeLessThanOrEqual(200);
    before = received.length;
  }
  expect(received).toEqual(numbers);
  while (!isClosed()) await turn();
});

test("large messages count for many", async () => {
  const { input, received } = await open();
  const text = "x".repeat(256 * 1024);
  for (let n = 0; n < 30; n++) input.write(note(n, text));
  expect(received.length).toBeLessThanOrEqual(20);
  while (received.length < 30) await turn();
  expect(received).toEqual(Array.from({ length: 30 }, (_, n) => n));
  input.destroy();
});

test("a client that does not read is not read, also in the middle of a flood, and is when it reads again", async () => {
  const { input, output, received, transport } = await open();
  input.write(Array.from({ length: 150 }, (_, n) => note(n)).join(""));
  void transport.send({ jsonrpc: "2.0", method: "notifications/big", params: { text: "x".repeat(2 * 1024 * 1024) } });
  while (received.length < 150) await turn();
  expect(input.isPaused()).toBe(true);
  input.write(note(150));
  await turn();
  expect(received).toHaveLength(150);
  output.resume();
  while (received.length < 151) await turn();
  input.destroy();
});
