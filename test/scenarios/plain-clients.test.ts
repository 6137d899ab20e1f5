import path from "node:path";
import { describe, expect, test } from "vitest";
import { sleep } from "../../src/clock.ts";
import { runCli } from "../helpers/cli.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { gate, kindOf } from "../helpers/project.ts";
import { timedTest } from "../helpers/rules.ts";
import { type ClientOptions, type LocalOptions, openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { handleOf, type Json, type Result, type WireClient, type WireOptions } from "../helpers/wire.ts";

const commands = ["deferral", "questions"].map((name) =>
  path.resolve(import.meta.dirname, `../fixtures/${name}/commands`),
);
type Connect = (options: WireOptions & ClientOptions) => Promise<WireClient>;

/**
 * A server on a fake clock, and what a test does with it. The clock starts now: the terminal, which has the system's
 * clock, would count older tasks as expired.
 */
async function open(config: object = {}, options: Partial<LocalOptions> = {}) {
  const clock = new FakeClock(Date.now());
  const server = await openServer({ in: "memory", commands, config, clock, ...options });
  const connect: Connect = (wire) => server.client(wire, wire);
  const http: Connect = (wire) => server.client(wire, { ...wire, over: "http", hasNoStream: true });
  return {
    ...{ clock, server, http },
    stdio: connect,
    /** `meanwhile …` on the server's home. */
    terminal: (...words: string[]) => runCli(words, { env: { MEANWHILE_HOME: server.home } }),
  };
}

/** Deferred after 0.3 s. */
const hasty = { hosts: { "my-host": { limitSeconds: 0.4 } } };
const plain: WireOptions = { revision: "2025-06-18", name: "my-host" };
const nov25: WireOptions = { ...plain, revision: "2025-11-25" };
const modern: WireOptions = { ...plain, revision: "2026-07-28" };
const followUps = ["task_result", "task_status", "task_cancel", "task_list", "task_answer"];
const textOf = (result: Result) => result.content?.[0]?.text ?? "";
const dataOf = (result: Result) => result.structuredContent?.data as Json;

describe("a handle", () => {
  test(
    "makes sense as text alone, and says the one thing to do next",
    timedTest(
      () => open(hasty, { store: "sqlite" }),
      async ({ stdio, terminal }) => {
        const client = await stdio(plain);
        const work = gate();
        const result = await client.call("work_gated", work.input);
        const { job_id } = handleOf(result);
        const sentence =
          "work_gated is still running. It goes on by itself. Get its result with task_result and the arguments of next_action.";
        expect(result.structuredContent).toEqual({
          success: true,
          data: {
            job_id,
            status: "working",
            progress: {},
            next_action: { tool: "task_result", arguments: { job_id, wait_seconds: 1, seen: expect.any(Number) } },
          },
          messages: [{ type: "info", text: sentence, timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) }],
        });
        expect(result.isError ?? false).toBe(false);
        const { status, next_action } = handleOf(result);
        expect(textOf(result)).toBe(`${sentence}\n${JSON.stringify({ job_id, status, next_action })}`);
        const { stdout } = await terminal("tasks", "show", job_id, "--json");
        expect(JSON.parse(stdout)).toMatchObject({ status: "working" });
      },
    ),
  );

  test(
    "fits the tool's own output schema",
    timedTest(
      () => open(hasty),
      async ({ stdio }) => {
        const client = await stdio(plain);
        const { tools } = (await client.request("tools/list")).result as unknown as {
          tools: { name: string; outputSchema?: object }[];
        };
        const { default: Ajv } = await import("ajv/dist/2020.js");
        const validate = new Ajv.default({ strict: false }).compile(
          tools.find(({ name }) => name === "work_gated")?.outputSchema ?? false,
        );
        const work = gate();
        const handle = await client.call("work_gated", work.input);
        expect(validate(handle.structuredContent), JSON.stringify(validate.errors)).toBe(true);
        work.open();
        const { job_id } = handleOf(handle);
        const result = await waitFor(async () => {
          const answer = await client.call("task_result", { job_id });
          return kindOf(answer) === "answer" && answer;
        });
        expect(validate(result.structuredContent), JSON.stringify(validate.errors)).toBe(true);
        expect(validate({ ...result.structuredContent, data: { passed: 5 } })).toBe(false);
      },
    ),
  );
});

