import { describe, expect, test } from "vitest";
import type { Authentication } from "../../src/auth/authentication.ts";
import { type CallerDetails, keyCaller, userCaller } from "../../src/command/caller.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startTask } from "../helpers/place.ts";
import { openServer } from "../helpers/server.ts";
import { type Fields, resultOf, takesAll, type WireClient } from "../helpers/wire.ts";

/** Which tools a caller over HTTP is listed and may call, whatever they are made of. */

const command = (summary: string, more = "") => `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "${summary}", ${more}
  input: z.object({ word: z.string().optional() }),
  run: (_input, task) => ({ scopes: task.caller.scopes, kind: task.caller.kind }),
});
`;

const files = {
  "commands/note/read.ts": command("Reads"),
  "commands/note/write.ts": command("Writes", `scopes: ["notes:write"], aliases: ["scribble"],`),
  "commands/note/purge.ts": command("Purges"),
  "commands/clash/count.ts": command("Counts", `aliases: ["by_hand"],`),
  "commands/ops/drain.ts": command("Drains", `complete: { word: () => ["a secret"] },`),
  "meanwhile.config.ts": `import { defineConfig } from "meanwhile";
import { z } from "zod";
const text = (words) => ({ content: [{ type: "text", text: words }] });
export default defineConfig({
  bundled: ["monitor", "transform"],
  auth: {
    access: [
      { tools: "note_purge", scopes: ["notes:admin"] },
      { tools: "ops_*", groups: ["ops"] },
      { tools: "hand_*", scopes: ["hands"] },
      { tools: "by_hand", scopes: ["hands"] },
      { tools: "hand_ops", groups: ["ops"] },
      { tools: "transform_*" },
    ],
  },
  mcp(server) {
    for (const name of ["hand_made", "hand_ops", "by_hand"])
      server.registerTool(name, { description: name, inputSchema: z.object({}) }, () => text("by " + name));
  },
});
`,
};

const issuer = "https://issuer.example";
const user = (scopes: readonly string[], more: CallerDetails = {}): Authentication => ({
  caller: userCaller({ issuer, subject: "ada" }, { scopes, ...more }),
  scopesFrom: "the claim `scope`",
});
const key = (scopes: readonly string[], commands?: readonly string[]): Authentication => ({
  caller: keyCaller("k1", { scopes }),
  scopesFrom: "the API key ci",
  ...(commands !== undefined && { commands }),
});
const call = "meanwhile:call";

async function open() {
  const cwd = temporaryFolder();
  writeFiles(cwd, files);
  const server = await openServer({
    in: "http",
    cwd,
    store: "sqlite",
    projectCommands: "with bundled",
    identify: ({ headers }) =>
      typeof headers["x-caller"] === "string" ? (JSON.parse(headers["x-caller"]) as Authentication) : undefined,
  });
  const client = (who: Authentication | "local" | "anonymous", revision: string) =>
    server.client(
      { revision, capabilities: {} },
      {
        over: "http",
        ...(typeof who === "object" && { headers: { "x-caller": JSON.stringify(who) } }),
        isAnonymous: who === "anonymous",
      },
    );
  return { server, client };
}

const shared = shareAmongTests(open);
const eras = ["2025-11-25", "2026-07-28"];

const own = /^(note|ops|hand|transform_|monitor_)/;
const tools = async (client: WireClient) => {
  const listed = resultOf(await client.request("tools/list")).tools as { name: string }[];
  return listed.map(({ name }) => name).filter((name) => own.test(name) && !name.startsWith("transform_"));
};
const callTool = (client: WireClient, name: string, input: Fields = {}) =>
  client.request("tools/call", { name, arguments: input });

