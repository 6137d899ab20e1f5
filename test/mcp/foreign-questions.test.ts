import path from "node:path";
import { describe, expect, test } from "vitest";
import type { JsonObject } from "../../src/command/foreign.ts";
import { messageOf } from "../../src/errors.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { type ForeignServer, foreign, serveForeign } from "../helpers/foreign.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { moving } from "../helpers/in-memory.ts";
import { localKey } from "../helpers/server.ts";
import { type Fields, handleOf, type Message, takesTasks, type WireClient } from "../helpers/wire.ts";

const modern = "2026-07-28";
const legacy = "2025-11-25";
const related = "io.modelcontextprotocol/related-task";

const form = {
  method: "elicitation/create",
  params: {
    message: "Your name?",
    requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    _meta: { "their/key": 1 },
  },
};
const link = {
  method: "elicitation/create",
  params: { mode: "url", message: "Sign in:", url: "https://example.com/in", elicitationId: "e1" },
};
const sampling = {
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 5 },
};
const roots = { method: "roots/list", params: {} };

const filled = { action: "accept", content: { name: "Ada" } };
const said = { role: "assistant", content: { type: "text", text: "Ho" }, model: "m1", stopReason: "endTurn" };
const folders = { roots: [{ uri: "file:///a", name: "a" }], _meta: { more: true } };

/** A server whose tool asks this, and answers with what it heard. */
async function serve(
  asked: readonly { request: { method: string; params: JsonObject }; key?: string }[],
  options: { file?: string; clock?: FakeClock; rerun?: boolean } = {},
): Promise<ForeignServer> {
  const asks = foreign(
    async (_input, relay) => {
      const heard: unknown[] = [];
      for (const { request, key } of asked)
        heard.push(await relay.ask(request, { key }).catch((error: unknown) => ({ failed: messageOf(error) })));
      return { content: [], structuredContent: { heard } };
    },
    {},
    { rerun: options.rerun ?? false },
  );
  const { file, clock } = options;
  return await serveForeign({ asks }, { ...(file !== undefined && { file }), ...(clock !== undefined && { clock }) });
}

const heardIn = (result: unknown) => ((result as Fields).structuredContent as Fields).heard;
const all = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** What a task's question says of its end beside the words of its server, where a person is asked. */
function deadlineOf(method: string): Fields | undefined {
  return method === "elicitation/create" ? { "meanwhile/answerUntil": "2026-07-29T00:00:00.000Z" } : undefined;
}

/** Answers the next request of the server's by this method, whenever it comes. */
async function answerNext(server: ForeignServer, client: WireClient, method: string, result: Fields): Promise<Message> {
  const asked = await moving(server.clock, client.comes(method));
  await moving(server.clock, client.respond(asked.id, result));
  return asked;
}

const kinds = [
  ["a form", form, filled],
  ["a form that is declined", form, { action: "decline" }],
  ["a link", link, { action: "accept" }],
  ["a link that is dismissed", link, { action: "cancel" }],
  ["the client's model", sampling, said],
  ["the client's folders", roots, folders],
] as const;

