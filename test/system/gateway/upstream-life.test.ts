import { describe, expect, test, vi } from "vitest";
import { localUser, userCaller } from "../../../src/command/caller.ts";
import { sharedKey } from "../../../src/gateway/upstream-session.ts";
import { system } from "../../../src/system/system.ts";
import { serveHttp } from "../../fixtures/gateway/http.mjs";
import { Gate } from "../../helpers/gated.ts";
import { namesIn, serveGateway, textIn } from "../../helpers/gateway.ts";
import { cleanUp, temporaryFolder } from "../../helpers/home.ts";
import { commandUpstream } from "../../helpers/upstreams.ts";
import type { Result, WireClient } from "../../helpers/wire.ts";

const waiting = { timeout: 50_000 };
const statusOf = ({ runtime }: Pick<Awaited<ReturnType<typeof serveGateway>>, "runtime">) =>
  runtime.upstreams?.statuses()[0];
const echoes = async (client: WireClient, text = "here") =>
  expect(textIn(await client.call("echo", { text }))).toBe(text);
const isGone = (pid: number) => vi.waitFor(() => expect(system.isAlive(pid)).toBe(false), waiting);

test("1: who shares a connection is of one caller, revision, set of capabilities, environment and folder", () => {
  const one = { caller: localUser, era: "legacy", capabilities: { roots: {} }, mark: "m", folder: "/a" } as const;
  const ada = userCaller({ issuer: "https://issuer.example", subject: "ada" });
  const key = (more: object, share: object = {}) => sharedKey(share, { ...one, ...more });
  const others = [
    { caller: ada },
    { era: "modern" },
    { capabilities: { roots: {}, sampling: {} } },
    { mark: "n" },
    { mark: undefined },
    { folder: "/b" },
  ];
  const keys = [{}, ...others].map((more) => key(more));
  expect(new Set(keys).size).toBe(keys.length);
  expect(key({ caller: ada }, { share: "caller" })).not.toBe(key({}, { share: "caller" }));
  expect(key({ caller: ada }, { share: "all" })).toBe(key({}, { share: "all" }));
  expect(key({ mark: "n" }, { share: "all" })).not.toBe(key({}, { share: "all" }));
});

describe("2: sharing", () => {
  test.each([
    [undefined, 2],
    ["caller", 1],
    ["all", 1],
  ] as const)(
    "with share %s two sessions have %i servers, and the end of one leaves the other alone",
    async (share, count) => {
      const gate = new Gate();
      const upstream = { ...commandUpstream("plain", gate.env), ...(share !== undefined && { share }) };
      const served = await serveGateway({ wrap: { upstreams: { up: upstream } } });
      const [one, two] = [await served.connect(), await served.connect()];
      await echoes(one);
      await echoes(two);
      expect(statusOf(served)?.pids).toHaveLength(count);
      expect(new Set(gate.pids()).size).toBe(count);
      await one.close();
      await vi.waitFor(() => expect(statusOf(served)?.connections).toBe(1), waiting);
      await echoes(two);
    },
  );

  test("one with live tasks outlives its session, and ends with the last of them", async () => {
    const gate = new Gate();
    const upstreams = { up: commandUpstream("gated", gate.env) };
    const served = await serveGateway({ wrap: { upstreams } });
    const client = await served.connect();
    for (const tool of ["safe", "unsafe"]) await client.call(tool, {}, { task: {} });
    await gate.began(2);
    const [pid = 0] = gate.pids();
    await client.close();
    const other = await served.connect();
    const tasks = async () => (await other.request("tasks/list")).result?.tasks as { status: string }[];
    expect((await tasks()).map(({ status }) => status)).toEqual(["working", "working"]);
    expect(system.isAlive(pid)).toBe(true);
    gate.open();
    await isGone(pid);
    await vi.waitFor(
      async () => expect((await tasks()).every(({ status }) => status === "completed")).toBe(true),
      waiting,
    );
    expect(gate.runs()).toEqual({ safe: 1, unsafe: 1 });
  });
});

