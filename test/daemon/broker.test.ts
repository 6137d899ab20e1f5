import { createConnection, type Socket } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Broker } from "../../src/daemon/broker.ts";
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
  const broker = new Broker({
    key: "k",
    env: () => [],
    onConnection: (socket) => {
      served = socket;
      socket.on("data", (chunk: Buffer) => (heard += chunk.toString("utf8"))).resume();
      return new Promise(() => undefined);
    },
    status: () => plainStatus,
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
  return { broker, front, errors, lastWord, heard: () => heard, served: () => served as Socket };
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
