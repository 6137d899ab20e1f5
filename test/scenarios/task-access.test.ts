import { randomUUID } from "node:crypto";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { type UserIdentity, userCaller } from "../../src/command/caller.ts";
import { taskGenerations } from "../../src/wire/revisions.ts";
import { isEnded, openTraces, roundTrips, startTask, taskWhen } from "../helpers/place.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Answer, type Fields, ModernClient, SessionClient, takesAll, type WireClient } from "../helpers/wire.ts";

/** Who reaches a task: every method of both taskGenerations, and the plain tools, tried by everybody. */

const commands = path.resolve(import.meta.dirname, "../fixtures/rules/commands");

type Who = UserIdentity | "anonymous" | "local";

const ada: UserIdentity = { issuer: "https://issuer.example", client: "app", subject: "ada" };
const strangers: Readonly<Record<string, Who>> = {
  "another subject of the same client": { ...ada, subject: "bob" },
  "another client": { ...ada, client: "other" },
  "another issuer": { ...ada, issuer: "https://other.example" },
  "the same words in other places": { ...ada, issuer: "https://issuer.exampleapp", client: "" },
  "the same words, quoted": { ...ada, client: 'app","ada"],[', subject: "" },
  "a user called local": { issuer: "", subject: "local" },
  "a client called ada": { issuer: "https://issuer.example", client: "ada" },
  "a subject that looks like a client": { issuer: "https://issuer.example", subject: "ada#client:app" },
  "nobody in particular": "anonymous",
  "the local user": "local",
};

/** A door in this very process that knows its callers by a header. */
async function openDoor() {
  const server = await openServer({
    in: "http",
    commands,
    store: "sqlite",
    identify: ({ headers }) =>
      typeof headers["x-caller"] === "string"
        ? userCaller(JSON.parse(headers["x-caller"]) as UserIdentity, { scopes: ["meanwhile:call"] })
        : undefined,
  });
  const url = await server.url();
  const headersOf = (caller: Who): Record<string, string> => {
    if (caller === "anonymous") return {};
    return caller === "local" ? { authorization: `Bearer ${server.token()}` } : { "x-caller": JSON.stringify(caller) };
  };
  return {
    url,
    headersOf,
    modern: (caller: Who) => new ModernClient(url, { headers: headersOf(caller), capabilities: takesAll }),
    core: (caller: Who) => SessionClient.begin(url, { headers: headersOf(caller), capabilities: { elicitation: {} } }),
  };
}

type Door = Awaited<ReturnType<typeof openDoor>>;

const clientOf = async (door: Door, revision: string, caller: Who): Promise<SessionClient | ModernClient> =>
  revision === "2025-11-25" ? await door.core(caller) : door.modern(caller);

/** A task of the caller's that asks one thing, and waits for the answer. */
async function startAsking(door: Door, caller: Who): Promise<string> {
  const modern = door.modern(caller);
  const { taskId } = await startTask(modern, "ask_many", { file: openTraces().file, again: 1 });
  await taskWhen(modern, taskId, ({ inputRequests }) => Object.keys(inputRequests ?? {}).length === 1);
  return taskId;
}

interface Way {
  readonly revision: string;
  readonly method: string;
  readonly params: (taskId: string) => Fields;
}

const answers = { q1: { action: "accept", content: { text: "yes" } } };
const byId = (taskId: string): Fields => ({ taskId });
const plain = (name: string, more: Fields = {}) => ({
  method: "tools/call",
  params: (taskId: string): Fields => ({ name, arguments: { job_id: taskId, ...more } }),
});

