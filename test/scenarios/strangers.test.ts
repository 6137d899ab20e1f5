import { existsSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { startHttpHere } from "../helpers/cli.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startTask } from "../helpers/place.ts";
import { exchange, type Fields, ModernClient, modernMeta, SessionClient, takesTasks } from "../helpers/wire.ts";

/** What callers without the home's token get from an HTTP server. */

const root = path.resolve(import.meta.dirname, "../..");
const secret = "-----BEGIN OPENSSH PRIVATE KEY----- nobody but its owner reads this";

/** The user's key and home, and a server in the folder and with the words of `npm start`. */
const guarded = shareAmongTests(async () => {
  const user = writeFiles(temporaryFolder(), { ".ssh/id_rsa": secret });
  const home = path.join(user, ".meanwhile");
  const { url, token } = await startHttpHere([], { cwd: root, env: { HOME: user, MEANWHILE_HOME: home } });
  return { url, user, home, token: token() };
});

interface Attack {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Got {
  readonly status: number;
  readonly text: string;
}

/** Sends requests without a token. */
function sendAll(url: string, attacks: readonly Attack[]): Promise<Got[]> {
  const plain = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const send = async ({ method = "POST", path: route = "/mcp", headers, body }: Attack): Promise<Got> => {
    const sent = method === "POST" && { body: JSON.stringify(body) };
    const response = await fetch(new URL(route, url), { method, headers: { ...plain, ...headers }, ...sent });
    return { status: response.status, text: await response.text() };
  };
  return Promise.all(attacks.map(send));
}

/** A request as clients without a session, and clients of 2026-07-28, send it. */
function everyWay(method: string, params: Fields = {}): Attack[] {
  const body = { jsonrpc: "2.0", id: 1, method };
  const name = params.name as string | undefined;
  const routing = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(name !== undefined && { "mcp-name": name }),
  };
  return [
    { body: { ...body, params } },
    { headers: routing, body: { ...body, params: { ...params, _meta: modernMeta({}) } } },
  ];
}

describe("a caller without a token, at the server that `npm start` starts", () => {
  const refused = async (attacks: readonly Attack[]) => {
    const { url } = await guarded();
    const answers = await sendAll(url, attacks);
    for (const answer of answers)
      expect(answer).toMatchObject({ status: 401, text: expect.stringContaining("Authorization: Bearer") });
    return JSON.stringify(answers);
  };

  test("cannot list the tools, the prompts or the resources", () =>
    refused(["tools/list", "prompts/list", "resources/list"].flatMap((method) => everyWay(method))));

  test("cannot read the user's key with transform", async () => {
    const { user } = await guarded();
    const attacks = everyWay("tools/call", {
      name: "transform",
      arguments: { file: path.join(user, ".ssh/id_rsa"), engine: "text" },
    });
    expect(await refused(attacks)).not.toContain("OPENSSH");
  });

  test("cannot read the home's token with transform", async () => {
    const { home, token } = await guarded();
    const attacks = everyWay("tools/call", {
      name: "transform",
      arguments: { file: path.join(home, "token"), engine: "text" },
    });
    expect(await refused(attacks)).not.toContain(token);
  });

  test("cannot plant commands with config_set", async () => {
    const { home } = await guarded();
    await refused(
      everyWay("tools/call", { name: "config_set", arguments: { key: "commands", value: '["/tmp/theirs"]' } }),
    );
    expect(existsSync(path.join(home, "config.json"))).toBe(false);
  });

  test("cannot begin a session, open a stream or end one", async () => {
    const initialize = {
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
    };
    const session = { "mcp-session-id": "11111111-1111-4111-8111-111111111111" };
    await refused([
      { body: initialize },
      { method: "GET" },
      { method: "GET", headers: session },
      { method: "DELETE", headers: session },
    ]);
  });

  test("finds no route that is open but the one that says the server is well", async () => {
    await refused(
      ["/", "/mcp/", "/metrics", "/healthz/x"].flatMap((route) => [
        { path: route, method: "GET" },
        { path: route, body: {} },
      ]),
    );
    const { url } = await guarded();
    expect(await sendAll(url, [{ path: "/healthz", method: "GET" }])).toEqual([
      { status: 200, text: '{"status":"ok"}' },
    ]);
  });
});

describe("a stranger who is let in by --allow-anonymous", () => {
  const greet = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Says hello", effects: "read", run: () => ({ hello: "world" }) });`;

  /** Serves the pack beside a command of the project's own. */
  const packed = shareAmongTests(async () => {
    const { url, token } = await startHttpHere(["--allow-anonymous", "--bundled"], {
      cwd: writeFiles(temporaryFolder(), { "commands/say/hello.ts": greet }),
    });
    const local = new ModernClient(url, { headers: { authorization: `Bearer ${token()}` }, capabilities: takesTasks });
    const { tools } = (await local.request("tools/list")).result as { tools: { name: string }[] };
    const bundled = namesIn(tools).filter((name) => !name.startsWith("task_") && name !== "say_hello");
    expect(bundled).toEqual(
      expect.arrayContaining(["config_set", "transform", "diagnose_server", "database_reset", "vault_index"]),
    );
    return { url, local, bundled };
  });

  const namesIn = (items: readonly { name: string }[]) => items.map(({ name }) => name);
  type Ask = (
    method: string,
    params?: Fields,
  ) => Promise<{ status: number; text: string; result: Fields | undefined; error: unknown }>;

  /** The three kinds of clients over HTTP: each makes its servers in another place. */
  const kinds: Readonly<Record<string, (url: string) => Promise<Ask>>> = {
    "in 2026-07-28": async (url) => {
      const client = new ModernClient(url, {});
      return (method, params) => client.request(method, params, { id: 1 });
    },
    "in a session of 2025-11-25": async (url) => {
      const client = await SessionClient.begin(url);
      return (method, params) => client.request(method, params);
    },
    "in 2025-11-25, without a session": async (url) => async (method, params) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const stream = await exchange(url, { headers: { "content-type": "application/json" }, body });
      await stream.over;
      const [message] = stream.messages;
      return { status: stream.status, text: stream.text, result: message?.result, error: message?.error };
    },
  };

  describe.each(Object.entries(kinds))("%s", (_title, take) => {
    const open = async () => {
      const { url, local, bundled } = await packed();
      return { ask: await take(url), local, bundled };
    };

    test("sees and calls what is the project's own, and nothing else", async () => {
      const { ask } = await open();
      expect(namesIn((await ask("tools/list")).result?.tools)).toEqual([
        "say_hello",
        "task_result",
        "task_status",
        "task_cancel",
        "task_answer",
      ]);
      expect(namesIn((await ask("prompts/list")).result?.prompts)).toEqual(["say_hello"]);
      expect((await ask("tools/call", { name: "say_hello" })).result?.structuredContent).toMatchObject({
        data: { hello: "world" },
      });
    });

    test("finds no bundled command by its name: the answer is that for a name that nobody knows", async () => {
      const { ask, bundled } = await open();
      const unknown = "zzzzzzzz_qqqqqqqq";
      const ways: readonly [string, (name: string) => Fields][] = [
        ["tools/call", (name) => ({ name, arguments: {} })],
        ["prompts/get", (name) => ({ name })],
        [
          "completion/complete",
          (name) => ({ ref: { type: "ref/prompt", name }, argument: { name: "file", value: "" } }),
        ],
        ["completion/complete", (name) => ({ name, partial_argument: "" })],
      ];
      for (const [method, params] of ways) {
        const expected = await ask(method, params(unknown));
        expect(expected.error, method).toMatchObject({ code: -32602 });
        for (const name of bundled) {
          const { status, error } = await ask(method, params(name));
          const swapped = JSON.parse(JSON.stringify(error).replaceAll(name, unknown)) as unknown;
          expect({ status, error: swapped }, `${method} ${name}`).toEqual({
            status: expected.status,
            error: expected.error,
          });
        }
      }
    });

    test("is suggested no bundled command", async () => {
      const { ask } = await open();
      const messageOf = async (method: string, name: string) =>
        ((await ask(method, { name })).error as { message: string }).message;
      for (const method of ["tools/call", "completion/complete"]) {
        for (const name of ["config_sett", "transfrom", "diagnose_serve"])
          expect(await messageOf(method, name)).not.toContain("did you mean");
        expect(await messageOf(method, "say_helo")).toContain("did you mean say_hello?");
      }
    });

    test("reads of none in the server's resources", async () => {
      const { ask, local } = await open();
      await local.request("tools/call", { name: "config_path", arguments: {} });
      const read = async (from: Ask) =>
        (await from("resources/read", { uri: "meanwhile://stats" })).result?.contents[0].text as string;
      expect(await read((method, params) => local.request(method, params))).toContain('"config_path"');
      expect(await read(ask)).toContain('{"commands":');
      expect(await read(ask)).not.toContain("config_path");
    });

    test("reaches no task of one by its id", async () => {
      const { ask, local } = await open();
      const { taskId } = await startTask(local, "ingest_discover");
      for (const name of ["task_result", "task_status", "task_cancel", "task_answer"]) {
        const more = name === "task_answer" ? { answers: { q1: {} } } : {};
        const about = async (job_id: string) =>
          (await ask("tools/call", { name, arguments: { job_id, ...more } })).result?.content[0].text as string;
        const withoutTime = (text: string) => text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "");
        const [got, none] = [await about(taskId), await about("00000000-0000-4000-8000-000000000000")];
        expect(withoutTime(got), name).toBe(withoutTime(none));
        expect(got).toContain("There is no such task");
      }
    });
  });

  test.each([
    ["the folder of the pack", "dist/commands"],
    ["a part of it", "dist/commands/config"],
    ["its sources", "commands/config"],
  ])("finds none either that is served as the project's own, through a link to %s", async (_title, folder) => {
    const link = path.join(temporaryFolder(), "commands");
    symlinkSync(path.join(root, folder), link);
    const { url, token } = await startHttpHere(["--allow-anonymous", "--no-bundled", "--commands", link]);
    const listed = async (headers: Record<string, string>) => {
      const { tools } = (await new ModernClient(url, { headers }).request("tools/list")).result as {
        tools: { name: string }[];
      };
      return namesIn(tools).filter((name) => !name.startsWith("task_"));
    };
    expect(await listed({ authorization: `Bearer ${token()}` })).not.toEqual([]);
    expect(await listed({})).toEqual([]);
  });
});