describe.each(kinds)("%s is asked for word for word, and its answer is the client's", (_kind, request, answer) => {
  test("while a client of 2025-11-25 waits", async () => {
    const server = await serve([{ request }]);
    const client = await server.connect({ revision: legacy, capabilities: all });
    const call = client.call("asks");
    const asked = await answerNext(server, client, request.method, answer);
    expect(JSON.stringify(asked.params)).toBe(JSON.stringify(request.params));
    expect(heardIn(await server.settled(call))).toEqual([answer]);
  });

  test("by a task of 2025-11-25, on the stream of tasks/result", async () => {
    const server = await serve([{ request }]);
    const client = await server.connect({ revision: legacy, capabilities: all });
    const { task } = await server.settled(client.call("asks", {}, { task: {} }));
    const result = client.request("tasks/result", { taskId: task?.taskId });
    const asked = await answerNext(server, client, request.method, answer);
    const tied = { [related]: { taskId: task?.taskId }, ...deadlineOf(request.method) };
    expect(asked.params).toEqual({ ...request.params, _meta: { ...(request.params as Fields)._meta, ...tied } });
    expect(heardIn((await server.settled(result)).result)).toEqual([answer]);
    expect(client.of(request.method)).toHaveLength(1);
  });

  test("by sending a client of 2026-07-28 back with it", async () => {
    const server = await serve([{ request, key: "user_name" }]);
    const client = await server.connect({ revision: modern, capabilities: all });
    const sentBack = await server.settled(client.call("asks"));
    expect(JSON.stringify(sentBack.inputRequests)).toBe(JSON.stringify({ user_name: request }));
    const again = client.request("tools/call", {
      name: "asks",
      arguments: {},
      requestState: sentBack.requestState,
      inputResponses: { user_name: answer },
    });
    expect(heardIn((await server.settled(again)).result)).toEqual([answer]);
  });

  test("by a task of 2026-07-28", async () => {
    const server = await serve([{ request, key: "user_name" }]);
    const client = await server.connect({ revision: modern, capabilities: { ...all, ...takesTasks } });
    const { taskId } = await server.settled(client.call("asks"));
    const { result } = await server.settled(client.request("tasks/get", { taskId }));
    expect(result?.status).toBe("input_required");
    const deadline = deadlineOf(request.method);
    const _meta = deadline && { ...(request.params as Fields)._meta, ...deadline };
    const expected = { method: request.method, params: { ...request.params, ...(_meta && { _meta }) } };
    expect(JSON.stringify(result?.inputRequests)).toBe(JSON.stringify({ user_name: expected }));
    await server.settled(client.request("tasks/update", { taskId, inputResponses: { user_name: answer } }));
    await server.settled(server.engine.wait(localKey, taskId ?? ""));
    const { result: ended } = await server.settled(client.request("tasks/get", { taskId }));
    expect(heardIn(ended?.result)).toEqual([answer]);
  });
});

test("over HTTP a client before 2026-07-28 is asked on the stream of its call", async () => {
  const server = await serve([{ request: sampling }]);
  const client = await server.connect({ revision: legacy, capabilities: all, door: "http" });
  const call = client.startCall("asks");
  const asked = await answerNext(server, client, sampling.method, said);
  expect(call.messages).toContainEqual(asked);
  expect(asked.params).toEqual(sampling.params);
  expect(heardIn((await server.settled(call.answer)).result)).toEqual([said]);
});

test("what is asked side by side is asked once each", async () => {
  const more = { ...sampling, params: { ...sampling.params, maxTokens: 6 } };
  const isFirstSeen = Promise.withResolvers<void>();
  const asks = foreign(async (_input, relay) => {
    const first = relay.ask(sampling);
    await isFirstSeen.promise;
    return { content: [], structuredContent: { heard: await Promise.all([first, relay.ask(more), relay.ask(roots)]) } };
  });
  const server = await serveForeign({ asks });
  // A host that waits long: when a call is deferred, its questions are asked again for its task.
  const client = await server.connect({ revision: legacy, capabilities: all, name: "opencode" });
  const call = client.call("asks");
  await moving(server.clock, client.comes(sampling.method));
  isFirstSeen.resolve();
  await answerNext(server, client, roots.method, folders);
  for (const { id } of [sampling, more].map(({ params }) => {
    const asked = client.of(sampling.method).filter((message) => message.params?.maxTokens === params.maxTokens);
    expect(asked).toHaveLength(1);
    return asked[0] as Message;
  }))
    await server.settled(client.respond(id, { ...said, id }));
  expect(heardIn(await server.settled(call))).toEqual([
    { ...said, id: expect.any(Number) },
    { ...said, id: expect.any(Number) },
    folders,
  ]);
  expect(client.of(sampling.method)).toHaveLength(2);
});

test("an error of the client's is one to the server that asked", async () => {
  for (const request of [form, sampling]) {
    const server = await serve([{ request }]);
    const client = await server.connect({ revision: legacy, capabilities: all });
    const call = client.call("asks");
    const asked = await moving(server.clock, client.comes(request.method));
    await server.settled(client.fail(asked.id, { code: -1, message: "Not now, please." }));
    expect(heardIn(await server.settled(call))).toEqual([{ failed: "Not now, please." }]);
  }
});

