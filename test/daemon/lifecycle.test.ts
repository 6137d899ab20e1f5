import { once } from "node:events";
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createConnection, createServer, type Socket } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { Broker } from "../../src/daemon/broker.ts";
import { Lifecycle, type LifecycleOptions } from "../../src/daemon/lifecycle.ts";
import { type Logger, silentLog } from "../../src/log.ts";
import { type Home, homeAt } from "../../src/paths.ts";
import { takeLock } from "../../src/store/sqlite/lock.ts";
import { isAnswered } from "../../src/system/socket-file.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { turns } from "../helpers/in-memory.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { plainStatus } from "./plain-status.ts";

const idleMs = 900_000;

interface Opened {
  readonly lifecycle: Lifecycle;
  readonly broker: Broker;
  readonly clock: FakeClock;
  readonly home: Home;
  readonly isLeft: () => "now" | "in order" | undefined;
  /** Lets time pass, with all that is looked after in it. */
  readonly pass: (ms: number) => Promise<void>;
  readonly connect: () => Promise<Socket>;
}

function begin(options: Partial<LifecycleOptions> = {}) {
  const clock = new FakeClock();
  const home = homeAt({ MEANWHILE_HOME: path.join(temporaryFolder(), "home") });
  const begun = (more: Partial<LifecycleOptions> = {}) =>
    Lifecycle.begin({
      home,
      key: "k",
      isPackAlone: false,
      pid: 77,
      idleMs,
      hasLiveTasks: async () => false,
      takeLock,
      clock,
      log: silentLog,
      ...options,
      ...more,
    });
  return { clock, home, begun };
}

async function open(options: Partial<LifecycleOptions> = {}): Promise<Opened> {
  const { clock, home, begun } = begin(options);
  const lifecycle = begun() as Lifecycle;
  let left: "now" | "in order" | undefined;
  void lifecycle.left.then(({ isNow }) => (left = isNow ? "now" : "in order"));
  const broker = createBroker();
  await lifecycle.open(broker);
  onTestFinished(() => {
    lifecycle.leave();
    return broker.closeAll();
  });
  const pass = async (ms: number) => {
    for (let end = clock.now() + ms; clock.now() < end; await turns())
      clock.advance(Math.min(1_000, end - clock.now()));
  };
  const connect = async () => {
    const before = broker.connections;
    const socket = createConnection(lifecycle.socket);
    onTestFinished(() => void socket.destroy());
    await waitFor(() => broker.connections > before);
    return socket;
  };
  return { lifecycle, broker, clock, home, isLeft: () => left, pass, connect };
}

const createBroker = (key = "k") =>
  new Broker({
    key,
    env: () => [],
    onConnection: () => new Promise(() => undefined),
    status: () => ({ ...plainStatus, cwd: key }),
    onStop: () => undefined,
    log: silentLog,
  });

test("a daemon that nobody uses leaves after its idle time, and not before", async () => {
  const { isLeft, pass, lifecycle, home } = await open();
  await pass(idleMs - 2_000);
  expect(isLeft()).toBeUndefined();
  await pass(4_000);
  expect(isLeft()).toBe("in order");
  expect(existsSync(lifecycle.socket)).toBe(false);
  expect(existsSync(path.join(home.runFolder, "k.json"))).toBe(false);
});

test("a daemon stays while somebody is connected, and its idle time begins when the last has gone", async () => {
  const { isLeft, pass, connect, broker } = await open();
  const socket = await connect();
  await pass(3 * idleMs);
  expect(isLeft()).toBeUndefined();
  socket.destroy();
  await waitFor(() => broker.connections === 0);
  await pass(idleMs - 2_000);
  expect(isLeft()).toBeUndefined();
  await pass(4_000);
  expect(isLeft()).toBe("in order");
});

