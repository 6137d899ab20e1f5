import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test, vi } from "vitest";
import { fixture, Gate, WrapHome } from "../../helpers/gated.ts";
import { type GatewayHere, wrapHere } from "../../helpers/gateway-here.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { commandUpstream, httpUpstream } from "../../helpers/upstreams.ts";
import { type Fields, handleOf, takesTasks, type WireClient } from "../../helpers/wire.ts";

const wait = { timeout: 50_000, interval: 20 };

/** What an upstream has been told, whatever carries it. */
interface Told {
  messages(): Fields[];
  /** Calls whose streams were closed. */
  dropped(): readonly Fields[];
}

/** A call that works until it is cancelled, by one of the ways that a client has. */
interface Cancelling {
  readonly title: string;
  readonly door: "stdio" | "http";
  readonly revision: string;
  readonly capabilities?: object;
  /** Begins it; resolves, once its upstream works on it, with what cancels it. */
  begin(client: WireClient, args: Fields, working: () => Promise<void>): Promise<() => Promise<void>>;
}

const asCall: Cancelling["begin"] = async (client, args, working) => {
  const { stop, answer } = client.startCall("unsafe", args);
  const answered = vi.fn();
  answer.then(answered, () => undefined);
  await working();
  return async () => {
    stop();
    await client.request("tools/list");
    expect(answered, "what comes late is for nobody").not.toHaveBeenCalled();
  };
};

const ended = async (client: WireClient, taskId: unknown) =>
  await vi.waitFor(
    async () => expect((await client.request("tasks/get", { taskId })).result?.status).toBe("cancelled"),
    wait,
  );

const ways: readonly Cancelling[] = [
  { title: "notifications/cancelled, 2025-11-25", door: "stdio", revision: "2025-11-25", begin: asCall },
  { title: "notifications/cancelled, 2026-07-28", door: "stdio", revision: "2026-07-28", begin: asCall },
  { title: "a stream that is closed, 2026-07-28", door: "http", revision: "2026-07-28", begin: asCall },
  {
    title: "tasks/cancel, 2025-11-25",
    door: "stdio",
    revision: "2025-11-25",
    async begin(client, args, working) {
      const { task } = await client.call("unsafe", args, { task: {} });
      await working();
      return async () => {
        await client.request("tasks/cancel", { taskId: task?.taskId });
        await ended(client, task?.taskId);
      };
    },
  },
  {
    title: "tasks/cancel, 2026-07-28",
    door: "http",
    revision: "2026-07-28",
    capabilities: takesTasks,
    async begin(client, args, working) {
      const { taskId } = await client.call("unsafe", args);
      await working();
      return async () => {
        await client.request("tasks/cancel", { taskId });
        await ended(client, taskId);
      };
    },
  },
  {
    title: "task_cancel, 2024-11-05",
    door: "stdio",
    revision: "2024-11-05",
    async begin(client, args, working) {
      const { job_id } = handleOf(await client.call("unsafe", args));
      await working();
      return async () => void (await client.call("task_cancel", { job_id }));
    },
  },
];

/** So that a call is a handle, or a task, at once. */
const hasty = { hosts: { hasty: { limitSeconds: 0.4, isExtended: false } }, deferral: { patienceSeconds: 0.1 } };

const ids = (messages: readonly Fields[]) => messages.map(({ params }) => params.arguments.n as number);

async function cancelAll({ gateway, gate, told }: { gateway: GatewayHere; gate: Gate; told: Told }): Promise<void> {
  for (const [n, { title, door, begin, ...options }] of ways.entries()) {
    const name = /^task/.test(title) ? "hasty" : "patient";
    const client = await gateway.connect(door, { name, ...options });
    const cancel = await begin(client, { n }, () => gate.began(n + 1));
    await cancel();
    await vi.waitFor(() => expect(ids(told.dropped()).length + cancelledCalls(told).length, title).toBe(n + 1), wait);
  }
  expect(gate.runs()).toEqual({ unsafe: ways.length });
}

const of = ({ messages }: Told, method: string) => messages().filter((message) => message.method === method);

/** Calls that were taken back by a word. */
function cancelledCalls(told: Told): number[] {
  const calls = of(told, "tools/call");
  const byId = of(told, "notifications/cancelled").map(({ params, pid }) =>
    calls.find((call) => call.id === params.requestId && call.pid === pid),
  );
  return [...ids(byId.filter((call) => call !== undefined)), ...of(told, "tasks/cancel").map(() => -1)];
}

const inBoth = ["notifications/cancelled", "tasks/cancel"];
const taskIn = ({ message }: { readonly message: Fields }) => message.params.taskId as string;
const all = ways.map((_, n) => n);

