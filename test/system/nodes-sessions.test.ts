import { describe, expect, test } from "vitest";
import { shareAmongTests } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { movingClient, nodesToken, serveNodesHere } from "../helpers/nodes.ts";
import { gate } from "../helpers/project.ts";
import type { Begun, Stream, WireClient } from "../helpers/wire.ts";

/** A session of a client before 2026-07-28 whose requests reach another server each time. */

const nodes = shareAmongTests(() => serveNodesHere(3));
const elicits = { elicitation: {} };
const begin = async (capabilities: object = {}, revision = "2025-11-25") =>
  await movingClient(await nodes(), { revision, capabilities });
const statusAt = async (url: string, sessionId: string | undefined) => {
  const client = await movingClient([url], { revision: "2025-11-25" });
  client.sessionId = sessionId;
  return (await client.request("ping")).status;
};

for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25"])
  test(`a session of ${revision} that began on one node goes on at the others`, async () => {
    const client = await begin({}, revision);
    for (const node of [1, 2, 0]) {
      client.go(node);
      expect((await client.request("tools/list")).result?.tools).not.toEqual([]);
      expect(await client.call("work_quick", { text: "hello" })).toMatchObject({
        structuredContent: { data: { text: "hello" } },
      });
    }
  });

test("a session that is ended on one node has ended on all, whether or not they knew it", async () => {
  const client = await begin();
  const urls = await nodes();
  client.go(1);
  expect((await client.request("ping")).status).toBe(200);
  const headers = { ...client.headersOf(), authorization: `Bearer ${nodesToken}` };
  // The third has never heard of it.
  expect((await fetch(urls[2] as string, { method: "DELETE", headers })).status).toBe(200);
  for (const url of urls) expect(await statusAt(url, client.sessionId)).toBe(404);
});

test("somebody else's session looks like one that never was", async () => {
  const client = await begin();
  const [, other] = await nodes();
  const stranger = await movingClient([other as string], { revision: "2025-11-25", isAnonymous: true });
  const ask = async (id: string) => {
    stranger.sessionId = id;
    const { status, text } = await stranger.request("ping");
    return { status, text };
  };
  expect(await ask(client.sessionId ?? "")).toEqual(await ask("00000000-0000-4000-8000-000000000000"));
  expect((await client.request("ping")).status).toBe(200);
});

describe("what a node asks its client", () => {
  for (const revision of ["2025-06-18", "2025-11-25"])
    test(`is answered at another one, by a client of ${revision}, and the call goes on`, async () => {
      const client = await begin(elicits, revision);
      const { input, lines } = gate();
      const call = client.startCall("ask_name", input);
      const { id } = await client.comes("elicitation/create");
      client.go(1);
      await client.respond(id, { action: "accept", content: { name: "Ada" } });
      expect((await call.answer).result).toMatchObject({ structuredContent: { data: { greeting: "Hello, Ada!" } } });
      expect(lines()).toEqual(["started", "answered Ada"]);
    });

  test("is told apart from what another asks at the same time, whichever the answers reach", async () => {
    const client = await begin(elicits);
    const calls = [0, 1].map((node) => {
      client.go(node);
      return client.startCall("ask_name", gate().input);
    });
    const questions = await Promise.all(
      calls.map(({ messages }) => waitFor(() => messages.find(({ method }) => method === "elicitation/create"))),
    );
    for (const [at, name] of ["Ada", "Eve"].entries()) {
      client.go(1 - at);
      await client.respond(questions[at]?.id, { action: "accept", content: { name } });
    }
    const greetings = await Promise.all(calls.map(async ({ answer }) => (await answer).result?.structuredContent.data));
    expect(greetings).toEqual([{ greeting: "Hello, Ada!" }, { greeting: "Hello, Eve!" }]);
  });

  test("is asked once more, with the reason, when the answer that came to another one does not fit", async () => {
    const client = await begin(elicits);
    const call = client.startCall("ask_name", gate().input);
    const first = await client.comes("elicitation/create");
    client.go(2);
    await client.respond(first.id, { action: "accept", content: { name: "" } });
    const second = await client.comes("elicitation/create", ({ id }) => id !== first.id);
    client.go(1);
    await client.respond(second.id, { action: "accept", content: { name: "Eve" } });
    expect((await call.answer).result).toMatchObject({ structuredContent: { data: { greeting: "Hello, Eve!" } } });
  });
});

test("a request that is taken back at another node stops where it runs", async () => {
  const client = await begin();
  const { input, seen } = gate();
  const call = client.startCall("work_gated", input);
  await seen("started");
  client.go(1);
  client.cancel(call.id);
  await seen("stopped");
});

