import { describe, expect, test } from "vitest";
import type { AppCaller } from "../../../src/auth/app-caller.ts";
import { localUser } from "../../../src/command/caller.ts";
import { silentLog } from "../../../src/log.ts";
import type { CallerRequest, Identify } from "../../../src/transport/http/identification.ts";
import { createHttpMount } from "../../../src/transport/http/mount.ts";
import { moving } from "../../helpers/in-memory.ts";
import { openMounted, type Reached, reach, serve, toCall, toRequest, waysIn } from "../../helpers/mounted.ts";
import { RawSocket, toRequest as toRaw } from "../../helpers/raw-socket.ts";

/** Who is let in where MCP is mounted inside an app, and as whom. */

const { init } = toCall("add", { a: 1, b: 2 });
const token = (id: string): AppCaller => ({ kind: "app", id });
const who = ({ headers }: CallerRequest) => (headers.who === undefined ? undefined : token(headers.who));
const ask = async ({ url, fetch }: Reached, headers: Record<string, string> = {}) => {
  const response = await fetch(url, { ...init, headers: { ...init.headers, ...headers } });
  const { error } = (await response.json()) as { error?: { message: string } };
  return { status: response.status, told: error?.message, wants: response.headers.get("www-authenticate") };
};

describe("whose page and which name", () => {
  const publicUrl = "https://Tools.Example.com:8443/app/mcp";
  test.each([
    ["localhost", undefined, 200],
    ["127.0.0.1:8080", undefined, 200],
    ["[::1]:80", undefined, 200],
    ["tools.example.com", undefined, 200],
    ["TOOLS.example.com:9", undefined, 200],
    ["tools.example.com", "https://tools.example.com", 200],
    ["localhost", "http://localhost:5173", 200],
    ["localhost", "", 200],
    ["evil.example", undefined, 403],
    ["tools.example.com.evil.example", undefined, 403],
    ["evil.example@tools.example.com", undefined, 403],
    ["localhost, evil.example", undefined, 403],
    ["tools.example.com", "https://evil.example", 403],
    ["localhost", "https://evil.example", 403],
    ["localhost", "null", 403],
  ])("Host %s with Origin %s: %i", async (host, origin, status) => {
    const { mount } = await openMounted({ publicUrl });
    const headers = { ...init.headers, host, ...(origin !== undefined && { origin }) };
    const response = await mount.fetch(toRequest("http://localhost/mcp", { ...init, headers }));
    expect(response.status).toBe(status);
    if (status === 403) expect(await response.text()).toContain("`publicUrl`");
    const { url } = await serve(mount.node);
    const socket = await RawSocket.open(url);
    socket.send(toRaw("POST /mcp HTTP/1.1", { ...headers, "content-length": String(init.body.length) }, init.body));
    expect((await socket.answer()).status).toBe(status);
    socket.socket.destroy();
  });

  test("what a proxy says in X-Forwarded-Host and Forwarded counts for nothing", async () => {
    const { mount } = await openMounted({ publicUrl });
    const forwarded = { "x-forwarded-host": "tools.example.com", forwarded: "host=tools.example.com" };
    const headers = { ...init.headers, ...forwarded, host: "evil.example" };
    expect((await mount.fetch(toRequest("http://localhost/mcp", { ...init, headers }))).status).toBe(403);
  });

  test("a request without a Host header has its host in its address", async () => {
    const { mount } = await openMounted();
    expect((await mount.fetch(toRequest("http://localhost:1/", init))).status).toBe(200);
    expect((await mount.fetch(toRequest("http://evil.example/", init))).status).toBe(403);
  });

  test("without `publicUrl` this machine is all there is, and the sentence says what to set", async () => {
    const { mount } = await openMounted();
    const refused = await mount.fetch(toRequest("https://tools.example.com/", init));
    expect([refused.status, await refused.json()]).toMatchObject([
      403,
      {
        error: {
          message:
            "The Host header must name this machine, e.g. localhost, or the host of `publicUrl`: Invalid Host: tools.example.com",
        },
      },
    ]);
  });

  test.each(["", "tools.example.com", "/mcp", "ftp://tools.example.com", "javascript:alert(1)", "https://"])(
    "a `publicUrl` that is %j is refused at once",
    async (given) => {
      const { clock } = await openMounted();
      const serving = {} as Parameters<typeof createHttpMount>[0]["serving"];
      expect(() =>
        createHttpMount({ serving, callers: { localUser, project: "p" }, clock, log: silentLog, publicUrl: given }),
      ).toThrow(
        new TypeError(
          `\`publicUrl\` must be the http or https address that clients know, e.g. https://example.com/mcp; it is ${JSON.stringify(given)}.`,
        ),
      );
    },
  );
});

