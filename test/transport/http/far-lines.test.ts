import { expect, test } from "vitest";
import { ResultRoom } from "../../../src/mcp/outbound.ts";
import { FarCarrier } from "../../../src/transport/http/far-lines.ts";
import { FakeClock, pass } from "../../helpers/fake-clock.ts";

test("an answer that another server delivers gives its room to others after 2 s without a confirmation", async () => {
  const clock = new FakeClock();
  const results = new ResultRoom(clock, 300);
  const carrier = new FarCarrier(
    () => undefined,
    clock,
    () => undefined,
  );
  const never = new AbortController().signal;
  const release = await results.take(100, carrier, never);
  const left = carrier.whenLeft();
  void left.then(release);
  let hasRoom = false;
  void results.take(100, undefined, never).then(() => {
    hasRoom = true;
  });
  carrier.openStream(undefined, "");
  await pass(clock, 10_000);
  expect(hasRoom, "the answer is still being made").toBe(false);
  carrier.write("an answer");
  carrier.end();
  await pass(clock, 2_500);
  expect(hasRoom).toBe(true);
  expect(await left).toBe(false);
  expect(carrier.exchange.aborted).toBe(true);
});
