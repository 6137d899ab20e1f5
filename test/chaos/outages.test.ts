import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { isTerminal, type Task } from "../../src/task/task.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { openStage, startWorker } from "./cast.ts";
import { openNodes, runOutages } from "./outages.ts";

const leaseMs = 1_000;
const guard = { timeout: 60_000, interval: 100 };

test("no task of a living worker is interrupted or run twice by outages of 3 to 9 s, with a lease of 1 s", async () => {
  const lengths = { shortestMs: 3_000, longestMs: 9_000 };
  let report = await runOutages({ leaseMs, outages: 3, ...lengths, liveTasks: 40, seed: 27 });
  // Where processes stand still for most of a lease, a living worker may lose its tasks, and rightly so: one more try.
  if (report.problems.length > 0 && report.longestDelayMs > leaseMs / 2)
    report = await runOutages({ leaseMs, outages: 3, ...lengths, liveTasks: 40, seed: 28 });
  expect(report.problems, `the longest delay of a timer was ${report.longestDelayMs} ms`).toEqual([]);
  expect(report.tasks).toBeGreaterThan(40);
});

test("a process that was stopped for longer than a lease keeps the tasks that nobody else could take", async () => {
  const folder = temporaryFolder();
  const { engine, create } = await openStage(folder);
  const worker = await startWorker(folder, leaseMs);
  for (const round of [1, 2, 3]) {
    const tasks: Task[] = [];
    for (const kind of ["safe", "unsafe"] as const)
      tasks.push(await create(kind, { key: `${kind}-${round}`, ms: 500 }));
    for (const { taskId } of tasks)
      await vi.waitFor(
        async () => expect(await engine.get("local:ada", taskId)).toMatchObject({ status: "working" }),
        guard,
      );
    worker.kill("SIGSTOP");
    await wait(4 * leaseMs);
    worker.kill("SIGCONT");
    for (const { taskId } of tasks)
      expect(await engine.wait("local:ada", taskId)).toMatchObject({ status: "completed", fence: 1, crashes: 0 });
  }
});

describe("a node that is cut off from the database for longer than a lease", () => {
  test("goes on; others run its safe tasks again and fail its unsafe ones; back again it aborts both", async () => {
    const opened = await openNodes(leaseMs);
    onTestFinished(() => opened.close());
    const { nodes, create, read, runsOf } = opened;
    const tasks = await Promise.all(
      Array.from({ length: 9 }, async (_, at) => {
        const kind = at % 3 === 0 ? "unsafe" : "safe";
        return { kind, key: `${kind}-${at}`, task: await create(kind, `${kind}-${at}`, 12_000) };
      }),
    );
    await vi.waitFor(async () => {
      for (const { task } of tasks) expect((await read(task)).status).toBe("working");
    }, guard);
    const current = await Promise.all(tasks.map(async (it) => ({ ...it, pid: pidOf(await read(it.task)) })));
    const unsafe = current.find(({ kind }) => kind === "unsafe");
    const cutOff = nodes.find(({ child }) => child.pid === unsafe?.pid);
    const isOwn = ({ pid }: { readonly pid: number }) => pid === cutOff?.child.pid;
    cutOff?.proxy.break("refuse");
    await vi.waitFor(async () => {
      for (const { kind, task } of current.filter(isOwn))
        expect(await read(task)).toMatchObject(
          kind === "unsafe" ? { status: "failed", crashes: 1, outcome: { cause: "interrupted" } } : { crashes: 1 },
        );
    }, guard);
    cutOff?.proxy.repair();
    for (const { key, kind, task, ...it } of current) {
      const expected = isOwn(it) ? { crashes: 1 } : { status: "completed", fence: 1, crashes: 0 };
      await vi.waitFor(async () => expect(isTerminal(await read(task))).toBe(true), guard);
      expect(await read(task), key).toMatchObject(
        isOwn(it) && kind === "safe" ? { status: "completed", fence: 2, ...expected } : expected,
      );
      const ownFinish = runsOf(key).filter((line) => line.what === "finish" && line.attempt === 1);
      expect(ownFinish, key).toHaveLength(isOwn(it) ? 0 : 1);
    }
  });
});

function pidOf(task: Task): number {
  return isTerminal(task) ? 0 : Number(task.lease?.worker.split("|")[2]);
}
