import { existsSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import {
  type Asked,
  connect,
  modernV2,
  newestV1,
  type Reply,
  type TestClient,
  type TransportName,
} from "../helpers/clients.ts";
import { shareAmongTests } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { openTraces } from "../helpers/place.ts";
import { type LocalServer, openServer, type Target } from "../helpers/server.ts";
import type { Answer } from "../helpers/wire.ts";

const commands = path.resolve(import.meta.dirname, "../fixtures/questions/commands");
const clients = [newestV1, modernV2].flatMap((sdk) => sdk.transports.map((transport) => ({ sdk, transport })));

const startServer = () => openServer({ in: "http", commands });
const shared = {
  HTTP: shareAmongTests(startServer),
  stdio: shareAmongTests(() => openServer({ in: "memory", commands })),
};
/** Over HTTP without a token. */
const at = async (transport: TransportName): Promise<Target> =>
  await (await shared[transport]()).target({ isAnonymous: true });

for (const { sdk, transport } of clients) {
  test(`${sdk.title} over ${transport} shows questions, and the same run goes on with what the person does`, async () => {
    const person = new Person();
    const client = await connect(sdk, await at(transport), { answer: person.answer });
    await goesOnWithTheAnswer(client, person);
    await answersSeveral(client, person);
    await endsWhenDeclined(client, person);
    await asksBeforeDestroying(client, person);
    expect(client.errors).toEqual([]);
  });

  test(`${sdk.title} over ${transport} is told how to answer when it cannot show questions`, async () => {
    const { file, lines } = openTraces();
    const client = await connect(sdk, await at(transport));
    const asking = await client.call("ask_name", { file });
    expect(asking.structuredContent).toMatchObject({
      success: true,
      data: {
        status: "input_required",
        questions: [{ key: "q1", message: "What is your name?" }],
        next_action: { tool: "task_answer" },
      },
    });
    const { job_id } = (asking.structuredContent as { data: { job_id: string } }).data;
    const answered = await client.call("task_answer", { job_id, answers: { q1: { name: "Ada" } } });
    expect(answered.structuredContent).toMatchObject({
      success: true,
      data: { job_id, next_action: { tool: "task_result" } },
    });
    const result = await client.call("task_result", { job_id });
    expect(result.structuredContent).toMatchObject({ success: true, data: { greeting: "Hello, Ada!" } });
    expect(lines()).toEqual(["started", "answered Ada"]);

    // Only a person may confirm: the local user's terminal knows the job, an anonymous caller has none.
    const erasing = await client.call("files_erase", { file });
    if (transport === "stdio") {
      const { data } = erasing.structuredContent as { data: { job_id: string } };
      expect(erasing.content[0]?.text).toContain(`meanwhile tasks answer ${data.job_id}`);
      const refused = await client.call("task_answer", { job_id: data.job_id, answers: { q1: { confirm: true } } });
      expect(refused.isError).toBe(true);
      expect(refused.content[0]?.text).toContain("Only a person may answer");
    } else {
      expect(erasing.isError).toBe(true);
      expect(erasing.content[0]?.text).toContain("run it in a terminal: meanwhile files erase");
    }
    expect(lines()).toEqual(["started", "answered Ada"]);
  });
}

/** Answers each question with what was put down for it, and remembers what it was asked. */
class Person {
  readonly asked: Asked[] = [];
  replies: Readonly<Record<string, Reply>> = {};

  readonly answer = (question: Asked): Reply => {
    this.asked.push(question);
    return this.replies[question.message] ?? { action: "cancel" };
  };
}

const accept = (content: Readonly<Record<string, unknown>>): Reply => ({ action: "accept", content });

async function goesOnWithTheAnswer(client: TestClient, person: Person): Promise<void> {
  const { file, lines } = openTraces();
  person.replies = { "What is your name?": accept({ name: "Ada" }) };
  const result = await client.call("ask_name", { file });
  expect(result.structuredContent).toMatchObject({ success: true, data: { greeting: "Hello, Ada!" } });
  expect(person.asked).toMatchObject([
    { requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } },
  ]);
  expect(lines()).toEqual(["started", "answered Ada"]);
}

