import { expect, test, vi } from "vitest";
import { localUser } from "../../src/command/caller.ts";
import { RequestError } from "../../src/errors.ts";
import { silentLog } from "../../src/log.ts";
import { Conversation } from "../../src/mcp/conversation.ts";
import { Backlog } from "../../src/mcp/outbound.ts";
import type { Handler } from "../../src/mcp/request.ts";
import type { Served } from "../../src/mcp/serving.ts";
import type { Message } from "../../src/wire/message.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { turns } from "../helpers/in-memory.ts";

test("what is thrown by mistake is told to the log, and nothing of it to the client; what is thrown on purpose, the other way round", async () => {
  const sent: Message[] = [];
  const error = vi.fn();
  const bug = new Error("a secret of ours");
  const legacy = new Map<string, Handler>([
    ["bug", () => Promise.reject(bug)],
    ["no", () => Promise.reject(new RequestError("params", "`x` must be a text."))],
  ]);
  const served = {
    routerFor: () => ({ legacy }),
    gate: { authorize: () => undefined },
    createTasks2025: () => ({ methods: () => ({}) }),
    guests: undefined,
    log: { ...silentLog, error },
    clock: new FakeClock(),
  } as unknown as Served;
  const outbound = { backlog: new Backlog(), whenLeft: async () => true };
  const way = { send: (message: Message) => void sent.push(message), outbound, exchange: undefined };
  const connection = new Conversation(served, { authentication: { caller: localUser }, door: "stdio", way });
  connection.receive({ id: 1, method: "bug" });
  connection.receive({ id: 2, method: "no" });
  await turns();
  expect(sent).toEqual([
    { id: 1, error: { code: -32603, message: "Internal error" } },
    { id: 2, error: { code: -32602, message: "`x` must be a text." } },
  ]);
  expect(error.mock.calls).toEqual([["a request failed", { method: "bug", error: bug }]]);
});
