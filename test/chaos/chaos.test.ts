import { test } from "vitest";
import { survives, timeout } from "./survives.ts";

test("kill -9 at every named step and at any moment: nothing is lost, nothing changes, nothing is done twice", {
  timeout,
}, async () => {
  await survives();
});
