import { expect, onTestFinished, test } from "vitest";
import { anonymous, type Caller, callerKey, localUser, userCaller } from "../../src/command/caller.ts";
import { defineCommand } from "../../src/command/command.ts";
import { originOf } from "../../src/mcp/origin-of.ts";
import type { ClientRequest } from "../../src/mcp/request.ts";
import { Worker } from "../../src/task/worker.ts";
import { openEngine } from "../helpers/engine.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { foreign } from "../helpers/foreign.ts";

const own = defineCommand({ summary: "Own", run: () => ({}) });
const theirs = foreign(async () => ({ content: [] }));
const details = { name: "Ada", client: "c", scopes: ["read", "write"], groups: ["ops"] };
const ada = userCaller({ issuer: "https://issuer.example", subject: "ada" }, details);

function asked(caller: Caller, capabilities: object = {}): ClientRequest {
  const connection = { folder: "/work", session: "s1" };
  return {
    caller,
    connection,
    meta: {},
    inputResponses: {},
    client: { isModern: true, capabilities },
  } as unknown as ClientRequest;
}

test("as much is known of a client as a run may need", () => {
  const origin = { door: "mcp", folder: "/work" };
  expect(originOf(asked(localUser, { sampling: {}, elicitation: {} }), own)).toEqual(origin);
  expect(originOf(asked(localUser, { roots: {} }), own)).toEqual({
    ...origin,
    client: { capabilities: { roots: {} } },
  });
  expect(originOf(asked(ada), own)).toEqual({ ...origin, client: { caller: details } });
  expect(originOf(asked(ada, { elicitation: { url: {} }, sampling: {}, tasks: {} }), theirs)).toEqual({
    ...origin,
    client: {
      session: "s1",
      isModern: true,
      capabilities: { elicitation: { url: {} }, sampling: {} },
      caller: details,
    },
  });
});

test("what a client declares is kept no longer than such declarations are", () => {
  const long = { note: "x".repeat(10_000) };
  const { client } = originOf(asked(anonymous, { roots: long, sampling: true }), theirs);
  expect(client?.capabilities).toEqual({ roots: {}, sampling: {} });
});

test("a run knows what its caller was granted, in a later attempt too", async () => {
  const seen: Caller[] = [];
  const command = defineCommand({
    summary: "Know",
    retry: { attempts: 2, backoff: 1 },
    run(_input, task) {
      seen.push(task.caller);
      if (task.attempt === 1) throw new Error("once more");
    },
  });
  const clock = new FakeClock();
  const entry = { command, toolName: "know", path: ["know"], file: "know.ts" };
  const { store, engine, history, facts } = openEngine(clock);
  const worker = new Worker({ ...facts, find: () => entry });
  onTestFinished(async () => {
    await worker.stop(0);
    await history.flush();
    await store.close();
  });
  const caller = callerKey(ada);
  const origin = originOf(asked(ada), command);
  const { task } = await engine.create({ entry, input: {}, caller, origin, reason: "test" });
  worker.start();
  await engine.wait(caller, task.taskId, { until: ({ notBefore }) => notBefore > clock.now() });
  clock.advance(1_000);
  await engine.wait(caller, task.taskId);
  expect(seen).toEqual([ada, ada]);
});
