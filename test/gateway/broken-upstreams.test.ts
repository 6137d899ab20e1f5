import { describe, expect, test } from "vitest";
import { silentLog } from "../../src/log.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { namesIn, serveGateway, textIn } from "../helpers/gateway.ts";
import { wrapHere } from "../helpers/gateway-here.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { ownProgram } from "../helpers/programs.ts";
import { plainTool, scriptedUpstream } from "../helpers/scripted-upstream.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";

const nameless = { inputSchema: { type: "object" } };
const schemaless = { name: "bare" };

describe("tools that cannot be served are left out, at every start", () => {
  test.each([
    [
      "two tools without a name",
      [nameless, nameless, plainTool("good")],
      "The upstream evil: a tool has no name and is left out.",
    ],
    [
      "two tools without a schema and of one name",
      [schemaless, schemaless, plainTool("good")],
      "bare of the upstream ",
    ],
  ])("%s", async (_title, tools, warning) => {
    const home = temporaryFolder();
    const upstreams = { evil: scriptedUpstream({ tools: () => tools }), other: scriptedUpstream() };
    for (let start = 1; start <= 3; start++) {
      const { connect, logged, runtime } = await serveGateway({ wrap: { upstreams }, home });
      const client = await connect();
      const names = await namesIn(client, "tools");
      expect(names).toEqual(expect.arrayContaining(["evil_good", "other_count"]));
      expect(textIn(await client.call("evil_good"))).toBe("good is done");
      expect(logged.filter((line) => line.startsWith(warning))).toHaveLength(1);
      expect(runtime.catalog.problems).toHaveLength(1);
    }
  });

  test("a tool without a name is listed by `meanwhile tools` in one sentence, and in no count", async () => {
    const tools = () => [nameless, schemaless, plainTool("good"), plainTool("secret")];
    const evil = { ...scriptedUpstream({ tools }), deny: ["secret"] };
    const config = { bundled: false, upstreams: { evil } };
    const daemons = new DaemonHomeHere({ config });
    const listed = await daemons.run(["tools"]);
    expect([listed.code, listed.stderr.split("\n").sort()]).toEqual([
      1,
      [
        "",
        "✗ The upstream evil: a tool has no name and is left out.",
        "✗ bare is missing: the upstream evil: its inputSchema is no JSON Schema, and clients would refuse the whole list",
      ],
    ]);
    expect(await namesIn(await daemons.connect({ words: [] }), "tools")).toContain("good");
    const { upstreams } = JSON.parse((await daemons.run(["upstreams", "--json"])).stdout);
    expect(upstreams).toMatchObject([{ name: "evil", tools: 1 }]);
  });

  test("a broken tool takes the name from no valid one, in whichever order they are listed", async () => {
    for (const tools of [
      [{ name: "count" }, plainTool("count")],
      [plainTool("count"), { name: "count" }],
    ]) {
      const home = temporaryFolder();
      for (let start = 1; start <= 2; start++) {
        const upstreams = { evil: scriptedUpstream({ tools: () => tools }) };
        const { connect, runtime } = await serveGateway({ config: { bundled: false, upstreams }, home });
        expect(textIn(await (await connect()).call("count"))).toBe("count is done");
        expect(runtime.catalog.problems).toEqual([]);
      }
    }
  });
});

