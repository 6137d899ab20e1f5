import { Agent, type IncomingMessage, request } from "node:http";
import { expect, test } from "vitest";
import { defineCommand } from "../../src/command/command.ts";
import { FakeClock, settled } from "../helpers/fake-clock.ts";
import { cleanUp, shareAmongTests } from "../helpers/home.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { type Fields, ModernClient, modernMeta, SessionClient, takesTasks } from "../helpers/wire.ts";

/** A stranger takes whatever can be taken; the local user's task starts, and the session from before answers. */

const forever = (_input: unknown, { signal }: { signal: AbortSignal }) =>
  new Promise<object>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
const commands = {
  work_hold: defineCommand({ summary: "Goes on until it is cancelled", effects: "read", long: true, run: forever }),
  work_watch: defineCommand({
    summary: "Never ends by itself",
    effects: "read",
    long: true,
    estimate: () => Number.POSITIVE_INFINITY,
    run: forever,
  }),
  work_quick: defineCommand({ summary: "Ends at once", effects: "read", run: () => ({ done: true }) }),
};

const shared = shareAmongTests(async () => {
  const clock = new FakeClock();
  const server = await openServer({ in: "http", clock, commands });
  return { clock, url: await server.url(), me: { headers: { authorization: `Bearer ${server.token()}` } } };
});

interface Answered {
  readonly status: number;
  readonly text: string;
  readonly sessionId: string | undefined;
}

/** How long a request may have no answer, on the system's clock. */
const limitMs = 60_000;

/** A stranger who sends very much, over fifty connections at a time. */
class Stranger {
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 50 });
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
    cleanUp(() => this.#agent.destroy());
  }

  #begin(method: string, headers: Fields, body: string | undefined, agent: Agent | false): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
      const sent = request(this.#url, { method, agent, headers: all, timeout: limitMs }, resolve);
      // Without a limit the test would hang without saying which request has no answer.
      sent.on("timeout", () => sent.destroy(new Error(`${method} ${body ?? ""} had no answer for ${limitMs} ms`)));
      sent.on("error", reject).end(body);
    });
  }

  async send(message: Fields, headers: Fields = {}): Promise<Answered> {
    const response = await this.#begin("POST", headers, JSON.stringify({ jsonrpc: "2.0", ...message }), this.#agent);
    let text = "";
    for await (const part of response.setEncoding("utf8")) text += part;
    return {
      status: response.statusCode ?? 0,
      text,
      sessionId: response.headers["mcp-session-id"] as string | undefined,
    };
  }

  /** Calls a tool as a task. */
  async task(name: string, n: number): Promise<Answered> {
    const _meta = { ...modernMeta(takesTasks), "meanwhile/task": {} };
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name };
    return await this.send({ id: n, method: "tools/call", params: { name, arguments: {}, _meta } }, headers);
  }

  async initialize(): Promise<Answered> {
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "stranger", version: "1" } };
    return await this.send({ id: 0, method: "initialize", params });
  }

  /** Opens a stream and never reads from it. */
  async openStream(sessionId: string): Promise<number> {
    const response = await this.#begin(
      "GET",
      { accept: "text/event-stream", "mcp-session-id": sessionId },
      undefined,
      false,
    );
    cleanUp(() => void response.destroy());
    return response.statusCode ?? 0;
  }

  many<T>(count: number, act: (n: number) => Promise<T>): Promise<T[]> {
    return Promise.all(Array.from({ length: count }, (_, n) => act(n)));
  }
}

/** How often each of them was the answer. */
function tally(answers: readonly unknown[]): Record<string, number> {
  return Object.fromEntries([...Map.groupBy(answers, String)].map(([answer, all]) => [answer, all.length]));
}

const kindOf = ({ status, text }: Answered) =>
  text.includes('"resultType":"task"')
    ? "task"
    : text.includes("There are 100 live tasks of callers without a credential already, the most there may be")
      ? "refused"
      : `${status} ${text}`;

