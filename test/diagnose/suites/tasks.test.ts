import path from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { Facts } from "../../../src/diagnose/asking/facts.ts";
import type { Check } from "../../../src/diagnose/check.ts";
import type { ToolToCall } from "../../../src/diagnose/diagnosis-target.ts";
import { tasks } from "../../../src/diagnose/suites/tasks/index.ts";
import { allBreaks, type Fixture, startFixture } from "../../fixtures/diagnose/server.mjs";
import { ask, piped, reached, surveyed } from "../../helpers/diagnose.ts";
import { shareAmongTests, temporaryFolder } from "../../helpers/home.ts";
import { passTimeQuickly } from "../../helpers/quick-time.ts";
import { openServer } from "../../helpers/server.ts";
import { askAll, askedOf, breaksOf, checkOf, findingsIn, outcomesIn, type Verdicts } from "../../helpers/suite.ts";

/**
 * Slow enough to be caught running, and quick enough for the checks that wait for the end. Servers over HTTP are in
 * this process: where it is held up, many small steps come after whatever else has waited, a large one may not.
 */
const slow = [{ name: "read_slowly", arguments: { steps: 150, ms: 10 } }];
const quick = [{ name: "read_slowly", arguments: { steps: 60, ms: 10 } }];
/** In a process of its own nothing holds it up. */
const slowApart = [{ name: "read_slowly", arguments: { steps: 30, ms: 100 } }];
const waits = /lifecycle|result|failing|listen|ttl/;
const flags = { tellsTasks: true };
const isOverHttp = ({ transport }: { readonly transport?: string }) => transport !== "stdio";
const overHttp = tasks.filter(isOverHttp);
const allPassed = Object.fromEntries(overHttp.map(({ id }) => [id, "passed"]));
const find = (id: string) => tasks.find((check) => check.id === id) as (typeof tasks)[number];

async function askOverHttp(
  asked: readonly Check[],
  url: string,
  known: Facts,
  ending: readonly ToolToCall[] = quick,
): Promise<Verdicts> {
  const verdicts = await askAll(
    asked.filter(({ id }) => waits.test(id)),
    reached(url),
    { facts: known, tools: ending },
  );
  return {
    ...verdicts,
    ...(await askAll(
      asked.filter(({ id }) => !waits.test(id)),
      reached(url),
      { facts: known, tools: slow },
    )),
  };
}

// They mostly wait.
vi.setConfig({ maxConcurrency: 10 });

passTimeQuickly();

let good: Fixture;
let facts: Facts;
const states = shareAmongTests(() => temporaryFolder());

beforeAll(async () => {
  good = await startFixture({ flags });
  facts = await surveyed(reached(good.url));
});
afterAll(() => good.close());

