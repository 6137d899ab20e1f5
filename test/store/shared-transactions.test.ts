import { expect, test } from "vitest";
import type { Query } from "../../src/store/postgres/database.ts";
import { SharedTransactions } from "../../src/store/postgres/shared-transactions.ts";

/** Transactions that end when they are told to, and how. */
function setUp() {
  const begun: { readonly orders: string[]; readonly end: (isDone: boolean | Error) => void }[] = [];
  const alone: { readonly order: string; readonly isAgain: boolean }[] = [];
  const orders = new Map<unknown, string>();
  const writes = new SharedTransactions({
    async transact(acts) {
      const { promise, resolve, reject } = Promise.withResolvers<boolean>();
      const sent: string[] = [];
      const query = (async (name: string) => void sent.push(name)) as unknown as Query;
      await Promise.allSettled(acts.map((act) => act(query)));
      begun.push({ orders: sent, end: (isDone) => (isDone instanceof Error ? reject(isDone) : resolve(isDone)) });
      return await promise;
    },
    async alone(act, isAgain) {
      const order = orders.get(act) ?? "";
      alone.push({ order, isAgain });
      return await act((async () => []) as Query, isAgain);
    },
    isLost: (error) => error instanceof Error && error.message === "lost",
  });
  const write = (order: string, bytes = 10) => {
    const act = async (query: Query) => {
      await query(order as never, {});
      return order;
    };
    orders.set(act, order);
    return writes.write({ order, bytes, act });
  };
  return { begun, alone, write };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("writes that come while two transactions are under way go together, in the order of their locks", async () => {
  const { begun, write } = setUp();
  const first = [write("a")];
  await turn();
  first.push(write("b"));
  await turn();
  const later = [write("e"), write("c"), write("d")];
  await turn();
  expect(begun.map(({ orders }) => orders)).toEqual([["a"], ["b"]]);
  begun[0]?.end(true);
  await turn();
  expect(begun[2]?.orders).toEqual(["c", "d", "e"]);
  for (const { end } of begun) end(true);
  expect(await Promise.all([...first, ...later])).toEqual(["a", "b", "e", "c", "d"]);
});

test("nobody is answered before the transaction is over", async () => {
  const { begun, write } = setUp();
  let isAnswered = false;
  const written = write("a").then(() => (isAnswered = true));
  await turn();
  expect({ sent: begun[0]?.orders, isAnswered }).toEqual({ sent: ["a"], isAnswered: false });
  begun[0]?.end(true);
  expect(await written).toBe(true);
});

test("where it was undone each is tried by itself, as one that was never tried", async () => {
  const { begun, alone, write } = setUp();
  const written = [write("a"), write("b")];
  await turn();
  begun[0]?.end(false);
  expect(await Promise.all(written)).toEqual(["a", "b"]);
  expect(alone).toEqual([
    { order: "a", isAgain: false },
    { order: "b", isAgain: false },
  ]);
});

test("where nobody knows what came of it each is tried by itself, as one that may have been done", async () => {
  const { begun, alone, write } = setUp();
  const written = [write("a"), write("b")];
  await turn();
  begun[0]?.end(new Error("lost"));
  await Promise.all(written);
  expect(alone.map(({ isAgain }) => isAgain)).toEqual([true, true]);
});

test("a large one goes by itself, and keeps nobody waiting", async () => {
  const { begun, alone, write } = setUp();
  expect(await write("large", 1_000_000)).toBe("large");
  expect({ begun: begun.length, alone }).toEqual({ begun: 0, alone: [{ order: "large", isAgain: false }] });
});
