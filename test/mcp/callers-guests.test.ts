import { expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { CallersGuests } from "../../src/mcp/callers-guests.ts";
import type { GuestHost } from "../../src/mcp/guest-host.ts";

/** Servers that say who they are, and answer a call when they are told to. */
function createHost() {
  const answers: (() => void)[] = [];
  let closed = 0;
  const host: GuestHost = {
    name: "the server",
    eras: ["legacy"],
    isOne: false,
    isPerCaller: true,
    async connect(_era, pair) {
      pair.onclose = () => {
        closed += 1;
      };
      pair.onmessage = (message) => {
        const { id, method } = message as { id?: number; method: string };
        const answer = () => void pair.send({ jsonrpc: "2.0", id, result: { capabilities: {} } });
        if (method === "tools/call") answers.push(answer);
        else if (id !== undefined) answer();
      };
      await pair.start();
      return { failed: new Promise<never>(() => undefined) };
    },
  };
  return { host, answers, closed: () => closed };
}

test("a guest that made room, and ends later, does not take the place of the next along", async () => {
  const { host, answers, closed } = createHost();
  const guests = new CallersGuests({ host, log: silentLog });
  const first = await guests.get("legacy", "ann");
  const over = new AbortController();
  const client = { signal: over.signal, who: "ann", hangUp: undefined, notify: () => undefined, ask: async () => ({}) };
  const call = first.request("tools/call", {}, client);
  for (let caller = 0; caller < 1_000; caller++) await guests.get("legacy", `caller ${caller}`);
  const second = await guests.get("legacy", "ann");
  expect(second).not.toBe(first);
  expect(first.isClosed).toBe(false);
  answers[0]?.();
  await call;
  await expect.poll(() => first.isClosed).toBe(true);
  expect(await guests.get("legacy", "ann")).toBe(second);
  guests.close();
  await expect.poll(closed).toBe(1_002);
});

test("what is made for one call while all are closed is closed, too", async () => {
  const { host } = createHost();
  const guests = new CallersGuests({ host, log: silentLog });
  const opening = guests.openForOne("legacy");
  guests.close();
  expect((await opening).isClosed).toBe(true);
});