describe.each(eras)("on %s", (revision) => {
  test.each<[string, Authentication | "anonymous", readonly string[]]>([
    ["a user", user([call]), ["hand_made", "note_purge", "note_read", "note_write"]],
    [
      "a user of the group ops",
      user([call], { groups: ["ops"] }),
      ["hand_made", "hand_ops", "note_purge", "note_read", "note_write", "ops_drain"],
    ],
    ["a key", key([call]), ["note_read"]],
    ["a key with the scopes", key([call, "hands", "notes:write"]), ["hand_made", "note_read", "note_write"]],
    ["a key for some tools", key([call, "notes:write"], ["note_*"]), ["note_read", "note_write"]],
    ["an anonymous caller", "anonymous", ["note_read"]],
  ])("%s is listed the tools that it may call, and those that its issuer could grant", async (_who, who, names) => {
    const { client } = await shared();
    const connected = await client(who, revision);
    expect((await tools(connected)).toSorted()).toEqual(names);
    const prompts = resultOf(await connected.request("prompts/list")).prompts as { name: string }[];
    const commands = names.filter((name) => !name.startsWith("hand_"));
    expect(
      prompts
        .map(({ name }) => name)
        .filter((name) => own.test(name) && !name.startsWith("transform_"))
        .toSorted(),
    ).toEqual(commands);
  });

  test("the local user and administrators are listed bundled commands as well", async () => {
    const { client } = await shared();
    for (const who of ["local" as const, key(["meanwhile:admin"])]) {
      const names = await tools(await client(who, revision));
      expect(names.filter((name) => name.startsWith("monitor_")).length).toBeGreaterThan(0);
    }
  });

  test.each<[string, string, string]>([
    ["a command with scopes", "note_write", `${call} notes:write`],
    ["an alias of it", "scribble", `${call} notes:write`],
    ["a tool that a rule matches", "note_purge", `${call} notes:admin`],
    ["a tool of the author's server", "hand_made", `${call} hands`],
    ["a tool of the author's server with the name of an alias", "by_hand", `${call} hands`],
    ["a bundled command", "monitor_status", "meanwhile:admin"],
  ])("a call of %s with too few scopes is 403, and says all that is needed", async (_what, name, scopes) => {
    const { client } = await shared();
    for (const who of [user([call, "other"]), key([call, "other"])]) {
      const answer = await callTool(await client(who, revision), name);
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
        403,
        expect.stringMatching(`^Bearer error="insufficient_scope", scope="${scopes}"`),
      ]);
      expect(answer.error?.message).toContain(
        `Calling "${name}" needs the scope${scopes.includes(" ") ? "s" : ""} ${scopes.replace(" ", ", ")}; ${who.scopesFrom} has ${call}, other.`,
      );
      expect(answer.error?.data).toEqual({ error: "insufficient_scope", scopes: scopes.split(" ") });
    }
  });

  test("an anonymous caller who needs a scope is asked for a credential", async () => {
    const { client } = await shared();
    const answer = await callTool(await client("anonymous", revision), "note_write");
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      401,
      expect.stringMatching(`^Bearer scope="${call} notes:write"`),
    ]);
  });

  test("with the scopes it is called, by each of its names", async () => {
    const { client } = await shared();
    const who = key([call, "notes:write", "notes:admin", "hands"]);
    const connected = await client(who, revision);
    for (const name of ["note_write", "scribble", "note_purge", "note_read"])
      expect(resultOf(await callTool(connected, name)).structuredContent?.data, name).toMatchObject({ kind: "key" });
    expect(resultOf(await callTool(connected, "hand_made")).content?.[0]?.text).toBe("by hand_made");
    expect(resultOf(await callTool(await client("local", revision), "note_write")).isError).not.toBe(true);
  });

  test.each<[string, Authentication | "anonymous", string]>([
    ["a command of a group", user([call, "meanwhile:admin"]), "ops_drain"],
    ["a tool of the author's server of a group", user([call, "hands"]), "hand_ops"],
    ["a command that is not the key's", key([call, "meanwhile:admin"], ["note_read"]), "note_purge"],
    ["a tool of the author's server that is not the key's", key([call, "hands"], ["note_read"]), "hand_made"],
    ["an alias of a command that is not the key's", key([call], ["note_read"]), "scribble"],
    ["a bundled command, for an anonymous caller", "anonymous", "monitor_status"],
  ])("%s is unknown: called, completed, and as a prompt", async (_what, who, name) => {
    const { client } = await shared();
    const connected = await client(who, revision);
    const unknown = "x".repeat(name.length);
    const bytes = async (method: string, params: (name: string) => Fields) => {
      const of = async (asked: string) => {
        const { status, text, error } = await connected.request(method, params(asked), { id: 7_000 });
        expect(error, method).toBeDefined();
        return [status, text.replaceAll(asked, "NAME").replaceAll(/^id: .*$/gm, "id: EVENT")];
      };
      expect(await of(name), method).toEqual(await of(unknown));
    };
    await bytes("tools/call", (asked) => ({ name: asked, arguments: {} }));
    await bytes("completion/complete", (asked) => ({ name: asked, partial_argument: "" }));
    await bytes("completion/complete", (asked) => ({
      ref: { type: "ref/prompt", name: asked },
      argument: { name: "word", value: "" },
    }));
    await bytes("prompts/get", (asked) => ({ name: asked }));
  });

  test("arguments are completed for callers who may call the tool", async () => {
    const { client } = await shared();
    const complete = { name: "note_write", partial_argument: "", argument: "word" };
    const refused = await (await client(user([call]), revision)).request("completion/complete", complete);
    expect(refused.status).toBe(403);
    const served = await (await client(user([call, "notes:write"]), revision)).request("completion/complete", complete);
    expect(served.error).toBeUndefined();
  });

  test.each<[string, Fields]>([
    ["tools/call", { name: "note_read", arguments: {} }],
    ["tools/call", { name: "no_such_tool", arguments: {} }],
    ["tools/call", {}],
    ["tasks/cancel", { taskId: "x" }],
    ["tools/call", { name: "task_cancel", arguments: { job_id: "x" } }],
    ["tools/call", { name: "task_answer", arguments: { job_id: "x", answers: {} } }],
    ["tools/call", { name: "task_result", arguments: { job_id: "x", cancel: true } }],
    ["tools/call", { name: "task_result", arguments: { job_id: "x", answer: {} } }],
    ...(revision === "2026-07-28" ? [["tasks/update", { taskId: "x" }] as [string, Fields]] : []),
  ])("with meanwhile:read alone, %s %j needs meanwhile:call", async (method, params) => {
    const { client } = await shared();
    const answer = await (await client(key(["meanwhile:read"]), revision)).request(method, params);
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      403,
      expect.stringMatching(`^Bearer error="insufficient_scope", scope="${call}"`),
    ]);
  });

  test.each<[string, Fields]>([
    ["tools/list", {}],
    ["prompts/list", {}],
    ["resources/list", {}],
    ["tools/call", { name: "task_list", arguments: {} }],
    ["tools/call", { name: "task_result", arguments: { job_id: "x", cancel: false } }],
    ["tools/call", { name: "task_status", arguments: { job_id: "x" } }],
    ["tasks/get", { taskId: "x" }],
  ])("%s %j needs meanwhile:read", async (method, params) => {
    const { client } = await shared();
    const answer = await (await client(key(["meanwhile:read"]), revision)).request(method, params);
    expect(answer.status).toBeLessThan(401);
  });

  test("without a scope of Meanwhile's a credential may ask nothing", async () => {
    const { server } = await shared();
    const url = await server.url();
    const headers = {
      "x-caller": JSON.stringify(key(["meanwhile:metrics", "notes:write"])),
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
    };
    const statusOf = async (method: string, init: RequestInit = {}) =>
      await fetch(url, {
        ...init,
        headers,
        ...(method !== "" && { body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: {} }) }),
      });
    for (const method of ["initialize", "ping", "tools/list", "server/discover", "no/such/method"]) {
      const response = await statusOf(method, { method: "POST" });
      expect([response.status, response.headers.get("www-authenticate")], method).toEqual([
        403,
        expect.stringMatching(
          `^Bearer error="insufficient_scope", scope="meanwhile:${method === "no/such/method" ? "call" : "read"}"`,
        ),
      ]);
    }
    for (const method of ["GET", "DELETE"]) expect((await statusOf("", { method })).status, method).toBe(403);
  });
});

