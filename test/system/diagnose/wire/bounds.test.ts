import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Pipe } from "../../../../src/diagnose/wire/server-pipe.ts";
import { isRunning } from "../../../helpers/daemon.ts";
import { piped } from "../../../helpers/diagnose.ts";
import { temporaryFolder } from "../../../helpers/home.ts";
import { waitFor } from "../../../helpers/wait-for.ts";

const events = { onStart() {}, onEnd() {} };

test.each([
  ["stays", 4],
  ["leaves-children", 2],
] as const)("closing the pipe of the server %s ends it and all that it has started", async (name, count) => {
  const file = path.join(temporaryFolder(), "pids");
  const pipe = await Pipe.start(piped("hostile.mjs", name, file) as never, events);
  onTestFinished(async () => void (await pipe.close()));
  const pids = await waitFor(() => {
    const found = readPids(file);
    return found.length === count && found;
  });
  expect(pids.filter(isRunning)).toEqual(pids);
  await pipe.close();
  await waitFor(() => !pids.some(isRunning));
});

function readPids(file: string): number[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n").map(Number);
  } catch {
    return [];
  }
}