describe("task_result", () => {
  test(
    "waits no longer than the host would, whatever it is asked; its arguments differ every time",
    timedTest(
      () => open({ hosts: { ...hasty.hosts, patient: { limitSeconds: 3 } } }),
      async ({ clock, stdio }) => {
        const [client, patient] = await Promise.all([stdio(plain), stdio({ ...plain, name: "patient" })]);
        const { job_id, next_action } = handleOf(await client.call("work_gated", gate().input));
        await patient.call("task_status", { job_id });
        const waits = [{ job_id, wait_seconds: 3600 }, { job_id }].map(async (input) => {
          const startedAt = clock.now();
          expect(kindOf(await patient.call("task_result", input))).toBe("handle");
          return clock.now() - startedAt;
        });
        for (const waitedMs of await Promise.all(waits)) {
          expect(waitedMs).toBeGreaterThan(2_200);
          // How long exactly is held on a clock that stands still, in test/mcp/command-tools.test.ts.
          expect(waitedMs, "not the hour that was asked for").toBeLessThan(30_000);
        }
        const asked = [JSON.stringify(next_action.arguments)];
        for (let times = 0; times < 5; times++) {
          const result = await client.call("task_result", { job_id, wait_seconds: 0.15 });
          asked.push(JSON.stringify(handleOf(result).next_action.arguments));
        }
        expect(new Set(asked).size).toBe(asked.length);
      },
    ),
  );

  test(
    "answers at once when the result is there, and as soon as it comes",
    timedTest(
      () => open(hasty),
      async ({ clock, stdio }) => {
        const [client, patient] = [await stdio(plain), await stdio({ ...plain, name: "nobody-knows-me" })];
        const work = gate();
        const { job_id } = handleOf(await client.call("work_gated", work.input));
        expect(kindOf(await patient.call("task_result", { job_id, wait_seconds: 0 }))).toBe("handle");
        const startedAt = clock.now();
        const waiting = patient.call("task_result", { job_id, wait_seconds: 30 });
        work.open();
        const result = await waiting;
        expect(clock.now() - startedAt).toBeLessThan(25_000);
        expect(result).toMatchObject({
          structuredContent: { success: true, data: { passed: work.input.file } },
          _meta: { "meanwhile/call": { taskId: job_id } },
        });
        expect(JSON.parse(textOf(result))).toEqual(result.structuredContent);
        for (const wait_seconds of [0, 30])
          expect((await patient.call("task_result", { job_id, wait_seconds })).structuredContent).toEqual(
            result.structuredContent,
          );
      },
    ),
  );

  test("carries the job's progress on its own token", async () => {
    // The command sleeps, and its progress is limited by the same clock.
    const client = await (await openServer({ in: "memory", commands })).client("jobs");
    const job_id = dataOf(await client.call("work_sync")).job_id as string;
    await client.call("task_result", { job_id }, { meta: { progressToken: "mine" } });
    const heard = client.received.filter(
      ({ method, params }) => method === "notifications/progress" && params?.progressToken === "mine",
    );
    expect(heard.map(({ params }) => params?.message)).toContain("Processing 300 of 500 files...");
  });
});

