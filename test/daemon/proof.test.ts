import { mkdirSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Broker } from "../../src/daemon/broker.ts";
import { showSecret } from "../../src/daemon/proof.ts";
import { askDaemon } from "../../src/daemon/reach/ask-daemon.ts";
import { writeRecord } from "../../src/daemon/record.ts";
import { silentLog } from "../../src/log.ts";
import { homeAt } from "../../src/paths.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { plainStatus } from "./plain-status.ts";

function setUp() {
  const home = homeAt({ MEANWHILE_HOME: temporaryFolder() });
  mkdirSync(home.runFolder, { recursive: true, mode: 0o700 });
  const socket = path.join(home.runFolder, "k.sock");
  writeRecord(home, "k", { pid: process.pid, socket, secret: "the secret" });
  return { home, socket };
}

/** A daemon whose socket others can see. */
async function openDaemon() {
  const { home, socket } = setUp();
  let served = 0;
  const broker = new Broker({
    key: "k",
    env: () => [],
    onConnection: async () => void served++,
    status: () => plainStatus,
    onStop: () => undefined,
    secret: "the secret",
    log: silentLog,
  });
  await broker.listen(socket);
  onTestFinished(() => broker.stopListening());
  return { home, socket, served: () => served };
}

/** All that is answered to one line, until the other side hangs up. */
function answerTo(socket: string, line: string): Promise<string> {
  const connection = createConnection(socket);
  let heard = "";
  connection.on("data", (chunk) => (heard += String(chunk)));
  connection.write(line);
  return new Promise((resolve) => connection.once("close", () => resolve(heard)));
}

test("who has read the daemon's record is answered, and learns nothing but the answer", async () => {
  const { home } = await openDaemon();
  expect(await askDaemon(home, "k", { meanwhile: "status" })).toEqual({ meanwhile: "status", ...plainStatus });
});

test.each([
  ["a client of another kind", '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'],
  ["a front that proves nothing", '{"meanwhile":"hello","key":"k"}\n'],
  ["one that guesses", `${JSON.stringify({ meanwhile: "stop", isNow: true, ...showSecret("a guess") })}\n`],
  ["one whose proof is no text", '{"meanwhile":"status","nonce":1,"proof":[]}\n'],
])("where others can see the socket, the daemon hangs up on %s", async (_, line) => {
  const { socket, served } = await openDaemon();
  expect(await answerTo(socket, line)).toBe("");
  expect(served()).toBe(0);
});

test("who has taken the name of a daemon that is gone is nobody, and does not get to hear the secret", async () => {
  const { home, socket } = setUp();
  let heard = "";
  const impostor = createServer((connection) =>
    connection.on("data", (chunk) => {
      heard += String(chunk);
      const { proof } = JSON.parse(heard) as { proof: string };
      connection.write(`${JSON.stringify({ meanwhile: "status", ...plainStatus, proof })}\n`);
    }),
  );
  onTestFinished(() => void impostor.close());
  await new Promise<void>((resolve) => impostor.listen(socket, resolve));
  expect(await askDaemon(home, "k", { meanwhile: "status" })).toBeUndefined();
  expect(heard).toContain('"nonce"');
  expect(heard).not.toContain("the secret");
});