describe.each(["2025", "2026"])("12: an upstream of %s", (era) => {
  test("12: over stdio is told notifications/cancelled, by whichever way a client cancels", async () => {
    const gate = new Gate();
    const { SEEN_FILE, messages } = recorded();
    const gateway = await wrapHere(commandUpstream("gated", { ...gate.env, ERA: era, SEEN_FILE }), hasty);
    const told = { messages, dropped: () => [] };
    await cancelAll({ gateway, gate, told });
    expect(cancelledCalls(told)).toEqual(all);
    expect(of(told, "tasks/cancel")).toEqual([]);
  });

  test(`12: over HTTP is told ${era === "2025" ? "notifications/cancelled" : "by the end of the stream"}`, async () => {
    const gate = new Gate();
    const { url, seen, dropped } = await httpUpstream("gated", { ...gate.env, ERA: era });
    const told = { messages: () => seen.map(({ message }) => message), dropped: () => dropped.filter(isCall) };
    await cancelAll({ gateway: await wrapHere({ url }, hasty), gate, told });
    if (era === "2025") expect(cancelledCalls(told)).toEqual(all);
    else expect({ dropped: ids(told.dropped()), told: cancelledCalls(told) }).toEqual({ dropped: all, told: [] });
  });

  test("12: that has made a task of it is told tasks/cancel, once for each", async () => {
    const gate = new Gate();
    const { url, seen } = await httpUpstream("gated-tasks", { ...gate.env, ERA: era });
    const gateway = await wrapHere({ url, long: ["unsafe"] }, hasty);
    // Before 2026-07-28 a call is a task from its beginning or never.
    const isTask = ({ title }: Cancelling) => title.startsWith(era === "2025" ? "tasks/" : "task");
    const cancels = () => seen.filter(({ message }) => message.method === "tasks/cancel");
    for (const [n, { door, begin, title, ...options }] of ways.filter(isTask).entries()) {
      const client = await gateway.connect(door, { name: "hasty", ...options });
      const follows = () => seen.filter(({ message }) => /^tasks.(get|result)$/.test(message.method));
      const isFollowed = () => vi.waitFor(() => expect(new Set(follows().map(taskIn)).size).toBe(n + 1), wait);
      await (await begin(client, { n }, isFollowed))();
      await vi.waitFor(() => expect(cancels(), title).toHaveLength(n + 1), wait);
    }
    expect(new Set(cancels().map(taskIn)).size).toBe(ways.filter(isTask).length);
  });

  test("12: that makes a task of what was cancelled is told tasks/cancel when it says so", async () => {
    const gate = new Gate();
    const { SEEN_FILE, messages } = recorded();
    const env = { ...gate.env, ERA: era, SEEN_FILE };
    const gateway = await wrapHere({ ...commandUpstream("late-task", env), long: ["slow"] });
    const client = await gateway.connect("stdio", { revision: "2025-11-25" });
    const { task } = await client.call("slow", { seconds: 0 }, { task: {} });
    await gate.began(1);
    await client.request("tasks/cancel", { taskId: task?.taskId });
    await ended(client, task?.taskId);
    const told = () => messages().filter(({ method }) => /cancel/.test(method));
    await vi.waitFor(() => expect(told().map(({ method }) => method)).toEqual(inBoth), wait);
  });
});

/** What servers over stdio hear: each line with the process that heard it. */
function recorded() {
  const SEEN_FILE = path.join(temporaryFolder(), "seen");
  const lines = () => (existsSync(SEEN_FILE) ? readFileSync(SEEN_FILE, "utf8").trim().split("\n") : []);
  const messages = () =>
    lines().map((line): Fields => {
      const at = line.indexOf(" ");
      return { ...(JSON.parse(line.slice(at)) as Fields), pid: line.slice(0, at) };
    });
  return { SEEN_FILE, messages };
}

test("12: what is cancelled in the terminal is cancelled in its upstream", async () => {
  const gate = new Gate();
  const { SEEN_FILE, messages } = recorded();
  const home = new WrapHome({ ...gate.env, SEEN_FILE });
  const client = await home.connect(["--name", "gated", "--", process.execPath, fixture, "gated"]);
  const { task } = await client.call("unsafe", { n: 0 }, { task: {} });
  await gate.began(1);
  expect(await home.terminal("tasks", "cancel", task?.taskId ?? "")).toMatchObject({ code: 0 });
  await ended(client, task?.taskId);
  await vi.waitFor(() => expect(cancelledCalls({ messages, dropped: () => [] })).toEqual([0]), wait);
});

const isCall = ({ method }: Fields) => method === "tools/call";
