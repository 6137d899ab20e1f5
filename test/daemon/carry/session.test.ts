import { describe, expect, test } from "vitest";
import { Session } from "../../../src/daemon/carry/session.ts";

const line = (message: object) => Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
const read = (lines: readonly Buffer[]) =>
  lines.map((buffer) => JSON.parse(buffer.toString("utf8")) as Record<string, unknown>);
const initialize = {
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", clientInfo: { name: "a", version: "1" } },
};
const subscriptionId = "io.modelcontextprotocol/subscriptionId";

/** A session that has shaken hands. */
function begun(): Session {
  const session = new Session();
  session.sent(line(initialize));
  expect(session.received(line({ id: 1, result: {} }))).toBe(true);
  session.sent(line({ method: "notifications/initialized" }));
  return session;
}

describe("the next daemon hears", () => {
  test("how the session began, under ids of our own, and its answers to that stay with us", () => {
    const session = begun();
    session.sent(line({ id: 2, method: "logging/setLevel", params: { level: "debug" } }));
    session.received(line({ id: 2, result: {} }));
    for (const [id, uri] of [
      [3, "a:1"],
      [4, "a:2"],
    ] as const) {
      session.sent(line({ id, method: "resources/subscribe", params: { uri } }));
      session.received(line({ id, result: {} }));
    }
    session.sent(line({ id: 5, method: "resources/unsubscribe", params: { uri: "a:1" } }));
    session.received(line({ id: 5, result: {} }));

    expect(session.lost()).toEqual([]);
    const replayed = read(session.replay());
    expect(replayed.map(({ method }) => method)).toEqual([
      "initialize",
      "notifications/initialized",
      "logging/setLevel",
      "resources/subscribe",
    ]);
    expect(replayed[0]).toMatchObject({ params: initialize.params });
    expect(replayed[3]).toMatchObject({ params: { uri: "a:2" } });
    const ids = replayed.flatMap(({ id }) => id ?? []);
    expect(new Set(ids).size).toBe(3);
    for (const id of ids)
      expect(session.received(line({ id, result: {} })), `the answer to ${JSON.stringify(id)}`).toBe(false);
    expect(session.received(line({ id: ids[0], result: {} })), "a second answer is nobody's").toBe(true);
  });

  test("how the tools were last listed to a client that takes tasks of 2026-07-28", () => {
    const session = new Session();
    const list = (id: number, extensions: object) => {
      const capabilities = { "io.modelcontextprotocol/clientCapabilities": { extensions } };
      session.sent(line({ id, method: "tools/list", params: { _meta: capabilities } }));
      session.received(line({ id, result: {} }));
    };
    list(1, { "io.modelcontextprotocol/tasks": {} });
    const [replayed, ...others] = read(session.replay());
    expect([replayed?.method, others]).toEqual(["tools/list", []]);
    expect(session.received(line({ id: replayed?.id, result: {} }))).toBe(false);
    list(2, {});
    expect(session.replay()).toEqual([]);
  });

  test("the age of each request, which counts as bytes that the daemon has to hear", () => {
    const session = new Session();
    session.sent(line({ id: 1, method: "tools/call" }), 100, 1_000);
    expect(session.lost(0)).toEqual([]);
    const replayed = session.replay(4_000);
    expect(read(replayed)).toMatchObject([{ meanwhile: "waited", ms: 3_000 }, { id: 1 }]);
    const bytes = replayed.reduce((sum, { length }) => sum + length + 1, 0);
    expect(session.lost(bytes - 1), "its last byte was not heard").toEqual([]);
    session.replay(4_000);
    expect(session.lost(bytes)).toHaveLength(1);
  });

  test("nothing of a session that has none: a client of 2026-07-28", () => {
    const session = new Session();
    session.sent(line({ id: 1, method: "tools/list" }));
    session.received(line({ id: 1, result: {} }));
    expect(session.lost()).toEqual([]);
    expect(session.replay()).toEqual([]);
  });

  test("an initialize that was not answered once, as the client wrote it", () => {
    const session = new Session();
    session.sent(line(initialize));
    session.lost();
    expect(read(session.replay())).toEqual([{ jsonrpc: "2.0", ...initialize }]);
    expect(session.received(line({ id: 1, result: {} }))).toBe(true);
  });

  test("what may be asked twice, after the beginning", () => {
    const session = begun();
    session.sent(line({ id: 2, method: "tools/list", params: { cursor: "x" } }));
    expect(session.lost()).toEqual([]);
    expect(read(session.replay()).at(-1)).toEqual({
      jsonrpc: "2.0",
      id: 2,
      method: "tools/list",
      params: { cursor: "x" },
    });
    expect(session.received(line({ id: 2, result: {} }))).toBe(true);
    expect(session.isOwed).toBe(false);
  });
});

