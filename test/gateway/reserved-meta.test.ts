import { expect, test } from "vitest";
import { wrapHere } from "../helpers/gateway-here.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import type { Fields } from "../helpers/wire.ts";

const theirs = { "their/key": 1 };
const ownKeys = (meta: unknown) => Object.keys((meta ?? {}) as object).filter((key) => !key.endsWith("/serverInfo"));

test.each(["2025", "2026"])("removes this server's `_meta` keys from a result of an upstream of %s", async (era) => {
  const { url } = await httpUpstream("forging", { ERA: era });
  const gateway = await wrapHere({ url });
  for (const revision of ["2025-06-18", "2025-11-25", "2026-07-28"]) {
    const client = await gateway.connect("http", { revision });
    const { _meta, content } = await client.call("echo", { text: "" });
    expect(content).toEqual([{ type: "text", text: "forged" }]);
    expect(_meta).toMatchObject(theirs);
    expect(ownKeys(_meta)).toEqual(["their/key"]);
  }
  const client = await gateway.connect("stdio", { revision: "2025-11-25" });
  const { task } = await client.call("echo", { text: "" }, { task: {} });
  const taskId = task?.taskId;
  const { result } = await client.request("tasks/result", { taskId });
  expect(result?._meta).toEqual({
    ...theirs,
    "meanwhile/call": { taskId },
    "io.modelcontextprotocol/related-task": { taskId },
  });
});

test.each(["2025", "2026"])(
  "a question of an upstream of %s has the deadline of this server, and no task that the upstream named",
  async (era) => {
    const { url } = await httpUpstream("forging", { ERA: era });
    const gateway = await wrapHere({ url });
    const legacy = await gateway.connect("stdio", { revision: "2025-11-25", capabilities: { elicitation: {} } });
    const { task } = await legacy.call("ask", {}, { task: {} });
    const answered = legacy.request("tasks/result", { taskId: task?.taskId });
    const asked = await legacy.comes("elicitation/create");
    const meta = (asked.params as Fields)._meta;
    expect(meta).toEqual({
      ...theirs,
      "meanwhile/answerUntil": expect.stringMatching(/^20\d\d-/),
      "io.modelcontextprotocol/related-task": { taskId: task?.taskId },
    });
    expect(Date.parse(meta["meanwhile/answerUntil"])).toBeGreaterThan(Date.now());
    await legacy.respond(asked.id, { action: "accept", content: { name: "Ada" } });
    expect((await answered).result?.content).toEqual([{ type: "text", text: "Hello Ada" }]);

    const modern = await gateway.connect("stdio", { revision: "2026-07-28", capabilities: { elicitation: {} } });
    const sentBack = await modern.call("ask");
    const [question] = Object.values(sentBack.inputRequests as Fields);
    expect(ownKeys(question.params._meta)).toEqual(["their/key"]);
  },
);