describe("a job that asks", () => {
  test(
    "task_status shows the question, task_answer answers it, and the same run goes on",
    timedTest(open, async ({ stdio }) => {
      const client = await stdio(plain);
      const { input, lines } = gate();
      const first = await client.call("ask_name", input);
      const { job_id } = handleOf(first);
      const question = {
        key: "q1",
        message: "What is your name?",
        schema: { type: "object", properties: { name: { type: "string", minLength: 1 } } },
      };
      const answer = { tool: "task_answer", arguments: { job_id, answers: { q1: { name: "…" } } } };
      for (const result of [
        first,
        await client.call("task_status", { job_id }),
        await client.call("task_result", { job_id }),
      ]) {
        expect(dataOf(result)).toMatchObject({ status: "input_required", questions: [question], next_action: answer });
        expect(textOf(result)).toContain(
          "ask_name asks «What is your name?». Answer with task_answer, filling in the arguments of next_action.",
        );
      }
      const refusals: readonly (readonly [object, string])[] = [
        [{ q1: { name: "" } }, "`name`"],
        [{ q1: {} }, "`name`: is required"],
        [{ q2: { name: "Ada" } }, "`answers` must hold one of q1."],
        [{}, "`answers` must hold one of q1."],
      ];
      for (const [answers, words] of refusals) {
        const refused = await client.call("task_answer", { job_id, answers });
        expect(refused.isError).toBe(true);
        expect(textOf(refused)).toContain(words);
      }
      await client.call("task_answer", { job_id, answers: { q1: { name: "Ada" } } });
      expect(dataOf(await client.call("task_result", { job_id }))).toEqual({ greeting: "Hello, Ada!" });
      expect(lines()).toEqual(["started", "answered Ada"]);
      expect(textOf(await client.call("task_answer", { job_id, answers: { q1: { name: "Bob" } } }))).toBe(
        "This job asks nothing right now.",
      );
    }),
  );

  test(
    "for a confirmation is answered by a person in a terminal, never by task_answer",
    timedTest(
      () => open({}, { store: "sqlite" }),
      async ({ stdio, terminal }) => {
        const client = await stdio(plain);
        const { input, lines } = gate();
        const first = await client.call("files_erase", input);
        const { job_id, questions, next_action } = handleOf(first);
        expect(questions).toMatchObject([
          { key: "q1", message: `Erase ${input.file}?`, only_a_person_may_answer: true },
        ]);
        expect(next_action.tool).toBe("task_result");
        expect(textOf(first)).toContain(`Only a person may answer that: meanwhile tasks answer ${job_id}.`);
        const refused = await client.call("task_answer", { job_id, answers: { q1: { confirm: true } } });
        expect(refused.isError).toBe(true);
        expect(textOf(refused)).toBe(
          `Only a person may answer «Erase ${input.file}?»; they can with: meanwhile tasks answer ${job_id}`,
        );
        expect(lines()).toEqual([]);
        expect(await terminal("tasks", "answer", job_id, "confirm=true")).toMatchObject({
          code: 0,
          stderr: `✓ Answered «Erase ${input.file}?»\n`,
        });
        expect((await client.call("task_result", { job_id })).structuredContent).toMatchObject({ success: true });
        expect(lines()).toEqual(["erased"]);
      },
    ),
  );

  test(
    "for a confirmation and gets a no does nothing",
    timedTest(
      () => open({}, { store: "sqlite" }),
      async ({ stdio, terminal }) => {
        const client = await stdio(plain);
        const { input, lines } = gate();
        const { job_id } = handleOf(await client.call("files_erase", input));
        await terminal("tasks", "answer", job_id, "--decline");
        const result = await client.call("task_result", { job_id });
        expect(result).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
        expect(textOf(result)).toContain("was declined");
        expect(lines()).toEqual([]);
      },
    ),
  );
});

test(
  "task_cancel stops the work, once",
  timedTest(
    () => open(hasty),
    async ({ stdio }) => {
      const client = await stdio(plain);
      const work = gate();
      const { job_id } = handleOf(await client.call("work_gated", work.input));
      const cancelled = await client.call("task_cancel", { job_id });
      expect(dataOf(cancelled)).toEqual({ job_id, status: "cancelled" });
      expect(textOf(cancelled)).toContain("work_gated was cancelled.");
      await work.seen("stopped");
      const again = await client.call("task_cancel", { job_id });
      expect(textOf(again)).toContain("work_gated had ended already (cancelled).");
      const result = await client.call("task_result", { job_id });
      expect(result).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
      expect(textOf(result)).toContain("Cancelled by the caller.");
      expect(work.lines()).toEqual(["started", "stopped"]);
    },
  ),
);