test("the log level that is set on one node holds on those that knew the session, and on those that did not", async () => {
  const client = await begin();
  client.go(1);
  await client.request("ping");
  await client.request("logging/setLevel", { level: "error" });
  for (const node of [0, 1, 2]) {
    client.go(node);
    const call = client.startCall("node_talk");
    await call.answer;
    const levels = call.messages.filter(({ method }) => method === "notifications/message");
    expect(levels.map(({ params }) => params?.level)).toEqual(["error"]);
  }
});

describe("the stream for what belongs to no request", () => {
  test("is held by one node, and hears what happens on another", async () => {
    const client = await begin(elicits);
    const { input, open } = gate();
    client.go(1);
    await client.openStream();
    client.go(0);
    const asking = await client.call("ask_name", { file: input.file }, { task: {} });
    const { id } = await client.comes("elicitation/create");
    const status = await client.comes(
      "notifications/tasks/status",
      ({ params }) => params?.status === "input_required",
    );
    expect(status.params?.taskId).toBe(asking.task?.taskId);
    client.go(2);
    await client.respond(id, { action: "accept", content: { name: "Ada" } });
    await client.comes("notifications/tasks/status", ({ params }) => params?.status === "completed");
    open();
  });

  test("is one, wherever it is asked for; when it is closed, another may be opened elsewhere", async () => {
    const client = await begin();
    const first = await client.openStream();
    client.go(1);
    expect((await client.openStream()).status).toBe(409);
    first.drop();
    await waitFor(async () => {
      const next = await client.openStream();
      if (next.status !== 200) return false;
      next.drop();
      return true;
    });
  });

  test("goes on at another node after its last event, with what was missed", async () => {
    const client = await begin();
    const stream = await client.openStream();
    const { input, open } = gate();
    const { task } = await client.call("work_gated", input, { task: {} });
    await client.call("task_cancel", { job_id: task?.taskId });
    await client.comes("notifications/tasks/status");
    const lastEventId = stream.events.at(-1)?.id;
    stream.drop();
    const { input: next, seen } = gate();
    const later = await client.call("work_gated", next, { task: {} });
    await seen("started");
    await client.call("task_cancel", { job_id: later.task?.taskId });
    client.go(1);
    const resumed = await resume(client, lastEventId);
    await waitFor(() => resumed.messages.some(({ params }) => params?.taskId === later.task?.taskId));
    open();
  });
});

describe("the stream of a request that broke", () => {
  test("goes on at another node: what was missed, what comes, and the answer", async () => {
    const client = await begin();
    const { input, open } = gate();
    const call = client.startCall("node_march", input, { meta: { progressToken: "steps" } });
    await waitFor(() => call.messages.length >= 2);
    const [seen] = call.messages;
    const lastEventId = streamOf(client, call).events.find(({ message }) => message === seen)?.id;
    call.drop();
    client.go(1);
    const resumed = await resume(client, lastEventId);
    open();
    const answer = await waitFor(() => resumed.messages.find(({ method }) => method === undefined));
    expect(answer).toMatchObject({ id: call.id, result: { structuredContent: { success: true } } });
    const steps = resumed.of("notifications/progress").map(({ params }) => params?.progress as number);
    // Every step after the one that was seen, each once.
    const first = (seen?.params?.progress as number) + 1;
    expect(steps).toEqual(steps.map((_, at) => first + at));
  });

  test("goes on at another node when it was answered meanwhile, and again at a third", async () => {
    const client = await begin();
    const { input, open, seen } = gate();
    const call = client.startCall("work_reading", input);
    await seen("started");
    const [marker] = await waitFor(() => client.exchanges.find((one) => one.messages === call.messages)?.events);
    call.drop();
    open();
    await seen("ended");
    for (const node of [1, 2]) {
      client.go(node);
      const resumed = await resume(client, marker?.id);
      await resumed.over;
      expect(resumed.messages.at(-1)).toMatchObject({ id: call.id });
    }
  });

  test("is unknown where it never was: the same words as on one node", async () => {
    const client = await begin();
    for (const node of [0, 1]) {
      client.go(node);
      const { status, text } = await client.openStream("7.00000000-0000.nothing");
      expect({ status, text }).toMatchObject({ status: 400 });
    }
  });
});

function streamOf(client: WireClient, call: Begun): Stream {
  return client.exchanges.find(({ messages }) => messages === call.messages) as Stream;
}

/** The server may not have noticed yet that the connection broke. */
async function resume(client: WireClient, lastEventId: string | undefined): Promise<Stream> {
  return await waitFor(async () => {
    const again = await client.openStream(lastEventId);
    if (again.status !== 200 && again.status !== 409) throw new Error(`${again.status} ${again.text}`);
    return again.status === 200 && again;
  });
}
