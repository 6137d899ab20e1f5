import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { describe, expect, test, vi } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { openLog, silentLog } from "../../../src/log.ts";
import { connectionsBesidePool } from "../../../src/queue/node-connections.ts";
import { openDispatcher } from "../../../src/queue/open-dispatcher.ts";
import { openNodeStore } from "../../../src/runtime/open-node-store.ts";
import { openStore } from "../../../src/store/open.ts";
import { FakeClock } from "../../../src/testing/fake-clock.ts";
import { openCutConnection } from "../../helpers/cut-connection.ts";
import { cleanUp, shareAmongTests } from "../../helpers/home.ts";
import { adminOf, newSchema, startServer, urlOf } from "../../helpers/postgres.ts";
import { inTime, openAt, refusal, unusable } from "../../helpers/postgres-bench.ts";
import { Bench, leaseMs } from "../../store-suite/cases/bench.ts";

/** A server with few connections, that speaks TLS, for localhost, and becomes a standby at the end. */
const maxConnections = 24;
const reserved = 3;
const own = shareAmongTests(async () => {
  // Where another user gets to: it does not run as root.
  const folder = path.join(tmpdir(), `meanwhile-${newSchema()}`);
  const settings = ["ssl=on", "wal_level=replica", `max_connections=${maxConnections}`];
  const server = await startServer(folder, process.pid, settings);
  cleanUp(() => process.kill(server.pid, "SIGTERM"));
  return { ...server, data: path.join(folder, "data") };
});
const ownPort = async () => (await own()).port;
const admin = adminOf(ownPort);

/** How many connections there are, the test's own not counted, and how many of them are encrypted. */
async function connections(): Promise<{ all: number; encrypted: number }> {
  const { rows } = await (await admin()).query<{ all: number; encrypted: number }>(`
    select count(*)::int as all, (count(*) filter (where ssl))::int as encrypted
    from pg_stat_activity join pg_stat_ssl using (pid) where backend_type = 'client backend' and pid <> pg_backend_pid()`);
  return rows[0] as { all: number; encrypted: number };
}

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: urlOf(await ownPort(), "public").replace(/\?.*/, "") });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Takes connections until so many are left for users who are nobody special; what is returned gives them back. */
async function leave(left: number): Promise<() => Promise<void>> {
  const taken: pg.Client[] = [];
  const giveBack = async () => void (await Promise.all(taken.splice(0).map((client) => client.end())));
  cleanUp(giveBack);
  await vi.waitFor(async () => expect((await connections()).all).toBe(0), { timeout: 30_000 });
  // The test has one.
  while (taken.length < maxConnections - reserved - 1 - left) taken.push(await connect());
  return giveBack;
}

describe("TLS", () => {
  const on = async (query: string, host = "127.0.0.1") => urlOf(await ownPort()).replace("127.0.0.1", host) + query;
  const certificate = async (name = "server.crt") => path.join((await own()).data, name);

  test("a certificate is checked as far as `sslmode` says", async () => {
    const known = `&sslrootcert=${await certificate()}`;
    const urls = [await on(`&sslmode=verify-ca${known}`), await on(`&sslmode=verify-full${known}`, "localhost")];
    for (const url of urls) expect((await (await openAt(url)).make()).status).toBe("queued");
  });

  test.each<[string, () => Promise<string>, string]>([
    [
      "a server whose certificate nobody has signed that is known",
      () => on("&sslmode=verify-full", "localhost"),
      "the server's certificate is not one to trust; name its authority with sslrootcert= in the URL, or use sslmode=require",
    ],
    [
      "a server that shows another authority's",
      async () => on(`&sslmode=verify-ca&sslrootcert=${await certificate("another.crt")}`),
      "the server's certificate is not one to trust; name its authority with sslrootcert= in the URL",
    ],
    [
      "a server by a name that is not in its certificate",
      async () => on(`&sslmode=verify-full&sslrootcert=${await certificate()}`),
      "the server's certificate is for another host; name the host in the URL as the certificate does, or use sslmode=verify-ca",
    ],
    [
      "a user who may not come without it, and does",
      async () => (await on("&sslmode=disable")).replace("postgres:secret", "other:secret"),
      "the server demands TLS; set sslmode=require in the URL",
    ],
  ])("%s is refused in one sentence that names the cure", async (_, toUrl, why) => {
    expect(await refusal(await toUrl())).toMatchObject(unusable(why));
  });

  test.each<[string, () => Promise<string>, string]>([
    [
      "no certificate",
      async () => on(`&sslmode=verify-ca&sslrootcert=${await certificate("PG_VERSION")}`),
      "holds no certificate",
    ],
    ["nothing", () => on("&sslmode=verify-ca&sslrootcert=/nowhere/ca.pem"), "cannot be read"],
    [
      "one that would not be looked at",
      async () => on(`&sslmode=require&sslrootcert=${await certificate()}`),
      "is for",
    ],
    ["one, and no `sslmode`", async () => on(`&sslrootcert=${await certificate()}`), "is for"],
  ])("an `sslrootcert` that names %s is refused", async (_, toUrl, why) => {
    const { message } = await refusal(await toUrl());
    expect(message).toMatch(/^The URL of the task database is not one that can be used: .*`sslrootcert`.*\.$/);
    expect(message).toContain(why);
  });
});

