import { spawnSync } from "node:child_process";
import { connect, createServer, type Socket } from "node:net";
import path from "node:path";
import { pathToFileURL } from "node:url";
import * as bullmq from "bullmq";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { silentLog } from "../../../src/log.ts";
import { openDispatcher, queueName } from "../../../src/queue/open-dispatcher.ts";
import { MemoryStore } from "../../../src/store/memory-store.ts";
import { openStore } from "../../../src/store/open.ts";
import { parseAddress } from "../../../src/store/postgres/address.ts";
import { type Dispatcher, ticketOf } from "../../../src/task/dispatcher.ts";
import type { Task } from "../../../src/task/task.ts";
import { cleanUp, shareAmongTests, temporaryFolder } from "../../helpers/home.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import { newSchema, serverPort, testPassword, urlOf } from "../../helpers/postgres.ts";
import { freePort, hasRedis, redisPassword, startRedis } from "../../helpers/redis.ts";
import { leaseMs, newTask } from "../../store-suite/cases/bench.ts";

/** One queue by its address, as an operator sees it from outside. */
interface Backend {
  readonly url: () => Promise<string>;
  readonly password: string;
  readonly queueOf: (url: string, name: string) => bullmq.Queue;
  readonly workerOf: (url: string, name: string) => bullmq.Worker;
}

const schema = newSchema();
const onPostgres = bullmq.withBackend(bullmq.createPostgresBackend) as unknown as typeof bullmq;
const byPostgres: Backend = {
  url: async () => urlOf(await serverPort(), schema),
  password: testPassword,
  queueOf: (url, name) => new onPostgres.Queue(name, { connection: postgresAccess(url) }),
  workerOf: (url, name) => new onPostgres.Worker(name, null, { connection: postgresAccess(url) }),
};
const byRedis: Backend = {
  url: shareAmongTests(startRedis),
  password: redisPassword,
  queueOf: (url, name) => new bullmq.Queue(name, { connection: { url } }),
  workerOf: (url, name) => new bullmq.Worker(name, null, { connection: { url, maxRetriesPerRequest: null } }),
};

function postgresAccess(url: string): bullmq.ConnectionOptions {
  const address = parseAddress(url);
  return { ...address.access, schema: `${address.schema}_queue`, migrate: true } as bullmq.ConnectionOptions;
}

/** By PostgreSQL those of a paused queue have a state of their own, which the types do not know. */
const ticketsIn = (queue: bullmq.Queue) => queue.getJobCountByTypes("waiting", "paused" as bullmq.JobType);

let projects = 0;

/** A store of this process, who offers its tasks, and who asks for them; each dispatcher is a node's. */
async function openStage(url: string) {
  projects += 1;
  const project = `bull-${projects}`;
  const store = new MemoryStore(systemClock);
  const lines: string[] = [];
  const say = (text: string, facts?: object) => void lines.push(`${text} ${JSON.stringify(facts ?? {})}`);
  const log = { debug: say, info: say, warn: say, error: say };
  const open = async (): Promise<Dispatcher> => {
    const dispatcher = await openDispatcher(store, { queue: url, project, clock: systemClock, log });
    cleanUp(() => dispatcher.close());
    return dispatcher;
  };
  const [offers, asks] = [await open(), await open()];
  let woken = 0;
  let made = 0;
  asks.onWork(() => (woken += 1));
  const next = () => asks.next({ project: "home", worker: "w1", leaseMs });
  return {
    name: queueName(project, await store.shared.secret()),
    offers,
    asks,
    lines,
    next,
    woken: () => woken,
    async make(): Promise<Task> {
      made += 1;
      const created = await store.create(newTask(made), { joinsEqual: false, maxLive: 1_000 });
      if (created.kind !== "created") throw new Error(`Not made, but ${created.kind}.`);
      return created.task;
    },
    /** Asks, as a worker that was never woken does. */
    untilNext: () => waitFor(next, () => "waited in vain for a task"),
    /** Another node, which listens. */
    async openAnother(): Promise<Dispatcher> {
      const another = await open();
      another.onWork(() => undefined);
      return another;
    },
  };
}

