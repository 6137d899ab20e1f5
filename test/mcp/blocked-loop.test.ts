import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { watchLoop } from "../../src/command/loop-watch.ts";
import { endedNames, endedSuspects, running } from "../../src/command/running.ts";
import type { Logger } from "../../src/log.ts";
import { runCli } from "../helpers/cli.ts";
import { FakeClock, settled, turns } from "../helpers/fake-clock.ts";
import { openServer } from "../helpers/server.ts";
import { handleOf } from "../helpers/wire.ts";

/** A clock whose time also passes without its timers, as while a command blocks the event loop. */
class BlockableClock extends FakeClock {
  #blockedMs = 0;

  constructor() {
    super(Date.now());
  }

  override now(): number {
    return super.now() + this.#blockedMs;
  }

  override monotonic(): number {
    return super.monotonic() + this.#blockedMs;
  }

  block(ms: number): void {
    this.#blockedMs += ms;
  }
}

/** A host that gives up after 8 s. */
const config = { hosts: { "my-host": { limitSeconds: 8 } } };
const cure = 'isolation: "process" in its command prevents that';

/** A server with a command that blocks the event loop, and what its log says. */
async function open() {
  // Commands of other servers in this process, which other test files left running.
  running.clear();
  endedNames.clear();
  endedSuspects.clear();
  const clock = new BlockableClock();
  const lines: { level: string; text: string }[] = [];
  const at = (level: string) => (text: string) => void lines.push({ level, text });
  const log = { debug: () => {}, info: at("info"), warn: at("warn"), error: at("error") } as unknown as Logger;
  let idleMs = 0;
  onTestFinished(watchLoop(clock, log, undefined, () => idleMs));
  const work = defineCommand({
    summary: "Block the event loop",
    effects: "read",
    input: z.object({ ms: z.number(), waits: z.boolean() }),
    async run({ ms, waits }) {
      if (waits) await new Promise<void>((resolve) => void clock.after(10_000, resolve));
      clock.block(ms);
      return {};
    },
  });
  const blockThenWait = defineCommand({
    summary: "Block the event loop, then wait",
    effects: "read",
    async run() {
      clock.block(9_000);
      await new Promise<void>((resolve) => void clock.after(10_000, resolve));
      return {};
    },
  });
  const wait = defineCommand({
    summary: "Wait for something",
    effects: "read",
    run: (_input, task) => sleep(clock, 60_000, task.signal),
  });
  /** The whole process is stopped for a while, as by SIGSTOP. */
  const pause = (ms: number) => {
    clock.block(ms);
    idleMs += ms;
  };
  const server = await openServer({
    in: "memory",
    commands: { work, wait, block_then_wait: blockThenWait },
    config,
    clock,
    store: "sqlite",
  });
  const client = await server.client({ revision: "2025-06-18", name: "my-host", capabilities: {} });
  const tick = async () => {
    clock.advance(250);
    await turns();
    return lines.filter(({ text }) => text.includes("blocked"));
  };
  const call = (ms: number, waits = false) => settled(clock, client.call("work", { ms, waits }));
  const cli = async (...words: string[]) => {
    await server.close();
    return await runCli(words, { cwd: server.cwd, env: { MEANWHILE_HOME: server.home } });
  };
  /** A run of `wait` that goes on as a task. */
  const startWait = async () => handleOf(await settled(clock, client.call("wait", {}))).job_id;
  return { clock, client, call, tick, cli, pause, startWait };
}