/** Every way to a task by its id. The ways that end it come last. */
const ways: readonly Way[] = [
  ...["tasks/get", "tasks/result", "tasks/cancel"].map((method) => ({ revision: "2025-11-25", method, params: byId })),
  ...["tasks/get", "tasks/cancel"].map((method) => ({ revision: "2026-07-28", method, params: byId })),
  { revision: "2026-07-28", method: "tasks/update", params: (taskId) => ({ taskId, inputResponses: answers }) },
  ...taskGenerations.flatMap((revision) =>
    [
      plain("task_status"),
      plain("task_result", { wait_seconds: 0 }),
      plain("task_answer", { answers: { q1: { text: "yes" } } }),
      plain("task_cancel"),
    ].map((way) => ({ revision, ...way })),
  ),
];
const nameOf = ({ method, params }: Way) => (method === "tools/call" ? (params("").name as string) : method);

/** True for an answer that gives something away, or does something. */
const isServed = ({ result, error }: Answer) => error === undefined && result?.isError !== true;

describe("T2", () => {
  test.for(ways.map((way) => [`${nameOf(way)} on ${way.revision}`, way] as const))(
    "T2: only its owner reaches a task (%s)",
    async ([, way]) => {
      const door = await openDoor();
      const owner = door.modern(ada);
      const taskId = await startAsking(door, ada);
      const before = await taskWhen(owner, taskId, () => true);
      for (const [who, caller] of Object.entries(strangers)) {
        const client = await clientOf(door, way.revision, caller);
        // Whoever is made to wait for the result has been let in.
        const answer = await Promise.race([
          client.request(way.method, way.params(taskId)),
          sleep(30_000, undefined, { ref: false }),
        ]);
        if (answer === undefined) throw new Error(`${who} is made to wait`);
        expect(isServed(answer), `${who}: ${answer.text}`).toBe(false);
        if (way.method === "tools/call")
          expect(answer.result?.content[0].text, who).toBe("There is no such task; it may have expired.");
        else
          expect(answer.error, who).toEqual({ code: -32602, message: "There is no such task; it may have expired." });
        const { ttlMs: _then, ...was } = before;
        const { ttlMs: _now, ...is } = await taskWhen(owner, taskId, () => true);
        expect(is, `after ${who}`).toEqual(was);
      }
      const begun = (await clientOf(door, way.revision, ada)).start(way.method, way.params(taskId));
      // Waiting for the result goes on until there is one.
      if (way.method === "tasks/result") await owner.request("tasks/update", { taskId, inputResponses: answers });
      const answer = await begun.answer;
      expect(isServed(answer), answer.text).toBe(true);
      if (/cancel/.test(nameOf(way)))
        expect(await taskWhen(owner, taskId, isEnded)).toMatchObject({ status: "cancelled" });
      if (/update|answer|tasks\/result/.test(nameOf(way)))
        expect(await taskWhen(owner, taskId, isEnded)).toMatchObject({
          status: "completed",
          result: { structuredContent: { data: { again: ["yes"] } } },
        });
    },
  );

  test("T2: only its owner reaches a task (subscriptions/listen with taskIds)", async () => {
    const door = await openDoor();
    const taskId = await startAsking(door, ada);
    const own = await door.modern(ada).listen([taskId]);
    expect(own.acknowledged).toEqual({ taskIds: [taskId] });
    const streams = await Promise.all(Object.values(strangers).map((caller) => door.modern(caller).listen([taskId])));
    await door.modern(ada).request("tasks/update", { taskId, inputResponses: answers });
    const statuses = () => own.stream.of("notifications/tasks").map(({ params }) => params?.status);
    await waitFor(() => statuses().includes("completed"));
    for (const caller of Object.values(strangers)) await roundTrips(door.modern(caller));
    for (const [at, who] of Object.keys(strangers).entries()) {
      expect(streams[at]?.acknowledged, who).toEqual({ taskIds: [] });
      expect(streams[at]?.stream.text, who).not.toContain(taskId);
    }
  });

  test("T2: only its owner reaches a task (by the owner's session)", async () => {
    const door = await openDoor();
    const taskId = await startAsking(door, ada);
    const session = await door.core(ada);
    for (const [who, caller] of Object.entries(strangers)) {
      const thief = new SessionClient(door.url, { headers: door.headersOf(caller) });
      thief.sessionId = session.sessionId;
      for (const method of ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"])
        expect(await thief.request(method, { taskId }), `${who}: ${method}`).toMatchObject({
          status: 404,
          result: undefined,
        });
      expect((await thief.openStream()).status, who).toBe(404);
    }
    expect(await session.request("tasks/get", { taskId })).toMatchObject({
      result: { taskId, status: "input_required" },
    });
  });

  test("T2: only its owner reaches a task (by an equal call, or with the same idempotency key)", async () => {
    const door = await openDoor();
    const { file } = openTraces();
    const input = { file, again: 1 };
    for (const _meta of [{}, { "meanwhile/idempotencyKey": "the same" }]) {
      const owner = await startTask(door.modern(ada), "ask_many", input, { _meta });
      const ids = [owner.taskId];
      for (const [who, caller] of Object.entries(strangers)) {
        const { taskId } = await startTask(door.modern(caller), "ask_many", input, { _meta });
        expect(ids, who).not.toContain(taskId);
        ids.push(taskId);
      }
      expect((await startTask(door.modern(ada), "ask_many", input, { _meta })).taskId, "the owner's own").toBe(
        owner.taskId,
      );
    }
  });

  test.for(["local", "anonymous"] as const)("T2: only its owner reaches a task (of the %s user)", async (owner) => {
    const door = await openDoor();
    const taskId = await startAsking(door, owner);
    for (const [who, caller] of Object.entries<Who>({ ...strangers, ada })) {
      for (const revision of taskGenerations) {
        const client = await clientOf(door, revision, caller);
        expect(isServed(await client.request("tasks/get", { taskId })), `${who} on ${revision}`).toBe(caller === owner);
        if (caller !== owner)
          expect(isServed(await client.request("tasks/cancel", { taskId })), `${who} on ${revision}`).toBe(false);
      }
    }
    expect(await taskWhen(door.modern(owner), taskId, () => true)).toMatchObject({ status: "input_required" });
  });
});

/** Every task of a caller, page by page, in the way of tasks/list and in that of task_list. */
async function listAll(core: WireClient): Promise<{ pages: number; ids: string[]; jobs: string[]; cursors: string[] }> {
  const ids: string[] = [];
  const cursors: string[] = [];
  let pages = 0;
  for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages++) {
    const { result } = await core.request("tasks/list", cursor === undefined ? {} : { cursor });
    ids.push(...((result?.tasks ?? []) as Fields[]).map((task) => task.taskId as string));
    cursor = result?.nextCursor;
    if (cursor !== undefined) cursors.push(cursor);
  }
  const jobs: string[] = [];
  let next: string | undefined;
  do {
    const { result } = await core.request("tools/call", {
      name: "task_list",
      arguments: { limit: 70, ...(next !== undefined && { cursor: next }) },
    });
    const data = result?.structuredContent.data as Fields;
    jobs.push(...(data.jobs as Fields[]).map((job) => job.job_id as string));
    next = data.next_cursor;
  } while (next !== undefined);
  return { pages, ids, jobs, cursors };
}

