import path from "node:path";
import { describe, expect, test } from "vitest";
import { gate, kindOf, taskIdOf } from "../helpers/project.ts";
import { openServer } from "../helpers/server.ts";
import type { CallOptions, Result, WireClient } from "../helpers/wire.ts";

/** `_meta["meanwhile/idempotencyKey"]`: one key, one call, one caller. */

const [nov25, y26] = ["2025-11-25", "2026-07-28"] as const;
const commands = ["deferral", "questions"].map((name) =>
  path.resolve(import.meta.dirname, `../fixtures/${name}/commands`),
);
const http = { over: "http", hasNoStream: true } as const;
const open = (env: Record<string, string> = {}) => openServer({ in: "memory", commands, env });
const keyed = (key: string, more: object = {}): CallOptions => ({ meta: { "meanwhile/idempotencyKey": key, ...more } });
const textsOf = ({ structuredContent }: Result) =>
  structuredContent?.messages.filter(({ type }) => type !== "success").map(({ text }) => text);
const jobsOf = async (client: WireClient) =>
  (await client.call("task_list")).structuredContent?.data.jobs as { job_id: string }[];

test.for([nov25, y26])(
  "a key of callers who cannot be told apart is nobody's: each gets a run of its own (%s)",
  async (revision) => {
    const server = await open();
    const strangers = await Promise.all([1, 2].map(() => server.client(revision, { ...http, isAnonymous: true })));
    const results = [];
    // The same call, and other ones that would have been given the first one's result.
    for (const text of ["a secret", "a secret", "something else"])
      for (const stranger of strangers) results.push(await stranger.call("work_quick", { text }, keyed("k")));
    expect(results.map(({ structuredContent }) => structuredContent?.data)).toEqual(
      ["a secret", "a secret", "a secret", "a secret", "something else", "something else"].map((text, at) => ({
        text,
        number: at + 1,
      })),
    );
    for (const result of results) expect(textsOf(result)).toEqual([]);
    // Nor is it the local user's.
    const known = await server.client(revision, http);
    expect((await known.call("work_quick", { text: "mine" }, keyed("k"))).structuredContent?.data).toEqual({
      text: "mine",
      number: 7,
    });
  },
);

test.for([nov25, y26])(
  "a key that belongs to another call is refused by its name, and nothing is changed (%s)",
  async (revision) => {
    const server = await open();
    const client = await server.client(revision === y26 ? "tasks-2026" : revision, http);
    const first = await client.call("work_quick", { text: "a" }, keyed("k"));
    expect(first.structuredContent?.data).toEqual({ text: "a", number: 1 });
    const jobs = await jobsOf(client);
    const work = gate();
    const others: readonly (readonly [string, object])[] = [
      ["work_quick", { text: "b" }],
      ["work_gated", work.input],
      ["work_reading", work.input],
      // It would have been a task from the start.
      ["work_long", work.input],
      ["files_erase", work.input],
    ];
    for (const [tool, input] of others) {
      const refused = await client.call(tool, input, keyed("k"));
      expect(refused, tool).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
      expect(refused.content?.[0]?.text, tool).toMatch(/idempotency key .*another call/);
      expect(refused.content?.[0]?.text, tool).not.toContain("number");
    }
    expect(work.lines()).toEqual([]);
    expect(await jobsOf(client)).toEqual(jobs);
    expect((await client.call("work_quick", { text: "c" })).structuredContent?.data, "nothing else was run").toEqual({
      text: "c",
      number: 2,
    });
    expect((await client.call("work_quick", { text: "a" }, keyed("k"))).structuredContent?.data).toEqual({
      text: "a",
      number: 1,
    });
  },
);

describe("the note of a repeated call", () => {
  const repeated = /^This idempotency key started the run \d+ s ago; a fresh key starts another\.$/;

  test("says that its key has begun the run, and what starts another; and that is so", async () => {
    const client = await (await open()).client(nov25, http);
    const first = await client.call("work_quick", { text: "a" }, keyed("k"));
    expect(textsOf(first)).toEqual([]);
    for (const options of [keyed("k"), keyed("k", { "meanwhile/new": true })]) {
      const again = await client.call("work_quick", { text: "a" }, options);
      expect(again.structuredContent?.data).toEqual({ text: "a", number: 1 });
      expect(textsOf(again)).toEqual([expect.stringMatching(repeated)]);
    }
    const fresh = await client.call("work_quick", { text: "a" }, keyed("fresh"));
    expect(fresh.structuredContent?.data).toEqual({ text: "a", number: 2 });
    expect(textsOf(fresh)).toEqual([]);
  });

  test("says so for a task, too", async () => {
    const client = await (await open()).client("tasks-2026", http);
    const work = gate();
    const [first, again] = [
      await client.call("work_long", work.input, keyed("k")),
      await client.call("work_long", work.input, keyed("k")),
    ];
    expect([kindOf(first), taskIdOf(again)]).toEqual(["task of 2026", taskIdOf(first)]);
    expect(first._meta?.["meanwhile/call"]).toBeUndefined();
    expect(again._meta?.["meanwhile/call"]).toEqual({ note: expect.stringMatching(repeated) });
    work.open();
  });
});

describe("where nothing may be deferred", () => {
  const settings = { MEANWHILE_AUTO_TASK_REQUIRE_CLIENT_CAP: "1" };
  const sentence =
    /«What is your name\?», and this client cannot show questions; run it in a terminal: meanwhile ask name/;

  test("a call with a key that asks something ends with a sentence, as it does without one", async () => {
    const client = await (await open(settings)).client(nov25);
    const works = [gate(), gate(), gate()] as const;
    const calls = [
      client.call("ask_name", works[0].input),
      client.call("ask_name", works[1].input, keyed("k")),
      client.call("ask_name", works[2].input, keyed("twice")),
      client.call("ask_name", works[2].input, keyed("twice")),
    ];
    for (const result of await Promise.all(calls)) {
      expect(result).toMatchObject({ isError: true, structuredContent: { success: false, data: {} } });
      expect(result.content?.[0]?.text).toMatch(sentence);
    }
    expect(works[2].starts()).toBe(1);
    await works[1].seen("stopped");
    const again = await client.call("ask_name", works[1].input, keyed("k"));
    expect(again.content?.[0]?.text, "the key remembers it").toMatch(sentence);
    expect(works[1].starts()).toBe(1);
  });

  test("MEANWHILE_AUTO_TASK=0: a command that runs only as a task is one all the same, for a client that takes tasks", async () => {
    const client = await (await open({ MEANWHILE_AUTO_TASK: "0" })).client("tasks-2026");
    const result = await client.call("work_always");
    expect(kindOf(result)).toBe("task of 2026");
    expect(kindOf(await client.call("work_quick"))).toBe("answer");
  });
});