describe("a server with tasks of both generations", () => {
  test.concurrent("passes everything over HTTP", async () => {
    expect(outcomesIn(await askOverHttp(overHttp, good.url, facts))).toEqual(allPassed);
  });

  test.concurrent("passes over stdio too, and knows its tasks after kill -9", async () => {
    const asked = ["tasks/create", "tasks/cancel", "tasks/unknown-id", "tasks/restart"].map(find);
    const target = piped("server.mjs", "--state", path.join(await states(), "kept"));
    const verdicts = await askAll(asked, target, { facts: { ...facts, transport: "stdio" }, tools: slowApart });
    expect(outcomesIn(verdicts)).toEqual(Object.fromEntries(asked.map(({ id }) => [id, "passed"])));
  });

  test.concurrent("is asked in the generation it declares; the other is left out", async () => {
    const legacyOnly = { ...facts, modern: undefined };
    expect(await ask(find("tasks/listen"), reached(good.url), { facts: legacyOnly, tools: quick })).toEqual({
      outcome: "skipped",
      why: "The server does not declare the tasks of 2026-07-28.",
    });
    expect(
      await ask(find("tasks/list"), reached(good.url), { facts: { ...facts, legacy: undefined }, tools: quick }),
    ).toEqual({
      outcome: "skipped",
      why: "The server does not declare the tasks of 2025-11-25.",
    });
  });

  test.concurrent("is not asked to run a tool that may write: the report says which one to name", async () => {
    const writing = { ...facts, tools: facts.tools.map((tool) => ({ ...tool, annotations: {} })) };
    const verdicts = await askAll(overHttp, reached(good.url), { facts: writing });
    const skips = Object.values(verdicts).flatMap((verdict) => (verdict.outcome === "skipped" ? verdict.why : []));
    expect(skips.length).toBeGreaterThan(6);
    for (const why of skips) expect(why).toMatch(/name one with --tool and --args|only reads/);
    expect(findingsIn(verdicts)).toEqual([]);
  });

  test.concurrent("is not called as a task where a tool does not say that it can", async () => {
    const clockOnly = { ...facts, modern: undefined, tools: facts.tools.filter(({ name }) => name === "read_clock") };
    expect(await ask(find("tasks/create"), reached(good.url), { facts: clockOnly })).toEqual({
      outcome: "skipped",
      why: "No tool that may be called says that it can run as a task (execution.taskSupport); name one with --tool and --args.",
    });
  });

  test.concurrent("a task that has ended before anybody can cancel it says nothing about cancelling", async () => {
    const { url, close } = await startFixture({ flags: { noGap: true } });
    const verdict = await ask(find("tasks/cancel"), reached(url), {
      facts,
      tools: [{ name: "read_slowly", arguments: { steps: 0 } }],
    });
    await close();
    expect(verdict).toEqual({
      outcome: "skipped",
      why: "The task ended before it could be cancelled; name a slower tool with --tool and --args.",
    });
  });
});

test("Meanwhile joins a call to the same one that runs, which is no second task with the same id", async () => {
  const report = path.resolve(import.meta.dirname, "../../../examples/report/commands");
  const server = await openServer({ in: "http", commands: report });
  const target = reached(await server.url(), { authorization: `Bearer ${server.token()}` });
  const tools = [{ name: "report_build", arguments: { quarter: "Q3" } }];
  // In 2026-07-28 it answers so short a call at once.
  const known = { ...(await surveyed(target)), modern: undefined };
  expect(await ask(find("tasks/id"), target, { facts: known, tools })).toEqual({ outcome: "passed" });
});

test("a task that gets the id of one that has ended is told", async () => {
  const { url, close } = await startFixture({
    flags: { ...flags, nextId: () => "3b1f0c52-6f0e-4d0a-9c55-0f3c1c8f7a10" },
  });
  const verdict = await ask(find("tasks/id"), reached(url), { facts: { ...facts, modern: undefined }, tools: slow });
  await close();
  expect(findingsIn({ "tasks/id": verdict })).toEqual([
    { id: "tasks/id", ...legacy("Two tasks have the same id", "blocker") },
  ]);
});

test("a server without tasks is asked nothing", async () => {
  const { tasks: _tasks, ...capabilities } = facts.legacy?.capabilities ?? {};
  const plain: Facts = {
    ...facts,
    modern: undefined,
    legacy: facts.legacy && { ...facts.legacy, capabilities },
    tools: facts.tools.map((tool) => ({ ...tool, taskSupport: "forbidden" })),
  };
  const verdicts = await askAll(overHttp, reached(good.url), { facts: plain });
  expect(new Set(Object.values(outcomesIn(verdicts)))).toEqual(new Set(["skipped"]));
});

interface Expected {
  readonly title: string;
  readonly severity?: string;
  readonly subject?: string;
}

const legacy = (title: string, severity?: string): Expected => ({
  subject: "2025-11-25",
  title,
  ...(severity !== undefined && { severity }),
});
const modern = (title: string, severity?: string): Expected => ({ ...legacy(title, severity), subject: "2026-07-28" });
const both = (title: string, severity?: string): Expected[] => [legacy(title, severity), modern(title, severity)];