test.each([modern, legacy])(
  "a client of %s that declared neither is asked for neither, and the call goes on",
  async (revision) => {
    const server = await serve([{ request: sampling }, { request: roots }]);
    const client = await server.connect({ revision, capabilities: { elicitation: {} } });
    expect(heardIn(await server.settled(client.call("asks")))).toEqual([
      { failed: "The client that called asks cannot answer sampling/createMessage: it has not declared `sampling`." },
      { failed: "The client that called asks cannot answer roots/list: it has not declared `roots`." },
    ]);
    expect(client.received.filter(({ method }) => method !== undefined)).toEqual([]);
  },
);

test("an answer that does not fit the form is asked for again, with the reason", async () => {
  const server = await serve([{ request: form }]);
  const client = await server.connect({ revision: legacy, capabilities: all });
  const call = client.call("asks");
  await answerNext(server, client, form.method, { action: "accept", content: {} });
  const again = await moving(
    server.clock,
    client.comes(form.method, ({ params }) => params?.message !== form.params.message),
  );
  expect(again.params?.message).toMatch(/^Your name\? \(The answer does not fit: `name`: is required\.\)$/);
  await server.settled(client.respond(again.id, filled));
  expect(heardIn(await server.settled(call))).toEqual([filled]);
});

test("a key that comes again is numbered in front, and is never used twice", async () => {
  const again = { ...form, params: { ...form.params, message: "Again?" } };
  const third = { ...form, params: { ...form.params, message: "And again?" } };
  const server = await serve([
    { request: form, key: "user_name" },
    { request: again, key: "user_name" },
    { request: third, key: "user_name" },
    { request: sampling, key: "q9" },
    { request: roots, key: "__proto__" },
  ]);
  const client = await server.connect({ revision: modern, capabilities: { ...all, ...takesTasks } });
  const { taskId = "" } = await server.settled(client.call("asks"));
  const keys: string[] = [];
  for (const answer of [filled, filled, filled, said, folders]) {
    const isNew = (task: { questions: readonly { key: string }[] }) => task.questions.length > keys.length;
    await server.settled(server.engine.wait(localKey, taskId, { until: isNew }));
    const { result } = await server.settled(client.request("tasks/get", { taskId }));
    const [key = ""] = Object.keys(result?.inputRequests);
    keys.push(key);
    await server.settled(client.request("tasks/update", { taskId, inputResponses: { [key]: answer } }));
  }
  expect(keys).toEqual(["user_name", "r2/user_name", "r3/user_name", "q4", "q5"]);
  await server.settled(server.engine.wait(localKey, taskId));
});