describe("an upstream that answers initialize and cannot list", () => {
  const broken = { code: -32603, message: "The index is locked" };
  const open = () => {
    const state = { isLocked: true };
    const upstream = scriptedUpstream({
      answer: ({ id, method }) =>
        method === "tools/list" && state.isLocked ? [{ jsonrpc: "2.0", id, error: broken }] : undefined,
    });
    return { state, upstream };
  };

  test.each(["2025-11-25", "2026-07-28"])(
    "starts behind wrap, and answers as it would directly (%s)",
    async (revision) => {
      const { state, upstream } = open();
      const client = await (await wrapHere(upstream)).connect("stdio", { revision });
      if (revision === "2025-11-25") expect(client.initialized.serverInfo).toEqual({ name: "scripted", version: "1" });
      expect((await client.request("tools/list")).error).toEqual(broken);
      expect(textIn(await client.call("count"))).toBe("count is done");
      state.isLocked = false;
      expect(await namesIn(client, "tools")).toContain("count");
      expect(textIn(await client.call("count"))).toBe("count is done");
    },
  );

  test("takes nothing from the lists of others", async () => {
    const { upstream } = open();
    const { connect, logged } = await serveGateway({
      wrap: { upstreams: { locked: upstream, good: scriptedUpstream() } },
    });
    expect(await namesIn(await connect(), "tools")).toContain("good_count");
    expect(logged).toContain("The upstream locked: It does not list its tools: The index is locked");
  });

  const notice = "The upstream locked does not list its tools now: The index is locked.";

  test("is named in the instructions and in the log until it lists, beside others", async () => {
    const { state, upstream } = open();
    const { connect, connectHttp } = await serveGateway({
      config: { bundled: false, upstreams: { locked: upstream, good: scriptedUpstream() } },
    });
    const client = await connect();
    expect(client.initialized.instructions).toBe(notice);
    expect((await connectHttp("2025-11-25", "anonymous")).initialized.instructions).toBe(
      "The upstream locked does not list its tools now.",
    );
    const modern = await connect("2026-07-28");
    expect((await modern.request("server/discover")).result?.instructions).toBe(notice);
    state.isLocked = false;
    expect(await namesIn(client, "tools")).toContain("locked_count");
    const discovered = async () => (await modern.request("server/discover")).result;
    await waitFor(async () => (await discovered())?.instructions === undefined);
  });

  test("is named from the first session of a later process on", async () => {
    const home = temporaryFolder();
    const { upstream } = open();
    const config = { bundled: false, upstreams: { locked: upstream, good: scriptedUpstream() } };
    await (await serveGateway({ config, home })).connect();
    const later = await serveGateway({ config, home });
    const { initialized } = await later.connect();
    expect(initialized.instructions).toBe("The upstream locked did not list its tools when it was last asked.");
    const named = async () => (await later.connect()).initialized.instructions;
    await waitFor(async () => (await named()) === notice);
  });

  test("is named on stderr of the proxy, by `meanwhile tools` and by `meanwhile upstreams`", async () => {
    const { upstream } = open();
    const upstreams = { locked: upstream, good: scriptedUpstream() };
    const daemons = new DaemonHomeHere({ config: { bundled: false, upstreams } });
    const { proxy } = await daemons.connect({ words: [] });
    await waitFor(() => proxy.stderr().includes(`! ${notice}\n`));
    await daemons.run(["upstreams", "restart", "locked"]);
    const again = await daemons.connect({ words: [] });
    await waitFor(() => again.proxy.stderr() === `! ${notice}\n`);
    expect((await daemons.run(["upstreams"])).stdout).toContain(`✗ ${notice}\n`);
    const listed = await daemons.run(["tools"]);
    expect([listed.code, listed.stderr]).toEqual([1, expect.stringContaining(`✗ ${notice}\n`)]);
    const called = await daemons.run(["locked", "count"]);
    expect([called.code, called.stderr]).toEqual([1, expect.stringContaining(`✗ ${notice}\n`)]);
  });

  test("is named for its prompts and resources too, unless it does not know the method", async () => {
    const refusing = (code: number) =>
      scriptedUpstream({
        capabilities: { tools: {}, prompts: {}, resources: {} },
        answer: ({ id, method }) =>
          /^(prompts|resources)/.test(method)
            ? [{ jsonrpc: "2.0", id, error: { code, message: "The index is locked." } }]
            : undefined,
      });
    const upstreams = { old: refusing(-32601), locked: refusing(-32603) };
    const { connect } = await serveGateway({ config: { bundled: false, upstreams } });
    expect((await connect()).initialized.instructions).toBe(
      "The upstream locked does not list its prompts and resources now: The index is locked.",
    );
  });

  test("and one that never lists is told apart from one that never answers", async () => {
    const never = (silent: string) =>
      scriptedUpstream({ answer: ({ method }) => (method === silent ? [] : undefined) });
    for (const [method, sentence] of [
      ["initialize", "It has not said within 0.2 s who it is."],
      ["tools/list", "It has not reported its tools within 0.2 s."],
    ] as const) {
      const gateway = await wrapHere({ ...never(method), startSeconds: 0.2 });
      await expect(gateway.connect("stdio", { revision: "2025-11-25" })).rejects.toThrow(
        `The upstream theirs cannot be used. ${sentence}`,
      );
    }
  });
});