/** What each broken server is told. */
const expected: Readonly<Record<string, readonly Expected[]>> = {
  "tasks/capability": [legacy("capabilities.tasks is true where clients expect an object", "blocker")],
  "tasks/capability~list": [legacy("capabilities.tasks.requests is a list where clients expect an object", "blocker")],
  "tasks/capability~without-call": [
    legacy(
      "capabilities.tasks is declared without requests.tools.call, so that no client calls a tool as a task",
      "major",
    ),
  ],
  "tasks/capability~elsewhere": [
    legacy("Tasks are declared as capabilities.tools.taskRequests, which no client looks at"),
  ],
  "tasks/capability~extension-true": [
    modern("The extension io.modelcontextprotocol/tasks is declared as true where clients expect {}", "blocker"),
  ],
  "tasks/capability~extension-settings": [
    modern(
      "The extension io.modelcontextprotocol/tasks is declared with settings, where clients expect {} and otherwise ignore it",
    ),
  ],
  "tasks/capability~extension-misspelt": [
    modern("The extension is declared as io.modelcontextprotocol.tasks; its name is io.modelcontextprotocol/tasks"),
  ],
  "tasks/tool-support": [legacy("Tools say that they can run as tasks, but the server does not declare tasks")],
  "tasks/tool-support~value": [
    legacy("A tool's execution.taskSupport is none of required, optional and forbidden", "blocker"),
  ],
  "tasks/tool-support~none": [legacy("The server declares tasks, but no tool says that it can run as one", "minor")],
  "tasks/required": [{ subject: "read_slowly", title: "read_slowly can be called only as a task" }],
  "tasks/required~extension": [{ subject: "read_slowly", title: "read_slowly can be called only as a task" }],
  "tasks/create": both("A new task is not whole: createdAt is missing"),
  "tasks/create~inline": [legacy("A call made as a task is answered with the tool's result instead of a task")],
  "tasks/create~refused": [legacy("A tool that says it can run as a task refuses to (−32601)")],
  "tasks/create~nested": [modern("The answer to a call made as a task holds none: taskId is missing")],
  "tasks/create~unknown-at-first": both("tasks/get does not know a task that was made a moment ago"),
  "tasks/create~result-type": [modern("tasks/get is answered with another resultType than complete", "minor")],
  "tasks/id": both("Task ids are counted up"),
  "tasks/id~short": both("Task ids are short enough to be guessed"),
  "tasks/id~time": both("Task ids share their beginning or are short: fewer than 122 random bits", "info"),
  "tasks/poll-interval": [
    legacy("pollInterval is so short that clients ask without a pause"),
    modern("pollIntervalMs is so short that clients ask without a pause"),
  ],
  "tasks/poll-interval~long": [
    legacy("pollInterval is longer than five minutes"),
    modern("pollIntervalMs is longer than five minutes"),
  ],
  "tasks/lifecycle": both("A task is shown with a status that does not exist"),
  "tasks/lifecycle~changes": both("A task that had ended changes its status"),
  "tasks/lifecycle~fails": both("tasks/get fails while a task runs"),
  "tasks/result": [legacy("A task's result is another one when it is asked for again")],
  "tasks/result~once": [legacy("A task's result can be fetched only once")],
  "tasks/result~early": [legacy("tasks/result is answered before the task has ended")],
  "tasks/result~shape": [legacy("tasks/result is answered with something that is no tool's result")],
  "tasks/result~unrelated": [legacy("The answer of tasks/result does not name its task", "minor")],
  "tasks/result~missing": [modern("A completed task has no result")],
  "tasks/result~type": [
    modern(
      "The result of a completed task lacks resultType, without which ext-tasks 0.2.2 reports it as failed",
      "minor",
    ),
  ],
  "tasks/failing": both("A task that was given arguments of a wrong type does not end"),
  "tasks/failing~no-error": [modern("A tool's own failure ends a task as failed, without an error")],
  "tasks/cancel": [legacy("tasks/cancel is answered with a task that is not cancelled")],
  "tasks/cancel~undone": both("A cancelled task does not stay cancelled"),
  "tasks/cancel~twice": [modern("A second tasks/cancel is answered with an error")],
  "tasks/cancel~taken-twice": [legacy("A second tasks/cancel is not refused with −32602", "minor")],
  "tasks/cancel~no-result": [legacy("tasks/result of a cancelled task is never answered")],
  "tasks/unknown-id": both("tasks/get of a task that does not exist is answered with a result"),
  "tasks/unknown-id~code": both(
    "tasks/get of a task that does not exist is refused with another code than −32602",
    "minor",
  ),
  "tasks/unknown-id~silent": [legacy("tasks/result of a task that does not exist is not answered")],
  "tasks/uninvited": both("A client that did not ask for a task is answered with one"),
  "tasks/uninvited~undeclared": [
    modern("tasks/get of a client that did not declare tasks is not refused with −32021", "minor"),
  ],
  "tasks/list": [legacy("A task that tasks/get finds is missing in tasks/list", "major")],
  "tasks/list~cursor": [legacy("A cursor that was never given out is taken for one")],
  "tasks/list~endless": [legacy("tasks/list gives the same cursor again and again", "major")],
  "tasks/list~fields": [legacy("tasks/list shows tasks that are not whole: ttl is missing")],
  "tasks/listen": [modern("The server promises to tell of a task's changes, and does not tell of its end")],
  "tasks/listen~other": [modern("notifications/tasks tells another ending than tasks/get")],
  "tasks/listen~unnamed": [modern("notifications/tasks does not say to which subscription it belongs", "minor")],
  "tasks/ttl": both("A task is gone before its ttl is over"),
  "tasks/ttl~asked": [legacy("A task is gone before its ttl is over")],
  "tasks/ttl~running": [legacy("A task is deleted while it runs, because its ttl counts from its creation", "info")],
  "tasks/restart": both("A task is lost when the server is killed and started again"),
};

