import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { request } from "node:http";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { runMeanwhile, startHttp, startMeanwhile } from "../helpers/meanwhile.ts";

const whoami = {
  "commands/who/am-i.ts": `import { defineCommand } from "meanwhile";
import { appendFileSync } from "node:fs";
export default defineCommand({ summary: "Leaves a mark", run: (_input, task) => { appendFileSync(task.home + "/ran", "ran\\n"); return { ok: true }; } });`,
};
const project = () => writeFiles(temporaryFolder(), whoami);
const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "who_am_i" } });
const plain = { "content-type": "application/json", accept: "application/json, text/event-stream" };

/** Two servers for several tests: one that lets nobody run anything, in all of them, and one in which commands do run. */
const untouched = shareAmongTests(() => startHttp([], { cwd: project() }));
const visited = shareAmongTests(() => startHttp([], { cwd: project() }));

/** A request with whatever headers a hostile page or a careless client would send; fetch() would not let us. */
function send(
  url: string,
  options: { method?: string; path?: string; headers?: Record<string, string | undefined>; body?: string },
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = Object.fromEntries(Object.entries({ ...plain, ...options.headers }).filter((entry): entry is [string, string] => entry[1] !== undefined));
    const sent = request(new URL(options.path ?? "/mcp", url), { method: options.method ?? "POST", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
    });
    sent.on("error", reject);
    sent.end(options.method === "GET" ? undefined : (options.body ?? ping));
  });
}

describe("who may come in", () => {
  const routes = ["/mcp", "/healthz", "/", "/nowhere"];

  test.each([
    ["another page's Origin", { origin: "https://evil.example" }],
    ["an Origin that only looks local", { origin: "http://localhost.evil.example" }],
    ["an opaque Origin", { origin: "null" }],
    ["a rebound Host", { host: "evil.example:7337" }],
    ["a Host that only looks local", { host: "localhost.evil.example" }],
  ])("%s is refused on every route, before anything runs", async (_name, headers) => {
    const server = await untouched();
    for (const route of routes)
      for (const method of ["POST", "GET"]) expect(await send(server.url, { path: route, method, headers }), route).toMatchObject({ status: 403 });
    expect(existsSync(path.join(server.home, "ran"))).toBe(false);
  });

  test("local pages and programs are let in", async () => {
    const { url } = await visited();
    for (const headers of [{ origin: "http://localhost:3000" }, { origin: "http://127.0.0.1:6274" }, { host: "localhost:9" }, { host: "[::1]:9" }, {}])
      expect(await send(url, { headers })).toMatchObject({ status: 200 });
  });

  test.each([["text/plain"], ["text/plain; a=application/json"], ["application/x-www-form-urlencoded"], [undefined]])(
    "a body of type %s is refused on every route: a form on a page could send it",
    async (type) => {
      const server = await untouched();
      for (const route of routes) expect(await send(server.url, { path: route, headers: { "content-type": type } }), route).toMatchObject({ status: 415 });
      expect(existsSync(path.join(server.home, "ran"))).toBe(false);
    },
  );

  test("only loopback is listened on, and another address is refused with the reason", async () => {
    const { url, child } = await visited();
    const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, "0");
    const listening = readFileSync(`/proc/${child.pid}/net/tcp`, "utf8")
      .split("\n")
      .filter((line) => / 0A /.test(line) && line.includes(`:${port} `));
    expect(listening.map((line) => line.trim().split(/\s+/)[1])).toEqual([`0100007F:${port}`]);
    expect(await runMeanwhile(["serve", "--http", "--host", "0.0.0.0", "--port", "0"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--host 0.0.0.0 would be reachable from other machines"),
    });
  });

  test("a port in use: one sentence that names --port, exit 70", async () => {
    const { url } = await visited();
    const { port } = new URL(url);
    expect(await runMeanwhile(["serve", "--http", "--port", port])).toMatchObject({
      code: 70,
      stdout: "",
      stderr: `✗ Port ${port} is in use; choose another one with --port.\n`,
    });
    expect(await runMeanwhile(["serve", "--http", "--port", "99999"])).toMatchObject({
      code: 2,
      stderr: "✗ --port must be a whole number from 0 to 65535, not 99999.\n",
    });
  });
});

