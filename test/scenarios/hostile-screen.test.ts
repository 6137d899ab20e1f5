import { spawn } from "node:child_process";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { codeCache, executable, quickStart, runMeanwhile } from "../helpers/meanwhile.ts";

/** Retitles, clears, recolours, writes the clipboard, in C0 and C1, and turns text around. */
const evil =
  "EVIL\x1b]0;owned\x07\x1b[2J\x1b[31m\x1b]52;c;aGk=\x1b\\\u009b2J\u0090q\u009c\u202edrow\u2066\u200f\u061c\x7f\b\x0eEND";
const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** A server whose every word is meant for the screen of whoever uses it. */
const server = `import { createInterface } from "node:readline";
const evil = ${JSON.stringify(evil)};
process.stderr.write(evil + "\\n");
const tools = ["say", "fail", "refuse", "die", "data", "ev" + evil].map((name) => ({ name, description: evil, inputSchema: { type: "object", properties: { [evil]: { type: "string", description: evil } } } }));
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...message }) + "\\n");
  if (method === "initialize") send({ result: { protocolVersion: "2024-11-05", capabilities: { tools: {}, logging: {} }, serverInfo: { name: evil, version: evil } } });
  else if (method === "tools/list") send({ result: { tools } });
  else if (method === "tools/call") {
    if (params._meta?.progressToken !== undefined)
      process.stdout.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: params._meta.progressToken, progress: 1, total: 2, message: evil } }) + "\\n");
    if (params.name === "die") process.exit(7);
    if (params.name === "refuse") send({ error: { code: -32000, message: evil } });
    else if (params.name === "data") send({ result: { content: [], structuredContent: { [evil]: evil } } });
    else send({ result: { content: [{ type: "text", text: evil }, { type: "resource_link", uri: "x:" + evil, name: evil }], isError: params.name === "fail" } });
  } else if (id !== undefined) send({ error: { code: -32601, message: evil } });
}
`;

const command = `import { defineCommand } from "meanwhile";
import { z } from "zod";
const evil = ${JSON.stringify(evil)};
export default defineCommand({
  summary: evil,
  input: z.object({ fails: z.boolean().default(false) }),
  output: z.object({ text: z.string() }),
  async run({ fails }, task) {
    task.announce?.(evil);
    task.progress({ done: 1, total: 2, message: evil });
    task.log?.warn?.(evil);
    if (fails) throw new Error(evil);
    return { text: evil };
  },
});
`;

const place = shareAmongTests(() => {
  const folder = writeFiles(temporaryFolder(), {
    "server.mjs": server,
    "project/commands/bad/screen.ts": command,
    "project/commands/bad/broken.ts": `throw new Error(${JSON.stringify(evil)});`,
    "project/meanwhile.config.json": '{ "bundled": false }',
    "behind/meanwhile.config.json": JSON.stringify({
      bundled: false,
      upstreams: { theirs: { command: process.execPath, args: ["../server.mjs"] } },
    }),
    "wrong/meanwhile.config.json": JSON.stringify({ [evil]: 1 }),
    "home/daemon.log": `${JSON.stringify({ msg: "plain" })}\n${evil}\n`,
  });
  return {
    folder,
    home: path.join(folder, "home"),
    project: path.join(folder, "project"),
    behind: path.join(folder, "behind"),
    wrong: path.join(folder, "wrong"),
    server: path.join(folder, "server.mjs"),
  };
});

type Place = Awaited<ReturnType<typeof place>>;

/** Runs a line at a real terminal, made by script(1), to its end: everything that was drawn. */
async function draw(
  words: readonly string[],
  cwd: string,
  { home }: Place,
  color: Record<string, string> = { NO_COLOR: "1" },
): Promise<string> {
  const line = [process.execPath, quickStart, executable, ...words].map(quoteWord).join(" ");
  const { NO_COLOR: _unset, ...others } = process.env;
  const child = spawn("/usr/bin/script", ["-qec", `stty cols 200 rows 50; exec ${line}`, "/dev/null"], {
    cwd,
    env: { ...others, ...color, TERM: "xterm-256color", NODE_COMPILE_CACHE: codeCache, MEANWHILE_HOME: home },
    timeout: 60_000,
  });
  child.stdin.end();
  let drawn = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (drawn += text));
  await new Promise((resolve) => child.on("close", resolve));
  // What a terminal makes of a line end, and how we take our own bar away.
  return drawn.replaceAll("\r\n", "\n").replaceAll("\r\x1b[2K", "");
}

