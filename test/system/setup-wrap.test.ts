import { spawn } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { formats } from "../../src/setup/change.ts";
import { hosts } from "../../src/setup/hosts/index.ts";
import type { Machine } from "../../src/setup/machine.ts";
import { wordsOf } from "../../src/setup/ownership.ts";
import { openFile } from "../../src/setup/wrap/wrap-file.ts";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { codeCache, executable, quickStart, runMeanwhile } from "../helpers/meanwhile.ts";
import { commandUpstream, httpUpstream } from "../helpers/upstreams.ts";
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

/** The entry of one small server in the user's file of every host, and in every other scope that `--all` sees. */
function everyScope() {
  const folder = realpathSync(temporaryFolder());
  const [home, project] = [path.join(folder, "home"), path.join(folder, "project")];
  const machine: Machine = { platform: "linux", home, project, env: {}, isThere: existsSync, list: () => [] };
  const { command, args, env } = commandUpstream("plain");
  const files = hosts.map((host) => {
    const { set, nothing } = formats[host.format];
    const entry = host.toEntry({ command, args: args.map((word) => path.resolve(gateway, word)), env: { KEY: "a b" } });
    const text = set(nothing, [...host.place({}), "notes"], entry);
    return { host, file: host.userFile(machine), text: host.format === "json" ? `// mine\n${text}\n` : text };
  });
  const claude = files.find(({ host }) => host.id === "claude-code");
  if (claude === undefined) throw new Error("there is no Claude Code");
  const entry = claude.host.toEntry({ command, args: args.map((word) => path.resolve(gateway, word)), env: {} });
  const scopes = [
    {
      host: claude.host,
      file: path.join(project, ".mcp.json"),
      text: JSON.stringify({ mcpServers: { notes: entry } }),
    },
    ...files,
  ];
  claude.text = formats.json.set(claude.text, ["projects", project, "mcpServers", "notes"], entry);
  for (const { file, text } of scopes) writeFiles(path.dirname(file), { [path.basename(file)]: text });
  const own = { HOME: home, PATH: env.PATH, NODE_COMPILE_CACHE: codeCache };
  cleanUp(() => killDaemons(path.join(home, ".meanwhile")));
  return {
    scopes,
    setup: (...words: string[]) =>
      runMeanwhile(["setup", ...words], { cwd: project, env: { ...own, MEANWHILE_HOME: "" } }),
    now: () => scopes.map(({ host, file }) => ({ host, file, text: readFileSync(file, "utf8") })),
    /** As its host starts it, one after another: they are copies of one entry, and share a daemon. */
    async use(target: (typeof scopes)[number]) {
      const { entries } = openFile({ ...target, scope: "user" });
      const answers = [];
      for (const { entry: found } of entries) {
        const [program = "", ...words] = wordsOf(found);
        const { env: plain, environment } = found as {
          env?: Record<string, string>;
          environment?: Record<string, string>;
        };
        const child = spawn(program, words, { cwd: project, env: { ...own, ...plain, ...environment } });
        cleanUp(() => void child.kill("SIGKILL"));
        const client = new WireClient(overPipes(child), { revision: "2025-11-25" });
        await client.begin();
        answers.push((await client.call("echo", { text: "used" })).content);
        await client.close();
      }
      return answers;
    },
  };
}

const gateway = path.resolve(import.meta.dirname, "../fixtures/gateway");

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
    expect(entry().command).toMatch(/\.meanwhile\/bin\/meanwhile$/);
    expect(entry().args).toEqual(["wrap", "--name", "the-slow-one", "--", process.execPath, everything]);
    const client = await connect(entry());
    const { result } = await client.request("tools/list");
    const names = (result as { tools: { name: string }[] }).tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(["echo", "trigger-long-running-operation", "task_result"]));
    expect(await client.call("echo", { message: "hello" })).toMatchObject({ content: [{ text: "Echo: hello" }] });

    expect(await type("meanwhile setup --unwrap 'the slow one'")).toMatchObject({ code: 0 });
    expect(read()).toBe(text);
  });

  test("every scope of eleven hosts: wrapped, used, unwrapped, and every byte is as it was", async () => {
    const { scopes, setup, now, use } = everyScope();
    const before = now();
    expect(before).toHaveLength(12);
    const wrapped = await setup("--wrap", "--all");
    expect(wrapped).toMatchObject({ code: 0 });
    expect(wrapped.stderr.match(/^✓ /gm), "one line a file").toHaveLength(12);
    for (const scope of scopes) {
      const answers = await use(scope);
      expect(answers, scope.file).toEqual(
        Array.from({ length: scope.host.id === "claude-code" && scope.file.endsWith(".claude.json") ? 2 : 1 }, () => [
          { type: "text", text: "used" },
        ]),
      );
    }
    expect(await setup("--unwrap", "--all")).toMatchObject({ code: 0 });
    expect(now()).toEqual(before);
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
