import { expect, test } from "vitest";
import { InFlight } from "../../src/wire/in-flight.ts";

test("each request finds its answer by its id, whatever comes between, and once only", async () => {
  const inFlight = new InFlight<string>();
  const [first, second, named] = [inFlight.open(), inFlight.open(), inFlight.open("1")];
  expect([first.id, second.id, named.id]).toEqual([1, 2, "1"]);
  expect([
    inFlight.settle(2, "two"),
    inFlight.settle("1", "text"),
    inFlight.settle(1, "one"),
    inFlight.settle(1, "again"),
  ]).toEqual([true, true, true, false]);
  expect(await Promise.all([first.answer, second.answer, named.answer])).toEqual(["one", "two", "text"]);
});

test("what nobody waits for is not taken, and is no error", () => {
  const inFlight = new InFlight<string>();
  inFlight.open().forget();
  expect([inFlight.settle(1, "late"), inFlight.settle(undefined, "nobody's")]).toEqual([false, false]);
});

test("all that wait are told when nothing comes any more", async () => {
  const inFlight = new InFlight<string>();
  const sent = [inFlight.open(), inFlight.open()];
  sent[0]?.fail(new Error("was not sent"));
  expect(inFlight.settle(1, "late"), "what has failed is not kept").toBe(false);
  inFlight.failAll(new Error("gone"));
  expect(await Promise.allSettled(sent.map(({ answer }) => answer))).toMatchObject([
    { reason: { message: "was not sent" } },
    { reason: { message: "gone" } },
  ]);
  expect(inFlight.settle(1, "late")).toBe(false);
});
