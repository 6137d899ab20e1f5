import { describe, expect, test } from "vitest";
import { shareAmongTests } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { movingClient, serveNodesHere } from "../helpers/nodes.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { type Fields, takesAll, takesTasks } from "../helpers/wire.ts";

/** Made on the first node, looked at on the second, answered on the third, cancelled on the fourth. */

const nodes = shareAmongTests(() => serveNodesHere(4));
const modern = async (capabilities: object) =>
  await movingClient(await nodes(), { revision: "2026-07-28", capabilities });
const legacy = async (capabilities: object = {}) =>
  await movingClient(await nodes(), { revision: "2025-11-25", capabilities });
const accept = (content: object) => ({ action: "accept", content });

describe("a task of 2026-07-28", () => {
  test("is made, looked at and cancelled on three nodes, and the cancel reaches the work", async () => {
    const client = await modern(takesTasks);
    const { input, seen } = gate();
    const taskId = taskIdOf(await client.call("work_long", input));
    await seen("started");
    client.go(1);
    expect((await client.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
    client.go(3);
    expect((await client.request("tasks/cancel", { taskId })).error).toBeUndefined();
    await seen("stopped");
    client.go(2);
    expect((await client.request("tasks/get", { taskId })).result).toMatchObject({ status: "cancelled" });
  });

  test("asks on one node, is answered on another, and who listens at a third hears of all of it", async () => {
    const client = await modern(takesAll);
    const { input, lines } = gate();
    const taskId = taskIdOf(await client.call("ask_name", input));
    client.go(1);
    const listening = client.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
    const told = (status: string) => waitFor(() => listening.messages.find(({ params }) => params?.status === status));
    const { inputRequests } = (await told("input_required")).params as Fields;
    expect(inputRequests).toMatchObject({ q1: { method: "elicitation/create" } });
    client.go(2);
    const answered = await client.request("tasks/update", { taskId, inputResponses: { q1: accept({ name: "Ada" }) } });
    expect(answered.error).toBeUndefined();
    expect((await told("completed")).params).toMatchObject({
      result: { structuredContent: { data: { greeting: "Hello, Ada!" } } },
    });
    expect(lines()).toEqual(["started", "answered Ada"]);
    listening.drop();
  });
});

describe("a task of 2025-11-25", () => {
  test("is made, looked at and cancelled on three nodes, and the cancel reaches the work", async () => {
    const client = await legacy();
    const { input, seen } = gate();
    const taskId = taskIdOf(await client.call("work_gated", input, { task: {} }));
    await seen("started");
    client.go(1);
    expect((await client.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
    client.go(3);
    expect((await client.request("tasks/cancel", { taskId })).result).toMatchObject({ status: "cancelled" });
    await seen("stopped");
    client.go(2);
    expect((await client.request("tasks/list")).result?.tasks).toContainEqual(expect.objectContaining({ taskId }));
  });

  test("asks where its result is waited for, and is answered on a third node", async () => {
    const client = await legacy({ elicitation: {} });
    const taskId = taskIdOf(await client.call("ask_name", gate().input, { task: {} }));
    client.go(1);
    const result = client.request("tasks/result", { taskId });
    const { id } = await client.comes("elicitation/create");
    client.go(2);
    await client.respond(id, accept({ name: "Ada" }));
    expect((await result).result).toMatchObject({ structuredContent: { data: { greeting: "Hello, Ada!" } } });
  });
});

describe("a call of 2026-07-28 that is sent back with a question", () => {
  const canAnswer = { elicitation: {} };

  test("is rejoined on another node, and never runs twice; its state is good for one use, wherever", async () => {
    const client = await modern(canAnswer);
    const { input, lines } = gate();
    const first = await client.call("ask_name", input);
    expect(first.resultType).toBe("input_required");
    const again = (name: string, requestState: unknown) => ({
      ...{ name: "ask_name", arguments: input, requestState },
      inputResponses: { q1: accept({ name }) },
    });
    client.go(1);
    const misfit = (await client.request("tools/call", again("", first.requestState))).result as Fields;
    expect(misfit).toMatchObject({ resultType: "input_required" });
    client.go(2);
    const done = await client.request("tools/call", again("Ada", misfit.requestState));
    expect(done.result).toMatchObject({ structuredContent: { data: { greeting: "Hello, Ada!" } } });
    expect(lines()).toEqual(["started", "answered Ada"]);
    const refusals = [first.requestState, misfit.requestState, `${String(first.requestState).slice(0, -2)}xx`];
    for (const [at, state] of refusals.entries()) {
      client.go(at);
      expect((await client.request("tools/call", again("Eve", state))).error).toMatchObject({
        code: -32602,
        data: { reason: "invalid_request_state" },
      });
    }
    expect(lines()).toEqual(["started", "answered Ada"]);
  });

  test("ahead of its run is begun where the answer comes, once", async () => {
    const client = await modern(canAnswer);
    const { input, lines } = gate();
    const { requestState } = await client.call("node_consent", input);
    const params = {
      ...{ name: "node_consent", arguments: input, requestState },
      inputResponses: { q1: accept({ agree: true }) },
    };
    const answers = await Promise.all(
      [1, 2, 3].map((node) => {
        client.go(node);
        return client.request("tools/call", params);
      }),
    );
    expect(answers.filter(({ result }) => result !== undefined)).toHaveLength(1);
    expect(answers.filter(({ error }) => error?.data?.reason === "invalid_request_state")).toHaveLength(2);
    expect(lines()).toEqual(["ran"]);
  });
});

test("calls with one idempotency key on four nodes are one run", async () => {
  const client = await modern({});
  const { input, open, starts, seen } = gate();
  const meta = { "meanwhile/idempotencyKey": "the same" };
  const calls = [0, 1, 2, 3].map((node) => {
    client.go(node);
    return client.startCall("work_gated", input, { meta });
  });
  await seen("started");
  open();
  for (const { answer } of calls)
    expect((await answer).result).toMatchObject({ structuredContent: { data: { passed: input.file } } });
  expect(starts()).toBe(1);
});

test("equal calls on two nodes are one run", async () => {
  const client = await modern(takesTasks);
  const { input, open, starts, seen } = gate();
  const first = taskIdOf(await client.call("work_long", input));
  client.go(1);
  expect(taskIdOf(await client.call("work_long", input))).toBe(first);
  await seen("started");
  open();
  await seen("ended");
  expect(starts()).toBe(1);
});