describe("3: what is listed before the upstream says it", () => {
  test("is what it said last, also while it starts and hears nothing", async () => {
    const gate = new Gate();
    const [home, cwd] = [temporaryFolder(), temporaryFolder()];
    const wrap = { upstreams: { up: commandUpstream("plain", gate.env) } };
    const names = await namesIn(await (await serveGateway({ wrap, home, cwd })).connect(), "tools");
    expect(names).toContain("echo");
    const started = gate.pids().length;
    gate.hold();
    const next = await serveGateway({ wrap, home, cwd });
    const client = await next.connect();
    expect(client.initialized.serverInfo).toMatchObject({ name: "fixture plain" });
    expect(await namesIn(client, "tools")).toEqual(names);
    const call = client.call("echo", { text: "waits" });
    await vi.waitFor(() => expect(gate.pids().length).toBeGreaterThan(started), waiting);
    expect(await namesIn(client, "tools")).toEqual(names);
    gate.letGo();
    expect(textIn(await call)).toBe("waits");
    expect(client.of("notifications/tools/list_changed")).toEqual([]);
  });

  test.each(["2025-11-25", "2026-07-28"])(
    "is refreshed for a client of %s, who is told when it is otherwise; the log has the names, also of a schema that changed",
    async (revision) => {
      const first = await serveHttp("plain");
      const [home, cwd] = [temporaryFolder(), temporaryFolder()];
      const wrap = { upstreams: { up: { url: first.url } } };
      expect(await namesIn(await (await serveGateway({ wrap, home, cwd })).connect(revision), "tools")).toContain(
        "echo",
      );
      await first.close();
      // Another server in its place: `echo` takes something else now, and there are more.
      const second = await serveHttp("odd-names", { PORT: new URL(first.url).port });
      cleanUp(() => second.close());
      const next = await serveGateway({ wrap, home, cwd });
      const client = await next.connect(revision);
      expect(await namesIn(client, "tools")).not.toContain("with spaces");
      const notifications = { toolsListChanged: true };
      if (revision === "2026-07-28") client.start("subscriptions/listen", { notifications });
      await client.comes("notifications/tools/list_changed");
      await vi.waitFor(async () => expect(await namesIn(client, "tools")).toContain("with spaces"), waiting);
      const line = next.logged.find((text) => text.startsWith("up lists other tools than before: "));
      expect(line).toMatch(/\becho\b/);
      expect(line).toMatch(/with spaces/);
      expect(line).not.toMatch(/\bslow\b/);
    },
  );
});

test("5: one that nobody has asked anything is closed, and opened again by the next call", async () => {
  const gate = new Gate();
  const upstream = { ...commandUpstream("plain", gate.env), idleSeconds: 1 };
  const served = await serveGateway({ wrap: { upstreams: { up: upstream } } });
  const client = await served.connect();
  await echoes(client);
  const [pid = 0] = gate.pids();
  await vi.waitFor(() => expect(statusOf(served)).toMatchObject({ state: "idle", connections: 0 }), waiting);
  await isGone(pid);
  expect(await namesIn(client, "tools")).toContain("echo");
  expect(gate.pids()).toEqual([pid]);
  await echoes(client, "again");
  expect(gate.pids()).toHaveLength(2);
});

describe("7: what ends one call", () => {
  test("be it a cancel or a time limit, leaves the connection and the other calls alone", async () => {
    const gate = new Gate();
    const upstream = { ...commandUpstream("plain", gate.env), timeLimitSeconds: 3 };
    const served = await serveGateway({ wrap: { upstreams: { up: upstream } } });
    const client = await served.connect();
    await echoes(client);
    const late = client.startCall("slow", { seconds: 1_000 });
    const taken = client.startCall("slow", { seconds: 1_001 });
    const beside = client.startCall("slow", { seconds: 2 });
    await vi.waitFor(() => expect(statusOf(served)?.calls).toBe(3), waiting);
    await client.notify("notifications/cancelled", { requestId: taken.id, reason: "no longer" });
    await vi.waitFor(() => expect(statusOf(served)?.calls).toBe(2), waiting);
    await echoes(client, "meanwhile");
    expect(textIn((await beside.answer).result as Result)).toBe("took 2 s");
    const ended = (await late.answer).result as Result;
    expect([ended.isError, ended.structuredContent?.messages[0]?.text]).toEqual([true, expect.stringMatching(/3 s/)]);
    await echoes(client, "and after");
    expect(new Set(gate.pids()).size).toBe(1);
    expect(statusOf(served)).toMatchObject({ state: "open", connections: 1, calls: 0 });
    expect(client.received.filter(({ id }) => id === taken.id)).toEqual([]);
  });
});
