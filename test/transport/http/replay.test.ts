import { expect, test } from "vitest";
import { Replay, ReplayMemory } from "../../../src/transport/http/replay.ts";
import type { Message } from "../../../src/wire/message.ts";

const note = (text: string): Message & { jsonrpc: string } => ({
  jsonrpc: "2.0",
  method: "notifications/message",
  params: { level: "info", data: text },
});

const replayed = (replay: Replay, after: string): unknown[] =>
  [...replay.after(after)].map(({ text }) => JSON.parse(text));

function keep(replay: Replay, stream: string, message: Message): string {
  return replay.keep(
    stream,
    JSON.stringify(message),
    message.method === undefined ? (message.id ?? undefined) : undefined,
  );
}

test("a client that comes back gets what its stream missed, and nothing of other streams", async () => {
  const replay = new Replay();
  const seen = keep(replay, "a", note("seen"));
  keep(replay, "b", note("of another stream"));
  keep(replay, "a", note("missed"));
  expect(replayed(replay, seen)).toEqual([note("missed")]);
});

test("the empty event that opens a stream is an id to come back with, never sent again", async () => {
  const replay = new Replay();
  const opened = replay.mark("a");
  const again = replay.mark("a");
  keep(replay, "a", note("result"));
  expect(replayed(replay, opened)).toEqual([note("result")]);
  expect(replay.streamOf(again)).toBe("a");
});

const answer = (id: number | string, bytes: number): Message & { jsonrpc: string } => ({
  jsonrpc: "2.0",
  id,
  result: { content: [{ type: "text", text: "x".repeat(bytes) }] },
});
const mib = 1024 * 1024;

test("a session keeps 4 MiB: the oldest messages make room, and of an answer that does not fit a word is left", async () => {
  const replay = new Replay();
  const opened = replay.mark("a");
  keep(replay, "a", note("x".repeat(2 * mib)));
  keep(replay, "a", note("y".repeat(3 * mib)));
  expect(replayed(replay, opened)).toEqual([note("y".repeat(3 * mib))]);
  keep(replay, "a", answer(7, 10 * mib));
  expect(replayed(replay, opened)).toEqual([
    { jsonrpc: "2.0", id: 7, error: { code: -32603, message: expect.stringContaining("has become a task") } },
  ]);
  // Words are kept no longer than anything else.
  for (let id = 0; id < 20_000; id++) keep(replay, "a", answer(id, 600));
  expect(replayed(replay, opened).length).toBeLessThan(10_000);
});

test("what is older than its time goes, and a word of it stays", async () => {
  let now = 0;
  const memory = new ReplayMemory();
  const replay = new Replay(memory, () => now);
  const opened = replay.mark("a");
  keep(replay, "a", note("old"));
  keep(replay, "a", answer(7, mib));
  now = 100;
  keep(replay, "a", note("new"));
  memory.sweep(50);
  const word = {
    jsonrpc: "2.0",
    id: 7,
    error: { code: -32603, message: expect.stringContaining("not kept any longer") },
  };
  expect(replayed(replay, opened)).toEqual([note("new"), word]);
  expect(memory.bytes).toBeLessThan(2_000);
  memory.sweep(150);
  expect(replayed(replay, opened), "words of answers are swept later").toEqual([word]);
  memory.sweep(200, 50);
  expect(replayed(replay, opened)).toEqual([]);
  expect(memory.bytes).toBe(0);
});

test("10,000 small answers of a session take no more than 4 MiB with all that belongs to them, and nothing after 5 minutes", () => {
  let now = 0;
  const memory = new ReplayMemory();
  const replay = new Replay(memory, () => now);
  const opened = replay.mark("a");
  for (let id = 0; id < 10_000; id++) keep(replay, "a", answer(id, 100));
  // An event takes 400 bytes beside its text.
  expect(replayed(replay, opened).length * 500).toBeLessThan(4 * mib);
  now = 300_001;
  memory.sweep(now - 60_000, now - 300_000);
  expect(replayed(replay, opened)).toEqual([]);
  expect(memory.bytes).toBe(0);
});

test("an error in place of an answer counts with its request ID, and is deleted for good when it is dropped", () => {
  let now = 0;
  const memory = new ReplayMemory(5_000);
  const replay = new Replay(memory, () => now);
  const opened = replay.mark("a");
  keep(replay, "a", answer("x".repeat(1_000), 2_000));
  now = 100;
  memory.sweep(50);
  expect(replayed(replay, opened)).toMatchObject([{ error: { code: -32603 } }]);
  expect(memory.bytes).toBeGreaterThan(1_000);
  for (let id = 0; id < 20; id++) {
    keep(replay, "a", answer(`${id}`.padEnd(1_000), 2_000));
    expect(memory.bytes).toBeLessThanOrEqual(5_000);
  }
});

test("all sessions together keep 64 MiB, the oldest of all makes room, and a session that ends gives back all of it", async () => {
  const memory = new ReplayMemory();
  const replays = Array.from({ length: 40 }, () => new Replay(memory));
  for (const replay of replays) {
    replay.mark("a");
    keep(replay, "a", answer(1, 3 * mib));
  }
  expect(memory.bytes).toBeLessThan(64 * mib);
  expect(replayed(replays[0] as Replay, "1.a")).toMatchObject([{ id: 1, error: { code: -32603 } }]);
  expect(replayed(replays[39] as Replay, "1.a")).toEqual([answer(1, 3 * mib)]);
  for (const replay of replays) replay.clear();
  expect(memory.bytes).toBe(0);
});

test("an id that was never given out is refused", async () => {
  const replay = new Replay();
  keep(replay, "a", note("one"));
  for (const id of ["", "7", "2.a", "x.a", "-1.a"]) expect(replay.streamOf(id)).toBeUndefined();
  expect(replayed(replay, "2.a")).toEqual([]);
});
