import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { dataOf } from "../helpers/daemon.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { gate } from "../helpers/project.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { overStreams, resultOf, WireClient } from "../helpers/wire.ts";

const commands = {
  make_much: defineCommand({
    summary: "Waits at a gate, then makes much",
    effects: "write",
    input: z.object({ file: z.string(), bytes: z.number(), n: z.number() }),
    async run({ file, bytes, n }) {
      appendFileSync(file, "started\n");
      while (!existsSync(`${file}.go`)) await sleep(5);
      appendFileSync(file, "done\n");
      return { n, text: "x".repeat(bytes) };
    },
  }),
};

const count = 6;

test.for([
  ["closes its end of what it reads", 100],
  ["reads nothing of results of 3 MB, and ends its input", 3_000_000],
] as const)(
  "a client of a server of its own that %s finds the results of all its calls as tasks: none is lost, none is called interrupted",
  async ([how, bytes]) => {
    const clock = new FakeClock();
    const store = new MemoryStore(clock);
    const recorded = vi.spyOn(store, "create");
    const place = { home: temporaryFolder(), cwd: temporaryFolder(), env: { MEANWHILE_AUTO_TASK: "0" } };
    const open = () => openServer({ in: "memory", clock, store, commands, ...place });
    const work = gate();
    const first = await open();
    const pipes = first.openPipes();
    const client = new WireClient(overStreams(pipes.stdin, pipes.stdout, pipes.close), { revision: "2025-06-18" });
    await settled(clock, client.begin());
    for (let n = 0; n < count; n++) client.startCall("make_much", { ...work.input, bytes, n });
    await work.seen("started", count);
    // The worker records a call that has not ended after 50 ms.
    await waitFor(() => {
      clock.advance(50);
      return recorded.mock.calls.length === count;
    });
    // As a pipe says it that nobody reads any more.
    if (how.startsWith("closes")) pipes.stdout.destroy(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
    else pipes.stdout.removeAllListeners("data").pause();
    work.open();
    await work.seen("done", count);
    if (!how.startsWith("closes")) pipes.stdin.end();
    await first.close();

    const next = await (await open()).client("2025-06-18");
    const listed = resultOf(await settled(clock, next.request("tools/call", { name: "task_list" })));
    const { jobs } = dataOf<{ jobs: { status: string }[] }>(listed);
    expect(jobs.map(({ status }) => status)).toEqual(Array.from({ length: count }).fill("completed"));
    expect(work.starts(), "nothing ran twice").toBe(count);
  },
);
