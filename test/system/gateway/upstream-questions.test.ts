import { describe, expect, test, vi } from "vitest";
import { WrapHome } from "../../helpers/gated.ts";
import { sdkCommand, sdkUrl, wrapHere } from "../../helpers/gateway-here.ts";
import { shareAmongTests } from "../../helpers/home.ts";
import { casesOf } from "../../helpers/rounds.ts";
import { type Fields, handleOf, type Message, resultOf, type WireClient } from "../../helpers/wire.ts";

const wait = { timeout: 50_000, interval: 20 };
const able = { elicitation: { form: {}, url: {} } };
const accept = (content: Fields) => ({ action: "accept", content });
const textIn = (result: unknown) => (result as { content?: readonly Fields[] }).content?.[0]?.text as string;

/** What an upstream asks in a call, and how the client answers each. */
type Answers = (question: Fields) => Fields;

/** A client before 2026-07-28 is asked while it waits, later ones in the answer. */
async function callAndAnswer(client: WireClient, tool: string, answers: Answers): Promise<string> {
  if (client.revision < "2026-07-28") {
    const stop = client.onMessage(({ id, method, params }: Message) => {
      if (method === "elicitation/create") void client.respond(id, answers(params ?? {}));
    });
    const result = await client.call(tool);
    stop();
    return textIn(result);
  }
  const first = await client.request("tools/call", { name: tool, arguments: {} });
  const { inputRequests, requestState } = resultOf(first) as Fields;
  const entries = Object.entries(inputRequests as Record<string, Fields>);
  const inputResponses = Object.fromEntries(entries.map(([key, { params }]) => [key, answers(params)]));
  return textIn(
    (await client.request("tools/call", { name: tool, arguments: {}, inputResponses, requestState })).result,
  );
}

describe.each(["2025", "2026"] as const)("13: an upstream of %s", (era) => {
  const shared = shareAmongTests(async () => await wrapHere(await sdkUrl(era)));
  const connect = async (revision: string, capabilities: object = able) =>
    await (await shared()).connect("stdio", { revision, capabilities });

  test.each(["2025-11-25", "2026-07-28"])(
    "13: asks a client of %s by a form, or a link, and hears what it says",
    async (revision) => {
      const client = await connect(revision);
      const asked: Fields[] = [];
      const yes = (question: Fields) => {
        asked.push(question);
        return question.mode === "url" ? { action: "accept" } : accept({ name: "Ada" });
      };
      expect(await callAndAnswer(client, "ask", yes)).toBe("Hello Ada");
      expect(await callAndAnswer(client, "ask_link", yes)).toBe("Hello link");
      expect(asked).toMatchObject([
        { message: "What is your name?", requestedSchema: { required: ["name"] } },
        { mode: "url", url: "https://example.com/in" },
      ]);
      for (const action of ["decline", "cancel"])
        expect(await callAndAnswer(client, "ask", () => ({ action }))).toBe(action);
    },
  );

  test("13: asks two things at once, which are answered in whichever order", async () => {
    const client = await connect("2025-11-25");
    const { answer } = client.startCall("ask_both");
    const about = async (what: string) =>
      (await client.comes("elicitation/create", ({ params }) => params?.message === `What is your ${what}?`)).id;
    const [name, city] = [await about("name"), await about("city")];
    await client.respond(city, accept({ city: "Bern" }));
    await client.respond(name, { action: "decline" });
    expect(textIn((await answer).result)).toBe("decline, Hello Bern");
    const both = (question: Fields) => accept(question.message.includes("city") ? { city: "Bern" } : { name: "Ada" });
    expect(await callAndAnswer(await connect("2026-07-28"), "ask_both", both)).toBe("Hello Ada, Hello Bern");
  });

  test("13: is answered by tools where a client cannot be asked; a link is for a person", async () => {
    const client = await connect("2025-06-18", {});
    const handle = handleOf(await client.call("ask_both"));
    expect(handle.status).toBe("input_required");
    const { data } = (await client.call("task_status", { job_id: handle.job_id })).structuredContent ?? {};
    const questions = (data?.questions ?? handle.questions) as readonly Fields[];
    expect(questions).toHaveLength(2);
    const answers = Object.fromEntries(questions.map(({ key, message }) => [key, { [fieldIn(message)]: "Ada" }]));
    await client.call("task_answer", { job_id: handle.job_id, answers });
    expect(textIn(await client.call("task_result", { job_id: handle.job_id }))).toBe("Hello Ada, Hello Ada");
    expect(JSON.stringify(await client.call("ask_link"))).toContain("https://example.com/in");
  });

  test("13: that asks a task whose client has gone is answered by the next", async () => {
    const first = await connect("2025-11-25");
    const { task } = await first.call("ask", {}, { task: {} });
    const status = async (client: WireClient) =>
      expect((await client.request("tasks/get", { taskId: task?.taskId })).result?.status).toBe("input_required");
    await vi.waitFor(() => status(first), wait);
    await first.close();
    const next = await connect("2025-11-25");
    await status(next);
    const { answer } = next.start("tasks/result", { taskId: task?.taskId });
    const { id } = await next.comes("elicitation/create");
    await next.respond(id, accept({ name: "Ada" }));
    expect(textIn((await answer).result)).toBe("Hello Ada");
  });
});

const fieldIn = (message: string) => /your (\w+)/.exec(message)?.[1] as string;

test.each(casesOf(["2025", "2026"] as const, 1))(
  "13: what an upstream of %s asks is answered in the terminal",
  async (era) => {
    const home = new WrapHome();
    const { command = "", args = [] } = sdkCommand(era);
    const client = await home.connect(["--name", "theirs", "--", command, ...args]);
    const { task } = await client.call("ask", {}, { task: {} });
    const taskId = task?.taskId ?? "";
    const state = async () => (await client.request("tasks/get", { taskId })).result?.status;
    await vi.waitFor(async () => expect(await state()).toBe("input_required"), wait);
    expect((await home.terminal("tasks", "list")).stdout).toContain("What is your name?");
    expect(await home.terminal("tasks", "answer", taskId, "name=Ada")).toMatchObject({ code: 0 });
    expect(textIn((await client.request("tasks/result", { taskId })).result)).toBe("Hello Ada");
  },
);
