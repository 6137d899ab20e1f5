// What a model of many nodes is made of: what was measured of one, and a few figures more.
import { openEngine } from "../../bench/tasks/engine.mjs";
import { timeActs } from "./measure.mjs";

const hearers = 40;
const notices = 500;

/** What one node's own acts cost beside those that were measured. */
export async function measureCosts({ server, schema, seconds }) {
  const commitMs = await measureCommit(server, seconds);
  const notice = await measureNotice(server, `meanwhile_${schema}`, seconds);
  const node = await measureNode(server, schema, seconds);
  return { commitMs, ...notice, ...node };
}

/** All that the model is given: `few` and `many` are what was measured of the small schema and of the large one. */
export function toCosts({ few, many, costs }) {
  const [workers, leases, questions, nothing] = Object.keys(many.figures).filter((name) =>
    /each (second|2 s)/.test(name),
  );
  const cost = (name) => many.figures[name].processorMs;
  const growth = (name) =>
    Math.max(0, cost(name) - few.figures[name].processorMs) / Math.max(1, many.workers - few.workers);
  return {
    ...costs,
    createMs: cost("create under its maker's claim"),
    claimMs: cost("claim, one caller's queue"),
    settleMs: cost("settle"),
    // A second's share of what each node asks though nothing happens; what grows with the workers that hold a task apart.
    lookMs: cost(questions) * 2 + cost(nothing),
    lookOfWorkerMs: growth(workers) + growth(leases) / 2,
  };
}

/** What a small write waits for the disk: one that waits, less one that does not. */
async function measureCommit(server, seconds) {
  const client = await server.connect();
  await client.query("create table bare (body text not null)");
  const insert = () => client.query({ name: "bare", text: "insert into bare values ($1)", values: ["x".repeat(1024)] });
  const synced = await timeActs(server, seconds, insert);
  await client.query("set synchronous_commit = off");
  const loose = await timeActs(server, seconds, insert);
  await client.end();
  return Math.max(0.01, synced.p50 - loose.p50);
}

/** A notice heard by nobody in particular, and what each connection more that hears it costs both sides. */
async function measureNotice(server, channel, seconds) {
  const client = await server.connect();
  const payload = JSON.stringify({ node: "simulated-node", taskIds: [crypto.randomUUID()], isWork: false });
  const notify = () => client.query({ name: "notify", text: "select pg_notify($1, $2)", values: [channel, payload] });
  const nothing = await timeActs(server, seconds, () => client.query({ name: "nothing", text: "select 1" }));
  const alone = await timeActs(server, seconds, notify);
  let heard = 0;
  let everybody = Promise.withResolvers();
  const listeners = await Promise.all(
    Array.from({ length: hearers }, async () => {
      const listener = await server.connect();
      listener.on("notification", () => ++heard === hearers && everybody.resolve());
      await listener.query(`listen "${channel}"`);
      return listener;
    }),
  );
  const crowded = await timeActs(
    server,
    seconds * 3,
    async () => {
      heard = 0;
      everybody = Promise.withResolvers();
      await notify();
      await everybody.promise;
    },
    notices,
  );
  for (const connection of [client, ...listeners]) await connection.end();
  return {
    noticeMs: nothing.processorMs,
    // The lock is held for what a notice takes longer than a statement that says nothing.
    lockMs: Math.max(0.001, alone.p50 - nothing.p50),
    hearMs: Math.max(0, (crowded.processorMs - alone.processorMs) / hearers),
    nodeHearMs: Math.max(0, (crowded.ownMs - alone.ownMs) / hearers),
  };
}

/** Tasks from their creation to their result in one process, sixteen at a time, through engine and worker. */
async function measureNode(server, schema, seconds) {
  const engine = await openEngine(server.url(schema), { maxLive: 1_000_000 });
  engine.worker.start();
  const act = async (n) =>
    Promise.all(
      Array.from({ length: 16 }, async (_, at) =>
        engine.wait(await engine.create("echo", `node ${at}`, { text: `${n} ${at}` })),
      ),
    );
  await timeActs(server, seconds, act, 50);
  const startedAt = performance.now();
  const { count, ownMs, processorMs } = await timeActs(server, seconds, act);
  const tasksPerSecond = (count * 16_000) / (performance.now() - startedAt);
  await engine.close();
  return { nodeMs: ownMs / 16, measured: { tasksPerSecond, processorMs: processorMs / 16 } };
}