describe("upstreams that are dead, hang or are disabled", () => {
  const dead = () => ({ ...scriptedUpstream({ answer: () => [] }), startSeconds: 0.2 });
  const sentences = [
    "The upstream dead cannot be used. It has not said within 0.2 s who it is.",
    "The upstream off is not served: it is disabled in the config.",
  ];
  const upstreams = () => ({
    dead: dead(),
    off: { ...scriptedUpstream(), disabled: true },
    good: scriptedUpstream(),
  });

  test("are named on top of the instructions", async () => {
    const { connect, logged } = await serveGateway({
      config: { bundled: false, instructions: "Use with care.", upstreams: upstreams() },
    });
    const { initialized } = await connect();
    expect(initialized.instructions).toBe(`${sentences.join("\n")}\n\nUse with care.`);
    expect(logged).toEqual(expect.arrayContaining(sentences));
    const modern = await connect("2026-07-28");
    expect((await modern.request("server/discover")).result?.instructions).toBe(initialized.instructions);
    expect(await namesIn(modern, "tools")).not.toContain("off_count");
  });

  test("one that ended is named without what it printed, which may be another session's", async () => {
    const [command, script] = ownProgram(({ stderr, exit }) => {
      stderr.write("No account for ada@example.com.\n");
      exit(3);
    });
    const upstreams = { gone: { command, args: [script] }, good: scriptedUpstream() };
    const { connect, logged } = await serveGateway({ wrap: { upstreams } });
    const sentence = /^The upstream gone cannot be used\. The server .* ended with exit code 3\.$/;
    expect((await connect()).initialized.instructions).toMatch(sentence);
    expect(logged).toContainEqual(expect.stringContaining("it printed «No account for ada@example.com.»"));
  });

  test("are named also where none is left", async () => {
    const config = { bundled: false, upstreams: { off: { ...scriptedUpstream(), disabled: true } } };
    const { connect } = await serveGateway({ config });
    const client = await connect();
    expect(client.initialized.instructions).toBe(sentences[1]);
    expect((await namesIn(client, "tools")).filter((name) => !name.startsWith("task_"))).toEqual([]);
  });

  test("one that hangs is named while it starts", async () => {
    const upstreams = { hangs: scriptedUpstream({ answer: () => [] }), good: scriptedUpstream() };
    const logged: string[] = [];
    const log = { ...silentLog, warn: (text: string) => void logged.push(text) };
    const server = await openServer({ in: "memory", wrap: { upstreams }, clock: new FakeClock(), log });
    const { initialized } = await server.client("2025-11-25");
    const sentence = "The upstream hangs has not answered yet; its tools are listed as soon as it has.";
    expect([initialized.instructions, logged]).toEqual([sentence, [sentence]]);
  });

  test("one that is left out of a wrapped file is named, and an upstream alone that went down", async () => {
    const home = temporaryFolder();
    const wrap = { upstreams: { only: scriptedUpstream() }, leftOut: { off: "it is disabled there" } };
    const server = await openServer({ in: "memory", wrap, home });
    expect((await server.client("2025-11-25")).initialized.instructions).toBe(
      "The upstream off is not served: it is disabled there.",
    );
  });

  test("are printed by the stdio proxy on its stderr, once", async () => {
    const daemons = new DaemonHomeHere({ config: { bundled: false, upstreams: upstreams() } });
    const client = await daemons.connect({ words: [] });
    expect(await namesIn(client, "tools")).toContain("good_count");
    const { proxy } = client;
    await waitFor(
      () => sentences.every((sentence) => proxy.stderr().includes(`! ${sentence}\n`)),
      () => proxy.stderr(),
    );
    expect(proxy.stderr().split("\n").filter(Boolean)).toHaveLength(2);
    expect(client.received.filter(({ method }) => method?.includes("meanwhile"))).toEqual([]);
  });

  test("one that fails with other words at each start is printed once", async () => {
    let starts = 0;
    const fickle = scriptedUpstream({
      answer: ({ method }, { stderr, exit }) => {
        if (method !== "initialize" || starts++ === 0) return undefined;
        stderr.write(`No space left at start ${starts}\n`);
        exit(starts);
        return [];
      },
    });
    const upstreams = { fickle, good: scriptedUpstream() };
    const daemons = new DaemonHomeHere({ config: { bundled: false, upstreams } });
    const client = await daemons.connect({ words: [] });
    expect(await namesIn(client, "tools")).toContain("fickle_count");
    await daemons.run(["upstreams", "restart", "fickle"]);
    for (const exitCode of [2, 3, 4])
      expect((await client.call("fickle_count")).structuredContent?.messages[0]?.text).toContain(
        `ended with exit code ${exitCode}`,
      );
    const lines = client.proxy.stderr().split("\n").filter(Boolean);
    expect(lines).toEqual([expect.stringContaining("The upstream fickle cannot be used.")]);
  });
});
