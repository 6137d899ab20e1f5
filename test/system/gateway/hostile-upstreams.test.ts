import { describe, expect, test, vi } from "vitest";
import { serveHttp } from "../../fixtures/gateway/http.mjs";
import { namesIn, serveGateway, textIn } from "../../helpers/gateway.ts";
import { cleanUp, shareAmongTests } from "../../helpers/home.ts";
import { type CommandMode, commandUpstream, type HttpMode } from "../../helpers/upstreams.ts";
import type { Result, WireClient } from "../../helpers/wire.ts";

/** What one that misbehaves is asked, and what is to come of it. */
interface Ordeal {
  readonly mode: CommandMode | HttpMode;
  /** It is found at an address, and not started. */
  readonly isRemote?: true;
  readonly config?: object;
  check(client: Asking): Promise<void>;
}

interface Asking {
  readonly client: WireClient;
  readonly names: readonly string[];
  readonly logged: readonly string[];
  call(tool: string, input?: object, options?: { task: object }): Promise<Result>;
}

const waiting = { timeout: 50_000 };
const failureIn = ({ isError, structuredContent }: Result) => [isError, structuredContent?.messages[0]?.text];
const echoes = async ({ call }: Asking) => expect(textIn(await call("echo", { text: "still" }))).toBe("still");
const fails = (tool: string, sentence: RegExp) => async (asking: Asking) =>
  expect(failureIn(await asking.call(tool))).toEqual([true, expect.stringMatching(sentence)]);
/** Nothing was ever heard of it: it has no tools, and the log says why. */
const isDown =
  (sentence: RegExp) =>
  async ({ names, logged }: Asking) => {
    expect(logged.filter((line) => sentence.test(line))).toHaveLength(1);
    expect(names).not.toContain("echo");
  };

async function asTask({ call, client }: Asking, tool: string, input: object): Promise<Result> {
  const { task } = await call(tool, input, { task: {} });
  return (await client.request("tasks/result", { taskId: task?.taskId })).result as Result;
}

/** Each line of the list of what upstreams do to us, in its order. */
const ordeals: Readonly<Record<string, Ordeal>> = {
  "noise on stdout": {
    mode: "noise",
    async check(asking) {
      await echoes(asking);
      expect(asking.logged).toContainEqual(expect.stringMatching(/^The upstream noise: It prints .*«Starting up…»/));
    },
  },
  "a byte order mark": { mode: "bom", check: echoes },
  "a line of 100 MB": {
    mode: "long-line",
    check: fails("slow", /^The upstream long-line was lost in the middle of slow\. .* larger than 10 MiB\.$/),
  },
  "a flood on stderr": { mode: "stderr-flood", check: echoes },
  "exits at once": {
    mode: "exits-at-once",
    check: isDown(/^The upstream exits-at-once cannot be used\. .* exit code 3; it printed «It has no config\.»/),
  },
  "exits in a call": {
    mode: "exits-in-call",
    async check(asking) {
      const words = /^The upstream exits-in-call was lost in the middle of count\. .*«It ran out of memory\.»\.$/;
      await fails("count", words)(asking);
      await echoes(asking);
    },
  },
  "never answers initialize": {
    mode: "silent",
    config: { startSeconds: 1 },
    check: isDown(/^The upstream silent cannot be used\. It has not said within 1 s who it is\.$/),
  },
  "answers twice": { mode: "answers-twice", check: echoes },
  "reuses ids": {
    mode: "reuses-ids",
    async check(asking) {
      const { client, call } = asking;
      const seen = new Set(client.of("elicitation/create"));
      const answer = call("ask");
      for (let round = 0; round < 2; round++) {
        const asked = await client.comes("elicitation/create", (one) => !seen.has(one));
        seen.add(asked);
        await client.respond(asked.id, { action: "accept", content: { name: "Ada" } });
      }
      expect(textIn(await answer)).toBe("Hello Ada");
      await echoes(asking);
    },
  },
  "answers an unknown id": { mode: "unknown-id", check: echoes },
  "changes its tools in a call": {
    mode: "changes-tools",
    isRemote: true,
    async check(asking) {
      await echoes(asking);
      await expect.poll(() => namesIn(asking.client, "tools"), waiting).toContain("changes-tools_late");
      // Before anybody is told, what is different is written down.
      expect(asking.logged).toContain("changes-tools lists other tools than before: late, echo");
    },
  },
  "a schema that is no schema": {
    mode: "no-schema",
    isRemote: true,
    async check(asking) {
      await echoes(asking);
      expect(asking.names).not.toContain("bare");
      expect(asking.logged).toContainEqual(expect.stringMatching(/^bare of the upstream no-schema is not served: /));
    },
  },
  "names of 200 characters or with spaces": {
    mode: "odd-names",
    isRemote: true,
    async check(asking) {
      await echoes(asking);
      expect(asking.names).toEqual(expect.arrayContaining(["with_spaces", "slash_and_dot"]));
      expect(asking.names.filter((name) => !/^[\w-]{1,48}$/.test(name))).toEqual([]);
      expect(asking.names.filter((name) => name.startsWith("nnnn"))).toHaveLength(1);
    },
  },
  "5,000 tools": {
    mode: "many-tools",
    isRemote: true,
    async check(asking) {
      expect(asking.names).toHaveLength(5_004);
      await echoes(asking);
    },
  },
  "annotations that contradict each other": { mode: "contradicting", isRemote: true, check: echoes },
  "a task that never ends": {
    mode: "endless-task",
    isRemote: true,
    config: { timeLimitSeconds: 1 },
    async check(asking) {
      const ended = await asTask(asking, "slow", { seconds: 0 });
      expect(failureIn(ended)).toEqual([true, expect.stringMatching(/1 s/)]);
      await echoes(asking);
    },
  },
  "a ttl of a second": {
    mode: "short-ttl",
    isRemote: true,
    check: async (asking) => expect(textIn(await asTask(asking, "slow", { seconds: 0.1 }))).toBe("took 0.1 s"),
  },
  "progress that runs backwards": {
    mode: "backwards-progress",
    isRemote: true,
    async check({ client }) {
      const meta = { progressToken: "backwards" };
      const call = client.startCall("backwards-progress_slow", { seconds: 0.1 }, { meta });
      expect(textIn((await call.answer).result as Result)).toBe("took 0.1 s");
      const told = client.of("notifications/progress").filter(({ params }) => params?.progressToken === "backwards");
      const steps = told.map(({ params }) => params?.progress as number);
      expect(steps).toEqual([...new Set(steps)].toSorted((a, b) => a - b));
    },
  },
  "a question that nobody asked for": {
    mode: "unasked",
    async check(asking) {
      await echoes(asking);
      // What this client has not said that it can be asked does not come.
      expect(asking.client.received.filter(({ method }) => /^(sampling|made)/.test(method ?? ""))).toEqual([]);
    },
  },
  "a redirect to another origin": {
    mode: "redirect",
    isRemote: true,
    check: isDown(
      /^The upstream redirect cannot be used\. .* redirects to another origin, http:\/\/elsewhere\.invalid, /,
    ),
  },
  "a 404 for each session": {
    mode: "forgets-session",
    isRemote: true,
    check: isDown(/^The upstream forgets-session cannot be used\. .* has forgotten our session/),
  },
  "HTTP status 500": {
    mode: "error-500",
    isRemote: true,
    check: fails("count", /^The upstream error-500 was lost in the middle of count\. .* HTTP status 500\.$/),
  },
  "429 with Retry-After": {
    mode: "busy",
    isRemote: true,
    check: fails(
      "count",
      /^The upstream busy has not taken count\. .* HTTP status 429\. It may be asked again in 61 s\.$/,
    ),
  },
  "a certificate that is wrong": {
    mode: "bad-certificate",
    isRemote: true,
    check: isDown(/^The upstream bad-certificate cannot be used\. .* cannot be trusted: its certificate /),
  },
};

