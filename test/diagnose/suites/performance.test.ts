import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import { weighStart } from "../../../src/diagnose/suites/performance/cold-start.ts";
import { performance } from "../../../src/diagnose/suites/performance/index.ts";
import { system } from "../../../src/system/system.ts";
import { keptBytes } from "../../fixtures/diagnose/breaks/performance.mjs";
import { type Fixture, startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { askAll, breaksOf, checkOf, findingsIn, outcomesIn } from "../../helpers/suite.ts";

passTimeQuickly(5);

let good: Fixture;
let facts: Facts;
let stdioFacts: Facts;

beforeAll(async () => {
  good = await startFixture();
  facts = await surveyed(reached(good.url));
  stdioFacts = { ...facts, transport: "stdio" };
});
// Memory of the servers here: a usual 50 MiB, and what the broken one counts. Tests run at the same time, so the last
// restores it.
beforeAll(() => {
  vi.spyOn(system, "memoryOf").mockImplementation(async (pid) => 50 * 1024 * 1024 + (keptBytes.get(pid) ?? 0));
});
afterAll(async () => {
  vi.restoreAllMocks();
  await good.close();
});

const allPassed = Object.fromEntries(performance.map(({ id }) => [id, "passed"]));

describe("a server that is quick", () => {
  test("passes over stdio, memory included, and tells its figures", async () => {
    const verdicts = await askAll(performance, piped("server.mjs"), { facts: stdioFacts });
    expect(outcomesIn(verdicts)).toEqual(allPassed);
    for (const verdict of Object.values(verdicts))
      expect(verdict).toMatchObject({ data: { figures: expect.any(Object) }, evidence: [{ kind: "measured" }] });
  });

  test("passes over HTTP, where nothing is started and no memory is seen", async () => {
    const skips = { "performance/cold-start": "skipped", "performance/memory-growth": "skipped" };
    expect(outcomesIn(await askAll(performance, reached(good.url), { facts, isFull: false }))).toEqual({
      ...allPassed,
      ...skips,
    });
  });

  test("is not called often when no tool says that it only reads", async () => {
    const tools = facts.tools.map((tool) => ({ ...tool, annotations: {} }));
    const wishes = [{ name: "write_note", arguments: { text: "once" } }];
    for (const check of performance.filter(({ id }) => /calls$|call-/.test(id)))
      expect(await ask(check, reached(good.url), { facts: { ...facts, tools }, tools: wishes })).toMatchObject({
        outcome: "skipped",
        why: expect.stringContaining("readOnlyHint"),
      });
  });
});

/** What each broken server is told. */
const expected: Readonly<Record<string, { readonly severity?: string; readonly title: string }>> = {
  "performance/cold-start": {
    severity: "minor",
    title: "The server needs more than 5 s before it answers for the first time",
  },
  "performance/list-latency": { title: "tools/list takes longer than a second" },
  "performance/list-size": { severity: "minor", title: "The list of tools is larger than 100 kB" },
  "performance/list-size~huge": { severity: "major", title: "The list of tools is larger than 100 kB" },
  "performance/call-latency": { title: "A tool that answers at once stands still now and then" },
  "performance/parallel-calls": { title: "Not every one of 32 calls at the same time is answered" },
  "performance/parallel-calls~swapped": {
    severity: "blocker",
    title: "Calls at the same time get each other's results",
  },
  "performance/parallel-calls~starved": {
    severity: "minor",
    title: "While 32 calls are under way, tools/list waits for seconds",
  },
  "performance/memory-growth": { title: "The server's memory grows with every call" },
};

describe("a server that is wrong in one way is told exactly that", () => {
  const isStarted = (name: string) => name === "performance/cold-start" || name === "performance/memory-growth";

  test.concurrent.each(breaksOf("performance").filter((name) => !isStarted(name)))("%s", async (name) => {
    const { url, close } = await startFixture({ breaks: [name] });
    const found = findingsIn(await askAll(performance, reached(url), { facts, isFull: false }));
    await close();
    expect(found).toEqual([{ id: checkOf(name), ...expected[name] }]);
  });

  test.concurrent.each(breaksOf("performance").filter(isStarted))("%s, over stdio", async (name) => {
    const { modern, legacy } = facts;
    // Every start of this server is slow; only one is waited for.
    const late = { startMs: 60_000 };
    const known = { ...stdioFacts, modern: modern && { ...modern, ...late }, legacy: legacy && { ...legacy, ...late } };
    const check = performance.find(({ id }) => id === checkOf(name));
    if (check === undefined) throw new Error(`There is no check for ${name}.`);
    const verdict = await ask(check, piped("server.mjs", "--break", name), { facts: known });
    expect(findingsIn({ [check.id]: verdict })).toEqual([{ id: check.id, ...expected[name] }]);
  });

  test("and every check has such a server", () => {
    expect(new Set(breaksOf("performance").map(checkOf))).toEqual(new Set(performance.map(({ id }) => id)));
    expect(Object.keys(expected)).toEqual(breaksOf("performance"));
  });
});

test("the largest tools are named where they are larger than the others", async () => {
  const { url, close } = await startFixture({ breaks: ["performance/list-size"] });
  const verdicts = await askAll(
    performance.filter(({ id }) => id === "performance/list-size"),
    reached(url),
    { facts },
  );
  await close();
  expect(verdicts["performance/list-size"]).toMatchObject({
    findings: [{ evidence: [{ text: expect.stringContaining("3 tools") }, { text: "each about 46 kB" }] }],
  });
});

test("a tool that is not quick is found out once, for all checks that look for a quick one", async () => {
  const calls: string[] = [];
  const server = createServer(async (req, res) => {
    const { id, method, params } = JSON.parse((await buffer(req)).toString() || "{}") as {
      id?: number;
      method?: string;
      params?: { name: string };
    };
    if (method === "tools/call") {
      calls.push(params?.name ?? "");
      vi.advanceTimersByTime(350);
    }
    const hello = {
      protocolVersion: "2025-11-25",
      capabilities: { tools: {} },
      serverInfo: { name: "slow", version: "1" },
    };
    if (req.method !== "POST") res.writeHead(405).end();
    else if (id === undefined) res.writeHead(202).end();
    else
      res
        .setHeader("content-type", "application/json")
        .end(JSON.stringify({ jsonrpc: "2.0", id, result: method === "initialize" ? hello : { content: [] } }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const suite = performance.filter(({ id }) => /\/(?:call-latency|parallel-calls)$/.test(id));
  const known = { ...facts, modern: undefined, tools: facts.tools.filter(({ name }) => name === "read_clock") };
  const verdicts = await askAll(suite, reached(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`), {
    facts: known,
  });
  await new Promise((resolve) => server.close(resolve));
  expect(outcomesIn(verdicts)).toEqual({
    "performance/call-latency": "skipped",
    "performance/parallel-calls": "skipped",
  });
  expect(calls).toHaveLength(3);
});

test("a start is weighed by what hosts wait", () => {
  expect([200, 5_000, 5_001, 30_000, 30_001].map(weighStart)).toEqual([
    undefined,
    undefined,
    "minor",
    "minor",
    "major",
  ]);
});