test(
  "a job whose server ended in the middle says so",
  timedTest(
    () => open(hasty, { store: "sqlite" }),
    async ({ clock, server, stdio }) => {
      const client = await stdio(plain);
      const work = gate();
      const { job_id } = handleOf(await client.call("work_gated", work.input));
      await server.close();
      const { home, cwd } = server;
      const next = await openServer({ in: "memory", commands, clock, store: "sqlite", home, cwd });
      const result = await (await next.client(plain)).call("task_result", { job_id });
      expect(result).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
      expect(textOf(result)).toContain("Interrupted; outcome unknown.");
    },
  ),
);

test(
  "task_list shows a caller's own jobs, newest first, page by page; who cannot be told apart has none",
  timedTest(
    () => open(hasty, { store: "sqlite" }),
    async ({ http }) => {
      const [client, stranger] = [await http(modern), await http({ ...modern, isAnonymous: true })];
      const [first, second] = [gate(), gate()];
      const ids: string[] = [];
      for (const work of [first, second]) ids.push(handleOf(await client.call("work_gated", work.input)).job_id);
      first.open();
      // Each call waits no longer than its host would, and the run may take longer.
      await waitFor(async () => kindOf(await client.call("task_result", { job_id: ids[0] })) === "answer");
      const all = dataOf(await client.call("task_list"));
      const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
      expect(all).toEqual({
        jobs: [
          { job_id: ids[1], tool: "work_gated", status: "working", message: "", created_at: at },
          { job_id: ids[0], tool: "work_gated", status: "completed", message: "", created_at: at },
        ],
      });
      const page = dataOf(await client.call("task_list", { limit: 1 })) as { jobs: Json[]; next_cursor: string };
      expect(page.jobs.map(({ job_id }) => job_id)).toEqual([ids[1]]);
      const next = dataOf(await client.call("task_list", { limit: 1, cursor: page.next_cursor })) as { jobs: Json[] };
      expect(next.jobs.map(({ job_id }) => job_id)).toEqual([ids[0]]);
      expect((await stranger.startCall("task_list").answer).error).toMatchObject({ code: -32602 });
      expect(await listed(http, { ...modern, isAnonymous: true })).not.toContain("task_list");
    },
  ),
);

async function listed(connect: Connect, options: WireOptions & ClientOptions): Promise<string[]> {
  const client = await connect(options);
  const { tools } = (await client.request("tools/list")).result as unknown as { tools: { name: string }[] };
  return tools.map(({ name }) => name);
}

test(
  "bad arguments are a result that names the field",
  timedTest(open, async ({ stdio }) => {
    const client = await stdio(plain);
    const rows: readonly (readonly [string, object, string])[] = [
      ["task_result", {}, "`job_id` is required"],
      ["task_result", { job_id: 5 }, "`job_id`"],
      ["task_result", { job_id: "" }, "`job_id`"],
      ["task_result", { jobid: "x" }, "`job_id` is required"],
      ["task_result", { job_id: "x", wait_seconds: "soon" }, "`wait_seconds`"],
      ["task_result", { job_id: "x", wait_seconds: -1 }, "`wait_seconds`"],
      ["task_result", { job_id: "x", seen: "yes" }, "`seen`"],
      ["task_status", {}, "`job_id` is required"],
      ["task_cancel", { job_id: null }, "`job_id`"],
      ["task_list", { limit: 0 }, "`limit`"],
      ["task_list", { limit: 1.5 }, "`limit`"],
      ["task_list", { cursor: "x" }, "`cursor`"],
      ["task_answer", { job_id: "x" }, "`answers` is required"],
      ["task_answer", { job_id: "x", answers: "yes" }, "`answers`"],
      ["task_answer", { job_id: "x", answers: { q1: "yes" } }, "`answers.q1`"],
      [
        "task_result",
        { job_id: "11111111-1111-4111-8111-111111111111" },
        "There is no such task; it may have expired.",
      ],
      ["task_status", { job_id: "__proto__" }, "There is no such task; it may have expired."],
      ["task_cancel", { job_id: "x".repeat(10_000) }, "There is no such task; it may have expired."],
      ["task_answer", { job_id: "x", answers: { q1: {} } }, "There is no such task; it may have expired."],
    ];
    for (const [tool, input, words] of rows) {
      const result = await client.call(tool, input);
      const title = `${tool} ${JSON.stringify(input).slice(0, 100)}`;
      expect(result, title).toMatchObject({
        isError: true,
        structuredContent: { success: false, data: {}, messages: [{ type: "error" }] },
      });
      expect(textOf(result), title).toContain(words);
    }
  }),
);

