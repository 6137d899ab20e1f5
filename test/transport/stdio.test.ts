import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Clock, systemClock } from "../../src/clock.ts";
import { arrivalTime, watchLoop } from "../../src/command/loop-watch.ts";
import { silentLog } from "../../src/log.ts";
import { LineTransport, type LineTransportOptions } from "../../src/transport/stdio.ts";
import type { Message } from "../../src/wire/message.ts";
import { FakeClock } from "../helpers/fake-clock.ts";

const turn = () => new Promise((resolve) => setImmediate(resolve));
const note = (n: number, text = "") =>
  `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/x", params: { n, text } })}\n`;

const ask = (id: number) => `${JSON.stringify({ jsonrpc: "2.0", id, method: "x", params: { n: id } })}\n`;

const call = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: {} })}\n`;

/** A clock whose time passes without its timers, as while a command blocks the event loop. */
class BlockedClock implements Clock {
  #now = 1_000;
  #timer: (() => void) | undefined;
  now = () => this.#now;
  monotonic = () => this.#now;
  after = (_ms: number, callback: () => void) => {
    this.#timer = callback;
    return () => {};
  };
  block(ms: number): void {
    this.#now += ms;
  }
  /** The first thing after a block are the timers. */
  fire(): void {
    this.#timer?.();
  }
}

describe("a message counts as arrived", () => {
  test("when the event loop was blocked, if it is read right after that", async () => {
    const clock = new BlockedClock();
    onTestFinished(watchLoop(clock, silentLog));
    const { input, transport } = await open(clock);
    const arrivals: number[] = [];
    transport.onMessage = () => void arrivals.push(transport.arrivedAt);
    input.write(call);
    await turn();
    clock.block(4_000);
    input.write(call.replace('"id":1', '"id":2'));
    await turn();
    // The watch looks every 250 ms, so a block is known to within that.
    expect(arrivals).toEqual([1_000, 1_250]);
  });

  test("when the event loop was blocked, if its connection was accepted right after that", async () => {
    const clock = new BlockedClock();
    onTestFinished(watchLoop(clock, silentLog));
    clock.block(4_000);
    clock.fire();
    expect(arrivalTime(clock), "what is read in this turn").toBe(1_250);
    for (let next = 0; next < 5; next++) {
      await turn();
      expect(arrivalTime(clock), "what is read of a connection that was accepted in the turn before").toBe(1_250);
    }
    await turn();
    await turn();
    expect(arrivalTime(clock), "what is read later").toBe(5_000);
    clock.block(4_000);
    clock.fire();
    clock.block(250);
    clock.fire();
    expect(arrivalTime(clock), "what is read after the next look").toBe(9_250);
  });

  test("when the stdio proxy got it, if it waited there", async () => {
    const clock = new BlockedClock();
    const { input, transport } = await open(clock, { isProxied: true });
    clock.block(6_000);
    const arrivals: number[] = [];
    transport.onMessage = () => void arrivals.push(transport.arrivedAt);
    input.write(`{"meanwhile":"waited","ms":5000}\n${call}${call.replace('"id":1', '"id":2')}`);
    await turn();
    expect(arrivals).toEqual([2_000, 7_000]);
  });

  test("when it was read, if a client that is no proxy says that it waited", async () => {
    const clock = new BlockedClock();
    const { input, output, transport } = await open(clock);
    const arrivals: number[] = [];
    transport.onMessage = () => void arrivals.push(transport.arrivedAt);
    input.write(`{"meanwhile":"waited","ms":5000}\n${call}`);
    await turn();
    expect(arrivals).toEqual([1_000]);
    expect(JSON.parse(String(output.read()).split("\n")[0] ?? "")).toMatchObject({ error: { code: -32600 } });
  });
});

/** A transport, what is written to it, and how many messages each turn of the event loop began. */
async function open(clock: Clock = systemClock, more: Partial<LineTransportOptions> = {}) {
  const [input, output] = [new PassThrough({ highWaterMark: 64 * 1024 }), new PassThrough()];
  const received: number[] = [];
  const transport = new LineTransport({
    input,
    output,
    write: (part, onWritten) => output.write(part, onWritten),
    clock,
    log: silentLog,
    ...more,
  });
  transport.onMessage = (message: Message) =>
    void received.push((message as unknown as { params: { n: number } }).params.n);
  let isClosed = false;
  transport.onClose = () => (isClosed = true);
  transport.start();
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
  transport.send({ method: "notifications/big", params: { text: "x".repeat(2 * 1024 * 1024) } });
  while (received.length < 150) await turn();
  expect(input.isPaused()).toBe(true);
  input.write(note(150));
  await turn();
  expect(received).toHaveLength(150);
  output.resume();
  while (received.length < 151) await turn();
  input.destroy();
});

test("a connection has at most 10,000 requests without an answer; one more is refused by its id, and taken when one of them has its answer", async () => {
  const { input, output, received, transport } = await open();
  const refused = new Promise<string>((resolve) => output.setEncoding("utf8").once("data", resolve));
  input.write(Array.from({ length: 10_001 }, (_, id) => ask(id)).join(""));
  expect(JSON.parse(await refused)).toMatchObject({
    id: 10_000,
    error: { code: -32603, message: expect.stringContaining("wait for one to end") },
  });
  expect(received).toHaveLength(10_000);
  transport.send(answer(0, "done"));
  input.write(ask(10_000));
  while (received.length < 10_001) await turn();
  input.destroy();
});

test("nobody waits for the answer to a request that was taken back, whenever it was", async () => {
  const { input, received, transport } = await open();
  const cancel = (requestId: number) =>
    `${JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId, n: -1 } })}\n`;
  input.write(ask(1) + ask(2) + cancel(1));
  while (received.length < 3) await turn();
  const before = transport.whenLeft(2);
  input.write(cancel(2));
  expect(await Promise.all([transport.whenLeft(1), before])).toEqual([true, true]);
  input.destroy();
});

const answer = (id: number, text: string): Message => ({ id, result: { text } });

test("small messages of one turn leave in one write, and a large one in parts of 1 MiB, the next when the last is taken", async () => {
  const { output, transport } = await open();
  const written: number[] = [];
  const write = output.write.bind(output);
  output.write = ((part: string | Uint8Array) => {
    written.push(part.length);
    return write(part);
  }) as typeof output.write;
  for (let id = 0; id < 50; id++) transport.send(answer(id, "small"));
  await turn();
  expect(written).toHaveLength(1);
  transport.send(answer(50, "x".repeat(3 * 1024 * 1024)));
  transport.send(answer(51, "after it"));
  await turn();
  expect(written).toHaveLength(2);
  let text = "";
  output.setEncoding("utf8").on("data", (part: string) => (text += part));
  while (!text.includes("after it")) await turn();
  expect(Math.max(...written)).toBe(1024 * 1024);
  const lines = text.split("\n").slice(0, -1);
  expect(lines.map((line) => (JSON.parse(line) as { id: number }).id)).toEqual(
    Array.from({ length: 52 }, (_, id) => id),
  );
});

test("answers that would be longer than any text together all leave, and the connection goes on", async () => {
  const { output, transport } = await open();
  const text = "x".repeat(45 * 1024 * 1024);
  for (let id = 0; id < 12; id++) transport.send(answer(id, text));
  let bytes = 0;
  output.on("data", (part: Buffer) => (bytes += part.length));
  while (bytes < 12 * text.length) await turn();
  transport.send(answer(12, "one more"));
  const before = bytes;
  while (bytes === before) await turn();
  await transport.close();
});

test("a client that takes nothing of 1 MiB or more for 10 seconds is closed, and whoever waits for its answers is told that they have not left", async () => {
  const clock = new FakeClock();
  const { input, received, transport, isClosed } = await open(clock);
  input.write(ask(0) + ask(1));
  while (received.length < 2) await turn();
  const left = [0, 1].map((id) => transport.whenLeft(id));
  for (const id of [0, 1]) transport.send(answer(id, "x".repeat(2 * 1024 * 1024)));
  await turn();
  clock.advance(9_999);
  expect(isClosed()).toBe(false);
  clock.advance(1);
  expect(isClosed()).toBe(true);
  expect(await Promise.all(left)).toEqual([false, false]);
});

test("one that takes a part in time stays, and so does one that has little to read", async () => {
  const clock = new FakeClock();
  const { input, output, received, transport, isClosed } = await open(clock);
  input.write(ask(0));
  while (received.length < 1) await turn();
  const left = transport.whenLeft(0);
  transport.send(answer(0, "x".repeat(3 * 1024 * 1024)));
  for (let parts = 0; parts < 4; parts++) {
    await turn();
    clock.advance(9_000);
    output.read();
  }
  await turn();
  expect(await left).toBe(true);
  transport.send(answer(1, "x".repeat(100_000)));
  await turn();
  clock.advance(60_000);
  expect(isClosed()).toBe(false);
  await transport.close();
});

test("a message that cannot be written is an error to whoever asked, and the connection goes on", async () => {
  const { output, transport } = await open();
  const text = new Promise<string>((resolve) => output.setEncoding("utf8").once("data", resolve));
  transport.send({ jsonrpc: "2.0", id: 7, result: { count: 1n } } as unknown as Message);
  transport.send(answer(8, "fine"));
  const lines = (await text).trim().split("\n");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { id: 7, error: { code: -32603 } },
    { id: 8, result: { text: "fine" } },
  ]);
});