describe.each(waysIn)("by %s", (way) => {
  const failing = (identify: Identify) => openMounted({ identify });

  test.each<[string, Identify]>([
    ["at once", who],
    ["later", async (request) => await Promise.resolve(who(request))],
  ])("who is known %s is let in, who is not is told to say who it is", async (_when, identify) => {
    const reached = await reach(await openMounted({ identify }), way);
    expect(await ask(reached, { who: "ada" })).toMatchObject({ status: 200 });
    expect(await ask(reached)).toEqual({
      status: 401,
      told: "This server wants to know who calls; send the credential that it asks for.",
      wants: "Bearer",
    });
  });

  test("returns 401 to an unknown caller for a body of another type, and 415 to a known one", async () => {
    const reached = await reach(await openMounted({ identify: who }), way);
    const type = { "content-type": "text/plain" };
    expect(await ask(reached, type)).toMatchObject({ status: 401 });
    expect(await ask(reached, { ...type, who: "ada" })).toMatchObject({ status: 415 });
  });

  test.each<[string, Identify]>([
    [
      "throws",
      () => {
        throw new Error("the secret of the database");
      },
    ],
    ["rejects", () => Promise.reject(new Error("the secret of the database"))],
    ["says what is no caller", () => ({ kind: "app", subject: "the secret of the database" }) as unknown as AppCaller],
    ["promises what is no caller", async () => "the secret of the database" as unknown as AppCaller],
  ])("an `identify` that %s is logged, and the client learns nothing of it", async (_what, identify) => {
    const mounted = await failing(identify);
    expect(await ask(await reach(mounted, way))).toEqual({ status: 500, told: "Internal error", wants: null });
    expect(mounted.logged).toMatchObject([{ text: "`identify` failed", facts: { error: expect.any(Error) } }]);
  });

  test("it sees what was asked for, and the request as the app knows it", async () => {
    const seen: CallerRequest[] = [];
    const identify = (request: CallerRequest) => {
      seen.push(request);
      return token("ada");
    };
    const reached = await reach(await openMounted({ identify }), way, "/below/mcp?a=b");
    await ask(reached, { "X-Some": "Thing" });
    const [request] = seen;
    expect(request).toMatchObject({ method: "POST", url: reached.url });
    expect(request?.headers).toMatchObject({ "x-some": "Thing", "content-type": "application/json" });
    expect(request?.headers.constructor).toBeUndefined();
    expect(request?.original.headers).toBeDefined();
  });

  test("strangers' pages are refused before anybody is asked who they are", async () => {
    let isAsked = false;
    const identify = () => {
      isAsked = true;
      return token("ada");
    };
    const reached = await reach(await openMounted({ identify }), way);
    expect(await ask(reached, { origin: "https://evil.example" })).toMatchObject({ status: 403 });
    expect(isAsked).toBe(false);
  });

  test("two callers see neither each other's sessions nor each other's tasks", async () => {
    const mounted = await openMounted({ identify: who });
    const reached = await reach(mounted, way);
    const as = (subject: string, revision: string) =>
      reached.connect(revision, {
        headers: { who: subject },
        capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } },
      });
    const [adas, bobs] = [await as("ada", "2025-11-25"), await as("bob", "2025-11-25")];
    bobs.sessionId = adas.sessionId;
    expect((await bobs.request("ping")).error?.message).toMatch(/Session not found/);
    expect((await adas.request("ping")).error).toBeUndefined();
    const [ada, bob] = [await as("ada", "2026-07-28"), await as("bob", "2026-07-28")];
    const { taskId } = (await moving(mounted.clock, ada.call("later"))) as unknown as { taskId: string };
    const get = (client: typeof ada) => moving(mounted.clock, client.request("tasks/get", { taskId }));
    expect((await get(ada)).result).toMatchObject({ taskId });
    expect((await get(bob)).error).toBeDefined();
    const listed = await moving(mounted.clock, ada.call("task_list"));
    expect(JSON.stringify(listed)).toContain(taskId);
    expect(JSON.stringify(await moving(mounted.clock, bob.call("task_list")))).not.toContain(taskId);
  });

  test.each(["2025-11-25", "2026-07-28"])(
    "meanwhile://stats is neither listed nor read for a caller whom `identify` names (%s)",
    async (revision) => {
      const reached = await reach(await openMounted({ identify: who }), way);
      const client = await reached.connect(revision, { headers: { who: "ada" } });
      expect((await client.request("resources/list")).result).toMatchObject({ resources: [] });
      const read = async (uri: string) => (await client.request("resources/read", { uri })).error;
      const unknown = await read("meanwhile://other");
      expect(unknown).toMatchObject({
        code: expect.any(Number),
        message: expect.stringContaining("meanwhile://other"),
      });
      expect(JSON.parse(JSON.stringify(await read("meanwhile://stats")).replaceAll("stats", "other"))).toEqual(unknown);
    },
  );

  test("without `identify` nobody is known: tasks by their ids, and no lists", async () => {
    const mounted = await openMounted();
    const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };
    const client = await (await reach(mounted, way)).connect("2026-07-28", { capabilities });
    const { taskId } = (await moving(mounted.clock, client.call("later"))) as unknown as { taskId: string };
    const got = await moving(mounted.clock, client.request("tasks/get", { taskId }));
    expect(got.result).toMatchObject({ taskId });
    const listed = await client.request("tools/call", { name: "task_list", arguments: {} });
    expect(listed.error?.message).toMatch(/^Unknown tool "task_list"/);
  });
});

