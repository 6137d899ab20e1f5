import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import { check as answers } from "../../../src/diagnose/suites/protocol/answers.ts";
import { protocol } from "../../../src/diagnose/suites/protocol/index.ts";
import { type Fixture, startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { askAll, askedOf, breaksOf, checkOf, findingsIn, outcomesIn } from "../../helpers/suite.ts";

passTimeQuickly();

let good: Fixture;
let facts: Facts;

beforeAll(async () => {
  good = await startFixture();
  facts = await surveyed(reached(good.url));
});
afterAll(() => good.close());

const passed = (...skips: string[]) =>
  Object.fromEntries(protocol.map(({ id }) => [id, skips.includes(id) ? "skipped" : "passed"]));
const ofPipes = protocol.flatMap(({ id, transport }) => (transport === "stdio" ? [id] : []));
const ofHttp = protocol.flatMap(({ id, transport }) => (transport === "http" ? [id] : []));
const ofModern = ["discover", "unsupported-version", "request-metadata", "result-fields", "routing-headers"].map(
  (name) => `protocol/${name}`,
);
const ofLegacy = ["initialize", "version-negotiation", "early-request", "ping", "version-header", "sessions"].map(
  (name) => `protocol/${name}`,
);

/** The same server, but nothing takes long: only one question needs a call that does. */
function withoutSlow(known: Facts): Facts {
  return {
    ...known,
    tools: known.tools.map((tool) => (tool.name === "read_slowly" ? { ...tool, annotations: {} } : tool)),
  };
}

describe("a server that keeps to the protocol", () => {
  test("passes over HTTP", async () => {
    expect(outcomesIn(await askAll(protocol, reached(good.url), { facts }))).toEqual(passed(...ofPipes));
  });

  test("passes over stdio", async () => {
    const known: Facts = { ...facts, transport: "stdio" };
    expect(outcomesIn(await askAll(protocol, piped("server.mjs"), { facts: known, isFull: false }))).toEqual(
      passed(...ofHttp),
    );
  });

  test("is not asked about the era that it does not speak", async () => {
    const older = await askAll(protocol, reached(good.url), { facts: withoutSlow({ ...facts, modern: undefined }) });
    const newer = await askAll(protocol, reached(good.url), { facts: withoutSlow({ ...facts, legacy: undefined }) });
    const slow = "protocol/cancellation";
    // This server does speak the newer era, and says so when it is asked first.
    expect(outcomesIn(older)).toEqual({ ...passed(...ofPipes, ...ofModern, slow) });
    expect(outcomesIn(newer)).toEqual(passed(...ofPipes, ...ofLegacy, slow));
    for (const id of ofModern)
      expect(older[id]).toEqual({ outcome: "skipped", why: "The server does not speak 2026-07-28." });
    expect(newer["protocol/initialize"]).toEqual({
      outcome: "skipped",
      why: "The server does not speak a revision that begins with initialize.",
    });
  });

  test("is called only where its tools say that they read, and what is missing is told", async () => {
    const known = { ...facts, tools: facts.tools.map((tool) => ({ ...tool, annotations: {} })) };
    const verdicts = await askAll(protocol, reached(good.url), { facts: known });
    expect(verdicts["protocol/tool-results"]).toEqual({
      outcome: "skipped",
      why: "No tool says that it only reads; name one with --tool.",
    });
    expect(verdicts["protocol/cancellation"]).toEqual({
      outcome: "skipped",
      why: "No tool says that it only reads; name one that takes a while with --tool.",
    });
  });
});

type Told = { readonly subject?: string; readonly severity?: string; readonly title: string };

/** What each broken server is told; this table makes the file long, and is read beside the tests that use it. */
const expected: Readonly<Record<string, readonly Told[]>> = {
  "protocol/answers": [{ title: "There is no MCP server at this path (HTTP status 404)" }],
  "protocol/answers~page": [{ title: "A web page answers, not an MCP server" }],
  "protocol/answers~moved": [{ title: "The server redirects to another host (HTTP status 307)" }],
  "protocol/answers~path": [
    { severity: "minor", title: "The server redirects every request to another of its paths: /mcp/" },
  ],
  "protocol/answers~error-page": [{ title: "A web page answers, not an MCP server (HTTP status 501)" }],
  "protocol/answers~sse": [{ title: "The server speaks the HTTP+SSE transport of 2024-11-05" }],
  "protocol/answers~elsewhere": [{ title: "There is no MCP server at this path, but there is one at /" }],
  "protocol/answers~leaves": [{ title: "The server leaves before it answers (exit code 3)" }],
  "protocol/answers~pretty": [{ title: "The server spreads a message over several lines" }],
  "protocol/answers~headers": [{ title: "The server writes Content-Length headers before its messages" }],
  "protocol/initialize": [{ subject: "capabilities.tools", title: "The capability tools is no object" }],
  "protocol/initialize~nameless": [
    { subject: "serverInfo.name", title: "The answer to initialize has no serverInfo.name" },
    { subject: "serverInfo.version", title: "The answer to initialize has no serverInfo.version" },
  ],
  "protocol/initialize~draft": [
    {
      subject: "protocolVersion",
      title: 'initialize is answered with the revision "draft", which does not exist or has no initialize',
    },
  ],
  "protocol/version-negotiation": [{ title: "The server claims to speak a revision that does not exist" }],
  "protocol/early-request": [{ severity: "major", title: "server/discover before initialize is not answered" }],
  "protocol/early-request~status": [
    { severity: "major", title: "server/discover before initialize is answered with HTTP status 500" },
  ],
  "protocol/early-request~leaves": [{ severity: "minor", title: "tools/list before initialize ends the server" }],
  "protocol/early-request~twice": [
    { subject: "twice", severity: "minor", title: "A second initialize makes the server unusable" },
  ],
  "protocol/discover": [
    {
      subject: "serverInfo",
      severity: "minor",
      title: "server/discover does not say what the server is called and which version it is",
    },
  ],
  "protocol/discover~capability": [
    { subject: "capabilities.prompts", severity: "major", title: "The capability prompts is no object" },
  ],
  "protocol/unsupported-version": [
    { severity: "major", title: "A request of a revision that does not exist is answered as if it did" },
  ],
  "protocol/unsupported-version~code": [
    { severity: "major", title: "A request of an unknown revision is refused with another error than −32022" },
  ],
  "protocol/unsupported-version~list": [
    { severity: "major", title: "The error −32022 does not say which revisions are supported" },
  ],
  "protocol/request-metadata": [
    { severity: "minor", title: "A request without clientCapabilities is answered as if it had them" },
  ],
  "protocol/result-fields": [
    {
      subject: "prompts/list resultType",
      severity: "blocker",
      title: "The result of prompts/list has no valid resultType",
    },
  ],
  "protocol/result-fields~hints": [
    { subject: "tools/list ttlMs", severity: "blocker", title: "The result of tools/list has no valid ttlMs" },
  ],
  "protocol/result-fields~discover": [
    {
      subject: "server/discover cacheScope",
      severity: "minor",
      title: "The result of server/discover has no valid cacheScope",
    },
  ],
  "protocol/envelope": [{ subject: "both", severity: "blocker", title: "Answers have a result and an error at once" }],
  "protocol/envelope~version": [{ subject: "jsonrpc", severity: "blocker", title: 'Answers lack "jsonrpc": "2.0"' }],
  "protocol/envelope~message": [{ subject: "error.message", severity: "major", title: "Errors have no message" }],
  "protocol/ids": [{ title: "Answers do not carry the id of their request" }],
  "protocol/ids~number": [{ title: "Answers do not carry the id of their request" }],
  "protocol/ids~large": [
    { severity: "minor", title: "Answers do not carry the id of their request when it is a large number" },
  ],
  "protocol/stdout": [{ title: "The server prints lines on its standard output that are no messages" }],
  "protocol/stdout~log": [{ title: "The server prints lines on its standard output that are no messages" }],
  "protocol/stdout~requests": [
    { subject: "requests", title: "The server sends requests of its own, which 2026-07-28 does not have" },
  ],
  "protocol/content-type": inBoth({ severity: "blocker", title: "Answers come as text/plain" }),
  "protocol/content-type~charset": inBoth({
    severity: "minor",
    title: "Answers are declared as latin1 instead of UTF-8",
  }),
  "protocol/content-type~open": inBoth({
    severity: "minor",
    title: "The stream of an answer stays open after the answer",
  }),
  "protocol/unknown-method": inBoth({ severity: "major", title: "An unknown method is answered with a result" }),
  "protocol/unknown-method~code": inBoth({
    severity: "minor",
    title: "An unknown method is refused with another error than −32601",
  }),
  "protocol/unknown-method~silent": inBoth({ severity: "major", title: "An unknown method is not answered" }),
  "protocol/unknown-tool": [
    { subject: "unknown", title: "A call of a tool that does not exist is answered as a success" },
  ],
  "protocol/unknown-tool~nameless": [
    { subject: "nameless", title: "A call without the name of a tool is answered as a success" },
  ],
  "protocol/bad-message": [
    { subject: "batch", severity: "minor", title: "A batch of requests is answered with HTTP status 500" },
  ],
  "protocol/bad-message~printed": [
    {
      subject: "broken JSON, printed",
      title: "Broken JSON makes the server print what is no message on its standard output",
    },
  ],
  "protocol/notifications": [{ subject: "unknown", title: "A notification is answered with a message" }],
  "protocol/notifications~refused": [{ subject: "initialized", title: "notifications/initialized is refused" }],
  "protocol/notifications~status": [
    {
      subject: "late cancel",
      severity: "minor",
      title: "A notification is accepted with another HTTP status than 202",
    },
  ],
  "protocol/ping": [{ title: "ping is answered with an error" }],
  "protocol/lists": [{ subject: "tools/list", severity: "major", title: "tools/list has items twice" }],
  "protocol/lists~endless": [
    { subject: "prompts/list", title: "prompts/list never ends: it gives a cursor again that it gave before" },
  ],
  "protocol/lists~empty": [
    { subject: "prompts/list", title: "prompts/list never ends: page follows page, and all are empty" },
  ],
  "protocol/lists~undone": [{ subject: "prompts/list", title: "prompts/list is declared, but fails" }],
  "protocol/lists~large": [{ subject: "prompts/list", title: "The answer to prompts/list is too large" }],
  "protocol/lists~nameless": [
    { subject: "prompts/list", severity: "blocker", title: "prompts/list has items without a name" },
  ],
  "protocol/lists~cursor": [
    { subject: "tools/list", severity: "minor", title: "A cursor that tools/list never gave out is accepted" },
  ],
  "protocol/stable-tools": [
    { severity: "minor", title: "The order of the tools changes from one tools/list to the next" },
  ],
  "protocol/stable-tools~drift": [{ title: "Definitions of tools change from one tools/list to the next" }],
  "protocol/stable-tools~gone": [{ title: "The tools change from one tools/list to the next" }],
  "protocol/tool-definitions": [
    {
      subject: "write_note",
      severity: "blocker",
      title: 'The tool write_note has an inputSchema whose type is not "object"',
    },
  ],
  "protocol/tool-definitions~hint": [
    {
      subject: "write_note",
      severity: "blocker",
      title: "The tool write_note has a destructiveHint that is not true or false",
    },
  ],
  "protocol/tool-definitions~name": [
    {
      subject: "write a note",
      severity: "minor",
      title: "The tool write a note has a name with other characters than letters, digits, _ - . or with more than 128",
    },
  ],
  "protocol/tool-results": [
    {
      subject: "read_clock",
      title: "The result of read_clock is not valid: it has an outputSchema, but no structuredContent came",
    },
  ],
  "protocol/tool-results~misfit": [
    {
      subject: "read_clock",
      title: "The result of read_clock is not valid: structuredContent.hour is not of type integer",
    },
  ],
  "protocol/tool-results~content": [
    { subject: "read_clock", title: "The result of read_clock is not valid: content holds a block of an unknown form" },
  ],
  "protocol/cancellation": [{ title: "A call is answered after it was cancelled" }],
  "protocol/version-header": [
    { title: "A request with an unknown MCP-Protocol-Version is not refused with HTTP status 400" },
  ],
  "protocol/routing-headers": [
    { subject: "Mcp-Method", title: "A request with a Mcp-Method of another method is taken" },
    { subject: "no Mcp-Method", title: "A request with no Mcp-Method is taken" },
    { subject: "Mcp-Name", title: "A request with a Mcp-Name of another tool is taken" },
  ],
  "protocol/sessions": [{ subject: "ended", title: "A session that was ended is not refused with HTTP status 404" }],
  "protocol/sessions~characters": [
    { subject: "characters", title: "The session id holds other characters than visible ASCII" },
  ],
  "protocol/sessions~unknown": [
    { subject: "unknown", title: "An unknown session id is not refused with HTTP status 404" },
  ],
  "protocol/http-methods": [
    { subject: "GET", title: "GET is answered neither with a stream nor with HTTP status 405" },
  ],
  "protocol/http-methods~delete": [
    { subject: "DELETE", title: "DELETE is not answered, or with an error of the server" },
  ],
  "protocol/shutdown": [{ title: "The server does not leave when its standard input ends" }],
};

function inBoth({ title, ...told }: Told): Told[] {
  return ["2026-07-28", "2025-11-25"].map((subject) => ({ subject, ...told, title: `${title} (${subject})` }));
}

const started =
  /^protocol\/(?:answers~(?:leaves|pretty|headers)|early-request~(?:leaves|twice)|bad-message~printed|stdout|shutdown)/;
/** Asked in test/system: the processes that a server leaves behind. */
const leftBehind = "protocol/shutdown~child";
const silent = /^protocol\/answers~(?:leaves|pretty|headers)/;

describe("a server that is wrong in one way is told exactly that", () => {
  /** Here what the survey has read is wrong; elsewhere the good server's facts will do. */
  const isDeclared = (name: string) => /answers|initialize|negotiation|early|discover|lists|tool-/.test(name);

  test.concurrent.each(breaksOf("protocol").filter((name) => !started.test(name)))("%s", async (name) => {
    const { url, close } = await startFixture({ breaks: [name] });
    const seen = isDeclared(name) ? await surveyed(reached(url)) : facts;
    const known = name === "protocol/cancellation" ? seen : withoutSlow(seen);
    // Who cannot be spoken to is asked nothing else.
    const suite = known.problem === undefined ? askedOf(name, protocol) : [answers];
    const found = findingsIn(await askAll(suite, reached(url), { facts: known }));
    await close();
    expect(found).toEqual(expected[name]?.map((told) => ({ id: checkOf(name), ...told })));
  });

  /** What only a server that is started can get wrong; the others would start it twenty times more. */
  const overPipes = protocol.filter(({ id, transport }) => transport === "stdio" || id === "protocol/early-request");

  test.concurrent.each(
    breaksOf("protocol").filter((name) => started.test(name) && !silent.test(name) && name !== leftBehind),
  )("%s, over stdio", async (name) => {
    const suite = /shutdown$|bad-message/.test(name) ? protocol.filter(({ id }) => id === checkOf(name)) : overPipes;
    const found = findingsIn(
      await askAll(suite, piped("server.mjs", "--break", name), {
        facts: { ...withoutSlow(facts), transport: "stdio" },
      }),
    );
    expect(found).toEqual(expected[name]?.map((told) => ({ id: checkOf(name), ...told })));
  });

  test.concurrent.each(breaksOf("protocol").filter((name) => silent.test(name)))("%s, over stdio", async (name) => {
    const known: Facts = {
      transport: "stdio",
      modern: undefined,
      legacy: undefined,
      tools: [],
      isLocked: false,
      problem: "no answer within 15000 ms",
    };
    const verdict = await ask(answers, piped("server.mjs", "--break", name), { facts: known, requestMs: 3_000 });
    expect(findingsIn({ [answers.id]: verdict })).toEqual(
      expected[name]?.map((told) => ({ id: checkOf(name), ...told })),
    );
  });

  test("and every check has such a server", () => {
    expect(new Set(breaksOf("protocol").map(checkOf))).toEqual(new Set(protocol.map(({ id }) => id)));
    expect([...Object.keys(expected), leftBehind]).toEqual(breaksOf("protocol"));
  });
});

test("how tasks are declared is told by the suite about tasks, and not here again", async () => {
  const { url, close } = await startFixture({ breaks: ["tasks/capability"] });
  const asked = protocol.filter(({ id }) => id === "protocol/initialize");
  const verdicts = await askAll(asked, reached(url), { facts: await surveyed(reached(url)) });
  await close();
  expect(outcomesIn(verdicts)).toEqual({ "protocol/initialize": "passed" });
});

describe("a call that is cancelled", () => {
  const cancellation = protocol.filter(({ id }) => id === "protocol/cancellation");
  const lasting = (ms: number) => ({
    facts,
    isFull: false,
    tools: [{ name: "read_slowly", arguments: { steps: 1, ms } }],
  });

  test.concurrent("is waited for until it would have ended by itself: silence before that says nothing", async () => {
    const { url, close } = await startFixture({ breaks: ["protocol/cancellation"] });
    const found = findingsIn(await askAll(cancellation, reached(url), lasting(1_500)));
    await close();
    expect(found).toEqual([{ id: "protocol/cancellation", title: "A call is answered after it was cancelled" }]);
  });

  test.concurrent("and is not judged where it takes longer than anybody waits", async () => {
    const [verdict] = Object.values(
      await askAll(cancellation, reached(good.url), {
        ...lasting(9_000),
        facts: { ...facts, tools: facts.tools.slice(1, 2) },
      }),
    );
    expect(verdict).toMatchObject({ outcome: "skipped", why: expect.stringContaining("ends within 3.5 s") });
  });
});

test("what is told does not change from run to run: no figures in notes, no fractions in sentences", async () => {
  const [shutdown, early] = ["protocol/shutdown", "protocol/early-request"].map((id) =>
    protocol.filter((check) => check.id === id),
  );
  const left = await askAll(shutdown ?? [], piped("server.mjs"), { facts: { ...facts, transport: "stdio" } });
  expect(left).toEqual({ "protocol/shutdown": { outcome: "passed" } });
  const older: Facts = {
    ...facts,
    transport: "stdio",
    modern: undefined,
    legacy: facts.legacy && { ...facts.legacy, startMs: 12.345678 },
  };
  const verdict = await askAll(early ?? [], piped("server.mjs", "--break", "protocol/early-request"), {
    facts: older,
    requestMs: 200,
  });
  expect(JSON.stringify(verdict)).toContain("no answer within 212 ms");
});

describe("a bad message over stdio", () => {
  test.concurrent.each([
    ["protocol/bad-message", [{ subject: "batch", title: "A batch of requests ends the conversation" }]],
    ["protocol/notifications", [{ subject: "answered", title: "Notifications are answered" }]],
  ])("%s", async (id, told) => {
    const check = protocol.filter((one) => one.id === id);
    const found = findingsIn(
      await askAll(check, piped("server.mjs", "--break", id), { facts: { ...facts, transport: "stdio" } }),
    );
    expect(found).toEqual(told.map((one) => ({ id, ...one })));
  });
});
