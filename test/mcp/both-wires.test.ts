import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { metaKeys, toEnvelope } from "../../src/wire/envelope.ts";
import { modernRevision, revisions } from "../../src/wire/revisions.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { openInMemory, turns } from "../helpers/in-memory.ts";
import type { Link, Message } from "../helpers/wire.ts";

/**
 * The same frames to a pipe on our own wire and to one that the SDK's server answers: what comes back is the same, but for
 * sentences and for what was decided otherwise (see `isDecided`).
 */
const seed = 20_261_116;
const runs = Number(process.env.MEANWHILE_FUZZ_RUNS ?? 150);

const junk = fc.constantFrom<unknown>(7, "", "x", null, [], {}, true);
const envelope = fc.constantFrom<object>(
  toEnvelope({ name: "fuzz", version: "1" }, {}),
  toEnvelope({ name: "fuzz", version: "1" }, { extensions: { "io.modelcontextprotocol/tasks": {} } }),
  { [metaKeys.revision]: modernRevision, [metaKeys.clientCapabilities]: {} },
);
const badEnvelope = fc.constantFrom<object>(
  { [metaKeys.revision]: "2099-01-01", [metaKeys.clientCapabilities]: {} },
  { [metaKeys.revision]: modernRevision },
  { [metaKeys.revision]: 7, [metaKeys.clientCapabilities]: {} },
  { [metaKeys.revision]: modernRevision, [metaKeys.clientCapabilities]: 7 },
  { [metaKeys.revision]: modernRevision, [metaKeys.clientCapabilities]: {}, [metaKeys.clientInfo]: {} },
  { [metaKeys.revision]: modernRevision, [metaKeys.clientCapabilities]: {}, [metaKeys.logLevel]: "loud" },
);
const handshake = fc.constantFrom(...revisions, "2099-01-01").map((protocolVersion) => ({
  method: "initialize",
  params: { protocolVersion, capabilities: {}, clientInfo: { name: "fuzz", version: "1" } },
}));
const methods = [
  "ping",
  "server/discover",
  "tools/list",
  "tools/call",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "completion/complete",
  "logging/setLevel",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "tasks/cancel",
  "tasks/update",
  "subscriptions/listen",
  "nobody/knows",
  "initialize",
];
const value = fc.oneof(junk, fc.constantFrom("say_hello", "task_status", "nobody", "meanwhile://stats", "debug"));
const params = fc.record(
  {
    name: value,
    arguments: fc.oneof(junk, fc.constant({ name: "Ada" }), fc.constant({ job_id: "none" })),
    uri: value,
    taskId: value,
    cursor: junk,
    level: value,
    task: junk,
    ref: fc.oneof(junk, fc.constant({ type: "ref/resource", uri: "x" })),
    notifications: fc.oneof(junk, fc.constant({ toolsListChanged: true }), fc.constant({ taskIds: ["none"] })),
    inputResponses: junk,
  },
  { requiredKeys: [] },
);
const request = fc.record({ method: fc.constantFrom(...methods), params });
const dressed = fc.tuple(request, fc.oneof({ weight: 5, arbitrary: envelope }, { weight: 1, arbitrary: badEnvelope })).map(([frame, _meta]) => ({
  ...frame,
  params: { ...frame.params, _meta },
}));
const note = fc.constantFrom(
  { method: "notifications/initialized", isNote: true },
  { method: "notifications/cancelled", params: { requestId: 1 }, isNote: true },
);
/** Either era, from its first word on: what both in one make of each other is no concern of anybody's. */
const talk = fc.oneof(
  fc
    .tuple(handshake, fc.array(fc.oneof({ weight: 6, arbitrary: request }, { weight: 1, arbitrary: note }), { maxLength: 12 }))
    .map(([first, rest]) => [first, ...rest]),
  fc
    .tuple(
      fc.constantFrom("server/discover", "tools/list", "nobody/knows"),
      envelope,
      fc.array(fc.oneof({ weight: 8, arbitrary: dressed }, { weight: 1, arbitrary: request }), { maxLength: 12 }),
    )
    .map(([method, _meta, rest]) => [{ method, params: { _meta } }, { method: "tools/list", params: { _meta } }, ...rest]),
);

type Frame = { readonly method: string; readonly params?: object; readonly isNote?: boolean };

async function hear(link: Link, frames: readonly Frame[]): Promise<Map<number, Message>> {
  const answers = new Map<number, Message>();
  link.onMessage((message) => {
    const subject = message.method === undefined ? message.id : (message.params?._meta as Record<string, unknown> | undefined)?.[metaKeys.subscription];
    if (typeof subject === "number") answers.set(subject, message);
  });
  for (const [at, { isNote, ...frame }] of frames.entries())
    link.send({ jsonrpc: "2.0", ...(isNote !== true && { id: at + 100 }), ...frame } as Message, { revision: "" });
  await turns(60);
  await link.close();
  return answers;
}

/** A log is shown to who has asked for a level that there is; the SDK takes any. */
const untold = new Set(["log", "timestamp", "durationMs", "text", "taskId", "io.modelcontextprotocol/model-immediate-response"]);

/** What counts: that there is an answer, its code or its content, without what tells the time. */
function shapeOf(message: Message | undefined): unknown {
  if (message === undefined) return "nothing";
  if (message.error !== undefined) return { code: message.error.code };
  return JSON.parse(JSON.stringify(message, (key, inner: unknown) => (untold.has(key) ? undefined : inner)));
}

/**
 * Where we answer otherwise, on purpose: bad params are -32602 with a sentence, everything is answered, and a request to listen
 * is first looked at like any other, whatever it wants to listen to.
 */
function isDecided({ method }: Frame, own: unknown, sdk: unknown): boolean {
  const codeOf = (shape: unknown) => (shape as { code?: number }).code;
  // A revision that nobody knows is refused, also after one that is known.
  if (codeOf(own) === -32022) return true;
  if (method === "subscriptions/listen" && codeOf(sdk) === -32021) return codeOf(own) === -32601 || codeOf(own) === -32602;
  return codeOf(own) === -32602 && (codeOf(sdk) === -32603 || sdk === "nothing");
}

test("both wires say the same to the same frames", async () => {
  const clock = new FakeClock();
  const hello = defineCommand({ summary: "Say hello", effects: "read", input: z.object({ name: z.string() }), run: ({ name }) => ({ hello: name }) });
  const server = openInMemory({ say_hello: hello }, clock);
  onTestFinished(() => server.close());
  await fc.assert(
    fc.asyncProperty(talk, async (frames) => {
      const [own, sdk] = [await hear(server.openPipe(), frames), await hear(server.openPipe({ hasHook: true }), frames)];
      for (const [at, frame] of frames.entries()) {
        const [ours, theirs] = [shapeOf(own.get(at + 100)), shapeOf(sdk.get(at + 100))];
        if (!isDecided(frame, ours, theirs)) expect(ours, `${at}: ${JSON.stringify(frame)}`).toEqual(theirs);
      }
    }),
    { seed, numRuns: runs },
  );
});