describe("a server that is wrong in one way is told exactly that", () => {
  /** Here what the survey has read is wrong; elsewhere the good server's facts will do. */
  const isDeclared = (name: string) => /capability|tool-support|required$/.test(name);
  /** What is wrong in one generation is asked in that one only: half the requests. */
  const inGenerationOf = (name: string, known: Facts): Facts => {
    const subjects = new Set(expected[name]?.map(({ subject }) => subject));
    if (subjects.size !== 1) return known;
    return {
      ...known,
      ...(subjects.has("2025-11-25") && { modern: undefined }),
      ...(subjects.has("2026-07-28") && { legacy: undefined }),
    };
  };

  test.concurrent.each(breaksOf("tasks").filter((name) => isOverHttp(find(checkOf(name)))))("%s", async (name) => {
    const { url, close } = await startFixture({ breaks: [name], flags });
    const known = isDeclared(name) ? await surveyed(reached(url)) : facts;
    // What forgets its tasks too early may do so before that check has looked twice, and is told by it as well.
    const asked = askedOf(name, overHttp).filter(({ id }) => name !== "tasks/ttl" || id !== "tasks/lifecycle");
    const verdicts = await askOverHttp(asked, url, inGenerationOf(name, known), allBreaks[name]?.tools ?? quick);
    await close();
    expect(findingsIn(verdicts)).toEqual((expected[name] ?? []).map((one) => ({ id: checkOf(name), ...one })));
    const evidence = Object.values(verdicts).flatMap((verdict) =>
      verdict.outcome === "failed" ? verdict.findings.flatMap((fault) => fault.evidence) : [],
    );
    for (const { kind, text } of evidence) {
      expect(text.length).toBeLessThanOrEqual(401);
      // What differs from run to run is measured, or left out.
      if (kind !== "measured") expect(text).not.toMatch(/\d{4}-\d\d-\d\dT|"taskId":"(?!<task id>)/);
    }
  });

  test.concurrent("tasks/restart", async () => {
    const target = piped("server.mjs", "--break", "tasks/restart", "--state", path.join(await states(), "lost"));
    const verdicts = await askAll([find("tasks/restart")], target, {
      facts: { ...facts, transport: "stdio" },
      tools: slowApart,
    });
    expect(findingsIn(verdicts)).toEqual(
      (expected["tasks/restart"] ?? []).map((one) => ({ id: "tasks/restart", ...one })),
    );
  });

  test("and every check has such a server", () => {
    expect(new Set(breaksOf("tasks").map(checkOf))).toEqual(new Set(tasks.map(({ id }) => id)));
    expect(Object.keys(expected)).toEqual(breaksOf("tasks"));
  });
});
