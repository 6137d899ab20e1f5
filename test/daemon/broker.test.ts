import { createConnection, type Socket } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Broker, type SessionFacts } from "../../src/daemon/broker.ts";
import { silentLog } from "../../src/log.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { plainStatus } from "./plain-status.ts";

const hello = '{"meanwhile":"hello","key":"k"}\n';

/** A broker, and a front that has been welcomed. `heard` is what the front's connection was heard to say. */
async function openBroker() {
  const file = path.join(temporaryFolder(), "s");
  let served: Socket | undefined;
  let heard = "";
  const facts: SessionFacts[] = [];
  const broker = new Broker({
    key: "k",
    env: () => [],
    onConnection: (socket, said) => {
      served = socket;
      facts.push(said);
      socket.on("data", (chunk: Buffer) => (heard += chunk.toString("utf8"))).resume();
      return new Promise(() => undefined);
    },
    status: () => plainStatus,
    onRestart: async (upstream) => {
      if (upstream !== "known") throw new Error(`There is no upstream ${upstream}.`);
    },
    onStop: () => undefined,
    log: silentLog,
  });
  await broker.listen(file);
  // It hangs up when it is told to, and not by itself.
  const front = createConnection({ path: file, allowHalfOpen: true });
  onTestFinished(() => void front.destroy());
  onTestFinished(() => broker.stopListening());
  let told = "";
  const errors: string[] = [];
  front
    .on("data", (chunk: Buffer) => (told += chunk.toString("utf8")))
    .on("error", (error) => errors.push(error.message));
  front.write(hello);
  await waitFor(() => told.includes("welcome"));
  const lastWord = () => told.trim().split("\n").at(-1) ?? "";
  return { broker, file, facts, front, errors, lastWord, heard: () => heard, served: () => served as Socket };
}

test("a front that still speaks is not hung up on before it has read the good-bye; what it says then is not heard", async () => {
  const { broker, front, errors, lastWord, heard } = await openBroker();
  front.write("one\n");
  await waitFor(() => heard() === "one\n");
  broker.stopListening();
  let isClosed = false;
  const closed = broker.closeAll().then(() => (isClosed = true));
  await waitFor(() => front.readableEnded);
  expect(JSON.parse(lastWord())).toEqual({ meanwhile: "bye", heardBytes: "one\n".length });
  await new Promise<void>((resolve, reject) => front.write("two\n", (error) => (error ? reject(error) : resolve())));
  expect({ errors, isClosed, heard: heard() }).toEqual({ errors: [], isClosed: false, heard: "one\n" });
  front.end();
  await closed;
  expect(broker.connections).toBe(0);
});

test("what has arrived and was not read yet is not counted as heard", async () => {
  const { broker, front, lastWord, heard, served } = await openBroker();
  front.write("one\n");
  await waitFor(() => heard() === "one\n");
  served().pause();
  front.write("two\n");
  await waitFor(() => served().readableLength > 0);
  broker.stopListening();
  void broker.closeAll();
  await waitFor(() => front.readableEnded);
  expect(JSON.parse(lastWord())).toEqual({ meanwhile: "bye", heardBytes: "one\n".length });
  expect(heard()).toBe("one\n");
});

test("a front that never hangs up does not keep the daemon", async () => {
  const { broker, front } = await openBroker();
  broker.stopListening();
  await broker.closeAll();
  expect({ connections: broker.connections, isOpen: front.writable }).toEqual({ connections: 1, isOpen: true });
});

test("a front brings its whole environment, however large; a line so long that is not one of ours is MCP", async () => {
  const { file, facts, heard } = await openBroker();
  const env = { BIG: '"x\n'.repeat(700_000), SMALL: "1" };
  const front = createConnection(file);
  onTestFinished(() => void front.destroy());
  front.write(`${JSON.stringify({ meanwhile: "hello", key: "k", env })}\nhello there\n`);
  await waitFor(() => heard() === "hello there\n");
  expect(facts.at(-1)?.environment).toEqual(env);
  const stranger = createConnection(file);
  onTestFinished(() => void stranger.destroy());
  const long = "y".repeat(200_000);
  stranger.write(long);
  await waitFor(() => heard().endsWith(long));
  expect(facts.at(-1)).toEqual({});
});

test("an upstream is restarted by its name, and a name that is none is answered with a sentence", async () => {
  const { file } = await openBroker();
  const ask = async (upstream: string) => {
    const socket = createConnection(file);
    let text = "";
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("utf8")));
    socket.write(`${JSON.stringify({ meanwhile: "restart", upstream })}\n`);
    await new Promise((resolve) => socket.on("close", resolve));
    return JSON.parse(text) as unknown;
  };
  expect(await ask("known")).toEqual({ meanwhile: "done" });
  expect(await ask("other")).toEqual({ meanwhile: "done", trouble: "There is no upstream other." });
});
