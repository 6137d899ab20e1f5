import { createConnection, createServer, type Socket } from "node:net";
import path from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../../src/clock.ts";
import { Pump } from "../../../src/daemon/carry/pump.ts";
import { DaemonFull, DaemonUnreachable } from "../../../src/daemon/reach/unreachable.ts";
import { LineSplitter } from "../../../src/wire/lines.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { turns } from "../../helpers/in-memory.ts";
import { waitFor } from "../../helpers/meanwhile.ts";
import type { Message } from "../../helpers/wire.ts";

interface OpenOptions {
  readonly isReachable?: () => boolean;
  readonly why?: () => Error;
  /** Resolves when daemons have started. */
  readonly started?: Promise<void>;
}

/** A pump between a client, whose streams we hold, and daemons, whose ends of the socket we hold. */
async function openPump({
  isReachable = () => true,
  why = () => new Error("nobody is there"),
  started = Promise.resolve(),
}: OpenOptions = {}) {
  const file = path.join(temporaryFolder(), "s");
  const daemons: { socket: Socket; heard: Message[] }[] = [];
  const server = createServer((socket) => {
    const heard: Message[] = [];
    socket.on("error", () => undefined);
    readWords(socket, heard);
    daemons.push({ socket, heard });
  }).listen(file);
  await waitFor(() => server.listening);
  const [input, output] = [new PassThrough(), new PassThrough()];
  const answers: Message[] = [];
  readWords(output, answers);
  const reach = async () => {
    await started;
    return await new Promise<Socket>((resolve, reject) => {
      if (!isReachable()) return reject(why());
      const socket = createConnection(file, () => resolve(socket)).on("error", reject);
    });
  };
  const troubles: string[] = [];
  const pump = new Pump({ input, output, reach, onUnreachable: (error) => troubles.push(error.message) });
  const ended = pump.run();
  ended.catch(() => undefined);
  onTestFinished(async () => {
    for (const { socket } of daemons) socket.destroy();
    input.end();
    await ended.catch(() => undefined);
    server.close();
  });
  const daemon = async (number: number) =>
    await waitFor(
      () => daemons[number - 1],
      () => `daemon ${number} was never reached`,
    );
  return {
    input,
    output,
    answers,
    pump,
    troubles,
    ended,
    daemons,
    daemon,
    say: (message: object) => void input.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`),
    reply: async (number: number, message: object) =>
      void (await daemon(number)).socket.write(`${JSON.stringify(message)}\n`),
    hears: async (number: number, id: number | string) => {
      const { heard } = await daemon(number);
      return await waitFor(
        () => heard.find((message) => message.id === id),
        () => `daemon ${number} never heard ${id}, but ${JSON.stringify(heard)}`,
      );
    },
    answered: (id: number | string) =>
      waitFor(
        () => answers.find((message) => message.id === id),
        () => `no answer to ${id} in ${JSON.stringify(answers)}`,
      ),
  };
}

/** From now on time stands still, until the test says how much of it has passed. */
function stopTimers() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  return {
    /** Resolves when somebody waits for a time. */
    isUsed: () => turnsUntil(() => vi.getTimerCount() > 0),
    pass: (ms: number) => void vi.advanceTimersByTime(ms),
  };
}

async function turnsUntil(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await turns(1);
}

/** What passes a pump need not be a message of MCP. */
function readWords(stream: NodeJS.ReadableStream, into: Message[]): void {
  const splitter = new LineSplitter();
  stream.on("data", (chunk: Buffer) => {
    for (const line of splitter.push(chunk)) into.push(JSON.parse(line.toString()));
  });
}

test("lines pass byte for byte, and a daemon's own words stay out of them", async () => {
  const { input, output, daemon } = await openPump();
  const { socket } = await daemon(1);
  const odd = '{"id" : 1.50, "method":"\u2028ü", "x":1e400}';
  const [sent, received]: [Buffer[], Buffer[]] = [[], []];
  socket.on("data", (chunk: Buffer) => sent.push(chunk));
  output.on("data", (chunk: Buffer) => received.push(chunk));
  input.write(`${odd}\r\n\n`);
  await waitFor(() => Buffer.concat(sent).toString("utf8") === `${odd}\n`);
  socket.write(`{"meanwhile":"status"}\n${odd}\n`);
  await waitFor(() => Buffer.concat(received).toString("utf8") === `${odd}\n`);
});

describe("before the first daemon is there", () => {
  const hello = {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "client", version: "1" },
  };
  const tools = { tools: [{ name: "one" }] };

  /** A pump that has what the last daemon left behind; its client has begun a session and asked for the tools. */
  async function openCold(options: OpenOptions = {}) {
    const start = Promise.withResolvers<void>();
    const opened = await openPump({ started: start.promise, ...options });
    const { pump, say, answered } = opened;
    const asked = pump.standIn(
      (_revision, method) => ({ initialize: "{}", "tools/list": JSON.stringify(tools) })[method],
    );
    say({ id: 1, method: "initialize", params: hello });
    say({ method: "notifications/initialized" });
    say({ id: 2, method: "tools/list" });
    expect(await answered(1)).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
    expect(await answered(2)).toEqual({ jsonrpc: "2.0", id: 2, result: tools });
    await asked;
    return { ...opened, start: start.resolve };
  }

  test("what the last one left behind is answered; the first hears how the session began, and all that waits", async () => {
    const { say, start, daemon, daemons, hears, reply, answered, answers } = await openCold();
    say({ id: 3, method: "tools/call" });
    expect(daemons).toHaveLength(0);
    start();
    await hears(1, 3);
    const { heard } = await daemon(1);
    expect(heard.find(({ method }) => method === "initialize")?.params).toEqual(hello);
    expect(heard.flatMap(({ method }) => method ?? [])).toEqual([
      "initialize",
      "tools/list",
      "notifications/initialized",
      "tools/call",
    ]);
    for (const { id, method } of heard)
      if (method !== "tools/call" && id !== undefined) await reply(1, { id, result: tools });
    await reply(1, { id: 3, result: {} });
    await answered(3);
    expect(answers.map(({ id }) => id)).toEqual([1, 2, 3]);
  });

  test("tells the daemon how long a call waited for it", async () => {
    const { say, start, daemon, hears } = await openCold();
    const sentAt = systemClock.monotonic();
    const monotonic = vi.spyOn(systemClock, "monotonic").mockReturnValue(sentAt);
    onTestFinished(() => monotonic.mockRestore());
    say({ id: 3, method: "tools/call" });
    await turns();
    monotonic.mockReturnValue(sentAt + 5_000);
    start();
    await hears(1, 3);
    const { heard } = await daemon(1);
    expect(heard.slice(-2)).toMatchObject([{ meanwhile: "waited", ms: 5_000 }, { method: "tools/call" }]);
  });

  test("a list that is another by then is told to have changed, also when the daemon that says so is the second", async () => {
    const { start, daemon, hears, reply, answers } = await openCold();
    start();
    await hears(1, "meanwhile-replay-2");
    (await daemon(1)).socket.destroy();
    const { heard } = await daemon(2);
    const { id } = await waitFor(() => heard.find(({ method }) => method === "tools/list"));
    await reply(2, { id, result: { tools: [] } });
    await waitFor(() => answers.some(({ method }) => method === "notifications/tools/list_changed"));
    expect(answers).toHaveLength(3);
  });

  test("a client that hangs up is waited for until what it has asked is answered, and no longer than that", async () => {
    const { say, input, start, hears, reply, answered, ended } = await openCold();
    say({ id: 3, method: "tools/call" });
    input.end();
    start();
    await hears(1, 3);
    await reply(1, { id: 3, result: {} });
    await answered(3);
    await ended;
    const cold = await openCold();
    cold.input.end();
    await cold.ended;
    expect(cold.daemons).toHaveLength(0);
    cold.start();
  });

  test("a session ends when the daemon cannot be started", async () => {
    const { start, ended } = await openCold({ isReachable: () => false });
    start();
    await expect(ended).rejects.toThrow("nobody is there");
  });
});

test("the client goes on with the next daemon: a call gets an error, a list is asked again", async () => {
  const { say, hears, answered, daemon, answers, reply } = await openPump();
  say({ id: 1, method: "tools/call" });
  say({ id: 2, method: "tools/list" });
  await hears(1, 2);
  (await daemon(1)).socket.destroy();
  expect(await answered(1)).toMatchObject({ error: { code: -32603 } });
  await hears(2, 2);
  await reply(2, { id: 2, result: {} });
  await answered(2);
  expect(answers).toHaveLength(2);
  expect((await daemon(2)).heard.flatMap(({ id }) => id ?? [])).toEqual([2]);
});

test("what the client says while no daemon is there waits for the next, in its order", async () => {
  let isReachable = true;
  const { say, daemon, hears, reply, answered, daemons } = await openPump({ isReachable: () => isReachable });
  const { socket } = await daemon(1);
  await reply(1, { meanwhile: "bye" });
  socket.end();
  await waitFor(() => socket.closed);
  expect(daemons).toHaveLength(1);
  isReachable = true;
  for (let id = 1; id <= 5; id++) say({ id, method: "tools/call" });
  await hears(2, 5);
  expect((await daemon(2)).heard.flatMap(({ id }) => id ?? [])).toEqual([1, 2, 3, 4, 5]);
  await reply(2, { id: 5, result: {} });
  await answered(5);
});

test("after the good-bye of a daemon that has to be replaced the next one is reached at once: somebody has to run what it gave back", async () => {
  const { reply, daemon } = await openPump();
  await reply(1, { meanwhile: "bye", isReplaced: true });
  (await daemon(1)).socket.end();
  await daemon(2);
});

test("what is safe to ask twice is asked again after every good-bye, but not a third time where daemons just end", async () => {
  const { say, reply, daemon, hears, answered } = await openPump();
  say({ id: 7, method: "tasks/result", params: { taskId: "t" } });
  for (const number of [1, 2, 3]) {
    await hears(number, 7);
    await reply(number, { meanwhile: "bye" });
    (await daemon(number)).socket.end();
  }
  await hears(4, 7);
  (await daemon(4)).socket.destroy();
  expect((await answered(7)).error?.message).toContain("ask again");
});

test("after a good-bye no daemon is started before there is a use for it", async () => {
  const { daemon, reply, daemons, say, hears } = await openPump();
  say({ id: 1, method: "ping" });
  await hears(1, 1);
  await reply(1, { id: 1, result: {} });
  await reply(1, { meanwhile: "bye" });
  const { socket } = await daemon(1);
  socket.end();
  const time = stopTimers();
  await turnsUntil(() => socket.closed);
  time.pass(60_000);
  await turns(100);
  expect(daemons).toHaveLength(1);
});

test("what a daemon that leaves has not heard any more is asked of the next one, calls too", async () => {
  const { say, hears, answered, reply, daemon } = await openPump();
  say({ id: 1, method: "tools/call" });
  await hears(1, 1);
  say({ id: 2, method: "tools/call" });
  await hears(1, 2);
  const first = '{"jsonrpc":"2.0","id":1,"method":"tools/call"}\n'.length;
  await reply(1, { meanwhile: "bye", heardBytes: first });
  (await daemon(1)).socket.end();
  expect(await answered(1)).toMatchObject({ error: { code: -32603 } });
  await hears(2, 2);
  await reply(2, { id: 2, result: { done: true } });
  expect(await answered(2)).toMatchObject({ result: { done: true } });
});

test("the next daemon is told how long ago the client sent a call that the daemon before it did not hear", async () => {
  const sentAt = systemClock.monotonic();
  const monotonic = vi.spyOn(systemClock, "monotonic").mockReturnValue(sentAt);
  onTestFinished(() => monotonic.mockRestore());
  const { say, hears, reply, daemon } = await openPump();
  const leave = async (number: number) => {
    await reply(number, { meanwhile: "bye", heardBytes: 0 });
    (await daemon(number)).socket.end();
  };
  say({ id: 1, method: "tools/call" });
  await hears(1, 1);
  monotonic.mockReturnValue(sentAt + 5_000);
  await leave(1);
  await hears(2, 1);
  monotonic.mockReturnValue(sentAt + 9_000);
  await leave(2);
  await hears(3, 1);
  for (const [number, ms] of [
    [2, 5_000],
    [3, 9_000],
  ] as const)
    expect((await daemon(number)).heard).toMatchObject([
      { meanwhile: "waited", ms },
      { id: 1, method: "tools/call" },
    ]);
});

test("a session that never had a daemon fails", async () => {
  const { ended } = await openPump({ isReachable: () => false });
  await expect(ended).rejects.toThrow("nobody is there");
});

test("a session whose daemon has no room for it does not fail: what its client says waits, and it ends when the client hangs up", async () => {
  let tries = 0;
  const { say, hears, troubles } = await openPump({ isReachable: () => ++tries > 3, why: () => new DaemonFull(7) });
  say({ id: 1, method: "initialize" });
  await hears(1, 1);
  expect(troubles).toHaveLength(3);
  expect(troubles[0]).toContain(
    "Daemon 7 takes no more sessions for now: no file descriptors are left; raise their number with `ulimit -n`",
  );
  const other = await openPump({ isReachable: () => false, why: () => new DaemonFull(7) });
  other.input.end();
  await other.ended;
});

test("what a client is told of a daemon that cannot be reached names no path", async () => {
  let isReachable = true;
  const why = () => new DaemonUnreachable("see /home/ada/.meanwhile/daemon.log", { forClients: "its log says why" });
  const { say, hears, answered, daemon, troubles } = await openPump({ isReachable: () => isReachable, why });
  say({ id: 1, method: "tools/list" });
  await hears(1, 1);
  isReachable = false;
  (await daemon(1)).socket.destroy();
  const { error } = await answered(1);
  expect(error?.message).toContain("its log says why");
  expect(error?.message).not.toContain("/home");
  expect(troubles).toEqual(["see /home/ada/.meanwhile/daemon.log"]);
});

test("while no daemon can be reached, whatever waits is refused with the reason, and the session goes on with the next that can", async () => {
  let isReachable = true;
  const { say, hears, answered, daemon, daemons, troubles, reply } = await openPump({ isReachable: () => isReachable });
  say({ id: 1, method: "tools/list" });
  await hears(1, 1);
  isReachable = false;
  (await daemon(1)).socket.destroy();
  expect(await answered(1)).toMatchObject({
    error: { code: -32603, message: expect.stringContaining("nobody is there") },
  });
  say({ id: 2, method: "tools/call" });
  expect(await answered(2)).toMatchObject({ error: { code: -32603 } });
  expect(troubles).toEqual(["nobody is there", "nobody is there"]);
  expect(daemons).toHaveLength(1);
  isReachable = true;
  say({ id: 3, method: "ping" });
  await hears(2, 3);
  await reply(2, { id: 3, result: {} });
  expect(await answered(3)).toMatchObject({ result: {} });
});

test("told to move on, it goes over once nobody waits, and its client hears that the lists have changed", async () => {
  const { say, hears, answered, answers, reply, daemon, pump } = await openPump();
  say({ id: 1, method: "initialize", params: {} });
  await hears(1, 1);
  await reply(1, { id: 1, result: {} });
  say({ method: "notifications/initialized" });
  say({ id: 2, method: "tools/call", params: {} });
  await hears(1, 2);
  pump.moveOn();
  await reply(1, { id: 2, result: { done: true } });
  expect(await answered(2)).toMatchObject({ result: { done: true } });
  await daemon(2);
  await waitFor(() => answers.some(({ method }) => method === "notifications/tools/list_changed"));
  say({ id: 3, method: "ping" });
  await hears(2, 3);
});

test("a daemon that sends its sessions on is left as soon as nobody waits for an answer", async () => {
  const { say, hears, answers, answered, daemon, reply } = await openPump();
  say({ id: 1, method: "initialize", params: {} });
  await hears(1, 1);
  await reply(1, { id: 1, result: {} });
  say({ method: "notifications/initialized" });
  say({ id: 2, method: "tools/call", params: {} });
  await hears(1, 2);
  (await daemon(1)).socket.write('{"meanwhile":"moved"}\n');
  await reply(1, { id: 2, result: { done: true } });
  expect(await answered(2)).toMatchObject({ result: { done: true } });
  await daemon(2);
  await waitFor(() => answers.some(({ method }) => method === "notifications/tools/list_changed"));
  expect(answers.some((answer) => "meanwhile" in answer)).toBe(false);
});

test("a request that is none is not answered a second time by the front", async () => {
  const { input, daemon, answers, say, hears } = await openPump();
  input.write('{"jsonrpc":"1.0","id":"old","method":"tools/call"}\n{"jsonrpc":"2.0","id":1.5,"method":"tools/call"}\n');
  say({ id: 1, method: "tools/call" });
  await hears(1, 1);
  (await daemon(1)).socket.destroy();
  await waitFor(() => answers.length > 0);
  await daemon(2);
  expect(answers.map(({ id }) => id)).toEqual([1]);
});

test("a last line is carried also without its newline", async () => {
  const { input, hears } = await openPump();
  input.end('{"jsonrpc":"2.0","id":9,"method":"ping"}');
  await hears(1, 9);
});

test("a message over 10 MiB gets one error, and the next one is carried", async () => {
  const { input, say, hears, answers, daemon } = await openPump();
  input.write(`{"id":1,"x":"${"x".repeat(10 * 1024 * 1024)}`);
  input.write(`${"x".repeat(1024 * 1024)}"}\n`);
  say({ id: 2, method: "ping" });
  await hears(1, 2);
  expect((await daemon(1)).heard).toHaveLength(1);
  expect(answers).toMatchObject([{ id: null, error: { code: -32600, message: "The message is larger than 10 MiB." } }]);
});

describe("a client that hangs up", () => {
  test("still gets the answers that are on their way", async () => {
    const { input, say, hears, reply, answered, ended, daemon } = await openPump();
    say({ id: 1, method: "tools/call" });
    input.end();
    await hears(1, 1);
    await reply(1, { id: 1, result: { text: "late" } });
    expect(await answered(1)).toMatchObject({ result: { text: "late" } });
    await ended;
    expect((await daemon(1)).socket.readableEnded).toBe(true);
  });

  test("with a call that goes on is let go within two seconds", async () => {
    const { input, say, hears, ended, daemon, answers } = await openPump();
    say({ id: 1, method: "tools/call" });
    await hears(1, 1);
    const clock = stopTimers();
    input.end();
    await clock.isUsed();
    clock.pass(1_999);
    await ended;
    expect((await daemon(1)).socket.readableEnded).toBe(true);
    expect(answers).toEqual([]);
  });

  test("with a subscription that stands is not waited for", async () => {
    const { input, say, hears, reply, ended, answers } = await openPump();
    say({ id: 1, method: "subscriptions/listen" });
    await hears(1, 1);
    await reply(1, {
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: { "io.modelcontextprotocol/subscriptionId": 1 } },
    });
    await waitFor(() => answers.length === 1);
    // No time passes: nothing is waited for.
    stopTimers();
    input.end();
    await ended;
  });
});

test("a client that does not read stops the daemon's words, and gets all of them later", async () => {
  const { output, reply, daemon, answers } = await openPump();
  output.pause();
  const { socket } = await daemon(1);
  const text = "x".repeat(64 * 1024);
  for (let id = 1; id <= 200; id++) await reply(1, { id, result: { text } });
  await waitFor(() => output.writableNeedDrain);
  await turns(1_000);
  expect(socket.writableLength, "what the daemon still holds").toBeGreaterThan(5 * 1024 * 1024);
  expect(output.writableLength + output.readableLength, "what the front holds").toBeLessThan(2 * 1024 * 1024);
  output.resume();
  await waitFor(() => answers.length === 200);
  expect(answers.map(({ id }) => id)).toEqual(Array.from({ length: 200 }, (_, at) => at + 1));
});