test("node: more than one Authorization header is nobody's", async () => {
  const { mount } = await openMounted({ identify: () => token("ada") });
  const socket = await RawSocket.open((await serve(mount.node)).url);
  const twice = "POST /mcp HTTP/1.1\r\nauthorization: Bearer a\r\nauthorization: Bearer b";
  socket.send(
    toRaw(twice, { ...init.headers, host: "localhost", "content-length": String(init.body.length) }, init.body),
  );
  expect(await socket.answer()).toMatchObject({ status: 401 });
  socket.socket.destroy();
});

test("node: Express keeps what was asked for beside what it has left of it", async () => {
  const urls: string[] = [];
  const { mount } = await openMounted({
    identify: ({ url }) => {
      urls.push(url);
      return token("ada");
    },
  });
  const reached = await serve((request, response) => {
    Object.assign(request, { originalUrl: request.url, url: "/" });
    mount.node(request, response);
  }, "/api/mcp");
  expect(await ask(reached)).toMatchObject({ status: 200 });
  expect(urls).toEqual([reached.url]);
});

test("fetch: an app that knows who calls says so, and nobody else is asked", async () => {
  const { mount } = await openMounted({ identify: () => undefined });
  const request = () => toRequest("http://localhost/mcp", init);
  expect((await mount.fetch(request(), { caller: token("ada") })).status).toBe(200);
  expect((await mount.fetch(request(), {})).status).toBe(401);
  expect((await mount.fetch(request(), { caller: "ada" as unknown as AppCaller })).status).toBe(500);
});
