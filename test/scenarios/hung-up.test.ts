import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startMeanwhile } from "../helpers/meanwhile.ts";
import { gate } from "../helpers/project.ts";
import { overPipes, resultOf, WireClient } from "../helpers/wire.ts";

const command = `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Waits at a gate, then makes much", effects: "write", input: z.object({ file: z.string(), bytes: z.number(), n: z.number() }),
  async run({ file, bytes, n }) {
    appendFileSync(file, "started\\n");
    while (!existsSync(file + ".go")) await sleep(10);
    appendFileSync(file, "done\\n");
    return { n, text: "x".repeat(bytes) };
  },
});`;

const count = 6;

test.for([
  ["closes its end of what it reads", 100],
  ["reads nothing of results of 3 MB, and ends its input", 3_000_000],
] as const)(
  "a client of a server of its own that %s finds the results of all its calls as tasks: none is lost, none is called interrupted",
  async ([how, bytes]) => {
    const cwd = temporaryFolder();
    writeFiles(path.join(cwd, "commands"), { "make/much.ts": command });
    const env = { MEANWHILE_HOME: temporaryFolder(), MEANWHILE_AUTO_TASK: "0" };
    const start = () => startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd, env });
    const work = gate();
    const first = start();
    const client = await new WireClient(overPipes(first.child), { revision: "2025-06-18" }).begin();
    for (let n = 0; n < count; n++) client.startCall("make_much", { ...work.input, bytes, n });
    await work.seen("started", count);
    // Calls are put on record when they take longer than a moment.
    await sleep(1_000);
    if (how.startsWith("closes")) first.child.stdout.destroy();
    else first.child.stdout.pause();
    work.open();
    await work.seen("done", count);
    if (!how.startsWith("closes")) first.child.stdin.end();
    await first.exited;

    const second = start();
    const next = await new WireClient(overPipes(second.child), { revision: "2025-06-18" }).begin();
    onTestFinished(() => next.close());
    const listed = async () =>
      resultOf(await next.request("tools/call", { name: "task_list", arguments: {} })).structuredContent?.data.jobs as {
        status: string;
      }[];
    expect((await listed()).map(({ status }) => status)).toEqual(Array.from({ length: count }).fill("completed"));
    expect(work.starts(), "nothing ran twice").toBe(count);
  },
);
