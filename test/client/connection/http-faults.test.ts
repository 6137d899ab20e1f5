import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type ConnectOptions, connect } from "../../../src/client/index.ts";
import { turns } from "../../helpers/in-memory.ts";
import { answer, discovered, legacy, modern, type Received, refuse, serveLoopback, text } from "../loopback.ts";

async function open(url: string, options?: ConnectOptions) {
  const client = await connect({ url }, options);
  onTestFinished(() => client.close());
  return client;
}

const reset = ({ request }: Received) => void request.socket.resetAndDestroy();
const task = (status: string, more: object = {}) => ({
  resultType: "complete",
  taskId: "t1",
  status,
  ttlMs: 60_000,
  pollIntervalMs: 20,
  ...more,
});
const done = task("completed", { result: text("done") });

describe("what may be repeated is, within a limit", () => {
  test("a connection that is reset while a task is looked at", async () => {
    let looks = 0;
    const { url } = await serveLoopback(
      modern({ "tasks/get": (call) => (++looks < 3 ? reset(call) : answer(call, done)) }),
    );
    const client = await open(url);
    expect(await client.task("t1").result()).toMatchObject({ content: [{ text: "done" }] });
    expect(looks).toBe(3);
  });

  test("a connection that is reset while connecting", async () => {
    let tries = 0;
    const { url } = await serveLoopback((call) => (++tries < 3 ? reset(call) : answer(call, discovered)));
    expect((await open(url)).server).toMatchObject({ name: "by-hand", tasks: "2026-07-28" });
  });

  test("and is not, when the limit is zero", async () => {
    let looks = 0;
    const { url } = await serveLoopback(
      modern({
        "tasks/get": (call) => {
          looks += 1;
          reset(call);
        },
      }),
    );
    const client = await open(url, { retryMs: 0 });
    await expect(client.task("t1").state()).rejects.toThrow(/cannot be reached/);
    expect(looks).toBe(1);
  });

  test("a server that asks for time gets it", async () => {
    const at: number[] = [];
    const { url } = await serveLoopback(
      modern({
        "tasks/get": (call) => {
          at.push(performance.now());
          if (at.length > 1) answer(call, done);
          else call.response.writeHead(503, { "retry-after": "1" }).end();
        },
      }),
    );
    expect((await (await open(url)).task("t1").state()).status).toBe("completed");
    expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThan(950);
  });

  test("a server that asks for more time than there is, is given up", async () => {
    const { url } = await serveLoopback(
      modern({ "tasks/get": ({ response }) => void response.writeHead(503, { "retry-after": "3600" }).end() }),
    );
    await expect((await open(url)).task("t1").state()).rejects.toThrow(/HTTP status 503/);
  });
});

describe("a call", () => {
  const counting = (fail: (call: Received) => void) => {
    const facts = { calls: 0 };
    const methods = {
      "tools/call": (call: Received) => {
        facts.calls += 1;
        if (facts.calls === 1) fail(call);
        else answer(call, text("done"));
      },
    };
    return { facts, methods };
  };

  test("that may have run is not repeated, and that is said", async () => {
    const { facts, methods } = counting(reset);
    const { url } = await serveLoopback(modern(methods));
    await expect((await open(url)).callTool("pay")).rejects.toThrow(
      /cannot be reached.*Whether pay has run is not known/,
    );
    expect(facts.calls).toBe(1);
  });

  test("with a key is repeated", async () => {
    const { facts, methods } = counting(reset);
    const { url } = await serveLoopback(modern(methods));
    expect(await (await open(url)).callTool("pay", {}, { idempotencyKey: "k1" })).toMatchObject({
      content: [{ text: "done" }],
    });
    expect(facts.calls).toBe(2);
  });

  test("that the server had no time for is repeated", async () => {
    const { facts, methods } = counting(({ response }) => void response.writeHead(429).end());
    const { url } = await serveLoopback(modern(methods));
    expect(await (await open(url)).callTool("pay")).toMatchObject({ content: [{ text: "done" }] });
    expect(facts.calls).toBe(2);
  });

  test("that wants arguments as headers gets them", async () => {
    const seen: unknown[] = [];
    const schema = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
    const { url } = await serveLoopback(
      modern({
        "tools/list": (call) => answer(call, { tools: [{ name: "deploy", inputSchema: schema }] }),
        "tools/call": (call) => {
          const region = call.request.headers["mcp-param-region"];
          seen.push(region);
          if (region === undefined) refuse(call, 400, { code: -32020, message: "Header mismatch" });
          else answer(call, text("done"));
        },
      }),
    );
    const client = await open(url);
    await client.callTool("deploy", { region: "eu" });
    await client.callTool("deploy", { region: "us" });
    expect(seen).toEqual([undefined, "eu", "us"]);
  });
});