test("T3: tasks/list shows a caller's own tasks, all of them, and nobody else's", async () => {
  const door = await openDoor();
  const callers = { ada, bob: { ...ada, subject: "bob" }, local: "local", nobody: "anonymous" } as const;
  /** Enough for a second page of two of them. */
  const counts = { ada: 105, bob: 20, local: 105, nobody: 20 };
  const made: Record<string, string[]> = {};
  await Promise.all(
    Object.entries(counts).map(async ([name, count]) => {
      const caller: Who = callers[name as keyof typeof callers];
      const client = door.modern(caller);
      made[name] = [];
      // What lives, what has ended in every way, and so many more.
      made[name].push(
        await startAsking(door, caller),
        (await startTask(client, "work_fail")).taskId,
        (await startTask(client, "work_protocol")).taskId,
      );
      const cancelled = await startTask(client, "work_long", { file: openTraces().file });
      await client.request("tasks/cancel", { taskId: cancelled.taskId });
      made[name].push(cancelled.taskId);
      for (let at = made[name].length; at < count; at++)
        made[name].push((await startTask(client, "work_nap", { ms: 0 })).taskId);
    }),
  );
  for (const name of ["ada", "bob", "local"] as const) {
    const { pages, ids, jobs } = await listAll(await door.core(callers[name]));
    expect(pages, name).toBe(counts[name] > 100 ? 2 : 1);
    expect(ids.toSorted(), name).toEqual(made[name]?.toSorted());
    expect(jobs.toSorted(), name).toEqual(made[name]?.toSorted());
  }
  const newcomer = await listAll(await door.core({ ...ada, client: "new" }));
  expect(newcomer).toMatchObject({ ids: [], jobs: [] });
});