test("a daemon stays while tasks are alive, and a whole idle time after them", async () => {
  let isLive = true;
  const { isLeft, pass } = await open({ hasLiveTasks: async () => isLive });
  await pass(2.5 * idleMs);
  expect(isLeft()).toBeUndefined();
  isLive = false;
  await pass(idleMs + 2_000);
  expect(isLeft()).toBe("in order");
});

test("somebody who comes while the daemon looks for live tasks keeps it", async () => {
  const looked = Promise.withResolvers<boolean>();
  let isLooking = false;
  const hasLiveTasks = () => {
    isLooking = true;
    return looked.promise;
  };
  const { isLeft, pass, connect } = await open({ hasLiveTasks });
  await pass(idleMs + 2_000);
  expect(isLooking).toBe(true);
  await connect();
  looked.resolve(false);
  await turns();
  expect(isLeft()).toBeUndefined();
  await pass(3_000);
  expect(isLeft()).toBeUndefined();
});

test("a look that fails is not the last one", async () => {
  let isBroken = true;
  const { isLeft, pass } = await open({
    idleMs: 2_000,
    hasLiveTasks: () => (isBroken ? Promise.reject(new Error("no store")) : Promise.resolve(false)),
  });
  await pass(10_000);
  expect(isLeft()).toBeUndefined();
  isBroken = false;
  await pass(2_000);
  expect(isLeft()).toBe("in order");
});

test("a daemon whose home is gone leaves at once, whoever is connected", async () => {
  const { isLeft, pass, connect, home } = await open();
  await connect();
  rmSync(home.folder, { recursive: true });
  await pass(1_000);
  expect(isLeft()).toBe("now");
});

test("a daemon whose socket is gone, or somebody else's, leaves in order and touches neither", async () => {
  const { isLeft, pass, lifecycle, home } = await open();
  rmSync(lifecycle.socket);
  const other = createServer().listen(lifecycle.socket);
  onTestFinished(() => void other.close());
  await waitFor(() => other.listening);
  await pass(1_000);
  expect(isLeft()).toBe("in order");
  expect(lstatSync(lifecycle.socket).isSocket()).toBe(true);
  expect(existsSync(path.join(home.runFolder, "k.json"))).toBe(false);
});

test("a record that was taken away is written again", async () => {
  const { isLeft, pass, lifecycle, home } = await open();
  const file = path.join(home.runFolder, "k.json");
  rmSync(file);
  await pass(1_000);
  expect(isLeft()).toBeUndefined();
  expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ pid: 77, socket: lifecycle.socket });
});

test("its own record is removed when it leaves, and another daemon's is not", async () => {
  const { lifecycle, home } = await open();
  const file = path.join(home.runFolder, "k.json");
  writeFileSync(file, JSON.stringify({ pid: 78, socket: lifecycle.socket }));
  lifecycle.leave();
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ pid: 78 });
});

test("of two daemons with one key the second does not begin, until the first has left", async () => {
  const { begun } = begin();
  const first = begun();
  expect(first).toBeDefined();
  expect(begun()).toBeUndefined();
  const other = begun({ key: "l" });
  expect(other).toBeDefined();
  first?.leave();
  const next = begun();
  expect(next).toBeDefined();
  for (const lifecycle of [next, other]) lifecycle?.leave();
});