const env = { REDIRECT_TO: "http://elsewhere.invalid", FORGET_EVERY: "1", RETRY_AFTER: "61" };

async function toUpstream({ mode, isRemote, config }: Ordeal): Promise<object> {
  if (isRemote !== true) return { ...commandUpstream(mode as CommandMode), ...config };
  const server = await serveHttp(mode, env);
  cleanUp(() => server.close());
  return { url: server.url, ...config };
}

describe("4: upstreams that misbehave, all behind one gateway beside a good one", () => {
  const gateway = shareAmongTests(async () => {
    const bad = await Promise.all(
      Object.values(ordeals).map(async (one) => [one.mode, await toUpstream(one)] as const),
    );
    const upstreams = { ...Object.fromEntries(bad), good: commandUpstream() };
    const served = await serveGateway({ wrap: { upstreams } });
    const client = await served.connect("2025-11-25", { elicitation: {} });
    // Nobody waits for the slowest: what comes late is told.
    const isSettled = ({ state }: { readonly state: string }) => state === "open" || state === "down";
    await vi.waitFor(() => expect(served.runtime.upstreams?.statuses().every(isSettled)).toBe(true), waiting);
    return { ...served, client, names: await namesIn(client, "tools") };
  });

  test.each(Object.entries(ordeals))("%s", async (_title, { mode, check }) => {
    const { client, names, logged } = await gateway();
    const call: Asking["call"] = (tool, input, options) => client.call(`${mode}_${tool}`, input, options);
    const own = names.filter((name) => name.startsWith(`${mode}_`)).map((name) => name.slice(mode.length + 1));
    await check({ client, names: own, logged, call });
    expect(textIn(await client.call("good_echo", { text: "untouched" }))).toBe("untouched");
  });

  test("and the good one was started once", async () => {
    const { client, runtime } = await gateway();
    expect(textIn(await client.call("good_slow", { seconds: 0 }))).toBe("took 0 s");
    const good = runtime.upstreams?.statuses().find(({ name }) => name === "good");
    expect(good).toMatchObject({ state: "open", connections: 1, calls: 0 });
  });
});

test.each(["exits-at-once", "redirect", "bad-certificate"] as const)(
  "4: alone behind wrap, one that is down (%s) is named in the answer to initialize",
  async (mode) => {
    const ordeal = Object.values(ordeals).find((one) => one.mode === mode) as Ordeal;
    const { connect } = await serveGateway({ wrap: { upstreams: { [mode]: await toUpstream(ordeal) } } });
    const sentence = expect.stringMatching(`^The upstream ${mode} cannot be used\\. .+\\.$`);
    await expect(connect()).rejects.toThrow(expect.objectContaining({ message: sentence }));
  },
);
