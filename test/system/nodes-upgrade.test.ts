import { expect, test } from "vitest";
import { connect, modernV2, newestV1 } from "../helpers/clients.ts";
import { runMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { clientAt, movingClient, type Node, startNodes } from "../helpers/nodes.ts";
import { copyPackage, executableIn } from "../helpers/package-copy.ts";
import { adminOf, newSchema, serverPort, urlOf } from "../helpers/postgres.ts";
import { gate, taskIdOf } from "../helpers/project.ts";
import { type RoundRobin, startRoundRobin } from "../helpers/round-robin.ts";
import { type Begun, takesAll, type WireClient } from "../helpers/wire.ts";

/** Two versions of the package on one database: copies of what is built, which say that they are another. */

const admin = adminOf(serverPort);
const older = "0.0.9";
const newer = "9.9.9";
/** What a later version may add while an old one runs: columns of all tables that the old one has used already. */
const addition = ["tasks", "inputs", "outcomes", "steps", "sessions", "session_notes", "letters", "nodes", "used_marks"]
  .map((table) => `alter table SCHEMA.${table} add column added_later text;`)
  .join("\n");

for (const { what, migration } of [
  { what: "with the same schema", migration: undefined },
  { what: "that adds to the schema", migration: addition },
])
  test(`one of two nodes is upgraded to a version ${what}, then the old one is stopped, and clients that stay connected see no error`, async () => {
    const schema = newSchema();
    const store = urlOf(await serverPort(), schema);
    const old = executableIn(copyPackage({ version: older }));
    const next = executableIn(copyPackage({ version: newer, ...(migration !== undefined && { migration }) }));
    const nodes = await startNodes(2, { env: { MEANWHILE_STORE: store }, executable: old });
    const [first, second] = nodes as unknown as [Node, Node];
    expect(await Promise.all(nodes.map(versionOf))).toEqual([older, older]);
    const schemaBefore = await schemaVersion(schema);
    const proxy = await startRoundRobin([first.url, second.url]);
    const clients = await connectClients(proxy);
    // Connections keep the statements that they have carried out: those of an old node have to outlast what is added.
    await handOver([first.url, second.url]);
    await handOver([second.url, first.url]);

    const left = await clients.leaveWorkOn(first);
    await takeOut(first, proxy, clients);
    const fresh = await nodes.start(next);
    expect(await versionOf(fresh)).toBe(newer);
    expect(await schemaVersion(schema)).toBe(schemaBefore + (migration === undefined ? 0 : 1));
    proxy.urls.push(fresh.url);
    await left.isFinished();

    // For a while there are both, and what one has made is in the other's hands.
    await clients.areAnsweredBy([second, fresh]);
    await handOver([second.url, fresh.url]);
    await handOver([fresh.url, second.url]);

    const leftLater = await clients.leaveWorkOn(second);
    await takeOut(second, proxy, clients);
    await leftLater.isFinished();
    await clients.areAnsweredBy([fresh]);
    await clients.end();

    // One that is started again is refused where it does not know the schema, and changes nothing.
    if (migration === undefined) return;
    const before = await contentsOf(schema);
    const words = ["serve", "--http", "--port", "0", "--no-bundled"];
    const refused = await runMeanwhile(words, { executable: old, env: { MEANWHILE_STORE: store } });
    expect(refused).toMatchObject({
      code: 70,
      stderr: expect.stringMatching(
        /^✗ The schema t_\w+ of .* was written by a newer Meanwhile \(schema \d+, this one knows \d+\); update Meanwhile, or .*\.\n$/,
      ),
    });
    expect(await contentsOf(schema)).toEqual(before);
  });

/** What a node says that it is. */
async function versionOf({ url }: Node): Promise<unknown> {
  return (await clientAt(() => url, { revision: "2025-11-25" })).initialized.serverInfo?.version;
}

async function schemaVersion(schema: string): Promise<number> {
  const { rows } = await (await admin()).query<{ version: number }>(`select version from ${schema}.meanwhile_schema`);
  return rows[0]?.version ?? 0;
}

/** Its columns, and the tasks in it. */
async function contentsOf(schema: string): Promise<object> {
  const client = await admin();
  const columns = `select table_name, column_name from information_schema.columns where table_schema = '${schema}' order by 1, 2`;
  return {
    version: await schemaVersion(schema),
    columns: (await client.query(columns)).rows,
    tasks: (await client.query(`select task_id, version, status from ${schema}.tasks order by number`)).rows,
  };
}

type Clients = Awaited<ReturnType<typeof connectClients>>;

/** As a balancer does it: nothing more is sent to it, what was sent is answered, and then it is stopped. */
async function takeOut(node: Node, proxy: RoundRobin, clients: Clients): Promise<void> {
  proxy.urls.splice(proxy.urls.indexOf(node.url), 1);
  await clients.areAnswered();
  await node.stop();
}

/** A session of 2025-11-25 and a listener of 2026-07-28 by hand, and one of each by the SDKs, which call all the while. */
async function connectClients(proxy: RoundRobin) {
  const sdkClients = await Promise.all([newestV1, modernV2].map((sdk) => connect(sdk, { url: proxy.url })));
  for (const client of sdkClients) await client.subscribe();
  const session = await clientAt(() => proxy.url, { revision: "2025-11-25" });
  const listener = await clientAt(() => proxy.url, { revision: "2026-07-28", capabilities: takesAll });
  const answered = [0, 0, 0];
  let isOver = false;
  const calls = [...sdkClients, session].map(async (client, at) => {
    for (let n = 0; !isOver; n++) {
      const answer = await client.call("work_quick", { text: `call ${n}` });
      expect(answer.structuredContent).toMatchObject({ success: true, data: { text: `call ${n}` } });
      answered[at] = n + 1;
    }
  });
  const calling = Promise.all(calls);
  /** Whoever waits hears of the first call that went wrong. */
  const orFailed = async (look: () => boolean) => void (await Promise.race([calling, waitFor(look)]));
  return {
    /** Each has had one more answer than it was waiting for. */
    async areAnswered() {
      const before = [...answered];
      await orFailed(() => answered.every((n, at) => n >= (before[at] ?? 0) + 2));
    },
    async areAnsweredBy(nodes: readonly Node[]) {
      const sent = proxy.sent.length;
      const urls = nodes.map(({ url }) => url);
      await orFailed(() => urls.every((url) => proxy.sent.slice(sent).some((one) => one.url === url)));
    },
    /** A task that runs on a node which is about to leave; the session's stream and the listener's are held there too. */
    async leaveWorkOn(node: Node) {
      const all = proxy.urls.splice(0, proxy.urls.length, node.url);
      const { input, open, seen, starts } = gate();
      const taskId = taskIdOf(await session.call("work_reading", input, { task: {} }));
      await seen("started");
      const stream = await openStream(session);
      const listening = listen(listener, taskId);
      await listening.hears(({ method }) => method === "notifications/subscriptions/acknowledged");
      proxy.urls.splice(0, 1, ...all);
      return {
        /** What is safe to run again goes on elsewhere, and both clients find it there. */
        async isFinished() {
          await stream.over;
          expect((await listening.answer).error).toBeUndefined();
          await seen("started", 2);
          const again = listen(listener, taskId);
          await again.hears(({ method }) => method === "notifications/subscriptions/acknowledged");
          open();
          await again.hears(({ params }) => params?.status === "completed");
          again.drop();
          const { result } = await session.request("tasks/result", { taskId });
          expect(result).toMatchObject({ structuredContent: { data: { passed: input.file } } });
          expect(starts()).toBe(2);
        },
      };
    },
    async end() {
      isOver = true;
      await calling;
      for (const { errors } of sdkClients) expect(errors).toEqual([]);
    },
  };
}

/** The node that held the last one may not have told the others yet that it has let go. */
async function openStream(session: WireClient) {
  return await waitFor(async () => {
    const stream = await session.openStream();
    if (stream.status !== 200 && stream.status !== 409) throw new Error(`${stream.status} ${stream.text}`);
    return stream.status === 200 && stream;
  });
}

function listen(client: WireClient, taskId: string) {
  const begun = client.start("subscriptions/listen", { notifications: { taskIds: [taskId] } });
  const hears = (fits: (message: Begun["messages"][number]) => boolean) =>
    waitFor(
      () => begun.messages.find(fits),
      () => `the listener heard ${JSON.stringify(begun.messages)}`,
    );
  return Object.assign(begun, { hears });
}

/** What begins on one node is looked at, answered and cancelled on the other. */
async function handOver(urls: readonly string[]): Promise<void> {
  const modern = await movingClient(urls, { revision: "2026-07-28", capabilities: takesAll });
  const { input, seen } = gate();
  const taskId = taskIdOf(await modern.call("work_long", input));
  await seen("started");
  const asking = gate();
  const questioner = taskIdOf(await modern.call("ask_name", asking.input));
  modern.go(1);
  expect((await modern.request("tasks/get", { taskId })).result).toMatchObject({ status: "working" });
  expect((await modern.request("tasks/cancel", { taskId })).error).toBeUndefined();
  await seen("stopped");
  const listening = listen(modern, questioner);
  await listening.hears(({ params }) => params?.status === "input_required");
  const inputResponses = { q1: { action: "accept", content: { name: "Ada" } } };
  expect((await modern.request("tasks/update", { taskId: questioner, inputResponses })).error).toBeUndefined();
  const { params } = await listening.hears((message) => message.params?.status === "completed");
  expect(params).toMatchObject({ result: { structuredContent: { data: { greeting: "Hello, Ada!" } } } });
  listening.drop();

  const session = await movingClient(urls, { revision: "2025-11-25", capabilities: { elicitation: {} } });
  const call = session.startCall("ask_name", gate().input);
  const { id } = await session.comes("elicitation/create");
  session.go(1);
  await session.respond(id, { action: "accept", content: { name: "Eve" } });
  expect((await call.answer).result).toMatchObject({ structuredContent: { data: { greeting: "Hello, Eve!" } } });
}