/** Something that is at an address of this machine only sometimes. */
async function openDoor(to: number) {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const other = connect(to, "127.0.0.1");
    for (const [from, into] of [
      [socket, other],
      [other, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => into.destroy()).on("close", () => into.destroy());
      from.pipe(into);
    }
  });
  const port = await freePort();
  const shut = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  cleanUp(shut);
  return { port, open: () => new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve)), shut };
}

const through = (url: string, port: number) => url.replace(/(127\.0\.0\.1):\d+/, `$1:${port}`);
const portOf = (url: string) => Number(new URL(url).port);

function exercise({ url, password, queueOf, workerOf }: Backend): void {
  async function look(name: string): Promise<bullmq.Queue> {
    const queue = queueOf(await url(), name);
    queue.on("error", () => undefined);
    cleanUp(() => queue.close());
    await queue.waitUntilReady();
    return queue;
  }

  test("a queue that is emptied while tasks wait costs a moment, and no task", async () => {
    const stage = await openStage(await url());
    const queue = await look(stage.name);
    await queue.pause();
    const made = [await stage.make(), await stage.make()];
    for (const task of made) stage.offers.offer(ticketOf(task));
    await waitFor(async () => (await ticketsIn(queue)) === 2);
    await queue.obliterate({ force: true });
    const given = [await stage.untilNext(), await stage.untilNext()];
    expect(given.map(({ taskId }) => taskId).toSorted()).toEqual(made.map(({ taskId }) => taskId));
    // And the queue is as good as before.
    const last = await stage.make();
    const before = stage.woken();
    stage.offers.offer(ticketOf(last));
    await waitFor(() => stage.woken() > before);
    expect((await stage.untilNext()).taskId).toBe(last.taskId);
  });

  test("a ticket that comes twice is there once", async () => {
    const stage = await openStage(await url());
    const queue = await look(stage.name);
    await queue.pause();
    const ticket = ticketOf(await stage.make());
    stage.offers.offer(ticket);
    await waitFor(async () => (await ticketsIn(queue)) === 1);
    stage.asks.offer(ticket);
    stage.asks.offer("another-0");
    await waitFor(async () => (await queue.getJob("another-0")) !== undefined);
    expect(await ticketsIn(queue)).toBe(2);
  });

  test("a ticket of a node that died while it held it keeps nobody from its task", async () => {
    const stage = await openStage(await url());
    const dead = workerOf(await url(), stage.name);
    dead.on("error", () => undefined);
    cleanUp(() => dead.close(true));
    await stage.asks.close();
    const made = await stage.make();
    stage.offers.offer(ticketOf(made));
    const held = await waitFor(() => dead.getNextJob("dead", { block: false }));
    expect(held.id).toBe(ticketOf(made));
    const other = await stage.openAnother();
    // To offer it again is in vain: there is such a ticket, and somebody has it.
    other.offer(ticketOf(made));
    const task = await waitFor(() => other.next({ project: "home", worker: "w2", leaseMs }));
    expect(task.taskId).toBe(made.taskId);
  });

  test("nodes of one database wake each other, and nobody of another one with the same project", async () => {
    projects += 1;
    const terms = { queue: await url(), project: `bull-${projects}`, clock: systemClock, log: silentLog };
    const openNode = async (file: string) => {
      const store = await openStore(file);
      const dispatcher = await openDispatcher(store, terms);
      cleanUp(() => dispatcher.close().then(() => store.close()));
      let woken = 0;
      const name = queueName(terms.project, await store.shared.secret());
      return {
        name,
        offer: dispatcher.offer.bind(dispatcher),
        listen: () => dispatcher.onWork(() => (woken += 1)),
        woken: () => woken,
      };
    };
    const [ours, theirs] = [path.join(temporaryFolder(), "tasks.db"), path.join(temporaryFolder(), "tasks.db")];
    const [a, b] = [
      [await openNode(ours), await openNode(ours)],
      [await openNode(theirs), await openNode(theirs)],
    ] as const;
    b[1].listen();
    b[0].offer("first-0");
    await waitFor(() => b[1].woken() === 1);
    a[0].offer("ours-0");
    const queue = await look(a[0].name);
    await waitFor(async () => (await ticketsIn(queue)) === 1 || b[1].woken() > 1);
    b[0].offer("second-0");
    await waitFor(() => b[1].woken() > 1);
    // In one queue it would have been taken before that one.
    expect(await ticketsIn(queue)).toBe(1);
    a[1].listen();
    await waitFor(() => a[1].woken() === 1);
    expect(b[1].woken()).toBe(2);
  });

  test("a queue that cannot be reached at first is used once it can be, and again after it was away", async () => {
    const door = await openDoor(portOf(await url()));
    const stage = await openStage(through(await url(), door.port));
    const made = await stage.make();
    stage.offers.offer(ticketOf(made));
    expect((await stage.untilNext()).taskId).toBe(made.taskId);
    await waitFor(() => stage.lines.some((line) => line.startsWith("the queue cannot be used")));
    const isHeard = async () => {
      const before = stage.woken();
      await waitFor(async () => {
        stage.offers.offer(`call-${Math.random()}`);
        await stage.next();
        return stage.woken() > before;
      });
    };
    await door.open();
    await isHeard();
    await door.shut();
    const later = await stage.make();
    stage.offers.offer(ticketOf(later));
    expect((await stage.untilNext()).taskId).toBe(later.taskId);
    await door.open();
    await isHeard();
    expect(stage.lines.join("\n")).not.toContain(password);
  });

  test("who has the wrong password, or nobody to talk to, is told so once, and never the password", async () => {
    const wrong = (await url()).replace(password, "wrong-secret");
    const nowhere = through(await url(), await freePort());
    for (const address of [wrong, nowhere]) {
      const stage = await openStage(address);
      for (let n = 0; n < 5; n++) stage.offers.offer(`call-${n}`);
      await waitFor(() => stage.lines.length > 0);
      await stage.next();
      expect(stage.lines.join("\n")).toContain("the queue cannot be used");
      expect(stage.lines.join("\n")).not.toMatch(new RegExp(`${password}|wrong-secret`));
      // It ends, though nobody answers.
      await Promise.all([stage.offers.close(), stage.asks.close()]);
    }
  });
}

