import { describe, expect, test } from "vitest";
import { z } from "zod";
import { defineCommand } from "../../src/command/command.ts";
import { homeAt } from "../../src/paths.ts";
import { readHomeId } from "../../src/runtime/home-id.ts";
import { openStore } from "../../src/store/open.ts";
import { Bench } from "../store-suite/cases/bench.ts";
import { runCli } from "./cli.ts";
import { FakeClock } from "./fake-clock.ts";
import { temporaryFolder } from "./home.ts";
import { startTask, taskWhen } from "./place.ts";
import { openServer } from "./server.ts";
import { type Answer, type Fields, takesAll, type WireClient } from "./wire.ts";

/** Two homes and two projects on one store that is outside of both. */

/** Each server has these; a run of `hold` ends when it is cancelled. */
function createCommands() {
  const runs: string[] = [];
  const hold = (_input: object, { signal }: { readonly signal: AbortSignal }) =>
    new Promise<object>((resolve) => signal.addEventListener("abort", () => resolve({})));
  return {
    runs,
    commands: {
      hold: defineCommand({ summary: "Waits to be cancelled", long: true, effects: "write", dedupe: true, run: hold }),
      done: defineCommand({
        summary: "Ends at once",
        long: true,
        input: z.object({ text: z.string().default("") }),
        run: ({ text }) => ({ text, runs: runs.push(text) }),
      }),
      ask: defineCommand({
        summary: "Asks",
        run: async (_input, task) => {
          const { text } = await task.ask("Which text?", z.object({ text: z.string() }));
          runs.push(text);
          return { text };
        },
      }),
    },
  };
}

type HomeServer = Awaited<ReturnType<typeof openPlace>>["server"];

/** A server of one home and one project on a store; commands of one name in all of them. */
async function openPlace(store: string, home: string, project: string, config: object = {}) {
  const { commands, runs } = createCommands();
  const server = await openServer({
    ...{ in: "http", store: "sqlite", home, commands },
    config: { project, ...config },
    cwd: temporaryFolder(),
    env: { MEANWHILE_STORE: store },
  });
  return { server, runs };
}

async function openPlaces(store: string) {
  const [one, other] = [temporaryFolder(), temporaryFolder()];
  const owner = await openPlace(store, one, "reports");
  const strangers = {
    "another home, same project": await openPlace(store, other, "reports"),
    "same home, another project": await openPlace(store, one, "mail"),
    "another home, another project": await openPlace(store, other, "mail"),
  };
  return { one, other, owner, strangers };
}

const clientsOf = (server: HomeServer) => ({
  "tasks-2025": () => server.client({ revision: "2025-11-25", capabilities: { elicitation: {} } }),
  "tasks-2026": () => server.client({ revision: "2026-07-28", capabilities: takesAll }),
  plain: () => server.client("plain"),
});
type Kind = keyof ReturnType<typeof clientsOf>;

interface Way {
  readonly kind: Kind;
  readonly method: string;
  readonly params: (taskId: string) => Fields;
}

const answers = { q1: { action: "accept", content: { text: "yes" } } };
const tool = (kind: Kind, name: string, more: Fields = {}): Way => ({
  kind,
  method: "tools/call",
  params: (taskId) => ({ name, arguments: { job_id: taskId, ...more } }),
});
const core = (kind: Kind, method: string, more: Fields = {}): Way => ({
  kind,
  method,
  params: (taskId) => ({ taskId, ...more }),
});

/** Every way to a task by its ID: of both task dialects, and the follow-up tools. */
const ways: readonly Way[] = [
  ...["tasks/get", "tasks/result", "tasks/cancel"].map((method) => core("tasks-2025", method)),
  ...["tasks/get", "tasks/cancel"].map((method) => core("tasks-2026", method)),
  core("tasks-2026", "tasks/update", { inputResponses: answers }),
  tool("plain", "task_status"),
  tool("plain", "task_result", { wait_seconds: 0 }),
  tool("plain", "task_answer", { answers: { q1: { text: "yes" } } }),
  tool("plain", "task_cancel"),
  tool("tasks-2026", "task_result", { wait_seconds: 0 }),
  tool("tasks-2026", "task_result", { cancel: true }),
  tool("tasks-2026", "task_result", { answer: { q1: { text: "yes" } } }),
];

const isServed = ({ result, error }: Answer) => error === undefined && result?.isError !== true;

