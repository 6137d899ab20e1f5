import { expect, test } from "vitest";
import { TransportWay } from "../../src/embed/transport-way.ts";
import { silentLog } from "../../src/log.ts";
import { ResultRoom } from "../../src/mcp/outbound.ts";
import { FakeClock, pass, turns } from "../helpers/fake-clock.ts";

/** A transport that has sent a message when the test says so, and whose `close` waits for that. */
async function open() {
  const sent: (() => void)[] = [];
  const transport = {
    onmessage: undefined as ((message: unknown) => void) | undefined,
    start: async () => undefined,
    send: () => new Promise<void>((resolve) => void sent.push(resolve)),
    close: () => new Promise<void>(() => undefined),
  };
  const way = new TransportWay(transport as never, silentLog);
  let isLost = false;
  way.onClose = () => {
    isLost = true;
  };
  await way.start();
  return {
    way,
    sent,
    ask: (id: number) => transport.onmessage?.({ jsonrpc: "2.0", id, method: "ping" }),
    isLost: () => isLost,
  };
}

/** The room of a server that one result fills, and another that waits for it. */
async function fillRoom(outbound: TransportWay) {
  const clock = new FakeClock();
  const results = new ResultRoom(clock, 300);
  const never = new AbortController().signal;
  const release = await results.take(100, outbound, never);
  let hasRoom = false;
  void results.take(100, undefined, never).then(() => {
    hasRoom = true;
  });
  return { clock, release, hasRoom: () => hasRoom };
}

test("a client that does not read is closed after 2 s if others wait for room, and its answer counts as lost", async () => {
  const { way, ask, isLost } = await open();
  ask(1);
  const left = way.whenLeft(1);
  const { clock, release, hasRoom } = await fillRoom(way);
  void left.then(release);
  way.send({ id: 1, result: {} });
  await pass(clock, 2_500);
  expect(isLost()).toBe(true);
  expect(await left).toBe(false);
  await turns();
  expect(hasRoom()).toBe(true);
});

test("a client that reads a message now and then, or has nothing to read, is not closed", async () => {
  const { way, sent, isLost } = await open();
  const { clock } = await fillRoom(way);
  await pass(clock, 10_000);
  for (let messages = 0; messages < 10; messages++) way.send({ id: messages, result: {} });
  for (let messages = 0; messages < 10; messages++) {
    await pass(clock, 1_500);
    sent[messages]?.();
    await turns();
  }
  await pass(clock, 10_000);
  expect(isLost()).toBe(false);
});
