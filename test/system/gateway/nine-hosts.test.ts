import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FakeClock } from "../../helpers/fake-clock.ts";
import { temporaryFolder } from "../../helpers/home.ts";
import { moving, openInMemory, turns } from "../../helpers/in-memory.ts";
import { fetchResult, hostRows, isDone, patiently, type SeenHost } from "../../helpers/seen-hosts.ts";
import { commandUpstream } from "../../helpers/upstreams.ts";
import { resultOf, WireClient } from "../../helpers/wire.ts";

const runMs = 20 * 60_000;
const tool = "unsafe";
const titles = [
  "Claude Code, interactive",
  "Copilot CLI",
  "Codex CLI",
  "Gemini CLI",
  "opencode",
  "Kilo CLI",
  "Cline CLI",
  "Continue CLI",
  "VS Code, a task",
];
const nine = titles.map((title) => hostRows.find(([, host]) => host.title === title && host.door === "stdio"));

test.each(nine.filter((row) => row !== undefined))(
  "16: a silent tool of a server of 2025 takes twenty minutes, as %s, which leaves in the middle and comes back: one run",
  async (_title, host) => {
    const { clock, connect, begunAt, runs, isReleased } = await setUp(host);
    const before = await connect();
    const first = await patiently(host, clock, before, tool);
    expect(isDone(first), "no call is kept open for twenty minutes").toBe(false);
    await moving(clock, before.close());

    while (clock.now() < begunAt() + runMs / 2) {
      clock.advance(10_000);
      await turns();
    }
    const after = await connect();
    expect(isReleased()).toBe(false);
    const { content, isError } = await fetchResult(host, clock, after, first);
    expect({ content, isError }).toEqual({ content: [{ type: "text", text: `${tool} is done` }], isError: undefined });
    expect(isReleased()).toBe(true);
    expect(runs()).toEqual([tool]);
  },
);

/** A gateway in this process whose time we move, before a server that is silent for twenty minutes of it. */
async function setUp(host: SeenHost) {
  const clock = new FakeClock();
  const folder = temporaryFolder();
  const [countFile, goFile] = [path.join(folder, "count"), path.join(folder, "go")];
  const upstream = commandUpstream("gated", { ERA: "2025", COUNT_FILE: countFile, GO_FILE: goFile });
  const server = await openInMemory({}, clock, { isWrap: true, upstreams: { slow: upstream }, bundled: false });
  onTestFinished(() => moving(clock, server.close(), 1_000));
  const runs = () => (existsSync(countFile) ? readFileSync(countFile, "utf8").trim().split("\n") : []);
  let begunAt = 0;
  return {
    clock,
    runs,
    begunAt: () => begunAt,
    isReleased: () => existsSync(goFile),
    async connect() {
      const client = new WireClient(server.openPipe(), host);
      onTestFinished(() => moving(clock, client.close()));
      await client.begin();
      const { tools } = resultOf(await client.request("tools/list"));
      expect(tools).toContainEqual(expect.objectContaining({ name: tool }));
      if (begunAt > 0) return client;
      // Its process begins in our time, and not in the clock's.
      const { startCall } = client;
      client.startCall = (...given) => {
        const started = startCall.apply(client, given);
        begunAt = clock.now();
        clock.after(runMs, () => writeFileSync(goFile, ""));
        return started;
      };
      return client;
    },
  };
}
