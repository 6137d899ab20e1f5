import path from "node:path";
import { expect, test } from "vitest";
import { callerKey } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { localUserIn } from "../../src/runtime/home-id.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { MemoryStore } from "../../src/store/memory-store.ts";
import { openStore, type Store } from "../../src/store/open.ts";
import type { NewTask } from "../../src/task/task.ts";
import { runCli, startCli } from "../helpers/cli.ts";
import { FakeClock, pass, settled } from "../helpers/fake-clock.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { type LocalOptions, localKey, openServer } from "../helpers/server.ts";
import { handleOf } from "../helpers/wire.ts";
import { newTask } from "../store-suite/cases/bench.ts";

/** Tasks that no worker may claim, because a variable that they depend on has another value now. */

const dayMs = 86_400_000;
const sentence = (taskId: string) =>
  `Waits for a worker with the \`STRIPE_KEY\` of its start. \`meanwhile tasks retry ${taskId}\` runs it with the present values, \`tasks cancel\` ends it.`;

/** Puts a safe task on record whose worker was killed while it ran. */
async function createCrashed(store: Store, facts: Partial<NewTask>): Promise<string> {
  const fresh = newTask(1, { caller: localKey, input: {}, ttlMs: dayMs, ...facts });
  const claim = { worker: "killed", leaseMs: 30_000 };
  await store.create(fresh, { joinsEqual: false, maxLive: 100, claim });
  await store.interrupt("killed");
  return fresh.taskId;
}

test("a task that crashed and whose variable has another value says so to every client, and fails after its ttl", async () => {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const invoice = defineCommand({ summary: "Prints", effects: "read", run: () => ({ printed: 1 }) });
  const server = await openServer({
    ...{ in: "memory", clock, store, commands: { invoice } },
    settings: { environment: { STRIPE_KEY: "mark of the new value" } },
  });
  const environment = { STRIPE_KEY: "mark of the old value" };
  const taskId = await createCrashed(store, { command: "invoice", project: server.settings.project, environment });
  await pass(clock, 5_000);
  const plain = await server.client("plain");
  const readResult = async () => {
    const given = await settled(clock, plain.call("task_result", { job_id: taskId, wait_seconds: 0.1 }));
    return { isError: given.isError ?? false, text: JSON.stringify(given.content) };
  };
  expect(await readResult()).toEqual({
    isError: false,
    text: expect.stringContaining(sentence(taskId)),
  });
  for (const dialect of ["tasks-2025", "tasks-2026"] as const) {
    const client = await server.client(dialect);
    const { result } = await settled(clock, client.request("tasks/get", { taskId }));
    expect(result, dialect).toMatchObject({ status: "working", statusMessage: sentence(taskId) });
  }
  await pass(clock, dayMs - 60_000);
  expect((await readResult()).isError).toBe(false);
  await pass(clock, 120_000);
  expect(await readResult()).toEqual({
    isError: true,
    text: expect.stringContaining("Waits for a worker with the `STRIPE_KEY` of its start. Given up after 24 h; a new"),
  });
});

test("`task_status` and `task_result` tell a model that such a task does not go on by itself, and do not wait", async () => {
  const clock = new FakeClock();
  const store = new MemoryStore(clock);
  const invoice = defineCommand({ summary: "Prints", effects: "read", run: () => ({ printed: 1 }) });
  const server = await openServer({
    ...{ in: "memory", clock, store, commands: { invoice } },
    settings: { environment: { STRIPE_KEY: "mark of the new value" } },
  });
  const environment = { STRIPE_KEY: "mark of the old value" };
  const { project } = server.settings;
  const facts = { command: "invoice", project, environment, estimateMs: 90_000, isProven: true };
  const taskId = await createCrashed(store, facts);
  const client = await server.client("plain");
  await settled(clock, client.call("task_list", {}));
  await pass(clock, 5_000);
  for (const tool of ["task_status", "task_result"]) {
    const askedAt = clock.now();
    const { structuredContent, content } = await settled(clock, client.call(tool, { job_id: taskId }));
    expect(clock.now() - askedAt, tool).toBeLessThan(1_000);
    expect(content?.[0]?.text.split("\n")[0], tool).toBe(
      `invoice is queued. ${sentence(taskId)} It does not go on by itself: tell the user. Then get its result with task_result and the arguments of next_action.`,
    );
    expect(structuredContent, tool).toMatchObject({
      data: { progress: {}, next_action: { tool: "task_result", arguments: { job_id: taskId, wait_seconds: 1 } } },
    });
    expect(JSON.stringify(structuredContent), tool).not.toContain("seconds_left");
  }
});

