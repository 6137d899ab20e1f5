import path from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, test } from "vitest";
import { readMessage } from "../../src/wire/message.ts";
import { runCli, startScreen } from "../helpers/cli.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { type Program, programAt } from "../helpers/programs.ts";
import type { Message } from "../helpers/wire.ts";

/** Sets the title, clears, colours, writes the clipboard, in C0 and C1, and reverses the direction of text. */
const evil =
  "EVIL\x1b]0;owned\x07\x1b[2J\x1b[31m\x1b]52;c;aGk=\x1b\\\u009b2J\u0090q\u009c\u202edrow\u2066\u200f\u061c\x7f\b\x0eEND";
const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** A server whose texts are meant for the terminal of its user. */
const server: Program = async ({ stdin, stdout, stderr, exit }) => {
  stderr.write(`${evil}\n`);
  const sendAny = (message: object) => stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  for await (const line of createInterface({ input: stdin })) {
    const { id, method, params } = readMessage(line) as Message;
    const send = (message: object) => sendAny({ id, ...message });
    if (method === "initialize")
      send({
        result: {
          protocolVersion: "2024-11-05",
          capabilities: { tools: {}, logging: {} },
          serverInfo: { name: evil, version: evil },
        },
      });
    else if (method === "tools/list") send({ result: { tools } });
    else if (method === "tools/call") {
      const { progressToken } = params?._meta ?? {};
      if (progressToken !== undefined)
        sendAny({
          method: "notifications/progress",
          params: { progressToken, progress: 1, total: 2, message: evil },
        });
      if (params?.name === "die") exit(7);
      else if (params?.name === "refuse") send({ error: { code: -32000, message: evil } });
      else if (params?.name === "data") send({ result: { content: [], structuredContent: { [evil]: evil } } });
      else {
        const link = { type: "resource_link", uri: `x:${evil}`, name: evil };
        send({ result: { content: [{ type: "text", text: evil }, link], isError: params?.name === "fail" } });
      }
    } else if (id !== undefined) send({ error: { code: -32601, message: evil } });
  }
  exit(0);
};
const tools = ["say", "fail", "refuse", "die", "data", `ev${evil}`].map((name) => ({
  name,
  description: evil,
  inputSchema: { type: "object", properties: { [evil]: { type: "string", description: evil } } },
}));
const line = programAt("/no/such/folder/hostile.mjs", server);

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
    "project/commands/bad/screen.ts": command,
    "project/commands/bad/broken.ts": `throw new Error(${JSON.stringify(evil)});`,
    "project/meanwhile.config.json": '{ "bundled": false }',
    "behind/meanwhile.config.json": JSON.stringify({
      bundled: false,
      upstreams: { theirs: { command: line[0], args: [line[1]] } },
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
  };
});

type Place = Awaited<ReturnType<typeof place>>;

/** Runs a line at a terminal to its end: everything that was drawn, but for the way we erase our own bar. */
async function draw(
  words: readonly string[],
  cwd: string,
  { home }: Place,
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<string> {
  const screen = { columns: 200, rows: 50, isDataShown: true };
  const { exited, drawn } = startScreen(words, { ...screen, cwd, env: { MEANWHILE_HOME: home, ...env } });
  await exited;
  return drawn().replaceAll("\r\x1b[2K", "");
}

describe("a terminal gets no control characters from", () => {
  const cases: Record<string, (where: Place) => readonly [words: readonly string[], cwd: string]> = {
    "a tool's text": ({ folder }) => [["call", "say", "--", ...line], folder],
    "a tool's text as JSON": ({ folder }) => [["call", "say", "--json", "--", ...line], folder],
    "a tool's data": ({ folder }) => [["call", "data", "--", ...line], folder],
    "a tool's data as JSON": ({ folder }) => [["call", "data", "--json", "--", ...line], folder],
    "a tool's error": ({ folder }) => [["call", "fail", "--", ...line], folder],
    "a server's refusal": ({ folder }) => [["call", "refuse", "--", ...line], folder],
    "a server's last words": ({ folder }) => [["call", "die", "--", ...line], folder],
    "the names of arguments": ({ folder }) => [["call", "say", "x=1", "--", ...line], folder],
    "a list of tools": ({ folder }) => [["tools", "--", ...line], folder],
    "a list of tools as JSON": ({ folder }) => [["tools", "--json", "--", ...line], folder],
    "a command's words and data": ({ project }) => [["bad", "screen"], project],
    "a command's data as JSON": ({ project }) => [["bad", "screen", "--json"], project],
    "a command's error": ({ project }) => [["bad", "screen", "--fails"], project],
    "a command's help": ({ project }) => [["bad", "screen", "--help"], project],
    "a command that cannot be loaded": ({ project }) => [["bad", "broken"], project],
    "our own list of tools": ({ project }) => [["tools"], project],
    "a task": ({ project }) => [["bad", "screen", "--async"], project],
    "the log of the daemons": ({ project }) => [["daemon", "logs"], project],
    "the list of an upstream's tools": ({ behind }) => [["tools"], behind],
    "the text of an upstream's tool": ({ behind }) => [["theirs", "say"], behind],
    "the last words of an upstream": ({ behind }) => [["theirs", "die"], behind],
    "a config's mistake": ({ wrong }) => [["tools"], wrong],
    "what was typed": ({ folder }) => [[evil.replaceAll("\0", "")], folder],
  };

  test.each(Object.entries(cases))("%s", async (_, toLine) => {
    const where = await place();
    const [words, cwd] = toLine(where);
    const drawn = await draw(words, cwd, where);
    expect(drawn).toContain("EVIL");
    expect(JSON.stringify(obeyed.exec(drawn)), drawn).toBe("null");
  });

  test("a config's mistake, from a stdio proxy", async () => {
    const { home, wrong } = await place();
    const { stdin, stderr, exited } = new DaemonHomeHere({ home, cwd: wrong }).openProxy({ words: [] });
    stdin.end();
    await exited;
    expect(stderr()).toContain("EVIL");
    expect(JSON.stringify(obeyed.exec(stderr())), stderr()).toBe("null");
  });

  test("a list of tasks, one of them and how long they take", async () => {
    const where = await place();
    const env = { MEANWHILE_HOME: where.home };
    const { stdout } = await runCli(["bad", "screen", "--quiet", "--detach"], {
      cwd: where.project,
      env,
    });
    const taskId = stdout.trim();
    await runCli(["tasks", "result", taskId, "--wait"], { cwd: where.project, env });
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
      ["call", "fail", "--", ...line],
      ["call", "say", "--", ...line],
    ]) {
      const drawn = await draw(words, where.folder, where, { NO_COLOR: undefined });
      expect(drawn).toMatch(/\x1b\[3[12]m[✗✓]\x1b\[39m/);
      const left = drawn.replaceAll(/\x1b\[(?:31m✗|32m✓|36m[›⠀-⣿]|33m!)\x1b\[39m|\x1b\[36m[━─]*\x1b\[39m/g, "");
      expect(JSON.stringify(obeyed.exec(left)), JSON.stringify(drawn)).toBe("null");
    }
  });
});

test("in a pipe, data stays as it is", async () => {
  const { home, folder } = await place();
  const { stdout, stderr } = await runCli(["call", "say", "--quiet", "--", ...line], {
    cwd: folder,
    env: { MEANWHILE_HOME: home },
  });
  expect(stdout).toContain(evil);
  expect(stderr).toBe("");
});