test("a session takes each request with the scopes of its own credential", async () => {
  const { server } = await shared();
  const reader = await server.client("2025-11-25", { headers: { "x-caller": JSON.stringify(key([call])) } });
  expect((await callTool(reader, "note_write")).status).toBe(403);
  expect(await tools(reader)).toEqual(["note_read"]);
  const headers = { "x-caller": JSON.stringify(key([call, "notes:write"])) };
  const written = await reader.request("tools/call", { name: "note_write", arguments: {} }, { headers });
  expect(resultOf(written).structuredContent?.data).toMatchObject({ scopes: [call, "notes:write"] });
  const listed = await reader.request("tools/list", {}, { headers });
  expect((resultOf(listed).tools as { name: string }[]).map(({ name }) => name)).toContain("note_write");
});

describe.each(eras)("commands whose files are not loaded yet on %s", (revision) => {
  const openLate = async () => {
    const home = temporaryFolder();
    const folder = writeFiles(temporaryFolder(), {
      "note/read.ts": command("Reads"),
      "note/write.ts": command("Writes", `scopes: ["notes:write"], aliases: ["scribble"],`),
    });
    const open = async () =>
      await openServer({
        ...{ in: "http", home, commands: folder, clock: new FakeClock(), loadsLate: true },
        identify: ({ headers }) => JSON.parse(String(headers["x-caller"])) as Authentication,
      });
    const server = await open();
    const client = (who: Authentication, on = server) =>
      on.client({ revision, capabilities: {} }, { headers: { "x-caller": JSON.stringify(who) } });
    return { server, client, open };
  };

  test.each(["note_write", "scribble"])("need their scopes in the first call (%s)", async (name) => {
    const { server, client } = await openLate();
    expect(server.runtime.catalog.pending).toHaveLength(2);
    const refused = await callTool(await client(key([call])), name);
    expect([refused.status, refused.error?.data]).toMatchObject([403, { scopes: [call, "notes:write"] }]);
  });

  test("are called with their scopes", async () => {
    const { client } = await openLate();
    const answer = resultOf(await callTool(await client(key([call, "notes:write"])), "note_write"));
    expect(answer.structuredContent?.data).toMatchObject({ kind: "key" });
  });

  test("are listed by the scopes that they had when they were last loaded", async () => {
    const { server, client, open } = await openLate();
    const names = ["note_read", "note_write"];
    expect(await tools(await client(key([call, "notes:write"])))).toEqual(names);
    await server.close();
    const next = await open();
    expect(await tools(await client(key([call]), next))).toEqual(["note_read"]);
    expect(await tools(await client(key([call, "notes:write"]), next))).toEqual(names);
    expect(next.runtime.catalog.pending.length, "loaded files").toBeGreaterThan(0);
  });
});