describe("a call that is taken back while its answer is on the way", () => {
  const abortSoon = () => {
    const stop = new AbortController();
    return { signal: stop.signal, abort: () => stop.abort(new Error("enough")) };
  };

  test("has the task cancelled that the answer names, in 2026-07-28", async () => {
    const cancelled: unknown[] = [];
    const caller = abortSoon();
    const { url } = await serveLoopback(
      modern({
        "tools/call": (call) => {
          caller.abort();
          answer(call, { ...task("working"), resultType: "task" });
        },
        "tasks/cancel": (call) => {
          cancelled.push(call.message.params?.taskId);
          answer(call, { resultType: "complete" });
        },
      }),
    );
    await expect((await open(url)).callTool("slow", {}, { signal: caller.signal })).rejects.toThrow("enough");
    expect(cancelled).toEqual(["t1"]);
  });

  test("has the task cancelled that the answer names, in 2025-11-25", async () => {
    const caller = abortSoon();
    let call: Received | undefined;
    const server = legacy({
      "tools/list": (received) =>
        answer(received, { tools: [{ name: "slow", inputSchema: {}, execution: { taskSupport: "required" } }] }),
      "tools/call": (received) => {
        call = received;
        caller.abort();
      },
      "notifications/cancelled": ({ response }) => {
        response.writeHead(202).end();
        if (call !== undefined) answer(call, { task: { taskId: "t1", status: "working", ttl: null } });
      },
      "tasks/cancel": (received) => answer(received, { taskId: "t1", status: "cancelled", ttl: null }),
    });
    const { url } = await serveLoopback(server.handle);
    await expect((await open(url)).callTool("slow", {}, { signal: caller.signal })).rejects.toThrow("enough");
    expect(server.seen.slice(-2)).toEqual(["notifications/cancelled", "tasks/cancel"]);
  });

  test("has the job stopped that a handle names, though the tools were not known yet", async () => {
    const caller = abortSoon();
    const calls: unknown[] = [];
    const tools = ["task_result", "task_cancel"].map((name) => ({ name, inputSchema: { properties: { job_id: {} } } }));
    const data = { job_id: "j1", status: "working", next_action: { tool: "task_result", arguments: { job_id: "j1" } } };
    const { url } = await serveLoopback(
      modern({
        "tools/list": (call) => {
          caller.abort();
          answer(call, { tools });
        },
        "tools/call": (call) => {
          calls.push(call.message.params?.name);
          answer(
            call,
            call.message.params?.name === "slow" ? { ...text(""), structuredContent: { data } } : text("stopped"),
          );
        },
      }),
    );
    await expect((await open(url)).callTool("slow", {}, { signal: caller.signal })).rejects.toThrow("enough");
    expect(calls).toEqual(["slow", "task_cancel"]);
  });

  test("is not waited for when the server says nothing more", async () => {
    const caller = abortSoon();
    const { url } = await serveLoopback(modern({ "tools/call": () => caller.abort() }));
    const started = performance.now();
    await expect((await open(url)).callTool("slow", {}, { signal: caller.signal })).rejects.toThrow("enough");
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});

describe("a task is looked at", () => {
  test("no more often than its server asks for, less often while nothing happens", async () => {
    const at: number[] = [];
    const { url } = await serveLoopback(
      modern({
        "tools/call": (call) => answer(call, { ...task("working", { pollIntervalMs: 40 }), resultType: "task" }),
        "tasks/get": (call) => {
          at.push(performance.now());
          answer(call, at.length < 5 ? task("working", { pollIntervalMs: 40 }) : done);
        },
      }),
    );
    const started = performance.now();
    let polls = 0;
    await (await open(url)).callTool("slow", {}, { onPoll: () => (polls += 1) });
    const gaps = [started, ...at].slice(1).map((moment, index) => moment - ([started, ...at][index] ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThan(38);
    expect(gaps[4]).toBeGreaterThan(1.5 * 40 - 2);
    expect(polls).toBe(5);
  });

  test("hardly at all while the server tells of changes by itself", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let looks = 0;
    let streams = 0;
    let tell: (task: object) => void = () => undefined;
    const { url } = await serveLoopback(
      modern({
        "tools/call": (call) => answer(call, { ...task("working"), resultType: "task" }),
        "tasks/get": (call) => {
          looks += 1;
          answer(call, task("working"));
        },
        "subscriptions/listen": ({ response, message }) => {
          streams += 1;
          const _meta = { "io.modelcontextprotocol/subscriptionId": message.id };
          const say = (method: string, params: object) =>
            response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", method, params: { ...params, _meta } })}\n\n`);
          response.writeHead(200, { "content-type": "text/event-stream" });
          say("notifications/subscriptions/acknowledged", { notifications: { taskIds: ["t1"] } });
          tell = (news) => say("notifications/tasks", news);
          tell(task("working", { statusMessage: "Page (25%)" }));
        },
      }),
    );
    const seen: number[] = [];
    const onProgress = async ({ done: part }: { readonly done: number }) => {
      seen.push(part);
      await turns();
      // Seven times as long as the server said between two looks.
      vi.advanceTimersByTime(150);
      tell(
        part === 75
          ? task("completed", { result: text("told") })
          : task("working", { statusMessage: `Page (${part + 25}%)` }),
      );
    };
    const result = await (await open(url)).callTool("slow", {}, { onProgress });
    expect(result).toMatchObject({ content: [{ text: "told" }] });
    expect(seen).toEqual([25, 50, 75]);
    expect(streams).toBe(1);
    expect(looks).toBe(0);
  });

  test("again after its server was away", async () => {
    let looks = 0;
    const first = await serveLoopback(
      modern({
        "tasks/get": (call) => (++looks === 2 ? reset(call) : answer(call, looks < 4 ? task("working") : done)),
      }),
    );
    const statuses: string[] = [];
    await (await open(first.url)).task("t1").result({ onTask: ({ status }) => statuses.push(status) });
    expect(statuses).toEqual(["working", "completed"]);
  });
});

test("a task that has ended before its client hears of it is asked for its result", async () => {
  const { url } = await serveLoopback(
    modern({
      "tools/call": (call) => answer(call, { ...task("completed"), resultType: "task" }),
      "tasks/get": (call) => answer(call, done),
    }),
  );
  expect(await (await open(url)).callTool("slow")).toMatchObject({ content: [{ text: "done" }] });
});

describe("a task that ends otherwise", () => {
  test.each([
    [
      "in an error of the protocol",
      task("failed", { error: { code: -32042, message: "Stuck", data: { valve: 7 } } }),
      { name: "ServerError", code: -32042, data: { valve: 7 } },
    ],
    ["cancelled by somebody else", task("cancelled"), { name: "Cancelled" }],
    ["without a result", task("completed"), { name: "ServerError" }],
    ["as nothing we know", { ...task("melted") }, { name: "ServerError" }],
    ["as another task", { ...done, taskId: "t2" }, { name: "ServerError" }],
  ])("%s rejects", async (_, ending, expected) => {
    const { url } = await serveLoopback(modern({ "tasks/get": (call) => answer(call, ending) }));
    await expect((await open(url)).task("t1").result()).rejects.toMatchObject(expected);
  });

  test("or asks while nobody can answer: rejects with the question, and leaves it alive", async () => {
    const methods: string[] = [];
    const ask = {
      method: "elicitation/create",
      params: { mode: "form", message: "Go on?", requestedSchema: { type: "object" } },
    };
    const { url } = await serveLoopback(async (received) => {
      methods.push(received.message.method ?? "");
      await modern({ "tasks/get": (call) => answer(call, task("input_required", { inputRequests: { q1: ask } })) })(
        received,
      );
    });
    await expect((await open(url)).task("t1").result()).rejects.toMatchObject({
      name: "InputRequired",
      taskId: "t1",
      question: { key: "q1", message: "Go on?" },
    });
    expect(methods).not.toContain("tasks/cancel");
    expect(methods).not.toContain("tasks/update");
  });
});
