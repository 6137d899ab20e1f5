import { expect, test, vi } from "vitest";
import { isRunning } from "../helpers/daemon.ts";
import { Gate } from "../helpers/gated.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { commandUpstream } from "../helpers/upstreams.ts";

const wait = { timeout: 50_000, interval: 20 };

test("12: a child that does not stop for 10 s is killed if nothing else runs in it, and not before that", async () => {
  const gate = new Gate();
  const gateway = await wrapHere(commandUpstream("gated-deaf", gate.env));
  const options = { revision: "2025-11-25" };
  const busy = await gateway.connect("stdio", options);
  const other = busy.startCall("idempotent", { n: 1 });
  const ignored = busy.startCall("unsafe", { n: 1 });
  await gate.began(2);
  const [first] = gate.pids() as [number];
  ignored.stop();
  await busy.request("ping");
  // Told later, and killed: so the time of the first is over as well.
  const idle = await gateway.connect("stdio", options);
  const second = idle.startCall("unsafe", { n: 2 });
  await gate.began(3);
  const [, last] = gate.pids() as [number, number];
  second.stop();
  await vi.waitFor(() => expect(isRunning(last)).toBe(false), wait);
  expect(isRunning(first)).toBe(true);
  gate.open("idempotent");
  expect(JSON.stringify((await other.answer).result)).toContain("idempotent is done");
  await vi.waitFor(() => expect(isRunning(first)).toBe(false), wait);
  const again = idle.startCall("safe", {});
  gate.open("safe");
  expect(JSON.stringify((await again.answer).result), "the next call has another").toContain("safe is done");
});
