import { expect, test } from "vitest";
import { cleanUp, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";
import { gate, taskIdOf } from "../../helpers/project.ts";
import { overPipes, type Result, resultOf, WireClient } from "../../helpers/wire.ts";

/** A run that blocks the whole process of a server over stdio. The rest is in test/scenarios/acknowledgement.test.ts. */

const commands = {
  "commands/block/loop.ts": `import { appendFileSync, existsSync } from "node:fs";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Blocks its process until it is let go",
  long: true,
  dedupe: false,
  estimate: () => 86_400,
  input: z.object({ file: z.string() }),
  run({ file }): object {
    appendFileSync(file, "started\\n");
    while (!existsSync(file + ".go")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    appendFileSync(file, "ended\\n");
    return {};
  },
});`,
};
/** Fails after a while where the answer waits for the run, which waits for us. */
async function inTime(answer: Promise<Result>, run: ReturnType<typeof gate>): Promise<Result> {
  const timer = setTimeout(run.open, 20_000);
  const result = await answer.finally(() => clearTimeout(timer));
  expect(run.lines(), "the id came before the run was let go").not.toContain("ended");
  return result;
}

test("3 calls sent at once have their 3 ids before the first run begins", async () => {
  const cwd = writeFiles(temporaryFolder(), commands);
  const { child } = startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd });
  const client = await new WireClient(overPipes(child), { revision: "2025-11-25" }).begin();
  cleanUp(() => client.close());
  const runs = [gate(), gate(), gate()];
  // In one piece: the server cannot have the first of them without the others.
  child.stdin.cork();
  process.nextTick(() => child.stdin.uncork());
  const calls = runs.map((run) => client.startCall("block_loop", run.input, { task: {} }).answer.then(resultOf));
  const ids = await Promise.all(
    calls.map((call, at) => inTime(call, runs[at] as ReturnType<typeof gate>).then(taskIdOf)),
  );
  expect(new Set(ids).size).toBe(3);
  // Which of them is run first is not promised, and one that runs lets no other begin.
  for (const left = new Set(runs); left.size > 0; ) {
    const begun = await waitFor(() => [...left].find((run) => run.lines().includes("started")));
    begun.open();
    await begun.seen("ended");
    left.delete(begun);
  }
});
