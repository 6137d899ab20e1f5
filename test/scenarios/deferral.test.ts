import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { bucketOf } from "../../src/task/quantiles.ts";
import { runCli } from "../helpers/cli.ts";
import { type CallResult, connect, modernV2, newestV1, sdks, type TransportName } from "../helpers/clients.ts";
import { FakeClock, pass, settled, turns } from "../helpers/fake-clock.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { type LocalOptions, localKey, openServer } from "../helpers/server.ts";
import { type CallOptions, handleOf, type Result, type WireClient, type WireOptions } from "../helpers/wire.ts";

const commands = path.resolve(import.meta.dirname, "../fixtures/deferral/commands");
const [jun25, nov25, y26] = ["2025-06-18", "2025-11-25", "2026-07-28"] as const;
const takesTasks = { extensions: { "io.modelcontextprotocol/tasks": {} } };
const takesJobs = { experimental: { "meanwhile/jobs": {} } };

/**
 * A host that cuts calls after 0.4 s, so that they are deferred after 0.3 s; and little patience with those that take
 * tasks.
 */
const hasty = { hosts: { "my-host": { limitSeconds: 0.4 } }, deferral: { patienceSeconds: 0.2 } };
const as = (revision: string, capabilities: object = {}): WireOptions => ({ revision, name: "my-host", capabilities });

const folders = ["deferral", "questions"].map((name) =>
  path.resolve(import.meta.dirname, `../fixtures/${name}/commands`),
);

/** A server on a fake clock, and what a test does with it. */
async function open(config: object = {}, options: Partial<LocalOptions> & { in?: "http" } = {}) {
  const clock = new FakeClock();
  const server = await openServer({ in: "memory", commands: folders, config, clock, ...options });
  return {
    server,
    clock,
    client: server.client,
    /** Waits for a promise, and advances the clock meanwhile. */
    wait: <T>(promise: Promise<T>) => settled(clock, promise),
    reasonOf: async (taskId: string) => (await (await server.engine()).get(localKey, taskId)).reason,
  };
}

