import path from "node:path";
import { expect, test } from "vitest";
import { system } from "../../../src/system/system.ts";
import { createIsolation } from "../../../src/task/isolated/isolation.ts";
import inChild from "../../fixtures/questions/in-child.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

test("an isolated run that waits for an answer is not ended for the time that takes", async () => {
  const clock = new FakeClock();
  const at = (file: string) => path.join(import.meta.dirname, file);
  const childFile = at("../../../src/task/isolated/child-process.ts");
  const run = createIsolation({ clock, childFile, maxChildren: 1, killGroup: system.killGroup });
  const entry = { command: inChild, toolName: "ask", path: ["ask"], file: at("../../fixtures/questions/in-child.ts") };
  const ask = async () => {
    clock.advance(3_600_000);
    return { action: "accept" as const, content: { colour: "red" } };
  };
  const outcome = await run(entry, {}, { name: "ask", clock, home: "/", config: {}, door: { ask } });
  expect(outcome).toMatchObject({ ending: "completed", data: { colour: "red" } });
});