/** What is asked of a store of several homes; `openUrl` names a new one that is outside of every home. */
export function testTwoHomes(openUrl: () => Promise<string>): void {
  describe("two homes and two projects on one store", () => {
    test("nobody but its home and project sees or uses a task, by any method of any dialect", async () => {
      const { owner, strangers } = await openPlaces(await openUrl());
      const own = await clientsOf(owner.server)["tasks-2026"]();
      const { taskId } = await startTask(own, "ask");
      const isAsked = ({ status }: Fields) => status === "input_required";
      const before = await taskWhen(own, taskId, isAsked);
      for (const [who, { server, runs }] of Object.entries(strangers)) {
        const clients = clientsOf(server);
        const opened = {
          "tasks-2025": await clients["tasks-2025"](),
          "tasks-2026": await clients["tasks-2026"](),
          plain: await clients.plain(),
        };
        for (const { kind, method, params } of ways) {
          const what = `${who}: ${method} ${JSON.stringify(params(""))} of ${kind}`;
          const answer = await opened[kind].request(method, params(taskId));
          expect(isServed(answer), `${what}: ${answer.text}`).toBe(false);
          expect(answer.text, what).toContain("There is no such task; it may have expired.");
        }
        const listed = await listsOf(opened);
        expect(listed, who).not.toContain(taskId);
        const { acknowledged } = await opened["tasks-2026"].listen([taskId]);
        expect(acknowledged, who).toEqual({ taskIds: [] });
        expect(runs, who).toEqual([]);
      }
      const { ttlMs: _before, ...was } = before;
      const { ttlMs: _after, ...is } = await taskWhen(own, taskId, () => true);
      expect(is).toEqual(was);
      expect(await listsOf({ "tasks-2025": await clientsOf(owner.server)["tasks-2025"]() })).toContain(taskId);
    });

    test("an equal call, and one with the same idempotency key, is a run of its own in each", async () => {
      const { owner, strangers } = await openPlaces(await openUrl());
      const ids = new Set<string>();
      for (const { server } of [owner, ...Object.values(strangers)]) {
        const client = await clientsOf(server)["tasks-2026"]();
        ids.add((await startTask(client, "hold")).taskId);
        ids.add((await startTask(client, "done", {}, { _meta: { "meanwhile/idempotencyKey": "same" } })).taskId);
        const again = await startTask(client, "done", {}, { _meta: { "meanwhile/idempotencyKey": "same" } });
        expect(ids.has(again.taskId)).toBe(true);
        const joined = await startTask(client, "hold");
        expect(ids.has(joined.taskId)).toBe(true);
        await client.request("tasks/cancel", { taskId: joined.taskId });
      }
      expect(ids.size).toBe(8);
    });

    test("a requestState leads nowhere in another home or project, is not used up there, and names no home", async () => {
      const { one, owner, strangers } = await openPlaces(await openUrl());
      const capabilities = { elicitation: {} };
      const open = (server: HomeServer) => server.client({ revision: "2026-07-28", capabilities });
      const asked = await (await open(owner.server)).request("tools/call", { name: "ask", arguments: {} });
      const requestState = asked.result?.requestState as string;
      const key = Object.keys(asked.result?.inputRequests ?? {})[0] ?? "";
      const inputResponses = { [key]: { action: "accept", content: { text: "mine" } } };
      const params = { name: "ask", arguments: {}, requestState, inputResponses };
      const carried = Buffer.from(requestState.split(".")[0] ?? "", "base64url").toString();
      expect(carried).not.toContain(readHomeId(homeAt({ MEANWHILE_HOME: one })));
      for (const [who, { server, runs }] of Object.entries(strangers)) {
        expect((await (await open(server)).request("tools/call", params)).error, who).toMatchObject({ code: -32602 });
        expect(runs, who).toEqual([]);
      }
      expect((await (await open(owner.server)).request("tools/call", params)).result).toMatchObject({
        structuredContent: { data: { text: "mine" } },
      });
    });

    test("live tasks of one home leave the limit of another untouched", async () => {
      const store = await openUrl();
      for (const home of [temporaryFolder(), temporaryFolder()]) {
        const { server } = await openPlace(store, home, "reports", { limits: { localTasks: 1 } });
        expect((await startTask(await clientsOf(server)["tasks-2026"](), "hold")).task).toMatchObject({
          status: "working",
        });
      }
    });

    test("a session of one home is unknown to the token of another", async () => {
      const { owner, strangers } = await openPlaces(await openUrl());
      const { sessionId = "" } = await clientsOf(owner.server)["tasks-2025"]();
      const ping = async (server: HomeServer, id: string) =>
        (
          await fetch(await server.url(), {
            method: "POST",
            headers: {
              ...{ authorization: `Bearer ${server.token()}`, "mcp-session-id": id },
              ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
            },
            body: JSON.stringify({ jsonrpc: "2.0", id: 7_000, method: "ping" }),
          })
        ).status;
      for (const [who, { server }] of Object.entries(strangers)) expect(await ping(server, sessionId), who).toBe(404);
      expect(await ping(owner.server, sessionId)).toBe(200);
    });

    test("the terminal lists the tasks of all projects of its home, and --project filters them", async () => {
      const store = await openUrl();
      const { one, other, owner, strangers } = await openPlaces(store);
      const places = { ...strangers, own: owner };
      const made: Record<string, string> = {};
      for (const [who, { server }] of Object.entries(places))
        made[who] = (await startTask(await clientsOf(server)["tasks-2026"](), "done", { text: who })).taskId;
      const list = async (home: string, ...words: string[]) => {
        const env = { MEANWHILE_HOME: home, MEANWHILE_STORE: store };
        const { stdout } = await runCli(["tasks", "list", "--json", ...words], { env, cwd: owner.server.cwd });
        return (JSON.parse(stdout) as { tasks: { taskId: string }[] }).tasks.map(({ taskId }) => taskId).sort();
      };
      const ids = (...who: string[]) => who.map((name) => made[name]).sort();
      expect(await list(one)).toEqual(ids("own", "same home, another project"));
      expect(await list(other)).toEqual(ids("another home, same project", "another home, another project"));
      expect(await list(one, "--project", "mail")).toEqual(ids("same home, another project"));
      expect(await list(one, "--project", ".")).toEqual(ids("own"));
      expect(await list(one, "--project", "none")).toEqual([]);
    });

    test("a token reset in between loses nothing", async () => {
      const store = await openUrl();
      const { one, owner, strangers } = await openPlaces(store);
      const client = await clientsOf(owner.server)["tasks-2026"]();
      const { taskId } = await startTask(client, "ask");
      await taskWhen(client, taskId, ({ status }) => status === "input_required");
      const old = owner.server.token();
      const reset = await runCli(["token", "--reset"], { env: { MEANWHILE_HOME: one, MEANWHILE_STORE: store } });
      expect(reset.code).toBe(0);
      expect((await client.request("tasks/get", { taskId })).status, "the old token").toBe(401);
      expect(owner.server.token()).not.toBe(old);
      const next = await clientsOf(owner.server)["tasks-2026"]();
      expect(isServed(await next.request("tasks/update", { taskId, inputResponses: answers }))).toBe(true);
      expect(await taskWhen(next, taskId, ({ status }) => status === "completed")).toMatchObject({
        result: { structuredContent: { data: { text: "yes" } } },
      });
      const stranger = await clientsOf(strangers["another home, same project"].server)["tasks-2026"]();
      expect(isServed(await stranger.request("tasks/get", { taskId }))).toBe(false);
      // And a server that starts after it finds the task too.
      const { server } = await openPlace(store, one, "reports");
      const later = await clientsOf(server)["tasks-2026"]();
      expect((await later.request("tasks/get", { taskId })).result).toMatchObject({ status: "completed" });
    });

    test("store check counts what a version before has left as `local`, and `store migrate` gives it to one home", async () => {
      const store = await openUrl();
      const opened = await openStore(store);
      const bench = new Bench(opened, new FakeClock());
      const taskId = "0197aaaa-0000-7000-8000-000000000001";
      await bench.make({ taskId, caller: "local", project: "reports", command: "none" });
      await opened.close();
      const { one, other, owner, strangers } = await openPlaces(store);
      const cli = (home: string, ...words: string[]) =>
        runCli(words, { env: { MEANWHILE_HOME: home, MEANWHILE_STORE: store } });
      const facts = async () => JSON.parse((await cli(one, "store", "check", "--json")).stdout) as Fields;
      const isSeen = async ({ server }: { readonly server: HomeServer }) =>
        isServed(await (await clientsOf(server)["tasks-2025"]()).request("tasks/get", { taskId }));
      const seen = async () => [await isSeen(owner), await Promise.all(Object.values(strangers).map(isSeen))];
      expect([(await facts()).earlier, await seen()]).toEqual([
        { tasks: 1, sessions: 0 },
        [false, [false, false, false]],
      ]);
      expect((await cli(one, "store", "migrate")).code).toBe(1);
      const { code, stdout, stderr } = await cli(one, "store", "migrate", "--yes");
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("  project reports: 1 task\n");
      expect(stdout).toMatch(/Back the store up before you take them: (sqlite3|pg_dump) /);
      expect([(await facts()).earlier, await seen()]).toEqual([
        { tasks: 0, sessions: 0 },
        [true, [false, false, false]],
      ]);
      expect((await cli(other, "store", "migrate", "--undo", "--yes")).stdout).toContain("Nothing to do");
      expect((await cli(one, "store", "migrate", "--undo", "--yes")).code).toBe(0);
      expect([(await facts()).earlier, await seen()]).toEqual([
        { tasks: 1, sessions: 0 },
        [false, [false, false, false]],
      ]);
    });
  });
}

/** The text of every list of tasks. */
async function listsOf(clients: Partial<Record<Kind, WireClient>>): Promise<string> {
  const texts = [
    (await clients["tasks-2025"]?.request("tasks/list", {}))?.text,
    (await clients.plain?.request("tools/call", { name: "task_list", arguments: {} }))?.text,
    (await clients["tasks-2026"]?.request("tools/call", { name: "task_result", arguments: {} }))?.text,
  ];
  return texts.join("\n");
}
