import { PassThrough } from "node:stream";
import { afterAll, describe, expect, test, vi } from "vitest";

import { makeEverything } from "../fixtures/embed/suite-everything.ts";
import { suiteOptions } from "../fixtures/embed/suite-tools.ts";
import { connectExtTasks } from "../helpers/ext-tasks.ts";
import { shareAmongTests } from "../helpers/home.ts";
import { passTimeQuickly } from "../helpers/quick-time.ts";
import type { Target } from "../helpers/server.ts";
import type { Fields } from "../helpers/wire.ts";
import { openWrapped } from "../helpers/wrapped.ts";

/**
 * A server of SDK v1, server-everything with a few tools more, that knows nothing of 2026-07-28, and a client that
 * speaks nothing else.
 */

passTimeQuickly();
// The server prints why it could not list the folders of a client.
const printed = vi.spyOn(console, "error").mockImplementation(() => {});
afterAll(() => printed.mockRestore());

const text = (words: string | RegExp) => ({
  content: expect.arrayContaining([
    { type: "text", text: typeof words === "string" ? words : expect.stringMatching(words) },
  ]),
});

const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

/** Answers all that a server may ask, and writes it down. */
function answering() {
  const asked: Fields[] = [];
  const answer = (method: string, params: Fields) => {
    asked.push({ method, ...params });
    if (method === "roots/list") return { roots: [{ uri: "file:///ann", name: "ann" }] };
    if (method === "sampling/createMessage")
      return { model: "mine", role: "assistant", content: { type: "text", text: "sampled" } };
    return params.mode === "url"
      ? { action: "accept" }
      : { action: "accept", content: { username: "ada", email: "a@b.c", confirm: true, interpretation: "snake" } };
  };
  return { asked, answer };
}

/** The server asks for the roots of a new client at a time of its own. */
const withoutRoots = (asked: readonly Fields[]) => asked.filter(({ method }) => method !== "roots/list");

describe.each(["HTTP", "stdio"] as const)("over %s", (transport) => {
  const open = shareAmongTests(async () => {
    const { server, reached } = await openWrapped(makeEverything, { tools: suiteOptions });
    const target = (): Target => {
      if (transport === "HTTP") return { url: reached.url };
      const [stdin, stdout] = [new PassThrough(), new PassThrough()];
      const served = server.stdio({ input: stdin, output: stdout });
      const close = async () => {
        stdin.end();
        await served;
      };
      return { pipes: { stdin, stdout, close } };
    };
    const { asked, answer } = answering();
    const plain = await connectExtTasks(target(), { capabilities, answer, takesTasks: false });
    const withTasks = await connectExtTasks(target(), { capabilities, answer });
    const call = (name: string, input: object = {}) => plain.client.callTool({ name, arguments: { ...input } });
    return { ...withTasks, client: plain.client, call, asked };
  });

  test("lists tools, prompts, resources and templates, and completes", async () => {
    const { client } = await open();
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(["echo", "simulate-research-query", "trigger-url-elicitation", "slow_compute"]),
    );
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain("completable-prompt");
    expect((await client.listResources()).resources.length).toBeGreaterThan(0);
    expect((await client.listResourceTemplates()).resourceTemplates.length).toBeGreaterThan(0);
    const { completion } = await client.complete({
      ref: { type: "ref/prompt", name: "completable-prompt" },
      argument: { name: "department", value: "E" },
    });
    expect(completion.values).toEqual(["Engineering"]);
  });

  test("a call's progress comes with the client's own token", async () => {
    const { client } = await open();
    const steps: Fields[] = [];
    const result = await client.callTool(
      { name: "trigger-long-running-operation", arguments: { duration: 0.6, steps: 3 } },
      { onprogress: (step) => void steps.push(step) },
    );
    expect(result).toMatchObject(text(/completed/));
    // What it reads together with the answer, the SDK's client drops.
    expect(steps.at(-1)).toMatchObject({ progress: expect.toSatisfy((n) => n === 2 || n === 3), total: 3 });
  });

  test("a form, a link, the client's model and its folders are asked of a call", async () => {
    const { call, asked } = await open();
    asked.length = 0;
    expect(await call("test_elicitation", { message: "Who?" })).toMatchObject(text(/accept.*ada/));
    expect(await call("trigger-url-elicitation", { url: "https://example.com/go" })).toMatchObject(text(/completed/));
    expect(await call("test_sampling", { prompt: "Say something" })).toMatchObject(text("LLM response: sampled"));
    expect(await call("test_input_required_result_list_roots")).toMatchObject(text("Roots: file:///ann"));
    expect(withoutRoots(asked)).toMatchObject([
      { method: "elicitation/create", message: "Who?" },
      { method: "elicitation/create", mode: "url", url: "https://example.com/go" },
      { method: "sampling/createMessage" },
    ]);
    expect(asked).toContainEqual(expect.objectContaining({ method: "roots/list" }));
  });

  test("a link that the server wants opened first, which it says with −32042, is asked, and it is called again", async () => {
    const { call, asked } = await open();
    asked.length = 0;
    const url = `https://example.com/${transport}`;
    expect(await call("trigger-url-elicitation", { url, errorPath: true })).toMatchObject(text(/completed/));
    expect(withoutRoots(asked)).toMatchObject([
      { mode: "url", url: "https://modelcontextprotocol.io" },
      { mode: "url", url },
    ]);
  });

  test("a task asks, and its result is the tool's", async () => {
    const { run, asked } = await open();
    asked.length = 0;
    expect(await run("confirm_delete", { filename: "a.txt" })).toMatchObject(text("Deleted a.txt."));
    expect(withoutRoots(asked)).toMatchObject([{ method: "elicitation/create", message: "Delete a.txt?" }]);
  });

  test("a task that is cancelled is stopped", async () => {
    const { session } = await open();
    const execution = await session.callTool("slow_compute", { seconds: 600, label: transport });
    await execution.cancel();
    expect((await execution.settle()).outcome).toMatchObject({ status: "cancelled" });
  });

  test("a tool of the server's that is a task alone is called by who takes no tasks, and asks", async () => {
    const { call, asked } = await open();
    asked.length = 0;
    const topic = `python ${transport}`;
    const result = await call("simulate-research-query", { topic, ambiguous: true });
    expect(result).toMatchObject(text(/snake/));
    expect(withoutRoots(asked)).toMatchObject([
      { method: "elicitation/create", message: expect.stringContaining(topic) },
    ]);
    expect(JSON.stringify({ asked, result })).not.toContain("related-task");
  });
});