describe("who is calling", () => {
  test("the home's token is a secret of its user: made once, 0600 in a 0700 folder", async () => {
    const home = path.join(temporaryFolder(), "home");
    const first = await runMeanwhile(["token"], { env: { MEANWHILE_HOME: home } });
    const second = await runMeanwhile(["token"], { env: { MEANWHILE_HOME: home } });
    expect(first.stdout).toMatch(/^[\w-]{43}\n$/);
    expect(second.stdout).toBe(first.stdout);
    expect(statSync(path.join(home, "token")).mode & 0o777).toBe(0o600);
    expect(statSync(home).mode & 0o777).toBe(0o700);
  });

  test("with the token a caller is the local user, without it anonymous, with another refused", async () => {
    const server = await startHttp([], { cwd: project(), env: { MEANWHILE_LOG: "debug" } });
    const token = readFileSync(path.join(server.home, "token"), "utf8").trim();
    expect(await send(server.url, { headers: { authorization: `Bearer ${token}` } })).toMatchObject({ status: 200 });
    expect(await send(server.url, {})).toMatchObject({ status: 200 });
    for (const wrong of [`Bearer ${token}x`, `Bearer ${token.slice(0, -1)}`, "Bearer", "Basic abc", `bearer  ${token} extra`]) {
      expect(await send(server.url, { headers: { authorization: wrong } }), wrong).toMatchObject({
        status: 401,
        text: expect.stringContaining("The bearer token is not this home's"),
      });
    }
    const callers = [...server.stderr().matchAll(/"caller":"(\w+)"/g)].map((match) => match[1]);
    expect(callers).toEqual(["local", "anonymous"]);
    expect(server.stderr()).not.toContain(token);
  });

  test("an empty token file lets nobody in: it is refused at start", async () => {
    const home = writeFiles(temporaryFolder(), { token: "" });
    expect(await runMeanwhile(["serve", "--http", "--port", "0", "--require-token"], { env: { MEANWHILE_HOME: home } })).toMatchObject({
      code: 70,
      stderr: expect.stringContaining("holds no token; delete it"),
    });
  });

  test("a token in the URL is no token", async () => {
    const server = await startHttp(["--require-token"], { cwd: project() });
    const token = readFileSync(path.join(server.home, "token"), "utf8").trim();
    expect(await send(server.url, { path: `/mcp?access_token=${token}` })).toMatchObject({ status: 401 });
  });

  test("--require-token refuses who sends none, by a sentence that says where to get it", async () => {
    const server = await startHttp(["--require-token"], { cwd: project() });
    expect(await send(server.url, {})).toMatchObject({ status: 401, text: expect.stringContaining("meanwhile token") });
    expect(existsSync(path.join(server.home, "ran"))).toBe(false);
    const token = readFileSync(path.join(server.home, "token"), "utf8").trim();
    expect(await send(server.url, { headers: { authorization: `Bearer ${token}` } })).toMatchObject({ status: 200 });
  });

  test("a session belongs to who began it: with another identity it does not exist", async () => {
    const server = await visited();
    const token = readFileSync(path.join(server.home, "token"), "utf8").trim();
    const own = { authorization: `Bearer ${token}` };
    const begun = await fetch(server.url, {
      method: "POST",
      headers: { ...plain, ...own },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
      }),
    });
    await begun.text();
    const session = { "mcp-session-id": begun.headers.get("mcp-session-id") as string };
    const stolen = await send(server.url, { headers: session });
    const invented = await send(server.url, { headers: { "mcp-session-id": "11111111-1111-4111-8111-111111111111" } });
    expect(stolen).toEqual(invented);
    expect(stolen.status).toBe(404);
    expect(await send(server.url, { headers: { ...session, ...own } })).toMatchObject({ status: 200 });
  });
});

test("a request that is refused does not use up its id", async () => {
  const server = await visited();
  const begun = await fetch(server.url, {
    method: "POST",
    headers: plain,
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 0,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "x", version: "1" } },
    }),
  });
  await begun.text();
  const session = { "mcp-session-id": begun.headers.get("mcp-session-id") as string };
  expect(await send(server.url, { headers: { ...session, accept: "application/json" } })).toMatchObject({ status: 406 });
  expect(await send(server.url, { headers: session })).toMatchObject({ status: 200 });
});

test("health says ok, other paths say where MCP is", async () => {
  const { url } = await visited();
  expect(await send(url, { method: "GET", path: "/healthz" })).toEqual({ status: 200, text: '{"status":"ok"}' });
  expect(await send(url, { method: "GET", path: "/" })).toMatchObject({ status: 404, text: expect.stringContaining("MCP is at /mcp") });
});

test("the server prints its URL, how to add it and a first call that works, and stops on SIGTERM", async () => {
  const server = startMeanwhile(["serve", "--http", "--port", "0"], { cwd: project() });
  await new Promise<void>((resolve) => server.child.stderr.on("data", () => server.stderr().includes("Ctrl-C") && resolve()));
  const text = server.stderr();
  const curl = /curl -s (\S+) [\s\S]*-d '([^']+)'/.exec(text);
  expect(text).toContain("claude mcp add --transport http meanwhile http://127.0.0.1:");
  expect(await (await fetch(curl?.[1] as string, { method: "POST", headers: plain, body: curl?.[2] as string })).text()).toContain('"success":true');
  server.child.kill("SIGTERM");
  expect(await server.exited).toBe(0);
  expect(server.stdout()).toBe("");
});

test("a server whose log nobody reads any more goes on, and does not spin", async () => {
  const server = await startHttp([], { cwd: project() });
  server.child.stderr.destroy();
  // Without its database the server has something to log every second.
  for (const name of ["tasks.db", "tasks.db-wal", "tasks.db-shm"]) rmSync(path.join(server.home, name), { force: true });
  const before = ticksOf(server.child.pid as number);
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  // A hundred ticks are a second of one core: the loop took all of it.
  expect(ticksOf(server.child.pid as number) - before).toBeLessThan(60);
  expect(await send(server.url, { method: "GET", path: "/healthz" })).toMatchObject({ status: 200 });
});

/** The processor time a process has used, in hundredths of a second. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
