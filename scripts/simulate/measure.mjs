// What the store takes for what nodes ask of it: milliseconds until it is answered, and processor time of the server.
import process from "node:process";
import { newTask } from "../../bench/tasks/engine.mjs";
import { prepareTexts } from "../../src/store/postgres/postgres-statements.ts";
import { layout } from "./fill.mjs";

const mostActs = 2_000;
const leastActs = 50;
const madeAhead = 1_000;
/** Tasks that have expired when the sweeper comes, and how many it removes at once. */
const expired = 5_000;
const removedAtOnce = 250;
const lease = { worker: "simulated", leaseMs: 3_600_000 };
const outcome = { ending: "completed", data: {}, messages: [], log: [], durationMs: 1 };

/** `store` and `other` are two nodes on one filled schema. */
export async function measure({ server, schema, size, seconds, store, other }) {
  const client = await server.connect();
  const timed = (act) => timeActs(server, seconds, act);
  const parts = layout(size);
  try {
    const context = { store, other, client, schema, parts, timed };
    return {
      ...(await measureReading(context)),
      ...(await measureLooking(context)),
      ...(await measureWork(context)),
      ...(await measureNews(context)),
      ...(await measureSweep(context)),
    };
  } finally {
    await client.end();
  }
}

/** Each task, and each caller, is another one. */
async function measureReading({ store, client, schema, parts, timed }) {
  const asked = await someOf(client, schema, parts);
  const callerOf = (n) => `crowd ${(n * 7) % parts.crowdCallers}`;
  const cursors = [];
  const get = async (n) => {
    const { caller, task_id } = asked[n % asked.length];
    if ((await store.get({ caller }, task_id)) === undefined) throw new Error("a task was not found");
  };
  return {
    "get, another task each time": await timed(get),
    "get, the same ones again": await timed(get),
    "first page of 50": await timed(async (n) => {
      cursors[n] = (await store.list({ caller: callerOf(n) }, { limit: 50 })).nextCursor;
    }),
    "next page of 50": await timed((n) => {
      const at = n % cursors.length;
      return store.list({ caller: callerOf(at) }, { limit: 50, cursor: cursors[at] });
    }),
    "page of a status that none has": await timed((n) =>
      store.list({ caller: callerOf(n) }, { limit: 50, statuses: ["failed"] }),
    ),
    "equal task of one with 100 live, none": await timed((n) =>
      store.findEqual({ caller: callerOf(n) }, "crowd", `no such ${n}`),
    ),
  };
}

async function someOf(client, schema, { total }) {
  const { rows } = await client.query(
    `select caller, task_id from ${schema}.tasks where number in (select 1 + floor(random() * ${total})::bigint from generate_series(1, ${mostActs})) order by random()`,
  );
  return rows;
}

/** What every node asks now and then though nothing has happened. */
async function measureLooking({ store, timed }) {
  return {
    "whose tasks are held (each second)": await timed(() => store.workers()),
    "leases, none run out (each 2 s)": await timed(() => store.interrupt()),
    "questions, none lapsed (each 2 s)": await timed(() => store.lapse()),
    "claim, nothing there (each second)": await timed(() => store.claim({ project: "empty", ...lease })),
    "sweep, nothing expired (each minute)": await timed(async () => void (await store.sweep())),
  };
}

async function measureWork({ store, parts, timed }) {
  const held = [];
  const make = (caller, project, claim) =>
    store.create({ ...newTask(caller), project }, { joinsEqual: true, maxLive: 1_000_000, ...(claim && { claim }) });
  const claim = (project) => async () => {
    const task = await store.claim({ project, ...lease });
    if (task === undefined) return "over";
    held.push(task);
  };
  await Promise.all(Array.from({ length: madeAhead }, () => make("one", "one")));
  return {
    "create, for one with 100 live": await timed((n) => make(`crowd ${n % parts.crowdCallers}`, "made")),
    "create, for somebody new": await timed((n) => make(`new ${n}`, "made")),
    "create under its maker's claim": await timed(async (n) => {
      held.push((await make(`ours ${n}`, "made", lease)).task);
    }),
    settle: await timed(async () => {
      const task = held.pop();
      if (task === undefined || !(await store.settle(task, outcome))) return "over";
    }),
    "claim, one caller's queue": await timed(claim("one")),
    "claim, long queues of 100 callers": await timed(claim("deep")),
    "claim, a queue of every caller": await timed(claim("crowd")),
  };
}

async function measureNews({ store, other, timed }) {
  return {
    "a change heard by another node": await timed(async () => {
      const { task } = await store.create(newTask("simulated"), { joinsEqual: false, maxLive: 1_000_000 });
      const heard = Promise.withResolvers();
      const stop = other.onChange(() => heard.resolve(), task.taskId);
      const startedAt = performance.now();
      await store.cancel({ caller: "simulated" }, task.taskId, "simulated");
      await heard.promise;
      const took = performance.now() - startedAt;
      stop();
      return took;
    }),
  };
}

/** Tasks expire, and are removed as the store does it, while another node looks at tasks one after the other. */
async function measureSweep({ store, client, schema, parts, timed }) {
  const asked = await someOf(client, schema, parts);
  const count = Math.min(expired, parts.ended >> 2);
  const { text, names } = prepareTexts(schema).sweep;
  const values = names.map((name) => ({ limit: removedAtOnce })[name]);
  const sweep = async (some) => {
    await client.query(`update ${schema}.tasks set expires_at = ${schema}.now_ms() - 1 where number in (${some})`);
    let isOver = false;
    return await Promise.all([
      timed(async () => {
        const { rowCount } = await client.query({ name: "sweep", text, values });
        if (rowCount < removedAtOnce) return "over";
      }).finally(() => (isOver = true)),
      timed(async (n) => {
        if (isOver) return "over";
        const { caller, task_id } = asked[n % asked.length];
        await store.get({ caller }, task_id);
      }),
    ]);
  };
  const ended = `select number from ${schema}.tasks where finished_at is not null`;
  const [oldest] = await sweep(`${ended} order by number limit ${count}`);
  const [scattered, looks] = await sweep(
    `${ended} and number in (select 1 + floor(random() * ${parts.total})::bigint from generate_series(1, ${count}))`,
  );
  return {
    "sweep, 250 removed that lie together": oldest,
    "sweep, 250 removed from anywhere": scattered,
    "get, meanwhile": looks,
  };
}

/** One after the other. An act says how long it took itself, or that it is over, or nothing. */
export async function timeActs(server, seconds, act, most = mostActs) {
  const took = [];
  const [processor, own] = [server.processorMs(), process.cpuUsage()];
  const startedAt = performance.now();
  // What takes long is done a few times more, for a p99 that says something.
  const isDue = (n, at) => at < startedAt + seconds * (n < leastActs ? 10_000 : 1_000);
  for (let n = 0; n < most && isDue(n, performance.now()); n++) {
    const from = performance.now();
    const said = await act(n);
    if (said === "over") break;
    took.push(typeof said === "number" ? said : performance.now() - from);
  }
  const { user, system } = process.cpuUsage(own);
  const count = took.length;
  took.sort((a, b) => a - b);
  return {
    count,
    p50: took[count >> 1],
    p99: took[Math.floor(count * 0.99)],
    processorMs: (server.processorMs() - processor) / count,
    ownMs: (user + system) / 1000 / count,
  };
}
