import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { z } from "zod";
import { sleep } from "../../src/clock.ts";
import { defineCommand } from "../../src/command/command.ts";
import { limitOf } from "../../src/mcp/host-limit.ts";
import type { ClientRequest } from "../../src/mcp/request.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { runCli } from "../helpers/cli.ts";
import { FakeClock, pass, settled, turns } from "../helpers/fake-clock.ts";
import { type ClientOptions, type LocalOptions, localKey, openServer, type Transport } from "../helpers/server.ts";
import { handleOf, type WireClient } from "../helpers/wire.ts";

const revision = "2025-11-25";
/** Calls that are given up within this time count as one. */
const togetherMs = 1_000;

describe.each(["stdio", "http"] as const)("over %s a limit is learned from calls that are given up", (transport) => {
  test("three times at the same age: the next call gets its handle before that", async () => {
    const host = await open({ transport });
    await host.giveUp(10_000, 10_200, 10_100);
    expect(await host.handleAfterMs()).toBe(7_500);
    const other = await host.connect({ over: transport === "stdio" ? "http" : "stdio" });
    expect(await host.handleAfterMs(other), "the other transport").toBe(22_500);
  });

  test("for the servers of this project alone", async () => {
    const host = await open({ transport });
    await host.giveUp(10_000, 10_000, 10_000);
    const next = await open({ transport, clock: host.clock, home: host.home, project: "p" });
    expect(await next.handleAfterMs(), "another process").toBe(7_500);
    const stranger = await open({ transport, clock: host.clock, home: host.home, project: "other" });
    expect(await stranger.handleAfterMs(), "another project").toBe(22_500);
  });

  test.each([
    ["a person cancels at random times", {}, [6_000, 14_000, 9_000, 20_000]],
    ["`deferral.learn` is false", { config: { deferral: { learn: false } } }, [10_000, 10_000, 10_000]],
    ["the limit is configured", { config: { hosts: { "my-host": { limitSeconds: 30 } } } }, [10_000, 10_000, 10_000]],
    ["the client has no name", { name: "" }, [10_000, 10_000, 10_000]],
    ["the client has the default name of an SDK", { name: "mcp" }, [10_000, 10_000, 10_000]],
  ] as const)("not if %s", async (_title, options, ages) => {
    const host = await open({ transport, ...options });
    const before = await host.handleAfterMs();
    await host.giveUp(...ages);
    expect(await host.handleAfterMs()).toBe(before);
  });

  test("not if progress was sent", async () => {
    const host = await open({ transport, progress: true });
    await host.giveUp(10_000, 10_000, 10_000);
    expect(await host.handleAfterMs()).toBe(22_500);
  });

  test("not if the cancel comes after the answer", async () => {
    const host = await open({ transport });
    for (let round = 0; round < 3; round++) {
      const { id, answer } = host.client.startCall("work", { round });
      await settled(host.clock, answer);
      await pass(host.clock, 70);
      host.client.cancel(id);
      await turns();
    }
    expect(await host.handleAfterMs()).toBe(22_500);
  });
});

describe.each(["stdio", "http"] as const)(
  "over %s calls that one client cancels together count as one",
  (transport) => {
    test("so one cancel of three calls teaches nothing, and three do", async () => {
      const host = await open({ transport });
      await host.cancelTogether([10_000, 10_000, 10_000]);
      expect(await host.handleAfterMs()).toBe(22_500);
      await host.cancelTogether([10_000, 10_000, 10_000]);
      await host.cancelTogether([10_000, 10_000, 10_000]);
      expect(await host.handleAfterMs()).toBe(7_500);
    });

    test("and nothing is learned if their ages differ", async () => {
      const host = await open({ transport });
      for (let round = 0; round < 3; round++) await host.cancelTogether([14_000, 10_000]);
      expect(await host.handleAfterMs()).toBe(22_500);
    });

    test("nor if a call with progress is cancelled at another age between calls of one age", async () => {
      const host = await open({ transport });
      await host.giveUp(10_000, 10_000);
      await host.cancelTogether([16_000], { progress: true });
      await host.giveUp(10_000);
      expect(await host.handleAfterMs()).toBe(22_500);
    });
  },
);