describe("the socket of the bundled commands", () => {
  /** Daemons of different versions in one home, in the order in which they start. */
  const versions = (...keys: readonly string[]) => openVersions(keys);
  async function openVersions(keys: readonly string[], options: Partial<LifecycleOptions> = {}) {
    const { clock, home, begun } = begin({ isPackAlone: true, ...options });
    const opened: { key: string; lifecycle: Lifecycle; broker: Broker }[] = [];
    for (const key of keys) {
      const broker = createBroker(key);
      const lifecycle = begun({ key }) as Lifecycle;
      await lifecycle.open(broker);
      onTestFinished(() => {
        lifecycle.leave();
        return broker.closeAll();
      });
      opened.push({ key, lifecycle, broker });
    }
    const ask = async () => {
      const reply = once(connectTo(home.packSocket).setEncoding("utf8"), "data");
      return (JSON.parse(((await reply) as [string])[0]) as { cwd: string }).cwd;
    };
    const answered = () => isAnswered(home.packSocket);
    const pass = async (ms: number) => {
      for (let passed = 0; passed < ms; passed += 1_000) {
        clock.advance(1_000);
        await turns();
      }
    };
    return { clock, home, opened, ask, answered, pass };
  }
  const connectTo = (file: string) => {
    const socket = createConnection(file);
    socket.write('{"meanwhile":"status"}\n');
    return socket;
  };

  test("belongs to the newest daemon; each is found by its own", async () => {
    const { home, opened, ask } = await versions("old", "new");
    expect(opened.map(({ lifecycle }) => lifecycle.socket)).toEqual(
      ["old", "new"].map((key) => path.join(home.runFolder, `${key}.sock`)),
    );
    expect(opened.map(({ lifecycle }) => lifecycle.clientSocket)).toEqual([
      path.join(home.runFolder, "old.sock"),
      home.packSocket,
    ]);
    expect(await ask()).toBe("new");
  });

  test("stays with the newest daemon when an older one stops, and the older one does not stop for it", async () => {
    const { clock, opened, ask } = await versions("old", "new");
    const [old] = opened;
    let isLeft = false;
    void old?.lifecycle.left.then(() => (isLeft = true));
    for (let second = 0; second < 3; second++) {
      clock.advance(1_000);
      await turns();
    }
    expect(isLeft, "its own socket is there").toBe(false);
    old?.lifecycle.leave();
    expect(await ask()).toBe("new");
  });

  test("is opened again by the older daemon when the newest one has stopped", async () => {
    const { clock, home, opened, ask } = await versions("old", "new");
    opened[1]?.lifecycle.leave();
    expect(existsSync(home.packSocket)).toBe(false);
    clock.advance(1_000);
    await waitFor(() => existsSync(home.packSocket));
    expect(await ask()).toBe("old");
    opened[0]?.lifecycle.leave();
    expect(existsSync(home.packSocket)).toBe(false);
  });

  test("is taken over within 6 s by an older daemon when the newest one was killed", async () => {
    const { home, opened, ask, answered, pass } = await versions("old", "new");
    await pass(2_000);
    opened[1]?.lifecycle.abandon();
    expect(await answered()).toBe(false);
    await pass(6_000);
    await waitFor(answered);
    expect(await ask()).toBe("old");
    expect(statSync(home.packSocket).mode & 0o777).toBe(0o600);
  });

  test("belongs to one daemon when two take it over at once, and to the other when that one stops", async () => {
    const { home, opened, ask, answered, pass } = await versions("first", "second", "new");
    opened[2]?.lifecycle.abandon();
    await pass(1_000);
    await waitFor(answered);
    await pass(10_000);
    const owners = opened.slice(0, 2).filter(({ lifecycle }) => lifecycle.clientSocket === home.packSocket);
    expect(owners.map(({ key }) => key)).toEqual([await ask()]);
    owners[0]?.lifecycle.leave();
    expect(existsSync(home.packSocket)).toBe(false);
    await pass(1_000);
    await waitFor(answered);
    expect(["first", "second"].filter((key) => key !== owners[0]?.key)).toEqual([await ask()]);
  });

  test("is left alone by a daemon that stops while it takes it over", async () => {
    for (const end of ["leave", "abandon"] as const) {
      const { clock, home, opened, answered } = await versions("old", "new");
      const [old, newest] = opened;
      newest?.lifecycle[end]();
      const before = lstatSync(home.packSocket, { throwIfNoEntry: false })?.ino;
      clock.advance(1_000);
      old?.lifecycle.leave();
      await turns(20);
      expect(lstatSync(home.packSocket, { throwIfNoEntry: false })?.ino, end).toBe(before);
      expect(await answered(), end).toBe(false);
    }
  });

  test("a file or folder in its place is never removed; the log names it once, and a daemon listens there when it is gone", async () => {
    const lines: string[] = [];
    const log: Logger = { ...silentLog, warn: (text) => void lines.push(text) };
    const { home, answered, pass } = await openVersions(["old"], { log });
    const makings = [() => writeFileSync(home.packSocket, "mine"), () => mkdirSync(home.packSocket)];
    for (const make of makings) {
      lines.length = 0;
      rmSync(home.packSocket);
      make();
      const { ino } = lstatSync(home.packSocket);
      await pass(20_000);
      expect(lstatSync(home.packSocket).ino).toBe(ino);
      expect(lines).toEqual([
        `the socket of the bundled commands was not opened: Cannot listen: ${home.packSocket} is not a socket; remove it.`,
      ]);
      rmSync(home.packSocket, { recursive: true });
      await pass(1_000);
      await waitFor(answered);
    }
  });
});