/** What opening a dispatcher says in a process that cannot find a package. */
function openWithout(missing: string, url: string): string {
  const file = pathToFileURL(path.resolve(import.meta.dirname, "../../../src/queue/open-dispatcher.ts")).href;
  const program = `
    import { registerHooks } from "node:module";
    registerHooks({ resolve(name, context, next) {
      if (name === "${missing}") throw Object.assign(new Error("Cannot find package '${missing}'"), { code: "ERR_MODULE_NOT_FOUND" });
      return next(name, context);
    } });
    const { openDispatcher } = await import("${file}");
    await openDispatcher({}, { queue: "${url}", project: "home" }).then(() => console.log("opened"), (error) => console.log(error.code + " " + error.message));`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], { encoding: "utf8" });
  return stdout.trim();
}

describe("BullMQ by PostgreSQL", () => exercise(byPostgres));

describe.runIf(hasRedis())("BullMQ by Redis", () => exercise(byRedis));

test.for([
  ["bullmq", "redis://127.0.0.1/", "npm install bullmq ioredis"],
  ["ioredis", "redis://127.0.0.1/", "npm install bullmq ioredis"],
  ["pg", "postgres://127.0.0.1/tasks", "npm install bullmq pg"],
  ["bullmq", "postgres://127.0.0.1/tasks", "npm install bullmq pg"],
] as const)(
  "where %s is not installed, and %s is to be reached, one sentence says how to install it",
  ([missing, url, cure]) => {
    const said = openWithout(missing, url);
    expect(said).toMatch(/^QUEUE_UNAVAILABLE Tasks are to be handed out by BullMQ, which is not installed/);
    expect(said.endsWith(cure)).toBe(true);
    expect(said.split("\n")).toHaveLength(1);
  },
);

test("Redis is reached without the package that reaches PostgreSQL", () => {
  expect(openWithout("pg", "redis://127.0.0.1/")).toBe("opened");
});
