/** Whom an upstream over a pipe asks, where nobody can tell which of its calls asks. */
import { expect, test } from "vitest";
import { UpstreamAsks } from "../../src/gateway/upstream-asks.ts";
import type { GuestClient } from "../../src/mcp/guest-client.ts";
import type { ClientConnection } from "../../src/mcp/request.ts";
import type { Message } from "../../src/wire/message.ts";

const roots = { roots: [{ uri: "file:///one" }] };

/** Asks while a call runs that ends before the answer. */
async function askDuringCall(method: string, capabilities: object): Promise<Message> {
  const replies: Message[] = [];
  const whom = { ask: () => Promise.reject(new Error("The call has ended.")) } as unknown as GuestClient;
  const owner = {
    client: { capabilities },
    closed: new AbortController().signal,
    canPush: true,
    ask: async () => roots,
  } as unknown as ClientConnection;
  await new UpstreamAsks((reply) => replies.push(reply)).ask({ id: 1, method, params: {}, whom, owner });
  return replies[0] as Message;
}

test("the session is asked for its roots when the call that ran has ended before it answered", async () => {
  expect(await askDuringCall("roots/list", { roots: {} })).toEqual({ id: 1, result: roots });
});

test.each([
  ["another question than for roots", "sampling/createMessage", { sampling: {} }],
  ["a session that has declared no roots", "roots/list", {}],
])("the error of the ended call stands for %s", async (_title, method, capabilities) => {
  expect(await askDuringCall(method, capabilities)).toMatchObject({ id: 1, error: { code: -32603 } });
});