/** An answer without what differs from one moment, or one stream, to the next. */
function withoutChance({ status, headers, text }: Answer, id: string): string {
  const kept = [...headers].filter(([name]) => name !== "date");
  const body = text
    .replaceAll(id, "ID")
    .replaceAll(/^id: .*$/gm, "id: EVENT")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
  return JSON.stringify([status, kept.filter(([name]) => name !== "content-length"), body]);
}

describe("T4", () => {
  test("T4: an id of somebody else's, one that has expired and one that never was are answered alike, byte for byte", async () => {
    const door = await openDoor();
    const foreign = await startAsking(door, ada);
    for (const caller of [{ ...ada, subject: "bob" }, "local", "anonymous"] satisfies Who[]) {
      const core = await door.core(caller);
      const modern = door.modern(caller);
      const short = await startTask(core, "work_nap", { ms: 0 }, { task: { ttl: 1 } });
      await waitFor(async () => (await core.request("tasks/get", { taskId: short.taskId })).error !== undefined);
      for (const way of ways) {
        const client = way.revision === "2025-11-25" ? core : modern;
        const told = async (id: string) =>
          withoutChance(await client.request(way.method, way.params(id), { id: 1_000 }), id);
        const unknown = await told(randomUUID());
        expect(await told(foreign), `${nameOf(way)} on ${way.revision}`).toBe(unknown);
        expect(await told(short.taskId), `${nameOf(way)} on ${way.revision}`).toBe(unknown);
      }
    }
  });

  test("T4: an acknowledgement names the caller's own tasks alone", async () => {
    const door = await openDoor();
    const [own, foreign, local] = [
      await startAsking(door, ada),
      await startAsking(door, { ...ada, subject: "bob" }),
      await startAsking(door, "local"),
    ];
    const wanted = [randomUUID(), foreign, own, local, 5, null, {}, own, "", "__proto__"];
    const { acknowledged, stream } = await door.modern(ada).listen(wanted);
    expect(acknowledged).toEqual({ taskIds: [own] });
    await waitFor(() => stream.of("notifications/tasks").length > 0);
    await roundTrips(door.modern(ada));
    expect(new Set(stream.of("notifications/tasks").map(({ params }) => params?.taskId))).toEqual(new Set([own]));
    const nothing = await door.modern(ada).listen([foreign]);
    const random = await door.modern(ada).listen([randomUUID()]);
    await roundTrips(door.modern(ada));
    expect([nothing.acknowledged, nothing.stream.text]).toEqual([random.acknowledged, random.stream.text]);
  });

  test("T4: a cursor that was forged, or given to somebody else, is refused with -32602, alike", async () => {
    const door = await openDoor();
    const bob: UserIdentity = { ...ada, subject: "bob" };
    for (const caller of [ada, bob, "local"] as const)
      for (let at = 0; at < 3; at++) await startTask(door.modern(caller), "work_nap", { ms: 0 });
    const [adas, bobs, locals] = await Promise.all([door.core(ada), door.core(bob), door.core("local")]);
    const firstPage = async (core: WireClient) => {
      const { result } = await core.request("tools/call", { name: "task_list", arguments: { limit: 1 } });
      return result?.structuredContent.data.next_cursor as string;
    };
    const [own, foreign] = await Promise.all([firstPage(adas), firstPage(bobs)]);
    expect((await adas.request("tasks/list", { cursor: own })).result?.tasks).toHaveLength(2);
    const row = Buffer.from(own, "base64url").toString();
    const changed = (at: number) => `${own.slice(0, at)}${own[at] === "A" ? "B" : "A"}${own.slice(at + 1)}`;
    const forged = [
      foreign,
      await firstPage(locals),
      "",
      "0",
      "1",
      "null",
      changed(2),
      changed(8),
      changed(own.length - 2),
      `${own}=`,
      `${own} `,
      `${own}A`,
      own.slice(0, -1),
      Buffer.from(row.replace(/:(\d+):/, (_, digits) => `:${Number(digits) + 1}:`)).toString("base64url"),
      Buffer.from("v1:99:").toString("base64url"),
      Buffer.from("v1:99:xxxxxxxxxxxx").toString("base64url"),
      Buffer.from("99999999").toString("base64"),
      "x".repeat(5_000),
    ];
    const refusals = new Set<string>();
    for (const cursor of forged) {
      const answer = await adas.request("tasks/list", { cursor }, { id: 1_000 });
      expect(answer, cursor.slice(0, 40)).toMatchObject({ error: { code: -32602 }, result: undefined });
      refusals.add(withoutChance(answer, randomUUID()));
    }
    expect(refusals.size).toBe(1);
    for (const cursor of [5, null, {}, [own]])
      expect(await adas.request("tasks/list", { cursor })).toMatchObject({ error: { code: -32602 } });
    for (const cursor of [foreign, "x"])
      expect((await adas.request("tools/call", { name: "task_list", arguments: { cursor } })).result).toMatchObject({
        isError: true,
      });
  });
});

