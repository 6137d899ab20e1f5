import { expect, test } from "vitest";
import { modernWithTasks } from "../../../src/daemon/carry/kept-answers.ts";
import { StandIn } from "../../../src/daemon/carry/stand-in.ts";
import { legacyRevisions, modernRevision, tasksExtension } from "../../../src/wire/revisions.ts";

const clientInfo = { name: "client", version: "1" };
const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
const envelope = {
  "io.modelcontextprotocol/protocolVersion": modernRevision,
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": clientInfo,
};

/** Says in which revision each of these is answered; undefined where it waits for the daemon. */
function answersTo(...messages: readonly object[]): (string | undefined)[] {
  const known = new Set(["initialize", "server/discover", "ping", "tools/list", "prompts/list"]);
  const standIn = new StandIn((revision, method) => (known.has(method) ? revision : undefined));
  return messages.map(
    (message, at) =>
      standIn.answer(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: at, params: {}, ...message })))?.result,
  );
}

const initialize = (params: object = hello) => ({ method: "initialize", params });
const list = (params: object = {}) => ({ method: "tools/list", params });

test("a session speaks the revision of its handshake; an unknown one ends in the newest with a handshake", () => {
  for (const revision of legacyRevisions)
    expect(answersTo(initialize({ ...hello, protocolVersion: revision }), list(), { method: "ping" })).toEqual([
      revision,
      revision,
      revision,
    ]);
  expect(answersTo(initialize({ ...hello, protocolVersion: "1999-01-01" }), list())).toEqual([
    "2025-11-25",
    "2025-11-25",
  ]);
  expect(answersTo(initialize({ ...hello, protocolVersion: modernRevision }))).toEqual(["2025-11-25"]);
});

test("a client of 2026-07-28 that takes tasks is answered as such clients were before", () => {
  const capabilities = { extensions: { [tasksExtension]: {} } };
  const _meta = { ...envelope, "io.modelcontextprotocol/clientCapabilities": capabilities };
  expect(answersTo(list({ _meta }), list({ _meta: envelope }))).toEqual([modernWithTasks, modernRevision]);
});

test("a request of 2026-07-28 says so itself, and a probe decides nothing", () => {
  expect(answersTo({ method: "server/discover", params: { _meta: envelope } }, list({ _meta: envelope }))).toEqual([
    modernRevision,
    modernRevision,
  ]);
  expect(answersTo({ method: "server/discover", params: { _meta: envelope } }, initialize(), list())).toEqual([
    modernRevision,
    "2025-06-18",
    "2025-06-18",
  ]);
  expect(answersTo(list({ _meta: envelope }), initialize(), list())).toEqual([modernRevision, undefined, undefined]);
});

test("notifications are never answered, and decide nothing", () => {
  expect(answersTo({ id: undefined, method: "notifications/initialized" }, initialize())).toEqual([
    undefined,
    "2025-06-18",
  ]);
});

test("what only the daemon can answer waits for it, and the rest of the session does not", () => {
  const call = { method: "tools/call", params: { name: "x" } };
  expect(answersTo(initialize(), call, list(), list({ cursor: "2" }), list())).toEqual([
    "2025-06-18",
    undefined,
    "2025-06-18",
    undefined,
    "2025-06-18",
  ]);
  expect(answersTo(initialize(), list({ _meta: { progressToken: 1 } }), initialize())).toEqual([
    "2025-06-18",
    undefined,
    undefined,
  ]);
});

test.for([
  ["a request before any handshake", list()],
  ["a handshake without a name", initialize({ ...hello, clientInfo: {} })],
  ["a handshake without capabilities", initialize({ ...hello, capabilities: undefined })],
  ["a handshake with an envelope", initialize({ ...hello, _meta: envelope })],
  [
    "an envelope of an unknown revision",
    list({ _meta: { ...envelope, "io.modelcontextprotocol/protocolVersion": "2099-01-01" } }),
  ],
  ["an envelope that wants a log", list({ _meta: { ...envelope, "io.modelcontextprotocol/logLevel": "info" } })],
  [
    "an envelope without capabilities",
    list({ _meta: { ...envelope, "io.modelcontextprotocol/clientCapabilities": undefined } }),
  ],
  ["an id that is none", { ...initialize(), id: 1.5 }],
  ["another JSON-RPC", { ...initialize(), jsonrpc: "1.0" }],
  ["params that are a list", { method: "initialize", params: [] }],
  ["a request that is too long", initialize({ ...hello, more: "x".repeat(100_000) })],
] as const)("%s is the daemon's to judge, and so is all that follows", ([, first]) => {
  expect(answersTo(first, initialize(), list())).toEqual([undefined, undefined, undefined]);
});

test("a line that is no message is the daemon's to judge", () => {
  const standIn = new StandIn(() => "{}");
  expect(standIn.answer(Buffer.from("{"))).toBeUndefined();
  expect(standIn.answer(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, ...initialize() })))).toBeUndefined();
});