test("why a command cannot be loaded is told to the local user alone", async () => {
  const cwd = temporaryFolder();
  writeFiles(cwd, { "commands/note/broken.ts": `throw new Error("no database at db.internal");` });
  const server = await openServer({
    ...{ in: "http", cwd, projectCommands: "alone" },
    identify: ({ headers }) =>
      typeof headers["x-caller"] === "string" ? (JSON.parse(headers["x-caller"]) as Authentication) : undefined,
  });
  const sentenceFor = async (who: { headers?: Record<string, string> }) => {
    const client = await server.client({ revision: "2026-07-28", capabilities: {} }, { over: "http", ...who });
    const { content, isError } = resultOf(await callTool(client, "note_broken"));
    expect(isError).toBe(true);
    return content?.[0]?.text;
  };
  const remote = await sentenceFor({ headers: { "x-caller": JSON.stringify(key([call, "meanwhile:admin"])) } });
  expect(remote).toBe("note_broken could not be loaded; the log of the server says why.");
  expect(await sentenceFor({})).toContain("db.internal");
});

test("an administrator sees no task of another caller over MCP", async () => {
  const { server } = await shared();
  const at = (who: Authentication, revision: string) =>
    server.client({ revision, capabilities: takesAll }, { headers: { "x-caller": JSON.stringify(who) } });
  const owner = await at(key([call]), "2026-07-28");
  const { taskId } = await startTask(owner, "note_read", {}, { _meta: { "meanwhile/task": {} } });
  const admins = [
    user(["meanwhile:admin"]),
    { ...key(["meanwhile:admin"]), caller: keyCaller("k2", { scopes: ["meanwhile:admin"] }) },
  ];
  for (const admin of admins) {
    const [session, modern] = [await at(admin, "2025-11-25"), await at(admin, "2026-07-28")];
    expect(resultOf(await session.request("tasks/list")).tasks).toEqual([]);
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel"])
      expect((await session.request(method, { taskId })).error?.message, method).toMatch(/^There is no such task/);
    for (const [method, more] of [
      ["tasks/get", {}],
      ["tasks/cancel", {}],
      ["tasks/update", { inputResponses: {} }],
    ] as const)
      expect((await modern.request(method, { taskId, ...more })).error?.message, method).toMatch(
        /^There is no such task/,
      );
    expect((await modern.listen([taskId])).acknowledged).toEqual({ taskIds: [] });
    for (const client of [session, modern]) {
      for (const name of ["task_status", "task_result", "task_cancel"])
        expect(resultOf(await callTool(client, name, { job_id: taskId })).isError, name).toBe(true);
      expect(JSON.stringify(await callTool(client, "task_result"))).not.toContain(taskId);
      const completed = await client.request("completion/complete", {
        name: "task_status",
        argument: "job_id",
        partial_argument: "",
      });
      expect(JSON.stringify(completed.result)).not.toContain(taskId);
      expect(resultOf(await client.request("resources/list")).resources).toEqual([]);
    }
  }
  expect((await owner.request("tasks/get", { taskId })).result).toMatchObject({ taskId });
});