describe("a client without tasks that has a handle", () => {
  const plain = "2025-06-18";

  test("answers a form by task_answer, and is shown a link that only a person may follow", async () => {
    const server = await serve([{ request: form }, { request: link }]);
    const client = await server.connect({ revision: plain });
    const handle = handleOf(await server.settled(client.call("asks")));
    expect(handle.questions).toMatchObject([{ key: "q1", message: "Your name?" }]);
    const answers = { q1: { name: "Ada" } };
    await server.settled(client.call("task_answer", { job_id: handle.job_id, answers }));
    await server.settled(
      server.engine.wait(localKey, handle.job_id, { until: ({ questions }) => questions.length === 2 }),
    );
    const status = await server.settled(client.call("task_status", { job_id: handle.job_id }));
    expect(handleOf(status).questions).toMatchObject([
      { key: "q2", message: "Sign in: https://example.com/in", only_a_person_may_answer: true },
    ]);
    expect(status.content?.[0]?.text).toContain("https://example.com/in");
    const taken = await server.settled(client.call("task_answer", { job_id: handle.job_id, answers: { q2: {} } }));
    expect(taken.isError).toBe(true);
    expect(await server.engine.answer(localKey, handle.job_id, { q2: { action: "accept", content: {} } })).toBe(true);
    const result = await server.settled(client.call("task_result", { job_id: handle.job_id }));
    expect(heardIn(result)).toEqual([filled, { action: "accept" }]);
  });

  test("is asked again, by itself, for what it had not answered when its call was", async () => {
    const server = await serve([{ request: sampling }]);
    const client = await server.connect({ revision: plain, capabilities: { sampling: {} } });
    const { job_id } = handleOf(await server.settled(client.call("asks")));
    const [first, second] = await moving(
      server.clock,
      client.comes(sampling.method, ({ params }) => params?._meta !== undefined).then(() => client.of(sampling.method)),
    );
    expect(client.of("notifications/cancelled").map(({ params }) => params?.requestId)).toEqual([first?.id]);
    expect(second?.params).toEqual({ ...sampling.params, _meta: { [related]: { taskId: job_id } } });
    await server.settled(client.respond(second?.id, said));
    expect(heardIn(await server.settled(client.call("task_result", { job_id })))).toEqual([said]);
  });

  test("is still asked for what it alone can answer", async () => {
    const server = await serve([{ request: form }, { request: sampling }]);
    const client = await server.connect({ revision: plain, capabilities: { sampling: {} } });
    const { job_id } = handleOf(await server.settled(client.call("asks")));
    await server.settled(client.call("task_answer", { job_id, answers: { q1: { name: "Ada" } } }));
    const asked = await moving(server.clock, client.comes(sampling.method));
    const status = await server.settled(client.call("task_status", { job_id }));
    expect(handleOf(status).questions).toBeUndefined();
    expect(status.content?.[0]?.text).toContain("waits for an answer of the client's model");
    await server.settled(client.respond(asked.id, said));
    expect(heardIn(await server.settled(client.call("task_result", { job_id })))).toEqual([filled, said]);
  });
});

test("a client of 2026-07-28 that has a handle is sent back from its follow-up for what it alone can answer", async () => {
  const server = await serve([{ request: form }, { request: sampling }, { request: roots }]);
  const client = await server.connect({ revision: modern, capabilities: { sampling: {}, roots: {} } });
  const { job_id } = handleOf(await server.settled(client.call("asks")));
  await server.settled(client.call("task_answer", { job_id, answers: { q1: { name: "Ada" } } }));
  const follow = (inputResponses: Fields = {}) =>
    server.settled(client.request("tools/call", { name: "task_result", arguments: { job_id }, inputResponses }));
  const { result: sentBack } = await follow();
  expect(sentBack).toMatchObject({ resultType: "input_required", inputRequests: { q2: sampling } });
  const { result: again } = await follow({ q2: said });
  expect(again).toMatchObject({ resultType: "input_required", inputRequests: { q3: roots } });
  expect(heardIn((await follow({ q3: folders })).result)).toEqual([filled, said, folders]);
});

test("a task whose client is gone waits for one that can answer, in the next process too", async () => {
  const file = path.join(temporaryFolder(), "tasks.db");
  const clock = new FakeClock();
  const asked = [{ request: form, key: "name" }, { request: sampling }];
  const first = await serve(asked, { file, clock, rerun: true });
  const before = await first.connect({ revision: modern, capabilities: { ...all, ...takesTasks } });
  const { taskId = "" } = await first.settled(before.call("asks"));
  await first.settled(before.request("tasks/update", { taskId, inputResponses: { name: filled } }));
  await first.settled(first.engine.wait(localKey, taskId, { until: ({ questions }) => questions.length === 2 }));
  await first.close();

  const second = await serve(asked, { file, clock, rerun: true });
  const without = await second.connect({ revision: modern, capabilities: takesTasks });
  const { result: seen } = await second.settled(without.request("tasks/get", { taskId }));
  expect(seen).toMatchObject({ status: "working" });
  expect(seen?.statusMessage).toContain("waits for an answer of the client's model");
  await second.settled(without.request("tasks/update", { taskId, inputResponses: { q2: said } }));
  const other = await second.connect({ revision: legacy, capabilities: { sampling: {} } });
  const result = other.request("tasks/result", { taskId });
  await answerNext(second, other, sampling.method, said);
  expect(heardIn((await second.settled(result)).result)).toEqual([filled, said]);
});