describe("a command that blocks the event loop is named with the seconds and the cure", () => {
  test("in the log", async () => {
    const { call, tick } = await open();
    await call(3_000);
    expect(await tick()).toEqual([
      {
        level: "info",
        text: expect.stringMatching(
          `^the event loop was blocked for (2\\.[789]|[34]\\.\\d) s while work ran; ${cure}$`,
        ),
      },
    ]);
    await call(500);
    expect(await tick()).toHaveLength(1);
  });

  test("as a warning, if its host had given up by then", async () => {
    const { call, tick } = await open();
    await call(9_000);
    expect(await tick()).toEqual([
      {
        level: "warn",
        text: expect.stringMatching(
          `^work blocked the event loop for 8\\.[89] s, so its answer came too late: my-host waits 8.0 s; ${cure}$`,
        ),
      },
    ]);
  });

  test("without a warning, if its client had got a handle before", async () => {
    const { clock, call, tick } = await open();
    expect(handleOf(await call(9_000, true)).status).toBe("working");
    clock.advance(5_000);
    await turns();
    expect((await tick()).map(({ level }) => level)).toEqual(["info"]);
  });

  test("in `tasks show`", async () => {
    const { clock, client, call, cli } = await open();
    const { job_id } = handleOf(await call(2_000, true));
    clock.advance(5_000);
    await settled(clock, client.call("task_result", { job_id }));
    const shown = await cli("tasks", "show", job_id);
    expect(shown.stdout).toMatch(new RegExp(`^eventLoopBlocked: 'for (1\\.[89]|2\\.0) s; ${cure}'$`, "m"));
  });

  test("in `tasks show` with the host that had given up by then", async () => {
    const { clock, client, cli } = await open();
    const { job_id } = handleOf(await settled(clock, client.call("block_then_wait", {})));
    clock.advance(10_000);
    await settled(clock, client.call("task_result", { job_id }));
    const { eventLoopBlocked } = JSON.parse((await cli("tasks", "show", job_id, "--json")).stdout);
    expect(eventLoopBlocked).toMatch(
      new RegExp(`^for (8\\.[789]|9\\.0) s, so its answer came too late: my-host waits 8\\.0 s; ${cure}$`),
    );
  });

  test("in `stats`", async () => {
    const { call, cli } = await open();
    await call(2_000);
    await call(3_000);
    const stats = await cli("stats", "--all");
    expect(stats.stdout).toMatch(/^Command +Runs +p50 +p95 +p99 +Blocked$/m);
    expect(stats.stdout).toMatch(/^work +2 .* (2\.[789]|3\.0) s$/m);
    expect(stats.stderr).toContain(
      'work blocks the event loop (Blocked: longest time), so other calls wait. isolation: "process" in the command prevents that.',
    );
  });

  test("with its numbers in `stats --json`", async () => {
    const { call, cli } = await open();
    await call(2_000);
    await call(20);
    const [stats] = JSON.parse((await cli("stats", "--all", "--json")).stdout) as { longestBlockMs: number }[];
    expect(stats).toMatchObject({ command: "work", runs: 2, blockedRuns: 1 });
    // The watch looks every 250 ms, so a block is known to within that.
    expect(stats?.longestBlockMs).toBeGreaterThan(1_700);
    expect(stats?.longestBlockMs).toBeLessThan(2_050);
  });
});

describe("a command that only waits while the event loop is blocked", () => {
  test("is not named if the first lines of another command block it", async () => {
    const { call, tick, cli, startWait } = await open();
    const waiting = await startWait();
    await call(3_000);
    expect((await tick()).map(({ text }) => text)).toEqual([expect.stringMatching(/ while work ran; /)]);
    expect((await cli("tasks", "show", waiting)).stdout).not.toContain("eventLoopBlocked");
    const stats = JSON.parse((await cli("stats", "--all", "--json")).stdout) as { command: string }[];
    expect(stats).toMatchObject([{ command: "work", blockedRuns: 1 }]);
  });

  test("is named in the log alone if either of two may have blocked it", async () => {
    const { clock, call, client, tick, cli, startWait } = await open();
    const waiting = await startWait();
    const { job_id } = handleOf(await call(9_000, true));
    clock.advance(5_000);
    await turns();
    expect(await tick()).toEqual([
      { level: "info", text: expect.stringMatching(/^the event loop was blocked for [89]\.\d s while .* ran; /) },
    ]);
    await settled(clock, client.call("task_result", { job_id }));
    for (const task of [waiting, job_id])
      expect((await cli("tasks", "show", task)).stdout).not.toContain("eventLoopBlocked");
    expect((await cli("stats", "--all")).stdout).not.toContain("Blocked");
  });

  test("is not named if the whole process was stopped", async () => {
    const { tick, cli, pause, startWait } = await open();
    const waiting = await startWait();
    pause(40_000);
    expect(await tick()).toEqual([]);
    expect((await cli("tasks", "show", waiting)).stdout).not.toContain("eventLoopBlocked");
  });
});