describe("at a terminal nothing that others wrote is obeyed", () => {
  const cases: Record<string, (where: Place) => readonly [words: readonly string[], cwd: string]> = {
    "a tool's text": ({ server, folder }) => [["call", "say", "--", "node", server], folder],
    "a tool's text as JSON": ({ server, folder }) => [["call", "say", "--json", "--", "node", server], folder],
    "a tool's data": ({ server, folder }) => [["call", "data", "--", "node", server], folder],
    "a tool's data as JSON": ({ server, folder }) => [["call", "data", "--json", "--", "node", server], folder],
    "a tool's error": ({ server, folder }) => [["call", "fail", "--", "node", server], folder],
    "a server's refusal": ({ server, folder }) => [["call", "refuse", "--", "node", server], folder],
    "a server's last words": ({ server, folder }) => [["call", "die", "--", "node", server], folder],
    "the names of arguments": ({ server, folder }) => [["call", "say", "x=1", "--", "node", server], folder],
    "a list of tools": ({ server, folder }) => [["tools", "--", "node", server], folder],
    "a list of tools as JSON": ({ server, folder }) => [["tools", "--json", "--", "node", server], folder],
    "a command's words and data": ({ project }) => [["bad", "screen"], project],
    "a command's data as JSON": ({ project }) => [["bad", "screen", "--json"], project],
    "a command's error": ({ project }) => [["bad", "screen", "--fails"], project],
    "a command's help": ({ project }) => [["bad", "screen", "--help"], project],
    "a command that cannot be loaded": ({ project }) => [["bad", "broken"], project],
    "our own list of tools": ({ project }) => [["tools"], project],
    "a task": ({ project }) => [["bad", "screen", "--async"], project],
    "the log of the daemons": ({ project }) => [["daemon", "logs"], project],
    "19: the list of an upstream's tools": ({ behind }) => [["tools"], behind],
    "19: the text of an upstream's tool": ({ behind }) => [["theirs", "say"], behind],
    "19: the last words of an upstream": ({ behind }) => [["theirs", "die"], behind],
    "a config's mistake": ({ wrong }) => [["tools"], wrong],
    "a config's mistake, told by a front": ({ wrong }) => [["serve"], wrong],
    "what was typed": ({ folder }) => [[evil.replaceAll("\0", "")], folder],
  };

  test.each(Object.entries(cases))("%s", async (_, toLine) => {
    const where = await place();
    const [words, cwd] = toLine(where);
    const drawn = await draw(words, cwd, where);
    expect(drawn).toContain("EVIL");
    expect(JSON.stringify(obeyed.exec(drawn)), drawn).toBe("null");
  });

  test("a list of tasks, one of them and how long they take", async () => {
    const where = await place();
    const env = { MEANWHILE_HOME: where.home };
    const { stdout } = await runMeanwhile(["bad", "screen", "--async", "--quiet", "--detach"], {
      cwd: where.project,
      env,
    });
    const taskId = stdout.trim();
    await runMeanwhile(["tasks", "result", taskId, "--wait"], { cwd: where.project, env });
    for (const words of [
      ["tasks", "list"],
      ["tasks", "list", "--json"],
      ["tasks", "show", taskId],
      ["tasks", "show", taskId, "--json"],
      ["tasks", "result", taskId],
      ["stats"],
    ]) {
      const drawn = await draw(words, where.project, where);
      if (words[0] !== "stats") expect(drawn, words.join(" ")).toMatch(/EVIL|bad_screen/);
      expect(JSON.stringify(obeyed.exec(drawn)), `${words.join(" ")}: ${drawn}`).toBe("null");
    }
  });

  test("with colours, only our own pass", async () => {
    const where = await place();
    for (const words of [
      ["call", "fail", "--", "node", where.server],
      ["call", "say", "--", "node", where.server],
    ]) {
      const drawn = await draw(words, where.folder, where, {});
      expect(drawn).toMatch(/\x1b\[3[12]m[✗✓]\x1b\[39m/);
      const left = drawn.replaceAll(/\x1b\[(?:31m✗|32m✓|36m[›⠀-⣿]|33m!)\x1b\[39m|\x1b\[36m[━─]*\x1b\[39m/g, "");
      expect(JSON.stringify(obeyed.exec(left)), JSON.stringify(drawn)).toBe("null");
    }
  });
});

test("in a pipe, data stays as it is", async () => {
  const { server, home, folder } = await place();
  const { stdout, stderr } = await runMeanwhile(["call", "say", "--quiet", "--", "node", server], {
    cwd: folder,
    env: { MEANWHILE_HOME: home },
  });
  expect(stdout).toContain(evil);
  expect(stderr).toBe("");
});