describe("a command of unknown length", () => {
  test("fast → a plain result, and the disk is not touched", async () => {
    const { server, client: connect } = await open({}, { store: "sqlite" });
    const client = await connect("2025-11-25");
    const { structuredContent: first } = await client.call("work_quick", { text: "first" });
    expect(first).toMatchObject({ success: true, data: { text: "first", number: expect.any(Number) } });
    const before = bytesOf(server.home);
    expect(before.length).toBeGreaterThan(0);
    for (let number = Number(first?.data.number) + 1, calls = 2; calls <= 20; number++, calls++) {
      const result = await client.call("work_quick", { text: "again" });
      expect(kindOf(result)).toBe("answer");
      expect(result.structuredContent?.data).toEqual({ text: "again", number });
      expect(result._meta?.["meanwhile/call"]).not.toHaveProperty("taskId");
    }
    expect(bytesOf(server.home).equals(before), "no byte of the database or its log has changed").toBe(true);
  });

  const clients: readonly (readonly [(typeof sdks)[number], TransportName])[] = [
    [newestV1, "stdio"],
    [newestV1, "HTTP"],
    [modernV2, "stdio"],
    [modernV2, "HTTP"],
    ...sdks.filter(({ revision }) => revision === jun25).map((sdk) => [sdk, "stdio"] as const),
  ];
  test("slow → deferred when three of the host's 4 s are over, without starting again", async () => {
    const clock = new FakeClock();
    const options = { commands, clock, config: { hosts: { scenario: { limitSeconds: 4 } } } };
    const servers = {
      stdio: await openServer({ in: "memory", ...options }),
      HTTP: await openServer({ in: "http", ...options }),
    };
    for (const [sdk, transport] of clients) {
      const title = `${sdk.title} over ${transport}`;
      const client = await connect(sdk, await servers[transport].target());
      const work = gate();
      await client.call("work_quick");
      let isAnswered = false;
      const answer = client.call("work_gated", work.input).finally(() => (isAnswered = true));
      await work.seen("started");
      await pass(clock, 2_990);
      expect(isAnswered, title).toBe(false);
      await pass(clock, 10);
      const first = await settled(clock, answer);
      const { job_id, next_action } = dataOf(first) as {
        job_id: string;
        next_action: { tool: string; arguments: object };
      };
      expect(first.content[0]?.text, title).toContain(
        "work_gated is still running. It goes on by itself. Get its result with task_result",
      );
      const waiting = client.call(next_action.tool, next_action.arguments);
      work.open();
      const result = await settled(clock, waiting);
      expect(dataOf(result), title).toEqual({ passed: work.input.file });
      expect(work.lines(), title).toEqual(["started", "ended"]);
      expect(job_id, title).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});

/** SDKs before 2025-06-18 drop structured content; the text says the same. */
function dataOf(result: CallResult): unknown {
  const text = result.content[0]?.text ?? "";
  const said = JSON.parse(text.slice(text.indexOf("{"))) as { data?: unknown };
  // A handle's text holds what it takes to go on, and nothing around it.
  return said.data ?? said;
}

/** What is on disk of the tasks; the index of the log belongs to its readers. */
function bytesOf(home: string): Buffer {
  const files = ["tasks.db", "tasks.db-wal"].map((name) => path.join(home, name));
  return Buffer.concat(files.map((file) => (existsSync(file) ? readFileSync(file) : Buffer.alloc(0))));
}

/**
 * Who calls, what, and what comes of it: with the gate open from the start, or only once it was answered or `heldMs`
 * are over.
 */
interface Row {
  readonly client: WireOptions;
  readonly tool: string;
  readonly task?: object;
  readonly isHeld?: true;
  readonly expected: ReturnType<typeof kindOf>;
  readonly reason?: string;
}
const heldMs = 1_000;

/** Makes all the calls of a table, one after the other, and reads the reason of each task. */
async function check(config: object, env: Record<string, string>, rows: readonly Row[]): Promise<void> {
  const { client: connect, clock, wait, reasonOf } = await open(config, { env });
  const shown: { kind: string; reason: string | undefined }[] = [];
  for (const { client: options, tool, task, isHeld, expected } of rows) {
    const client = await connect(options);
    const work = gate();
    const { answer } = client.startCall(
      tool,
      tool === "work_quick" || tool === "work_always" ? {} : work.input,
      task === undefined ? {} : { task },
    );
    if (isHeld === true && expected !== "answer") await wait(answer);
    else if (isHeld === true) await pass(clock, heldMs);
    work.open();
    const { result } = await answer;
    const kind = kindOf(result as Result);
    shown.push({ kind, reason: kind === "answer" ? undefined : await reasonOf(taskIdOf(result as Result)) });
  }
  const titleOf = ({ client, tool, task, isHeld }: Row) =>
    `${client.revision} ${Object.keys(client.capabilities ?? {}).join()} ${tool}${task === undefined ? "" : ", asked for"}${isHeld === true ? ", held" : ""}`;
  expect(shown.map(({ kind, reason }, at) => [titleOf(rows[at] as Row), kind, reason])).toEqual(
    rows.map((row) => [
      titleOf(row),
      row.expected,
      row.reason ?? (row.expected === "answer" ? undefined : expect.any(String)),
    ]),
  );
}

const [long, gated, quick] = ["work_long", "work_gated", "work_quick"] as const;
const unknownHost = (revision: string, capabilities: object = {}): WireOptions => ({
  revision,
  name: "nobody-knows-me",
  capabilities,
});
const declared = "work_long is declared long";
const asked = { task: {}, expected: "task of 2025", reason: "the client asked for a task" } as const;

describe("the settings", () => {
  test("none set: a long command is deferred at once, as whatever its client can take; a quick one never", async () => {
    const cut = "an unknown host is taken to cut calls after 30 s";
    const handle = { expected: "handle", reason: `${declared} and needs about 3600 s; ${cut}` } as const;
    await check({}, {}, [
      { client: unknownHost(jun25), tool: long, ...handle },
      { client: unknownHost(nov25), tool: long, ...handle },
      { client: unknownHost(y26), tool: long, ...handle },
      { client: unknownHost(nov25), tool: long, ...asked },
      { client: unknownHost(nov25), tool: quick, ...asked },
      {
        client: unknownHost(nov25, takesJobs),
        tool: long,
        expected: "job",
        reason: `${declared} and the client takes job notifications`,
      },
      {
        client: unknownHost(y26, takesTasks),
        tool: long,
        expected: "task of 2026",
        reason: `${declared} and the client takes tasks`,
      },
      {
        client: unknownHost(y26, takesTasks),
        tool: "work_always",
        expected: "task of 2026",
        reason: "work_always always runs as a task",
      },
      { client: unknownHost(jun25), tool: quick, expected: "answer" },
      { client: unknownHost(nov25), tool: quick, expected: "answer" },
      { client: unknownHost(nov25, takesJobs), tool: quick, expected: "answer" },
      { client: unknownHost(y26), tool: quick, expected: "answer" },
      { client: unknownHost(y26, takesTasks), tool: quick, expected: "answer" },
      { client: unknownHost(y26, takesTasks), tool: gated, expected: "answer" },
    ]);
  });

  test("none set: a command of unknown length is deferred when its host, or its patience, is at the end", async () => {
    const handle = { isHeld: true, expected: "handle", reason: "my-host cuts calls after 0.4 s" } as const;
    await check(hasty, {}, [
      { client: as(jun25), tool: gated, ...handle },
      { client: as(nov25), tool: gated, ...handle },
      { client: as(nov25, takesJobs), tool: gated, ...handle },
      { client: as(y26), tool: gated, ...handle },
      { client: as(nov25), tool: gated, isHeld: true, ...asked },
      {
        client: as(y26, takesTasks),
        tool: gated,
        isHeld: true,
        expected: "task of 2026",
        reason: "no answer after 0.2 s",
      },
    ]);
  });

  test("MEANWHILE_AUTO_TASK=0: only what the client asked for", async () => {
    await check(hasty, { MEANWHILE_AUTO_TASK: "0" }, [
      { client: as(nov25), tool: long, isHeld: true, expected: "answer" },
      { client: as(nov25), tool: gated, isHeld: true, expected: "answer" },
      { client: as(y26), tool: gated, isHeld: true, expected: "answer" },
      { client: as(y26, takesTasks), tool: long, isHeld: true, expected: "answer" },
      { client: as(y26, takesTasks), tool: gated, isHeld: true, expected: "answer" },
      { client: as(nov25), tool: gated, ...asked },
      { client: as(nov25, takesJobs), tool: long, expected: "job" },
    ]);
  });

  test("MEANWHILE_AUTO_TASK_TOOLS: these are long, and no longer those that say so", async () => {
    const listed = "work_quick is listed in MEANWHILE_AUTO_TASK_TOOLS";
    await check({}, { MEANWHILE_AUTO_TASK_TOOLS: "work_quick, work_nothing" }, [
      {
        client: unknownHost(y26, takesTasks),
        tool: quick,
        expected: "task of 2026",
        reason: `${listed} and the client takes tasks`,
      },
      {
        client: unknownHost(nov25, takesJobs),
        tool: quick,
        expected: "job",
        reason: `${listed} and the client takes job notifications`,
      },
      { client: unknownHost(y26, takesTasks), tool: long, expected: "answer" },
      { client: unknownHost(nov25, takesJobs), tool: long, expected: "answer" },
      { client: unknownHost(nov25), tool: long, expected: "answer" },
      { client: unknownHost(nov25), tool: quick, expected: "answer" },
    ]);
  });

  test("MEANWHILE_AUTO_TASK_TOOLS: these are announced as long, in tools/list and in `meanwhile tools`", async () => {
    const names = { MEANWHILE_AUTO_TASK_TOOLS: "work_quick" };
    const { client: connect, server } = await open({}, { env: names });
    const listed = await (await connect({ revision: nov25 })).request("tools/list");
    const { tools } = listed.result as unknown as { tools: { name: string; _meta: Record<string, object> }[] };
    const about = new Map(tools.map(({ name, _meta }) => [name, _meta["meanwhile/tool"]]));
    expect(about.get(quick)).toEqual({ async: true, taskModeRecommended: true });
    expect(about.get(long)).toEqual({ async: false });
    const words = ["tools", "--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];
    const env = { MEANWHILE_HOME: server.home, ...names };
    const { stdout } = await runCli(words, { cwd: server.cwd, env });
    expect(stdout.split("\n").filter((line) => line.includes("[long"))).toEqual([
      expect.stringMatching(/^work_quick .*\[long\b/),
    ]);
    const json = await runCli([...words, "--json"], { cwd: server.cwd, env });
    const all = (JSON.parse(json.stdout) as { tools: { name: string; async: boolean }[] }).tools;
    expect(all.filter(({ async }) => async).map(({ name }) => name)).toEqual([quick]);
  });

  const tasksOfCore = { tasks: { requests: {} } };

  test("MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP=1: a 2025-11-25 client that declares tasks gets a handle", async () => {
    const handle = { isHeld: true, expected: "handle" } as const;
    await check(hasty, { MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "1" }, [
      { client: as(nov25, tasksOfCore), tool: long, ...handle },
      { client: as(nov25, tasksOfCore), tool: gated, ...handle },
    ]);
  });

  test("both MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP=1 and …_UNSOLICITED=1: it gets a task", async () => {
    const task = { isHeld: true, expected: "task of 2025" } as const;
    const both = { MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "1", MEANWHILE_AUTO_TASK_UNSOLICITED: "1" };
    await check(hasty, both, [
      { client: as(nov25, tasksOfCore), tool: long, ...task },
      { client: as(nov25, tasksOfCore), tool: gated, ...task, reason: "my-host cuts calls after 0.4 s" },
      { client: as(nov25), tool: long, isHeld: true, expected: "answer" },
    ]);
  });

  test("MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP=1: clients without tasks wait for the answer", async () => {
    await check(hasty, { MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "1" }, [
      { client: as(nov25), tool: long, isHeld: true, expected: "answer" },
      { client: as(nov25), tool: gated, isHeld: true, expected: "answer" },
      { client: as(y26), tool: gated, isHeld: true, expected: "answer" },
      { client: as(nov25), tool: gated, ...asked },
      { client: as(y26, takesTasks), tool: long, expected: "task of 2026" },
      {
        client: as(y26, takesTasks),
        tool: gated,
        isHeld: true,
        expected: "task of 2026",
        reason: "no answer after 0.2 s",
      },
    ]);
  });

  test("MEANWHILE_AUTO_TASK_UNSOLICITED=1: a 2025-11-25 client is given a task it did not ask for", async () => {
    await check(hasty, { MEANWHILE_AUTO_TASK_UNSOLICITED: "1" }, [
      { client: as(nov25), tool: long, expected: "task of 2025", reason: `${declared} and tasks are given unasked` },
      { client: as(jun25), tool: long, expected: "handle" },
      { client: as(y26), tool: long, expected: "handle" },
      { client: as(nov25), tool: quick, expected: "answer" },
      { client: as(nov25), tool: gated, isHeld: true, expected: "handle" },
    ]);
  });

  test("MEANWHILE_HOST: counts in place of what the client calls itself", async () => {
    await check(hasty, { MEANWHILE_HOST: "my-host" }, [
      {
        client: unknownHost(nov25),
        tool: gated,
        isHeld: true,
        expected: "handle",
        reason: "my-host cuts calls after 0.4 s",
      },
    ]);
  });
});

test("the reasons that other rules have are in their tasks", async () => {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  await store.recordDurations([{ command: "p/work_reading", kind: "time", bucket: bucketOf(12_000), count: 5 }]);
  const config = {
    project: "p",
    hosts: { idle: { limitSeconds: 0.8, isExtended: true }, brief: { limitSeconds: 3600 } },
    deferral: { keepInlineSeconds: 0.7 },
  };
  const server = await openServer({ in: "memory", commands: folders, config, clock, store });
  const calls: readonly (readonly [string, WireOptions, CallOptions, RegExp])[] = [
    [
      gated,
      { revision: nov25, name: "idle" },
      {},
      /^idle cuts calls after 0\.8 s without progress, and this one has no progress token$/,
    ],
    [
      gated,
      { revision: nov25, name: "idle" },
      { meta: { progressToken: 1 } },
      /^calls are kept open for 0\.7 s at most$/,
    ],
    [gated, { revision: nov25, name: "brief" }, {}, /^calls are kept open for 0\.7 s at most$/],
    ["ask_name", { revision: nov25, name: "brief" }, {}, /^it asked a question$/],
    [
      "work_reading",
      { revision: y26, capabilities: takesTasks },
      {},
      /^work_reading is long \(history: p95 1\d s\) and the client takes tasks$/,
    ],
    [
      "work_reading",
      { revision: nov25 },
      {},
      /^work_reading is long \(history: p95 1\d s\) and needs about 1\d s; calls are kept open for 0\.7 s at most$/,
    ],
  ];
  for (const [tool, options, call, reason] of calls) {
    const client = await server.client(options);
    const taskId = taskIdOf(await settled(clock, client.call(tool, gate().input, call)));
    expect((await (await server.engine()).get(localKey, taskId)).reason).toMatch(reason);
  }
});

describe("a result is not lost", () => {
  test("it is fetched over another connection of the same caller, from another process and over HTTP; nobody else sees it", async () => {
    const one = await openServer({ in: "memory", commands: folders, config: hasty, store: "sqlite" });
    const other = await openServer({ in: "http", commands: folders, home: one.home, cwd: one.cwd, store: "sqlite" });
    const first = await one.client(as(nov25));
    const work = gate();
    const { job_id } = handleOf(await first.call(gated, work.input));
    const [second, third, fourth, stranger] = await Promise.all([
      one.client(as(jun25)),
      other.client(as(y26), { over: "stdio" }),
      other.client({ revision: nov25 }),
      other.client({ revision: nov25 }, { isAnonymous: true }),
    ]);
    const waiting = Promise.all([second, third, fourth].map((client) => resultFor(client, job_id)));
    work.open();
    for (const result of await waiting)
      expect(result.structuredContent).toMatchObject({ success: true, data: { passed: work.input.file } });
    const [foreign, unknown] = [
      await stranger.call("task_result", { job_id }),
      await stranger.call("task_result", { job_id: "11111111-1111-4111-8111-111111111111" }),
    ];
    expect(foreign).toMatchObject({
      isError: true,
      content: [{ text: "There is no such task; it may have expired." }],
    });
    expect(foreign.content).toEqual(unknown.content);
    expect(work.starts()).toBe(1);
  });

  test("2025-11-25 over HTTP: a connection that breaks while the call waits leaves the result to whoever asks", async () => {
    const { client: connect, reasonOf, server } = await open({}, { in: "http" });
    const [client, later] = [await connect(as(nov25)), await connect(as(nov25))];
    const work = gate();
    const { drop } = client.startCall(gated, work.input);
    await work.seen("started");
    drop();
    const [job] = await waitForJobs(later, 1);
    work.open();
    expect((await resultFor(later, job as string)).structuredContent).toMatchObject({
      success: true,
      data: { passed: work.input.file },
    });
    expect(await reasonOf(job as string)).toBe("its client went away");
    expect(await (await server.engine()).get(localKey, job as string)).toMatchObject({ attempts: 1 });
    expect(work.lines()).toEqual(["started", "ended"]);
  });

  test("2026-07-28 over HTTP: a connection that breaks means cancel, as the specification demands", async () => {
    const { client: connect } = await open({}, { in: "http" });
    const [client, later] = [await connect(as(y26)), await connect(as(y26))];
    const work = gate();
    const { drop } = client.startCall(gated, work.input);
    await work.seen("started");
    drop();
    await work.seen("stopped");
    expect((await later.call("task_list")).structuredContent?.data).toEqual({ jobs: [] });
  });

  test("stdio: a result that came before its client left is there for the next server", async () => {
    const { server, next } = await openTwice();
    const client = await server.client(as(nov25));
    const work = gate();
    const { job_id } = handleOf(await server.wait(client.call(gated, work.input)));
    work.open();
    await work.seen("ended");
    await waitFor(
      async () => (await client.call("task_status", { job_id })).structuredContent?.data.status === "completed",
    );
    await server.close();
    const later = await (await next()).client(as(nov25));
    expect((await resultFor(later, job_id)).structuredContent?.data).toEqual({ passed: work.input.file });
    expect(work.starts()).toBe(1);
  });

  test("stdio: a safe command that ran when its client left is finished by the next server", async () => {
    const { server, next } = await openTwice();
    const client = await server.client(as(nov25));
    const work = gate();
    client.startCall("work_reading", work.input);
    await work.seen("started");
    await server.close();
    const later = await (await next()).client(as(nov25));
    const [job] = await waitForJobs(later, 1);
    work.open();
    expect((await resultFor(later, job as string)).structuredContent?.data).toEqual({ passed: work.input.file });
  });

  test.each(["stdio", "http"] as const)(
    "opencode's notifications/cancelled, 70 ms after the handle, does not touch the job (%s)",
    async (over) => {
      const {
        client: connect,
        wait,
        clock,
      } = await open({
        hosts: { opencode: { limitSeconds: 0.8, isExtended: false } },
      });
      const client = await connect({ revision: nov25, name: "opencode" }, { over });
      const work = gate();
      const { id, answer } = client.startCall(gated, work.input, { meta: { progressToken: 1 } });
      const { job_id } = handleOf((await wait(answer)).result as Result);
      await pass(clock, 70);
      client.cancel(id);
      // Whatever comes after it has been dealt with after it.
      expect((await client.call("task_status", { job_id })).structuredContent?.data).toMatchObject({
        status: "working",
      });
      work.open();
      expect((await resultFor(client, job_id)).structuredContent).toMatchObject({
        success: true,
        data: { passed: work.input.file },
      });
      expect(work.lines()).toEqual(["started", "ended"]);
    },
  );

  test.each(["stdio", "http"] as const)(
    "notifications/cancelled before there is a handle stops the work (%s)",
    async (over) => {
      const client = await (await open()).client(as(nov25), { over });
      const work = gate();
      const { id } = client.startCall(gated, work.input);
      await work.seen("started");
      client.cancel(id);
      await work.seen("stopped");
      expect((await client.call("task_list")).structuredContent?.data).toEqual({ jobs: [] });
    },
  );
});

/** A server, and the next on the same store after it was closed. */
async function openTwice() {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const options = { in: "memory", commands: folders, config: hasty, clock, store } as const;
  const server = await openServer(options);
  const wait = <T>(promise: Promise<T>) => settled(clock, promise);
  return { server: { ...server, wait }, next: () => openServer({ ...options, home: server.home, cwd: server.cwd }) };
}

/** Asks for a job's result until it is there. */
async function resultFor(client: WireClient, job_id: string): Promise<Result> {
  for (let input: object = { job_id }; ; ) {
    const result = await client.call("task_result", input);
    if (kindOf(result) !== "handle") return result;
    input = handleOf(result).next_action.arguments;
  }
}

async function waitForJobs(client: WireClient, count: number): Promise<string[]> {
  return await waitFor(async () => {
    const { structuredContent } = await client.call("task_list");
    const jobs = (structuredContent?.data.jobs ?? []) as { job_id: string }[];
    return jobs.length >= count && jobs.map(({ job_id }) => job_id);
  });
}

describe("never twice", () => {
  const joined = /^Joined the run started \d+ s ago; _meta\["meanwhile\/new"\]: true starts another\.$/;
  const textsOf = (result: Result) =>
    result.structuredContent?.messages.filter(({ type }) => type !== "success").map(({ text }) => text);

  test("the same write while it runs joins it, also from another connection, and is told so", async () => {
    const { client: connect, wait } = await open(hasty);
    const [client, other] = [await connect(as(nov25)), await connect(as(y26, takesTasks))];
    const work = gate();
    const first = await wait(client.call(gated, work.input));
    const again = await wait(client.call(gated, work.input));
    expect(handleOf(again).job_id).toBe(handleOf(first).job_id);
    expect(textsOf(first)).toHaveLength(1);
    expect(textsOf(again)).toEqual([expect.any(String), expect.stringMatching(joined)]);
    expect(again.content?.[0]?.text).toContain("Joined the run started");
    const asTask = await wait(other.call(gated, work.input));
    expect({ id: asTask.taskId, kind: kindOf(asTask) }).toEqual({ id: handleOf(first).job_id, kind: "task of 2026" });
    const waiting = client.call(gated, work.input);
    // The call has to reach the server before the run ends.
    await turns();
    work.open();
    const result = await waiting;
    expect(result.structuredContent?.data).toEqual({ passed: work.input.file });
    expect(textsOf(result)).toEqual([expect.stringMatching(joined)]);
    expect(work.lines()).toEqual(["started", "ended"]);
    await client.call(gated, work.input);
    expect(work.starts(), "once it has ended, it is a new call").toBe(2);
  });

  test('_meta["meanwhile/new"]: true starts another, a command that only reads always does, and so do callers who cannot be told apart', async () => {
    const { client: connect, wait } = await open(hasty, { in: "http" });
    const [client, anonymous] = [await connect(as(nov25)), await connect(as(nov25), { isAnonymous: true })];
    const rows: readonly (readonly [WireClient, string, CallOptions])[] = [
      [client, gated, { meta: { "meanwhile/new": true } }],
      [client, "work_reading", {}],
      [anonymous, gated, {}],
    ];
    for (const [caller, tool, options] of rows) {
      const work = gate();
      const first = await wait(caller.call(tool, work.input));
      const second = await wait(caller.call(tool, work.input, options));
      expect(handleOf(second).job_id).not.toBe(handleOf(first).job_id);
      expect(textsOf(second)).toHaveLength(1);
      expect(work.starts()).toBe(2);
    }
  });

  test('_meta["meanwhile/idempotencyKey"] gives the first result again, and its task while it runs', async () => {
    const { client: connect, wait } = await open(hasty);
    const client = await connect(as(nov25));
    const keyed = (key: string): CallOptions => ({ meta: { "meanwhile/idempotencyKey": key } });
    const idOf = ({ _meta }: Result) => (_meta as { "meanwhile/call": { taskId?: string } })["meanwhile/call"].taskId;
    const first = await client.call(quick, { text: "a" }, keyed("k"));
    const number = Number(first.structuredContent?.data.number);
    const second = await client.call(quick, { text: "a" }, keyed("k"));
    expect(second.structuredContent?.data).toEqual({ text: "a", number });
    expect([idOf(first), idOf(second)]).toEqual([expect.any(String), idOf(first)]);
    expect((await client.call(quick, { text: "a" }, keyed("other"))).structuredContent?.data).toEqual({
      text: "a",
      number: number + 1,
    });
    expect((await client.call(quick, { text: "a" })).structuredContent?.data).toEqual({
      text: "a",
      number: number + 2,
    });
    const work = gate();
    const [running, repeated] = [
      await wait(client.call("work_reading", work.input, keyed("w"))),
      await wait(client.call("work_reading", work.input, keyed("w"))),
    ];
    expect(handleOf(repeated).job_id).toBe(handleOf(running).job_id);
    work.open();
    expect((await resultFor(client, handleOf(running).job_id)).structuredContent?.data).toEqual({
      passed: work.input.file,
    });
    expect(work.starts()).toBe(1);
  });

  test('_meta["meanwhile/idempotencyKey"] is for one call: another tool, or other arguments, are not given its result', async () => {
    const client = await (await open()).client(as(nov25));
    const keyed: CallOptions = { meta: { "meanwhile/idempotencyKey": "k" } };
    const { structuredContent: first } = await client.call(quick, { text: "a" }, keyed);
    for (const [tool, input] of [
      [quick, { text: "b" }],
      ["work_sync", { files: 1 }],
    ] as const) {
      const { structuredContent: other } = await client.call(tool, input, keyed);
      expect(other?.data, `${tool} ${JSON.stringify(input)}`).not.toEqual(first?.data);
    }
  });
});
