import { expect, test } from "vitest";
import { survives, timeout } from "./survives.ts";

test("nodes and workers are killed, their queue is emptied, their database stops and crashes: nothing is lost, nothing changes, nothing is done twice", {
  timeout,
}, async () => {
  const report = await survives({ store: "postgres" });
  expect([...report.upsets.keys()].toSorted()).toEqual([
    "connections cut",
    "database crashed",
    "database stopped",
    "queue emptied",
  ]);
});
