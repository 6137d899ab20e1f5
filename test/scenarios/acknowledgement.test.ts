import { describe, expect, test } from "vitest";
import { DaemonHome } from "../helpers/daemon.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startHttp, startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { overHttp, overPipes, type Result, resultOf, WireClient, type WireOptions } from "../helpers/wire.ts";

/**
 * The id of a task is with its client before the run begins: here a run blocks its whole process from its first line,
 * until the test lets it go.
 */

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
const folder = () => writeFiles(temporaryFolder(), commands);
const words = ["--no-bundled"];

async function begin(client: WireClient): Promise<WireClient> {
  cleanUp(() => client.close());
  return await client.begin();
}

/** A server that has let go of every run is as good as a new one. */
const [daemon, http] = [
  shareAmongTests(() => ({ home: new DaemonHome(), cwd: folder() })),
  shareAmongTests(() => startHttp(words, { cwd: folder() })),
];

const doors: Record<string, (options: WireOptions) => Promise<WireClient>> = {
  "a server of its own": (options) =>
    begin(
      new WireClient(overPipes(startMeanwhile(["serve", "--in-process", ...words], { cwd: folder() }).child), options),
    ),
  "the daemon": async (options) => {
    const { home, cwd } = await daemon();
    return await home.connect({ words, cwd, ...options });
  },
  HTTP: async (options) => {
    const server = await http();
    return await begin(new WireClient(overHttp(server.url, { token: server.token() }), options));
  },
};

const extension = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const kinds = [
  { kind: "task of 2025", options: { revision: "2025-11-25" }, task: {} },
  { kind: "task of 2026", options: { revision: "2026-07-28", capabilities: extension }, task: undefined },
  { kind: "handle", options: { revision: "2025-06-18" }, task: undefined },
  {
    kind: "job",
    options: { revision: "2025-06-18", capabilities: { experimental: { "meanwhile/jobs": {} } } },
    task: undefined,
  },
] as const;

/** Fails after a while where the answer waits for the run, which waits for us. */
async function inTime(answer: Promise<Result>, run: ReturnType<typeof gate>): Promise<Result> {
  const timer = setTimeout(run.open, 20_000);
  const result = await answer.finally(() => clearTimeout(timer));
  expect(run.lines(), "the id came before the run was let go").not.toContain("ended");
  return result;
}

describe.each(Object.entries(doors))("over %s", (_door, connect) => {
  test.each(kinds)(
    "0 ids wait for their run: the one of a $kind comes while the run blocks everything",
    async ({ kind, options, task }) => {
      const client = await connect(options);
      const run = gate();
      const result = await inTime(client.call("block_loop", run.input, { task }), run);
      expect([kindOf(result), taskIdOf(result)]).toEqual([kind, expect.any(String)]);
      await run.seen("started");
      expect(run.lines()).toEqual(["started"]);
      run.open();
      await run.seen("ended");
    },
  );
});

test("3 calls sent at once have their 3 ids before the first run begins", async () => {
  const { child } = startMeanwhile(["serve", "--in-process", ...words], { cwd: folder() });
  const client = await begin(new WireClient(overPipes(child), { revision: "2025-11-25" }));
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
