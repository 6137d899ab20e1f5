import path from "node:path";
import { expect, test } from "vitest";
import type { Door } from "../../../src/command/context.ts";
import { system } from "../../../src/system/system.ts";
import { createIsolation } from "../../../src/task/isolated/isolation.ts";
import { weigh } from "../../../src/task/weigh.ts";
import isolated from "../../fixtures/load/commands/load/isolated.ts";
import { FakeClock } from "../../helpers/fake-clock.ts";

const clock = new FakeClock();
const at = (file: string) => path.join(import.meta.dirname, file);
const childFile = at("../../../src/task/isolated/child-process.ts");
const file = at("../../fixtures/load/commands/load/isolated.ts");
const isolation = createIsolation({ clock, childFile, maxChildren: 1, killGroup: system.killGroup });
const entry = { command: isolated, toolName: "load_isolated", path: ["load", "isolated"], file };
const run = (mib: number, door: Door) =>
  isolation(entry, { mib }, { name: "load", clock, home: "/", config: {}, door });

test("an isolated run keeps its result in the child until there is room, however long that takes", async () => {
  const [asked, granted] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()];
  let isGranted = false;
  const room = (data: unknown) => {
    asked.resolve(weigh(data));
    return isGranted ? undefined : granted.promise;
  };
  let isHere = false;
  const outcome = run(1, { room }).finally(() => {
    isHere = true;
  });
  expect(await Promise.race([asked.promise, outcome])).toBeGreaterThan(1024 * 1024);
  // Its time limit is 5 minutes.
  clock.advance(3_600_000);
  await new Promise(setImmediate);
  expect(isHere).toBe(false);
  isGranted = true;
  granted.resolve();
  expect(await outcome).toMatchObject({ ending: "completed", data: { text: expect.stringMatching(/^x{1048576}$/) } });
});

test("a small result of an isolated run needs no room", async () => {
  let isAsked = false;
  const room = () => {
    isAsked = true;
    return undefined;
  };
  expect(await run(0.01, { room })).toMatchObject({ ending: "completed" });
  expect(isAsked).toBe(false);
});