test("its socket and folder are its user's alone", async () => {
  const { lifecycle, home } = await open();
  expect(statSync(lifecycle.socket).mode & 0o777).toBe(0o600);
  expect(statSync(home.runFolder).mode & 0o777).toBe(0o700);
  expect(statSync(path.join(home.runFolder, "k.json")).mode & 0o777).toBe(0o600);
});

test("a folder that others may enter is closed to them", async () => {
  const { begun, home } = begin();
  mkdirSync(home.runFolder, { recursive: true, mode: 0o755 });
  begun()?.leave();
  expect(statSync(home.runFolder).mode & 0o777).toBe(0o700);
});

test.for(["a link", "a file"])("%s in the place of its socket is refused and left alone", async (what) => {
  const { begun, home } = begin();
  const lifecycle = begun() as Lifecycle;
  const target = path.join(home.folder, "target");
  writeFileSync(target, "mine");
  if (what === "a link") symlinkSync(target, lifecycle.socket);
  else writeFileSync(lifecycle.socket, "mine");
  await expect(lifecycle.open(createBroker())).rejects.toThrow(
    /^Cannot listen: \S+k\.sock is (a symbolic link|not a socket); remove it\.$/,
  );
  expect(readFileSync(target, "utf8")).toBe("mine");
  expect(lstatSync(lifecycle.socket).isSymbolicLink()).toBe(what === "a link");
  lifecycle.leave();
});

test("a link in the place of the folder of sockets is refused", () => {
  const { begun, home } = begin();
  mkdirSync(home.folder, { recursive: true });
  symlinkSync(temporaryFolder(), home.runFolder);
  expect(() => begun()).toThrow(`${home.runFolder} is not a folder`);
});

test("a home that is a link to another place is its user's choice", async () => {
  const { begun, home } = begin({ isPackAlone: true });
  symlinkSync(temporaryFolder(), home.folder);
  const lifecycle = begun() as Lifecycle;
  await lifecycle.open(createBroker());
  expect(lstatSync(home.packSocket).isSocket()).toBe(true);
  lifecycle.leave();
  expect(existsSync(home.packSocket)).toBe(false);
});

test("a socket that a dead daemon has left is replaced", async () => {
  const { begun, home } = begin();
  mkdirSync(home.runFolder, { recursive: true });
  const left = createServer().listen(path.join(home.runFolder, "k.sock"));
  onTestFinished(() => void left.close());
  await waitFor(() => left.listening);
  const lifecycle = begun() as Lifecycle;
  const before = lstatSync(lifecycle.socket).ino;
  const broker = createBroker();
  await lifecycle.open(broker);
  expect(lstatSync(lifecycle.socket).ino).not.toBe(before);
  const socket = createConnection(lifecycle.socket);
  await waitFor(() => broker.connections === 1);
  socket.destroy();
  lifecycle.leave();
});
