import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { codeCache, executable, quickStart } from "../helpers/meanwhile.ts";
import { httpUpstream } from "../helpers/upstreams.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

interface Entry {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Somebody who has one server in Cursor, and a shell in which `meanwhile` can be typed. */
function somebody(entry: object) {
  const folder = temporaryFolder();
  const text = `{\n  // mine\n  "mcpServers": {\n    "the slow one": ${JSON.stringify(entry)},\n  },\n}\n`;
  writeFiles(folder, { "home/.cursor/mcp.json": text, "project/notes.txt": "" });
  const [home, cwd] = [path.join(folder, "home"), path.join(folder, "project")];
  const file = path.join(home, ".cursor/mcp.json");
  const env = { HOME: home, PATH: "/nowhere", NODE_COMPILE_CACHE: codeCache, NODE: process.execPath, BIN: executable };
  cleanUp(() => killDaemons(path.join(home, ".meanwhile")));
  const start = (command: string, args: readonly string[], more = {}) => {
    const child = spawn(command, args, { cwd, env: { ...env, ...more } });
    const ended = new Promise((resolve) => child.on("close", resolve));
    cleanUp(async () => {
      child.kill("SIGKILL");
      await ended;
    });
    return { child, ended };
  };
  return {
    text,
    read: () => readFileSync(file, "utf8"),
    entry: () =>
      JSON.parse(readFileSync(file, "utf8").replaceAll(/\/\/ mine|,(?=\s*})/g, "")).mcpServers["the slow one"] as Entry,
    /** Words as a person types them. */
    async type(line: string) {
      const { child, ended } = start("/bin/sh", ["-c", `meanwhile() { "$NODE" ${quickStart} "$BIN" "$@"; }\n${line}`]);
      let [out, err] = ["", ""];
      child.stdout.setEncoding("utf8").on("data", (part: string) => (out += part));
      child.stderr.setEncoding("utf8").on("data", (part: string) => (err += part));
      const code = await ended;
      return { code, out, err };
    },
    /** As its host starts it. */
    async connect({ command, args, env: own = {} }: Entry) {
      const client = new WireClient(overPipes(start(command, args, own).child), { revision: "2025-11-25" });
      await client.begin();
      return client;
    },
  };
}

const everything = path.resolve(
  import.meta.dirname,
  "../../node_modules/@modelcontextprotocol/server-everything/dist/index.js",
);

describe("entries that hosts have already", { timeout: 120_000 }, () => {
  test("the words that diagnose says can be typed, and the server runs behind Meanwhile", async () => {
    const { type, entry, connect, read, text } = somebody({ command: process.execPath, args: [everything] });
    const tool = '--tool trigger-long-running-operation --args \'{"duration":4,"steps":4}\'';
    const report = await type(`meanwhile diagnose --suites hosts ${tool} --format json -- "$NODE" '${everything}'`);
    const words = /`(meanwhile setup --wrap [^`]+)`/.exec(JSON.parse(report.out).findings[0].remedy)?.[1];
    expect(words).toBe("meanwhile setup --wrap 'the slow one'");

    expect(await type(words as string)).toMatchObject({ code: 0 });
    expect(entry().args).toEqual([executable, "wrap", "--name", "the-slow-one", "--", process.execPath, everything]);
    const client = await connect(entry());
    const { result } = await client.request("tools/list");
    const names = (result as { tools: { name: string }[] }).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "trigger-long-running-operation", "task_result"]));
    expect(await client.call("echo", { message: "hello" })).toMatchObject({ content: [{ text: "Echo: hello" }] });

    expect(await type("meanwhile setup --unwrap 'the slow one'")).toMatchObject({ code: 0 });
    expect(read()).toBe(text);
  });

  test("a server with an address and a secret is reached as before, and no command line shows it", async () => {
    const upstream = await httpUpstream("wants-token", { TOKEN: "not-to-be-seen" });
    const { type, entry, connect, read, text } = somebody({
      url: `${upstream.url}?key=not-to-be-shown`,
      headers: { Authorization: "Bearer not-to-be-seen", "X_Odd-One": "a: b" },
    });
    expect(await type("meanwhile setup --wrap --all")).toMatchObject({ code: 0 });
    expect(entry().args.join(" ")).not.toContain("not-to-be");
    const client = await connect(entry());
    const { result } = await client.request("tools/list");
    expect((result as { tools: object[] }).tools.length).toBeGreaterThan(0);
    const asked = upstream.seen.findLast(({ method }) => method === "POST");
    expect(asked?.headers).toMatchObject({ authorization: "Bearer not-to-be-seen", "x_odd-one": "a: b" });
    expect(asked?.url).toBe("/mcp?key=not-to-be-shown");
    expect(await type("meanwhile setup --unwrap --all")).toMatchObject({ code: 0 });
    expect(read()).toBe(text);
  });
});