async function answersSeveral(client: TestClient, person: Person): Promise<void> {
  const { file, lines } = openTraces();
  person.replies = {
    "What will you eat?": accept({ choice: "soup" }),
    "What will you drink?": accept({ choice: "tea" }),
    "Anything beside soup and tea?": accept({ more: "and bread" }),
  };
  const result = await client.call("ask_meal", { file });
  expect(result.structuredContent).toMatchObject({ data: { order: "soup and tea, and bread" } });
  expect(lines()).toEqual(["started"]);
}

async function endsWhenDeclined(client: TestClient, person: Person): Promise<void> {
  for (const action of ["decline", "cancel"] as const) {
    const { file, lines } = openTraces();
    person.replies = { "What is your name?": { action } };
    const result = await client.call("ask_name", { file });
    expect(result.isError).toBe(true);
    expect(result.content[0]?.text).toContain("«What is your name?» was declined");
    expect(lines()).toEqual(["started"]);
  }
}

async function asksBeforeDestroying(client: TestClient, person: Person): Promise<void> {
  const { file, lines } = openTraces();
  const question = `Erase ${file}?`;
  for (const reply of [{ action: "decline" } as const, accept({ confirm: false })]) {
    person.replies = { [question]: reply };
    const result = await client.call("files_erase", { file });
    expect(result.isError).toBe(true);
    expect(result.content[0]?.text).toContain("was declined");
    expect(lines()).toEqual([]);
  }
  person.replies = { [question]: accept({ confirm: true }) };
  const result = await client.call("files_erase", { file });
  expect(result.isError ?? false).toBe(false);
  expect(lines()).toEqual(["erased"]);
  expect(person.asked.filter(({ message }) => message === question)).toHaveLength(3);
}

// Since 2026-07-28 no call is open while its question is shown.
test.for(newestV1.transports)(
  "a call over %s that is cancelled while its question is shown is stopped",
  async (transport) => {
    const { file, lines } = openTraces();
    const stop = new AbortController();
    const answer = async (): Promise<Reply> => {
      stop.abort(new Error("changed my mind"));
      await waitFor(() => lines().includes("stopped"));
      return { action: "cancel" };
    };
    const client = await connect(newestV1, await at(transport), { answer });
    await expect(client.call("ask_name", { file }, { signal: stop.signal })).rejects.toBeDefined();
    await waitFor(() => lines().includes("stopped"));
    expect(lines()).toEqual(["started", "stopped"]);
  },
);

