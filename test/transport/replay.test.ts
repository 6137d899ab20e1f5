import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { Replay } from "../../src/transport/replay.ts";

const note = (text: string): JSONRPCMessage => ({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: text } });

async function replayed(replay: Replay, after: string): Promise<unknown[]> {
  const messages: unknown[] = [];
  await replay.replayEventsAfter(after, { send: async (_id, message) => void messages.push(message) });
  return messages;
}

test("a client that comes back gets what its stream missed, and nothing of other streams", async () => {
  const replay = new Replay();
  const seen = await replay.storeEvent("a", note("seen"));
  await replay.storeEvent("b", note("of another stream"));
  await replay.storeEvent("a", note("missed"));
  expect(await replayed(replay, seen)).toEqual([note("missed")]);
});

test("the empty event that opens a stream is an id to come back with, never sent again", async () => {
  const replay = new Replay();
  const opened = await replay.storeEvent("a", {} as JSONRPCMessage);
  const again = await replay.storeEvent("a", {} as JSONRPCMessage);
  await replay.storeEvent("a", note("result"));
  expect(await replayed(replay, opened)).toEqual([note("result")]);
  expect(await replay.getStreamIdForEventId(again)).toBe("a");
});

test("the oldest messages make room, the newest is kept whatever its size", async () => {
  const replay = new Replay();
  const opened = await replay.storeEvent("a", {} as JSONRPCMessage);
  await replay.storeEvent("a", note("x".repeat(600_000)));
  await replay.storeEvent("a", note("y".repeat(2_000_000)));
  expect(await replayed(replay, opened)).toEqual([note("y".repeat(2_000_000))]);
});

test("an id that was never given out is refused", async () => {
  const replay = new Replay();
  await replay.storeEvent("a", note("one"));
  for (const id of ["", "7", "2.a", "x.a", "-1.a"]) expect(await replay.getStreamIdForEventId(id)).toBeUndefined();
  await expect(replayed(replay, "2.a")).rejects.toThrow("Last-Event-ID");
});
