import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { namesIn, serveGateway as serve, textIn as textOf } from "../../helpers/gateway.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { commandUpstream, httpUpstream } from "../../helpers/upstreams.ts";
import { resultOf } from "../../helpers/wire.ts";

const everything = {
  command: process.execPath,
  args: [path.resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js")],
};
const wait = { timeout: 50_000, interval: 20 };

describe("10: several upstreams", () => {
  const several = shareAmongTests(async () => {
    const one = commandUpstream();
    const two = commandUpstream("plain", { ERA: "2026" });
    return await serve({ wrap: { upstreams: { one, two: { ...two, args: [...two.args, "two"] }, all: everything } } });
  });

  test.each(["2025-11-25", "2026-07-28"])(
    "a client of %s has the tools and prompts of all, each by its name",
    async (revision) => {
      const { connect } = await several();
      const client = await connect(revision);
      const tools = await namesIn(client, "tools");
      expect(tools).toEqual(expect.arrayContaining(["one_echo", "two_echo", "all_echo", "one_ask", "task_result"]));
      // That one lists it only to who can be asked, which everybody can be here.
      expect(tools).toContain("all_trigger-elicitation-request");
      expect(tools).not.toContain("echo");
      expect(new Set(tools).size).toBe(tools.length);
      expect(textOf(await client.call("one_echo", { text: "to one" }))).toBe("to one");
      expect(textOf(await client.call("two_echo", { text: "to two" }))).toBe("to two");
      expect(textOf(await client.call("all_echo", { message: "to all" }))).toBe("Echo: to all");
      const { error } = await client.request("tools/call", { name: "echo", arguments: {} });
      expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("Unknown tool") });

      expect(await namesIn(client, "prompts")).toContain("all_args-prompt");
      const asked = { name: "all_args-prompt", arguments: { city: "Bern" } };
      const { messages } = resultOf(await client.request("prompts/get", asked));
      expect(JSON.stringify(messages)).toContain("Bern");
      const ref = { type: "ref/prompt", name: "all_completable-prompt" };
      const argument = { name: "department", value: "E" };
      const { completion } = resultOf(await client.request("completion/complete", { ref, argument }));
      expect(completion).toMatchObject({ values: ["Engineering"] });
    },
  );

  test("resources go by their owner: listed, made from a template, handed out by a result, or nobody's", async () => {
    const { connect } = await several();
    const client = await connect();
    const { resources } = resultOf(await client.request("resources/list")) as { resources?: { uri: string }[] };
    const listed = resources?.find(({ uri }) => uri.startsWith("demo://"))?.uri;
    const read = async (uri: unknown) => await client.request("resources/read", { uri });
    expect((await read(listed)).result?.contents).toHaveLength(1);
    expect((await read("demo://resource/dynamic/text/7")).result?.contents).toHaveLength(1);
    const { error } = await read("nobody://knows/this");
    expect(error?.message).toMatch(/not found/i);
    await client.request("resources/subscribe", { uri: listed });
    await client.call("all_toggle-subscriber-updates", {});
    expect((await client.comes("notifications/resources/updated")).params).toEqual({ uri: listed });
    expect((await client.request("resources/unsubscribe", { uri: listed })).result).toEqual({});
    const ref = { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" };
    const completed = await client.request("completion/complete", {
      ref,
      argument: { name: "resourceId", value: "1" },
    });
    expect(completed.result?.completion.values).toContain("1");
  });

  test("the server is ours, with the instructions of each under its name; what one can do, we can", async () => {
    const { connect } = await several();
    const { initialized } = await connect();
    expect(initialized.serverInfo).toMatchObject({ name: "meanwhile" });
    expect(initialized.instructions).toMatch(/^# all\n\n/);
    expect(initialized.instructions.length).toBeLessThan(2_100);
    expect(initialized.capabilities).toMatchObject({
      resources: { subscribe: true, listChanged: true },
      completions: {},
    });
  });

  test("a name that was given stays, though another comes first; --prefix never serves the first and names the other", async () => {
    const [one, two] = [await httpUpstream(), await httpUpstream("plain")];
    const upstreams = { one: { url: one.url }, two: { url: two.url } };
    const [home, cwd] = [temporaryFolder(), temporaryFolder()];
    const echoes = async (names: readonly ("one" | "two")[]) => {
      const chosen = Object.fromEntries(names.map((name) => [name, upstreams[name]]));
      const config = { bundled: false, upstreamPrefix: "collision", upstreams: chosen } as const;
      const { connect } = await serve({ config, home, cwd });
      return (await namesIn(await connect(), "tools")).filter((name) => name.endsWith("echo")).sort();
    };
    expect(await echoes(["two"])).toEqual(["echo"]);
    expect(await echoes(["one", "two"])).toEqual(["echo", "one_echo"]);
    expect(await echoes(["two", "one"])).toEqual(["echo", "one_echo"]);

    const never = await serve({ wrap: { upstreams, prefix: "never" } });
    const client = await never.connect();
    expect((await namesIn(client, "tools")).filter((name) => name.endsWith("echo"))).toEqual(["echo"]);
    expect(textOf(await client.call("echo", { text: "to the first" }))).toBe("to the first");
    const problem = never.runtime.catalog.problems.find(({ toolName }) => toolName?.endsWith("/echo"));
    expect(problem?.text).toContain("let the prefix be `collision` or `always`");
    expect(never.logged).toContainEqual(
      expect.stringMatching(/^echo of the upstream (one|two) is not served: another/),
    );
  });

  test("beside commands of our own and the hook's, which have their names first, also when they come later", async () => {
    const upstream = await httpUpstream();
    const command = (says: string) => `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Ours", effects: "read", run: () => ({ says: "${says}" }) });`;
    const config = `import { z } from "zod";
export default {
  upstreams: { up: { url: ${JSON.stringify(upstream.url)} } },
  mcp(server) {
    const text = (words) => ({ content: [{ type: "text", text: words }] });
    server.registerTool("slow", { inputSchema: z.object({}) }, () => text("by hand"));
    server.registerPrompt("greet", {}, () => ({ messages: [] }));
    server.registerResource("note", "note://one", {}, (uri) => ({ contents: [{ uri: uri.href, text: "a note" }] }));
  },
};`;
    const files = { "meanwhile.config.mjs": config, "commands/echo.mjs": command("ours") };
    const { connect, runtime } = await serve({ files });
    for (const revision of ["2025-11-25", "2026-07-28"]) {
      const client = await connect(revision);
      const tools = await namesIn(client, "tools");
      expect(tools).toEqual(expect.arrayContaining(["echo", "up_echo", "slow", "up_slow", "count", "ask"]));
      expect(new Set(tools).size).toBe(tools.length);
      expect((await client.call("echo")).structuredContent?.data).toEqual({ says: "ours" });
      expect(textOf(await client.call("up_echo", { text: "theirs" }))).toBe("theirs");
      expect(textOf(await client.call("slow"))).toBe("by hand");
      expect(textOf(await client.call("up_slow", { seconds: 0 }))).toBe("took 0 s");
      expect(await namesIn(client, "prompts")).toEqual(expect.arrayContaining(["greet", "echo"]));
      const { contents } = resultOf(await client.request("resources/read", { uri: "note://one" }));
      expect(contents).toMatchObject([{ text: "a note" }]);
    }
    expect(runtime.catalog.get("up_echo")?.path).toEqual(["up", "echo"]);
    expect(runtime.catalog.problems).toEqual([]);
  });
});

test("nothing comes before the answer to initialize, though it is the first that is heard of the upstreams", async () => {
  const [one, two] = [await httpUpstream(), await httpUpstream("plain")];
  const both = { one: { url: one.url }, two: { url: two.url } };
  for (const upstreams of [{ one: both.one }, both]) {
    const { connect } = await serve({ wrap: { upstreams } });
    const { received, initialized } = await connect();
    expect(received.map(({ method, result }) => method ?? result)).toEqual([initialized]);
  }
});

describe("6: one upstream down", () => {
  test("its tools stay listed, its calls say which and why, and the others work", async () => {
    const [good, bad] = [await httpUpstream(), await httpUpstream("plain")];
    const home = temporaryFolder();
    const upstreams = { good: { url: good.url }, bad: { url: bad.url } };
    const before = await serve({ wrap: { upstreams }, home });
    const names = await namesIn(await before.connect(), "tools");
    expect(names).toContain("bad_echo");
    await bad.close();
    // Another client than those that it has talked to, in another process: what is known of it is told all the same.
    const after = await serve({ wrap: { upstreams }, home });
    for (const revision of ["2025-11-25", "2026-07-28"]) {
      const client = await after.connect(revision, { roots: {} });
      expect((await namesIn(client, "tools")).sort()).toEqual(names.toSorted());
      expect(textOf(await client.call("good_echo", { text: "fine" }))).toBe("fine");
      const failed = await client.call("bad_echo", { text: "?" });
      const said = failed.structuredContent?.messages[0]?.text;
      expect([failed.isError, said]).toEqual([true, expect.stringMatching(/^The upstream bad cannot be used\. /)]);
    }
    expect(after.runtime.catalog.problems).toMatchObject([{ file: "the upstream bad" }]);
  });

  test("one that never says who it is, or leaves at once, keeps nobody waiting, and is there when it comes", async () => {
    const gate = path.join(temporaryFolder(), "gate");
    const late = {
      command: process.execPath,
      args: [
        ...["--input-type=module", "--eval"],
        `import { watch, existsSync } from "node:fs"; import path from "node:path";
const watcher = watch(path.dirname(process.argv[1]), () => {
  if (!existsSync(process.argv[1])) return;
  watcher.close();
  import(${JSON.stringify(new URL("../../fixtures/gateway/stdio.mjs", import.meta.url).href)}).then(
    ({ runStdio }) => runStdio(["plain"], process),
  );
});`,
        gate,
      ],
    };
    const good = await httpUpstream();
    const upstreams = { gone: commandUpstream("exits-at-once"), late, good: { url: good.url } };
    const { connect } = await serve({ wrap: { upstreams } });
    const client = await connect();
    expect(client.initialized.capabilities.resources).toMatchObject({ subscribe: true });
    const tools = await namesIn(client, "tools");
    expect(tools).toContain("good_echo");
    expect(tools.filter((name) => /^(gone|late)_/.test(name))).toEqual([]);
    expect(textOf(await client.call("good_echo", { text: "fine" }))).toBe("fine");
    writeFiles(path.dirname(gate), { gate: "" });
    await client.comes("notifications/tools/list_changed");
    await vi.waitFor(async () => expect(await namesIn(client, "tools")).toContain("late_echo"), wait);
    expect(textOf(await client.call("late_echo", { text: "here" }))).toBe("here");
  });
});

describe("19: --allow and --deny hold on call, not only on list", () => {
  test.each(["2025-11-25", "2026-07-28"])(
    "for clients of %s, whether one upstream is served or several",
    async (revision) => {
      const [one, two] = [await httpUpstream(), await httpUpstream("plain")];
      const alone = await serve({ wrap: { upstreams: { one: { url: one.url, deny: ["c*"] } } } });
      const upstreams = { one: { url: one.url, allow: ["echo", "count"], deny: ["count"] }, two: { url: two.url } };
      const several = await serve({ wrap: { upstreams } });
      const calls = () => one.seen.filter(({ message }) => message.method === "tools/call").length;
      for (const [server, denied, served] of [
        [alone, ["count"], "echo"],
        [several, ["one_count", "one_ask", "count", "ask"], "one_echo"],
      ] as const) {
        const client = await server.connect(revision);
        const before = calls();
        const tools = await namesIn(client, "tools");
        expect(tools).toContain(served);
        for (const name of denied) {
          expect(tools).not.toContain(name);
          const { error } = await client.request("tools/call", { name, arguments: {} });
          expect(error).toMatchObject({ code: -32602, message: expect.stringContaining(`Unknown tool "${name}"`) });
        }
        expect(calls()).toBe(before);
        expect(textOf(await client.call(served, { text: "allowed" }))).toBe("allowed");
      }
    },
  );
});

test("18: no tool or route can add or change an upstream", async () => {
  const upstream = await httpUpstream();
  const { connect } = await serve({ config: { bundled: ["config"], upstreams: { up: { url: upstream.url } } } });
  const client = await connect("2025-11-25", { elicitation: {} });
  for (const key of ["upstreams", "upstreams.up.url", "upstreams.more.command", "upstreamPrefix"]) {
    const refused = await client.call("config_set", { key, value: '"http://127.0.0.1:1"' });
    expect([key, refused.isError, refused.structuredContent?.messages[0]?.text]).toEqual([
      key,
      true,
      expect.stringContaining("in a terminal"),
    ]);
  }
});