describe.each(["2025-11-25", "2026-07-28"])("an HTTP client of %s that ends", (revision) => {
  test("with three calls open teaches nothing", async () => {
    const host = await open({ transport: "http", revision });
    for (let round = 0; round < 3; round++) {
      const client = await host.connect({});
      await host.startCalls(client, [10_000, 10_000, 10_000]);
      await settled(host.clock, client.close());
      await pass(host.clock, togetherMs);
    }
    expect(await host.handleAfterMs()).toBe(22_500);
  });
});

test("an HTTP client that ends with one call and the stream of its session open teaches nothing", async () => {
  const host = await open({ transport: "http" });
  for (let round = 0; round < 3; round++) {
    const client = await host.connect({});
    await host.startCalls(client, [10_000]);
    await settled(host.clock, client.close());
    await pass(host.clock, togetherMs);
  }
  expect(await host.handleAfterMs()).toBe(22_500);
});

test("a call whose HTTP stream is closed before its cancel comes counts once, at the age of the first", async () => {
  const host = await open({ transport: "http" });
  // Otherwise the call becomes a task when its stream is closed, and the cancel comes too late.
  const storing = Promise.withResolvers<never>();
  const handOut = vi.spyOn(MemoryStore.prototype, "handOut").mockReturnValue(storing.promise);
  onTestFinished(() => handOut.mockRestore());
  for (let round = 0; round < 3; round++) {
    const [call] = await host.startCalls(host.client, [10_000]);
    call?.drop();
    await vi.waitFor(() => expect(handOut).toHaveBeenCalledTimes(round + 1));
    await pass(host.clock, 2_000);
    if (call !== undefined) host.client.cancel(call.id);
    await pass(host.clock, togetherMs + 100);
  }
  handOut.mockRestore();
  storing.reject(new Error("The store is away."));
  expect(await host.handleAfterMs()).toBe(7_500);
});

test.each([
  ["shorter than what is known", 20_000, 20_000],
  ["longer than what is known", 40_000, 30_000],
])("a learned limit that is %s", (_title, learnedMs, expected) => {
  const learnedLimits = { limitOf: () => ({ limitMs: learnedMs, since: 0 }), noteGivenUp: () => {} };
  const request = { connection: {}, client: { name: "jcode" }, door: "stdio" } as unknown as ClientRequest;
  const options = { hosts: {}, hostName: undefined, keepInlineMs: 600_000, learnedLimits };
  expect(limitOf(options, request).limitMs).toBe(expected);
  expect(limitOf({ ...options, hosts: { jcode: { limitSeconds: 90 } } }, request).limitMs).toBe(90_000);
});

test("a call whose connection ends says nothing about its host", async () => {
  const host = await open({});
  for (let round = 0; round < 3; round++) {
    const client = await host.connect({});
    client.startCall("work", { round });
    await pass(host.clock, 10_000);
    await settled(host.clock, client.close());
  }
  expect(await host.handleAfterMs()).toBe(22_500);
});

test("an anonymous caller says nothing about its host", async () => {
  const host = await open({ transport: "http" });
  const anonymous = await host.connect({ isAnonymous: true });
  await host.giveUpBy(anonymous, 10_000, 10_000, 10_000);
  expect(await host.handleAfterMs()).toBe(22_500);
});

test("over HTTP a call is also given up by a cancel, and in 2026-07-28 by the end of its stream", async () => {
  const cancels = await open({ transport: "http", isCancelled: true });
  await cancels.giveUp(10_000, 10_000, 10_000);
  expect(await cancels.handleAfterMs()).toBe(7_500);
  const leaves = await open({ transport: "http", revision: "2026-07-28" });
  await leaves.giveUp(10_000, 10_000, 10_000);
  expect(await leaves.handleAfterMs()).toBe(7_500);
});