test("an anonymous caller over HTTP reaches tasks by id alone", async () => {
  const door = await openDoor();
  const core = await door.core("anonymous");
  const modern = door.modern("anonymous");
  const known = await door.core(ada);
  expect(known.initialized.capabilities.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } });
  expect(core.initialized.capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } });
  const unknownTool = await core.request("tools/call", { name: "no_such_tool", arguments: {} });
  for (const [client, followUps] of [
    [core, ["task_result", "task_status", "task_cancel", "task_answer"]],
    [modern, ["task_result"]],
  ] as const) {
    expect((await toolsOf(client)).filter((name) => name.startsWith("task_"))).toEqual(followUps);
    expect((await client.request("tools/call", { name: "task_list", arguments: {} })).error).toMatchObject({
      code: unknownTool.error?.code,
    });
    expect((await client.request("tasks/list")).error).toMatchObject({ code: -32601 });
  }
  expect(await toolsOf(known)).toContain("task_list");

  const taskId = await startAsking(door, "anonymous");
  // Whoever has the id has the task: these are other connections.
  const [otherCore, otherModern] = [await door.core("anonymous"), door.modern("anonymous")];
  expect(await otherCore.request("tasks/get", { taskId })).toMatchObject({
    result: { taskId, status: "input_required" },
  });
  expect(await otherModern.request("tasks/get", { taskId })).toMatchObject({
    result: { taskId, status: "input_required" },
  });
  const status = await otherCore.request("tools/call", { name: "task_status", arguments: { job_id: taskId } });
  expect(status.result).toMatchObject({ structuredContent: { data: { job_id: taskId } } });
  expect((await otherModern.listen([taskId])).acknowledged).toEqual({ taskIds: [taskId] });
  await otherModern.request("tasks/update", { taskId, inputResponses: answers });
  expect(await otherCore.request("tasks/result", { taskId })).toMatchObject({
    result: { structuredContent: { data: { again: ["yes"] } } },
  });
});

async function toolsOf(client: WireClient): Promise<string[]> {
  const { result } = await client.request("tools/list");
  return ((result?.tools ?? []) as Fields[]).map(({ name }) => name as string);
}
