import path from "node:path";
import { describe, expect, test } from "vitest";
import { FakeClock } from "../helpers/fake-clock.ts";
import { gate } from "../helpers/project.ts";
import { timedTest } from "../helpers/rules.ts";
import { type LocalOptions, openServer } from "../helpers/server.ts";
import { type Fields, handleOf, type Json, type Result, takesTasks, type WireClient } from "../helpers/wire.ts";

/** `task_result` for clients that are listed no other follow-up tool. */

const commands = ["deferral", "questions"].map((name) =>
  path.resolve(import.meta.dirname, `../fixtures/${name}/commands`),
);
const textOf = (result: Result) => result.content?.[0]?.text ?? "";
const dataOf = (result: Result) => result.structuredContent?.data as Json;
const jobsIn = (result: Result) => (dataOf(result).jobs as Fields[]).map(({ job_id }) => job_id);

async function open(options: Partial<LocalOptions> = {}) {
  const clock = new FakeClock(Date.now());
  const server = await openServer({ in: "http", commands, clock, ...options });
  const connect = (more: object = {}) => server.client("tasks-2026", { over: "stdio", ...more });
  return { clock, server, connect };
}

/** Makes a task at once, and returns its ID. */
async function begin(client: WireClient, tool: string, input: object): Promise<string> {
  const { taskId } = await client.call(tool, input, { meta: { "meanwhile/task": {} } });
  return taskId as string;
}

test(
  "waits for a result, and says how far the job is",
  timedTest(open, async ({ connect }) => {
    const client = await connect();
    const work = gate();
    const job_id = await begin(client, "work_gated", work.input);
    const handle = handleOf(await client.call("task_result", { job_id, wait_seconds: 0 }));
    expect(handle).toMatchObject({ job_id, status: "working", next_action: { tool: "task_result" } });
    work.open();
    expect((await client.call("task_result", handle.next_action.arguments)).structuredContent?.success).toBe(true);
  }),
);

test(
  "cancels a job",
  timedTest(open, async ({ connect }) => {
    const client = await connect();
    const job_id = await begin(client, "work_gated", gate().input);
    expect(textOf(await client.call("task_result", { job_id, cancel: true }))).toContain("work_gated was cancelled.");
    const { result } = await client.request("tasks/get", { taskId: job_id });
    expect(result?.status).toBe("cancelled");
  }),
);

test(
  "answers a job's question as its handle says, and waits for the result",
  timedTest(open, async ({ connect }) => {
    const client = await connect();
    const { input, lines } = gate();
    const job_id = await begin(client, "ask_name", input);
    const asked = await client.call("task_result", { job_id });
    expect(handleOf(asked).next_action).toEqual({
      tool: "task_result",
      arguments: { job_id, answer: { q1: { name: "…" } } },
    });
    expect(textOf(asked)).toContain("Answer with task_result, filling in the arguments of next_action.");
    const wrong = await client.call("task_result", { job_id, answer: { q2: { name: "Ada" } } });
    expect([wrong.isError, textOf(wrong)]).toEqual([true, "`answer` must hold one of q1."]);
    const misshaped = await client.call("task_result", { job_id, answer: { name: "Ada" }, cancel: "yes" });
    expect(misshaped.isError).toBe(true);
    expect(textOf(misshaped)).not.toContain("Unknown argument");
    const done = await client.call("task_result", { job_id, answer: { q1: { name: "Ada" } } });
    expect(dataOf(done)).toEqual({ greeting: "Hello, Ada!" });
    expect(lines()).toEqual(["started", "answered Ada"]);
  }),
);

test(
  "never answers a question for a confirmation",
  timedTest(open, async ({ connect }) => {
    const client = await connect();
    const { input, lines } = gate();
    const job_id = await begin(client, "files_erase", input);
    expect(handleOf(await client.call("task_result", { job_id, wait_seconds: 1 }))).toMatchObject({
      questions: [{ key: "q1", only_a_person_may_answer: true }],
      next_action: { tool: "task_result", arguments: { job_id, seen: expect.any(Number) } },
    });
    const refused = await client.call("task_result", { job_id, answer: { q1: { confirm: true } } });
    expect([refused.isError, textOf(refused)]).toEqual([
      true,
      `Only a person may answer «Erase ${input.file}?»; they can with: meanwhile tasks answer ${job_id}`,
    ]);
    expect(lines()).toEqual([]);
  }),
);

describe("without job_id", () => {
  test(
    "names the caller's five newest tasks",
    timedTest(open, async ({ clock, connect }) => {
      const client = await connect();
      expect(textOf(await client.call("task_result"))).toContain("There are no jobs.");
      const begun: string[] = [];
      for (let n = 0; n < 6; n++) {
        begun.unshift(await begin(client, "work_gated", gate().input));
        clock.advance(10);
      }
      const named = await client.call("task_result", { wait_seconds: 1 });
      expect(jobsIn(named)).toEqual(begun.slice(0, 5));
      expect(textOf(named)).toMatch(/^5 jobs, newest first\. Get a result with its job_id\.\n/);
      expect(dataOf(named)).not.toHaveProperty("next_cursor");
    }),
  );

  test(
    "is refused for an anonymous caller, and with `cancel` or `answer`",
    timedTest(open, async ({ connect }) => {
      const refusals: readonly (readonly [WireClient, object, string])[] = [
        [
          await connect({ over: "http", isAnonymous: true }),
          {},
          "`job_id` is missing; it is in the answer to the first call.",
        ],
        [await connect(), { cancel: true }, "`job_id` is missing; it is in the answer to the first call."],
        [await connect(), { answer: {} }, "`job_id` is missing; it is in the answer to the first call."],
        [
          await connect(),
          { job_id: "x", cancel: true, answer: {} },
          "`cancel` and `answer` exclude each other; leave one out.",
        ],
      ];
      for (const [client, input, sentence] of refusals) {
        const refused = await client.call("task_result", input);
        expect([refused.isError, textOf(refused)]).toEqual([true, sentence]);
      }
    }),
  );
});

test(
  "of another caller's job it says what it says of none",
  timedTest(open, async ({ connect }) => {
    const job_id = await begin(await connect(), "work_gated", gate().input);
    const anonymous = await connect({ over: "http", isAnonymous: true, capabilities: takesTasks });
    for (const input of [{ job_id }, { job_id, cancel: true }, { job_id, answer: { q1: { name: "x" } } }])
      expect(textOf(await anonymous.call("task_result", input))).toBe("There is no such task; it may have expired.");
  }),
);