test("the reason of the task names the learned limit, `hosts` lists it and `hosts forget` removes it", async () => {
  const host = await open({});
  await host.giveUp(10_000, 10_000, 10_000);
  const { answer } = host.client.startCall("work", {});
  const { job_id } = handleOf((await settled(host.clock, answer)).result as never);
  const { reason } = await (await host.server.engine()).get(localKey, job_id);
  expect(reason).toBe("my-host was seen to cut calls after 10 s");
  const env = { MEANWHILE_HOME: host.home };
  const cli = (...words: string[]) => runCli(["hosts", ...words], { cwd: host.server.cwd, env });
  const listed = await cli();
  expect(listed.stdout).toMatch(/^my-host +stdio +10 s +learned on \d{4}-\d\d-\d\d$/m);
  expect(listed.stdout).toMatch(/^my-host +HTTP +30 s +assumed$/m);
  expect(listed.stdout).toMatch(/^codex-mcp-client +both +300 s +measured/m);
  const rows = JSON.parse((await cli("--json")).stdout) as { name: string; source: string }[];
  expect(rows.at(-2)).toMatchObject({ name: "my-host", transport: "stdio", limitSeconds: 10, source: "learned" });
  const forgotten = await cli("forget", "my-host");
  expect(forgotten.stderr).toContain("✓ Forgot what was learned about my-host: 10 s over stdio");
  expect(forgotten.code).toBe(0);
  await pass(host.clock, 3_000);
  expect(await host.handleAfterMs(), "a running server forgets it, too").toBe(22_500);
  const again = await cli("forget", "my-host");
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was learned about "my-host"') });
  expect(readFileSync(path.join(host.home, "hosts.json"), "utf8")).not.toContain("my-host");
});

interface OpenOptions {
  readonly transport?: Transport;
  readonly name?: string;
  readonly revision?: string;
  readonly config?: object;
  readonly clock?: FakeClock;
  readonly home?: string;
  readonly project?: string;
  readonly progress?: boolean;
  /** Over HTTP: calls are given up by `notifications/cancelled`. Default: by the end of their streams. */
  readonly isCancelled?: boolean;
}

/** A server with a silent command, and a client of a host that is in no table. */
async function open(options: OpenOptions) {
  const { transport = "stdio", name = "my-host", clock = new FakeClock(Date.now()), progress = false } = options;
  const work = defineCommand({
    summary: "Take ten minutes",
    effects: "read",
    input: z.object({ progress: z.boolean().optional() }).loose(),
    async run(input, task) {
      if (progress || input.progress === true) task.progress({ percentage: 1 });
      await sleep(clock, 600_000, task.signal);
    },
  });
  const local: LocalOptions = {
    commands: { work },
    clock,
    config: { project: options.project ?? "p", ...options.config },
    ...(options.home !== undefined && { home: options.home }),
  };
  const server = await openServer({ in: transport === "stdio" ? "memory" : "http", ...local });
  const connect = (more: ClientOptions) =>
    server.client({ revision: options.revision ?? revision, capabilities: {}, name }, { over: transport, ...more });
  const client = await connect({});
  let calls = 0;
  const giveUpBy = async (by: WireClient, ...ages: readonly number[]) => {
    for (const age of ages) {
      const { id, stop } = by.startCall("work", {}, { meta: { "meanwhile/new": true, progressToken: ++calls } });
      await turns();
      await pass(clock, age);
      if (options.isCancelled === true) by.cancel(id);
      else stop();
      await turns();
      // Over HTTP the server hears of it after some turns.
      if (transport === "http") await pass(clock, 100);
      await pass(clock, togetherMs);
    }
  };
  const handleAfterMs = async (by = client) => {
    const startedAt = clock.now();
    const { result } = await settled(clock, by.startCall("work", {}, { meta: { "meanwhile/new": true } }).answer, 100);
    expect(handleOf(result as never).status).toBe("working");
    return Math.round((clock.now() - startedAt) / 100) * 100;
  };
  /** Starts one call for each age, the oldest first, so that each has its age in the end. */
  const startCalls = async (by: WireClient, ages: readonly number[], input: object = {}) => {
    const begun = [];
    for (const [at, age] of ages.entries()) {
      const token = ++calls;
      begun.push(by.startCall("work", input, { meta: { "meanwhile/new": true, progressToken: token } }));
      await turns();
      await pass(clock, age - (ages[at + 1] ?? 0));
    }
    return begun;
  };
  const cancelTogether = async (ages: readonly number[], input: object = {}) => {
    for (const { id } of await startCalls(client, ages, input)) client.cancel(id);
    await turns();
    await pass(clock, togetherMs + 100);
  };
  const giveUp = (...ages: readonly number[]) => giveUpBy(client, ...ages);
  return {
    server,
    clock,
    home: server.home,
    client,
    connect,
    giveUp,
    giveUpBy,
    startCalls,
    cancelTogether,
    handleAfterMs,
  };
}