describe("the requestState of 2026-07-28", () => {
  const inputResponses = { q1: accept({ name: "Ada" }) };
  const refusal = { error: { code: -32602 } };
  const success = { result: { structuredContent: { success: true, data: { greeting: "Hello, Ada!" } } } };

  test("is refused when it was tampered with or used already", async () => {
    const { file, lines } = openTraces();
    const server = await shared.HTTP();
    const state = stateOf(await call(server, { name: "ask_name", file }));
    for (const requestState of forgeriesOf(state)) {
      expect(
        await call(server, { name: "ask_name", file, requestState, inputResponses }),
        `with ${requestState}`,
      ).toMatchObject(refusal);
    }
    expect(lines()).toEqual(["started"]);
    expect(await call(server, { name: "ask_name", file, requestState: state, inputResponses })).toMatchObject(success);
    expect(await call(server, { name: "ask_name", file, requestState: state, inputResponses })).toMatchObject(refusal);
    expect(lines()).toEqual(["started", "answered Ada"]);
  });

  test("is refused when it belongs to an earlier round", async () => {
    const { file, lines } = openTraces();
    const server = await shared.HTTP();
    const soup = { q1: accept({ choice: "soup" }) };
    const tea = { q2: accept({ choice: "tea" }) };
    const first = stateOf(await call(server, { name: "ask_meal", file }));
    const halfAnswered = await call(server, { name: "ask_meal", file, requestState: first, inputResponses: soup });
    // What was not answered is asked again, and only that.
    expect(Object.keys(halfAnswered.result?.inputRequests ?? {})).toEqual(["q2"]);
    expect(await call(server, { name: "ask_meal", file, requestState: first, inputResponses: tea })).toMatchObject(
      refusal,
    );
    const answered = await call(server, {
      name: "ask_meal",
      file,
      requestState: stateOf(halfAnswered),
      inputResponses: tea,
    });
    expect(answered.result?.inputRequests).toMatchObject({
      q3: { params: { message: "Anything beside soup and tea?" } },
    });
    expect(lines()).toEqual(["started"]);
  });

  test("is refused with other arguments, for another tool, from another caller and at another server", async () => {
    const { file, lines } = openTraces();
    const [server, other] = await Promise.all([shared.HTTP(), startServer()]);
    const requestState = stateOf(await call(server, { name: "ask_name", file }));
    expect(await call(server, { name: "ask_name", file: `${file}.other`, requestState, inputResponses })).toMatchObject(
      refusal,
    );
    expect(await call(server, { name: "ask_meal", file, requestState, inputResponses })).toMatchObject(refusal);
    expect(await call(server, { name: "ask_name", file, requestState, inputResponses, isLocal: true })).toMatchObject(
      refusal,
    );
    expect(await call(other, { name: "ask_name", file, requestState, inputResponses })).toMatchObject(refusal);
    expect(existsSync(`${file}.other`)).toBe(false);
    expect(await call(server, { name: "ask_name", file, requestState, inputResponses })).toMatchObject(success);
    expect(lines()).toEqual(["started", "answered Ada"]);
  });

  test("does not start the run again when the second request declares no elicitation", async () => {
    const { file, lines } = openTraces();
    const server = await shared.HTTP();
    const requestState = stateOf(await call(server, { name: "ask_name", file }));
    await call(server, { name: "ask_name", file, requestState, inputResponses, capabilities: {} });
    expect(lines().filter((line) => line === "started")).toEqual(["started"]);
  });

  test("comes back with a confirmation, and one without content is none", async () => {
    const { file, lines } = openTraces();
    const server = await shared.HTTP();
    const requestState = stateOf(await call(server, { name: "files_erase", file }));
    const answer = await call(server, {
      name: "files_erase",
      file,
      requestState,
      inputResponses: { q1: { action: "accept" } },
    });
    expect(answer.result?.isError).toBe(true);
    expect(answer.result?.content?.[0]?.text).toContain("was declined");
    expect(lines()).toEqual([]);
  });
});

/** What somebody might make of a state: each part changed or gone, and nonsense. */
function forgeriesOf(state: string): string[] {
  const [id, round, tag] = state.split(".") as [string, string, string];
  const change = (text: string) => `${text.slice(0, -2)}${text.at(-2) === "A" ? "B" : "A"}${text.at(-1)}`;
  return [
    `${change(id)}.${round}.${tag}`,
    `${id}.${Number(round) + 1}.${tag}`,
    `${id}.${round}.${change(tag)}`,
    `${id}.${round}.`,
    `${id}.${round}`,
    id,
    "",
    "x".repeat(2_000),
  ];
}

function stateOf(answer: Answer): string {
  expect(answer.result?.resultType).toBe("input_required");
  return answer.result?.requestState as string;
}

interface RawCall {
  readonly name: string;
  readonly file: string;
  readonly requestState?: string;
  readonly inputResponses?: object;
  /** The local user, not an anonymous caller. */
  readonly isLocal?: boolean;
  readonly capabilities?: object;
}

/** One tools/call of 2026-07-28, written by hand. */
async function call(
  server: LocalServer,
  { name, file, isLocal = false, capabilities = { elicitation: {} }, ...retry }: RawCall,
): Promise<Answer> {
  const client = await server.client("2026-07-28", { capabilities, isAnonymous: !isLocal });
  return await client.request("tools/call", { name, arguments: { file }, ...retry });
}