describe("connections", () => {
  test.each([
    [true, 11],
    [false, 7],
  ])(
    "a node (works: %s) opens as many as it counts, all of them encrypted where it is told to",
    async (worksHere, needed) => {
      await leave(maxConnections);
      const store = `${urlOf(await ownPort())}&sslmode=require`;
      const bench = await openAt(store);
      const terms = { queue: store, project: "counted", clock: systemClock, log: silentLog };
      const dispatcher = await openDispatcher(bench.store as never, terms);
      cleanUp(() => dispatcher.close());
      if (worksHere) {
        cleanUp(bench.store.keepLeases("w1", leaseMs, 20));
        cleanUp(dispatcher.onWork(() => undefined));
      }
      let ticket = 0;
      await vi.waitFor(
        async () => {
          for (let n = 0; n < 4; n++) dispatcher.offer(`t${ticket++}-0`, n);
          await Promise.all(Array.from({ length: 20 }, () => bench.store.list(bench.scope(), { limit: 1 })));
          expect(await connections()).toEqual({ all: needed, encrypted: needed });
        },
        { timeout: 30_000 },
      );
      expect(4 + (await connectionsBesidePool({ store, queue: undefined, worksHere }))).toBe(needed);
    },
  );

  test("a node that may need more than are left says so, and one that may need as many does not", async () => {
    const open = async (parts: { queue?: string; worksHere?: boolean }) => {
      const lines: string[] = [];
      const log = openLog({ level: "warn", isTerminal: false, write: (line) => lines.push(line) });
      const store = await openNodeStore(
        { home: undefined, project: "p", store: urlOf(await ownPort()), queue: undefined, ...parts },
        { log },
      );
      await store.close();
      await vi.waitFor(async () => expect((await connections()).all).toBe(taken), { timeout: 30_000 });
      return lines.join("");
    };
    let giveBack = await leave(11);
    let taken = (await connections()).all;
    expect(await open({})).toBe("");
    await giveBack();
    giveBack = await leave(10);
    taken = (await connections()).all;
    expect(await open({})).toMatch(
      /has 10 connections left, and this node may need 11: raise max_connections there, or lower `pool` in the URL/,
    );
    for (const parts of [{ worksHere: false }, { queue: "store" }, { queue: "redis://127.0.0.1/" }])
      expect(await open(parts), JSON.stringify(parts)).toBe("");
  });

  test("of many nodes at once those that find none are told so in one sentence, nothing is lost, and they get in later", async () => {
    await leave(maxConnections);
    const url = urlOf(await ownPort());
    const ended = await Promise.allSettled(Array.from({ length: 60 }, () => openStore(url)));
    const stores = ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const refused = ended.flatMap((one) => (one.status === "rejected" ? [one.reason as Error] : []));
    expect(refused.length).toBeGreaterThan(60 - maxConnections);
    for (const error of refused)
      expect(error).toMatchObject(
        unusable("the server has no connection left; raise its max_connections, or lower `pool` in the URL\\.$"),
      );
    const names = stores.map((_, n) => `t${n}`);
    await Promise.all(stores.map((store, n) => new Bench(store, new FakeClock()).make({ taskId: names[n] as string })));
    await Promise.all(stores.map((store) => store.close()));
    const later = await openAt(url);
    const { tasks } = await later.store.list(later.scope(), { limit: 99 });
    expect(tasks.map(({ taskId }) => taskId).toSorted()).toEqual(names.toSorted());
  });

  test("a call that finds none waits for one; after a while it is told so, and is not done later", async () => {
    const giveBack = await leave(-reserved);
    const clock = new FakeClock();
    let refused = 0;
    const way = await openCutConnection(await ownPort(), (said) => {
      if (said.includes("53300")) refused += 1;
      return said;
    });
    const bench = new Bench(await openStore(urlOf(way.port), { clock, isPatient: true }), clock);
    cleanUp(() => inTime(bench, bench.store.close()));
    await expect(inTime(bench, bench.create({ taskId: "told" }))).rejects.toMatchObject(
      unusable("the server has no connection left"),
    );
    const before = refused;
    const waiting = bench.create({ taskId: "waits" });
    await vi.waitFor(() => expect(refused).toBeGreaterThan(before), { timeout: 30_000 });
    await giveBack();
    expect((await inTime(bench, waiting)).kind).toBe("created");
    const { tasks } = await bench.store.list(bench.scope(), { limit: 9 });
    expect(tasks.map(({ taskId }) => taskId)).toEqual(["waits"]);
  });
});

test("A server that has become a standby is refused, by those that are there already, too.", async () => {
  const { data, pid } = await own();
  const [url, bench] = [urlOf(await ownPort()), await openAt(urlOf(await ownPort()))];
  writeFileSync(path.join(data, "standby.signal"), "", { mode: 0o644 });
  process.kill(pid, "SIGHUP");
  await vi.waitFor(
    async () =>
      expect(await refusal(url)).toMatchObject(
        unusable("its server is a replica that may only be read; point the URL at the primary server\\.$"),
      ),
    { timeout: 30_000 },
  );
  await expect(bench.make()).rejects.toMatchObject(
    unusable("it may only be read; point the URL at the primary server\\.$"),
  );
});