/** Runs a task of the local user's to its end: as a client of 2025-11-25 does. */
async function runTask(me: SessionClient): Promise<string> {
  const { result } = await me.request("tools/call", { name: "work_quick", arguments: {}, task: {} });
  const ended = await me.request("tasks/result", { taskId: result?.task.taskId });
  return JSON.stringify(ended.result ?? ended.error);
}

test("a stranger with more tasks, watches and sessions than there may be: the local user's task starts, and the session from before answers", async () => {
  const { clock, url, me } = await shared();
  const mine = await SessionClient.begin(url, me);
  const stranger = new Stranger(url);
  const watches = await stranger.many(40, (n) => stranger.task("work_watch", n));
  expect(tally(watches.map(kindOf))).toEqual({ task: 40 });
  // Each waits 5 s for room before it is refused.
  const tasks = await settled(
    clock,
    stranger.many(160, (n) => stranger.task("work_hold", n)),
    100,
  );
  expect(tally(tasks.map(kindOf))).toEqual({ task: 60, refused: tasks.length - 60 });
  // The stranger's tasks hold until the end of the test: whoever waits behind them waits for ever.
  expect(await runTask(mine)).toContain('"done":true');
  const sessions = await stranger.many(1_200, () => stranger.initialize());
  expect(tally(sessions.map(({ status }) => status))).toEqual({ 200: 1_200 });
  expect(await runTask(mine)).toContain('"done":true');
  expect((await mine.request("ping")).result).toEqual({});
  const alive = await stranger.many(2, async (n) => {
    const { status } = await stranger.send(
      { id: 1, method: "ping" },
      { "mcp-session-id": sessions.at(n === 0 ? 0 : -1)?.sessionId },
    );
    return status;
  });
  expect(alive).toEqual([404, 200]);
});

test("streams that nobody reads: strangers have a hundred together, and the local user opens one and runs a task", async () => {
  const { url, me } = await shared();
  const mine = await SessionClient.begin(url, me);
  const stranger = new Stranger(url);
  const sessions = await stranger.many(110, () => stranger.initialize());
  const opened: number[] = [];
  for (const { sessionId } of sessions) opened.push(await stranger.openStream(sessionId ?? ""));
  expect(tally(opened)).toEqual({ 200: 100, 429: 10 });
  const stream = await mine.openStream();
  expect(stream.status).toBe(200);
  expect(await runTask(mine)).toContain('"done":true');
  // The streams protect their sessions from the stranger's own flood.
  await stranger.many(150, () => stranger.initialize());
  const first = await stranger.send({ id: 1, method: "ping" }, { "mcp-session-id": sessions[0]?.sessionId });
  expect(first.status).toBe(200);
});

test("a flood of notifications and requests: the local user gets an answer, and a listen of a stranger's is bounded", async () => {
  const { url, me } = await shared();
  const mine = await SessionClient.begin(url, me);
  const stranger = new Stranger(url);
  const { sessionId } = await stranger.initialize();
  let isOver = false;
  const flood = stranger
    .many(2_000, (n) =>
      stranger.send(n % 2 === 0 ? { method: "notifications/initialized" } : { id: n, method: "tools/list" }, {
        "mcp-session-id": sessionId ?? "",
      }),
    )
    .finally(() => (isOver = true));
  let pings = 0;
  for (; !isOver; pings++) expect((await mine.request("ping")).result).toEqual({});
  expect(tally((await flood).map(({ status }) => status))).toEqual({ 200: 1_000, 202: 1_000 });
  expect(pings, "answers while the flood came").toBeGreaterThan(5);
  const listens = new ModernClient(url, { capabilities: takesTasks });
  const manyIds = Array.from({ length: 600 }, (_, n) => `task-${n}`);
  const { stream } = await listens.listen(manyIds);
  const second = await listens.request("subscriptions/listen", { notifications: { taskIds: manyIds } });
  expect([second.status, second.text]).toEqual([429, expect.stringContaining("listen to fewer")]);
  stream.drop();
  await waitFor(() => stream.isOver);
});