describe("the follow-up tools", () => {
  test.each([nov25, modern])("are listed for everybody, and never as tasks ($revision)", async (options) => {
    const client = await (await open()).stdio(options);
    const { tools } = (await client.request("tools/list")).result as unknown as {
      tools: { name: string; execution?: object; _meta: object; description: string }[];
    };
    const ours = tools.filter(({ name }) => name.startsWith("task_"));
    expect(ours.map(({ name }) => name)).toEqual(followUps);
    for (const tool of ours) {
      expect(tool, tool.name).not.toHaveProperty("execution");
      expect(tool, tool.name).toMatchObject({
        _meta: { "meanwhile/tool": { async: false } },
        description: expect.stringMatching(/\w/),
      });
    }
  });

  test(
    "params.task is refused with −32601: they declare no task support",
    timedTest(open, async ({ stdio }) => {
      const client = await stdio(nov25);
      for (const tool of followUps) {
        const { error } = await client.startCall(tool, { job_id: "x" }, { task: {} }).answer;
        expect(error, tool).toMatchObject({ code: -32601 });
      }
    }),
  );

  test(
    "are no tasks to a client that takes tasks, either",
    timedTest(open, async ({ stdio }) => {
      const client = await stdio({
        ...modern,
        capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
      });
      expect(kindOf(await client.call("task_list"))).toBe("answer");
      expect(dataOf(await client.call("task_list"))).toEqual({ jobs: [] });
    }),
  );

  test(
    "disappear with followUpTools: false; then a call waits for its answer",
    timedTest(
      () => open({ ...hasty, followUpTools: false }),
      async ({ clock, http }) => {
        const client = await http(plain);
        expect((await listed(http, plain)).filter((name) => name.startsWith("task_"))).toEqual([]);
        for (const tool of followUps)
          expect((await client.startCall(tool, { job_id: "x" }).answer).error, tool).toMatchObject({ code: -32602 });
        const work = gate();
        let isAnswered = false;
        const { answer } = client.startCall("work_gated", work.input);
        void answer.then(() => (isAnswered = true));
        await sleep(clock, 1_000);
        expect(isAnswered).toBe(false);
        work.open();
        expect((await answer).result?.structuredContent).toMatchObject({
          success: true,
          data: { passed: work.input.file },
        });
      },
    ),
  );

  test(
    "with toolPrefix they are prefixed, and next_action names them so",
    timedTest(
      () => open({ ...hasty, toolPrefix: "wksm" }),
      async ({ http }) => {
        const client = await http(plain);
        expect((await listed(http, plain)).filter((name) => !name.startsWith("wksm_"))).toEqual([]);
        expect(await listed(http, plain)).toEqual(expect.arrayContaining(followUps.map((name) => `wksm_${name}`)));
        const work = gate();
        const first = await client.call("wksm_work_gated", work.input);
        const { next_action } = handleOf(first);
        expect(next_action.tool).toBe("wksm_task_result");
        expect(textOf(first)).toContain("Get its result with wksm_task_result");
        work.open();
        await work.seen("ended");
        expect(dataOf(await client.call(next_action.tool, next_action.arguments))).toEqual({ passed: work.input.file });
        const asking = await client.call("wksm_ask_name", gate().input);
        expect(handleOf(asking).next_action.tool).toBe("wksm_task_answer");
        expect((await client.startCall("task_result", next_action.arguments).answer).error).toMatchObject({
          code: -32602,
        });
      },
    ),
  );
});