describe("the client hears", () => {
  test("an error for a call whose daemon has ended, and only one", () => {
    const session = begun();
    session.sent(line({ id: "c", method: "tools/call", params: { name: "x" } }));
    session.sent(line({ id: "u", method: "tasks/cancel", params: { taskId: "t" } }));
    const [call, cancel, ...others] = session.lost() as { id: string; error: { code: number; message: string } }[];
    expect(call).toMatchObject({
      id: "c",
      error: { code: -32603, message: expect.stringContaining("its outcome is not known") },
    });
    expect(cancel).toMatchObject({ id: "u", error: { code: -32603, message: expect.stringContaining("ask again") } });
    expect(others).toEqual([]);
    expect(session.lost()).toEqual([]);
    expect(read(session.replay()).filter(({ id }) => id === "c" || id === "u")).toEqual([]);
  });

  test("an error for what has ended two daemons: it is not asked a third time", () => {
    const session = begun();
    session.sent(line({ id: 2, method: "resources/read", params: { uri: "a:b" } }));
    expect(session.lost()).toEqual([]);
    session.replay();
    expect(session.lost()).toMatchObject([{ id: 2, error: { code: -32603 } }]);
    expect(session.isOwed).toBe(false);
  });

  test("errors for everything when no daemon will come: that nobody heard it, and why, and never that its outcome is not known", () => {
    const session = begun();
    session.sent(line({ id: 1, method: "tools/call" }), 100);
    session.sent(line({ id: 2, method: "tools/call" }), 200);
    expect(session.lost(100)).toMatchObject([
      { id: 1, error: { message: expect.stringContaining("its outcome is not known") } },
    ]);
    session.sent(line({ id: 3, method: "tools/list" }));
    session.sent(line({ id: 4, method: "tools/call" }));
    const notRun =
      "The call was not run: no daemon could be reached. Its config is broken. Mend that, then call again.";
    const notAsked = "Nobody was asked: no daemon could be reached. Its config is broken. Mend that, then ask again.";
    expect(session.giveUp("Its config is broken.")).toEqual([
      { id: 2, error: { code: -32603, message: notRun } },
      { id: 3, error: { code: -32603, message: notAsked } },
      { id: 4, error: { code: -32603, message: notRun } },
    ]);
    expect(session.giveUp("")).toEqual([]);
  });

  test("that a question is off when whoever asked it is gone, unless it was answered", () => {
    const session = begun();
    expect(session.received(line({ id: 70, method: "elicitation/create" }))).toBe(true);
    session.received(line({ id: 71, method: "elicitation/create" }));
    session.sent(line({ id: 71, result: { action: "decline" } }));
    expect(session.lost()).toEqual([
      { method: "notifications/cancelled", params: { requestId: 70, reason: expect.any(String) } },
    ]);
    expect(session.lost()).toEqual([]);
  });

  test("nothing about a request that it has cancelled", () => {
    const session = begun();
    session.sent(line({ id: 2, method: "tools/call" }));
    session.sent(line({ method: "notifications/cancelled", params: { requestId: 2 } }));
    expect(session.lost()).toEqual([]);
  });
});

describe("a subscription of 2026-07-28", () => {
  const acknowledged = line({
    method: "notifications/subscriptions/acknowledged",
    params: { _meta: { [subscriptionId]: "l" } },
  });

  test("goes on with every daemon that comes, and its client hears once that it stands", () => {
    const session = new Session();
    session.sent(line({ id: "l", method: "subscriptions/listen", params: {} }));
    expect(session.isOwed).toBe(true);
    expect(session.received(acknowledged)).toBe(true);
    expect(session.isOwed).toBe(false);
    for (let daemon = 2; daemon <= 4; daemon++) {
      expect(session.lost(), `daemon ${daemon}`).toEqual([]);
      expect(read(session.replay())).toMatchObject([{ id: "l", method: "subscriptions/listen" }]);
      expect(session.received(acknowledged)).toBe(false);
    }
  });

  test("whose number is 0 is known by it", () => {
    const session = new Session();
    session.sent(line({ id: 0, method: "subscriptions/listen", params: {} }));
    const standing = line({
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: { [subscriptionId]: 0 } },
    });
    expect(session.received(standing)).toBe(true);
    session.lost();
    session.replay();
    expect(session.received(standing)).toBe(false);
  });

  test("that no daemon has let stand yet is refused with the second", () => {
    const session = new Session();
    session.sent(line({ id: "l", method: "subscriptions/listen", params: {} }));
    expect(session.lost()).toEqual([]);
    session.replay();
    expect(session.lost()).toMatchObject([{ id: "l", error: { code: -32603 } }]);
  });
});

test.for([
  "no JSON",
  "[]",
  "null",
  "7",
  '"text"',
  "{}",
  '{"method":"notifications/cancelled"}',
  '{"method":"notifications/cancelled","params":null}',
  '{"method":"resources/subscribe","id":1,"params":null}',
  '{"id":null,"method":"ping"}',
])("a line that is no proper message harms nothing: %s", (text) => {
  const session = begun();
  session.sent(Buffer.from(text));
  session.received(Buffer.from(text));
  session.lost();
  expect(read(session.replay())[0]).toMatchObject({ method: "initialize" });
});