test.each([
  ["without a key", {}],
  ["with its idempotency key", { "meanwhile/idempotencyKey": "once" }],
])(
  "a call equal to a task that no worker could start runs, %s, although it may not run twice",
  async (_title, meta) => {
    const clock = new FakeClock();
    const store = new MemoryStore(clock);
    let runs = 0;
    const pay = defineCommand({
      summary: "Pays",
      run: () => {
        runs += 1;
        return { paid: runs };
      },
    });
    const openWith = (key: string, more: Partial<LocalOptions> & { worksHere: boolean }) => {
      const { worksHere, ...options } = more;
      const settings = { environment: { STRIPE_KEY: key }, worksHere };
      return openServer({ in: "memory", clock, store, commands: { pay }, settings, ...options });
    };
    const before = await openWith("old", { worksHere: false });
    const first = await before.client("plain");
    expect(handleOf(await settled(clock, first.call("pay", {}, { meta }), 100)).status).toBe("queued");
    const after = await openWith("new", { worksHere: true, home: before.home, cwd: before.cwd });
    await pass(clock, 5_000);
    clock.advance(dayMs);
    await pass(clock, 60_000);
    expect(runs).toBe(0);
    const second = await after.client("plain");
    const { structuredContent } = await settled(clock, second.call("pay", {}, { meta }));
    expect(structuredContent).toMatchObject({
      data: { paid: 1 },
      messages: [
        { type: "success" },
        { text: expect.stringMatching(/^This is a new run: .* was never started, because no worker had /) },
      ],
    });
  },
);

test("`tasks retry` runs a task with the value of its variable in this terminal, and nothing else does", async () => {
  const [home, cwd] = [temporaryFolder(), temporaryFolder()];
  writeFiles(cwd, {
    "commands/invoice.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Prints", effects: "read", run: () => ({ key: process.env.STRIPE_KEY ?? null }) });`,
  });
  const envOf = (key: string) => ({ MEANWHILE_HOME: home, STRIPE_KEY: key });
  const type = (line: string, key = "new") => runCli(["--no-bundled", ...line.split(" ")], { cwd, env: envOf(key) });
  await type("tools");
  const env = { ...process.env, ...envOf("old") };
  const settings = await loadSettings({ cwd, env, flags: { bundled: false } });
  const { environment, project } = settings;
  const store = await openStore(path.join(home, "tasks.db"));
  const make = async (taskId: string, facts: Partial<NewTask> = {}) => {
    const fresh = newTask(1, {
      taskId,
      caller: callerKey(localUserIn(settings)),
      project,
      command: "invoice",
      input: {},
      environment,
      ...facts,
    });
    await store.create(fresh, { joinsEqual: false, maxLive: 100 });
    return taskId;
  };
  const rotated = await make("0197aaaa-0000-7000-8000-000000000001", { ageMs: 5_000 });
  const fresh = await make("0197bbbb-0000-7000-8000-000000000002", { environment: undefined });
  await store.close();
  expect((await type("tasks list")).stdout).toContain("Waits for a worker with the `STRIPE_KEY` of its start.");
  expect(JSON.parse((await type(`tasks show ${rotated} --json`)).stdout)).toMatchObject({
    status: "queued",
    statusMessage: sentence(rotated),
  });
  expect(JSON.parse((await type(`tasks show ${fresh} --json`)).stdout)).not.toHaveProperty("statusMessage");
  expect(await type(`tasks result ${rotated}`)).toMatchObject({
    code: 1,
    stderr: `✗ It has not ended yet (queued). ${sentence(rotated)}\n`,
  });
  const run = startCli(["--no-bundled", "tasks", "retry", "0197aaaa"], { cwd, env: envOf("new") });
  expect(await run.exited).toBe(0);
  expect(run.stderr()).toBe("✓ Queued invoice again with the `STRIPE_KEY` of this terminal\n");
  await run.background();
  expect(JSON.parse((await type(`tasks result ${rotated} --json`)).stdout)).toEqual({ key: "new" });
  expect(await type(`tasks retry ${rotated}`)).toMatchObject({
    code: 1,
    stderr: "✗ It has ended already (completed); run invoice again.\n",
  });
});

test("`tasks retry` where the variable is not set leaves the value to the next worker of the project", async () => {
  const [home, cwd] = [temporaryFolder(), temporaryFolder()];
  writeFiles(cwd, { "commands/invoice.ts": "export default process.env.STRIPE_KEY;" });
  const env = { MEANWHILE_HOME: home };
  const settings = await loadSettings({
    ...{ cwd, flags: { bundled: false } },
    env: { ...process.env, ...env, STRIPE_KEY: "old" },
  });
  const store = await openStore(path.join(home, "tasks.db"));
  const { project, environment } = settings;
  const taskId = await createCrashed(store, { caller: callerKey(localUserIn(settings)), project, environment });
  const run = startCli(["--no-bundled", "tasks", "retry", taskId], { cwd, env });
  expect(await run.exited).toBe(0);
  expect(run.stderr()).toBe(
    "✓ Queued text_count again\n! `STRIPE_KEY` is not set here: the next worker of its project runs it, with its own value.\n",
  );
  const claim = { project, worker: "w1", leaseMs: 1_000, environment: { STRIPE_KEY: "whatever" } };
  expect((await store.claim(claim))?.taskId).toBe(taskId);
  await store.close();
  expect((await runCli(["--no-bundled", "tasks", "retry", taskId], { cwd, env })).stderr).toBe(
    "✗ It is running, so there is nothing to retry.\n",
  );
});
