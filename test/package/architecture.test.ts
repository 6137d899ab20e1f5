import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { DaemonHome } from "../helpers/daemon.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { gate } from "../helpers/project.ts";
import { handleOf, takesTasks } from "../helpers/wire.ts";

/**
 * docs/architecture.md walks requests through the tree. Here each of them is made, as a user would, in real processes
 * that write down what is called: every stop exists, and they are called in the order of the page.
 */

const root = path.resolve(import.meta.dirname, "../..");
const page = readFileSync(path.join(root, "docs/architecture.md"), "utf8");

/** The stops of a section, in its order: `` `route` in `mcp/router.ts` ``. */
function stopsOf(title: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${title}\n`)) ?? "";
  return [...section.matchAll(/`(#?\w+)` in\s+`([\w./-]+\.ts)`/g)].map(([, name, file]) => `${file} ${name}`);
}

function isDefined(stop: string): boolean {
  const [file = "", name = ""] = stop.split(" ");
  return new RegExp(`^(?:export |async |function |  |static )+${name}[(<]`, "m").test(
    readFileSync(path.join(root, "src", file), "utf8"),
  );
}

class Traced extends DaemonHome {
  readonly #file: string;

  constructor(stops: readonly string[], config: object = {}) {
    const file = path.join(temporaryFolder(), "trace");
    const preload = path.join(root, "test/fixtures/trace.mjs");
    super({
      config,
      env: {
        NODE_OPTIONS: `--import ${preload}`,
        TRACE_FILE: file,
        TRACE_STOPS: stops.join("\n"),
      },
    });
    this.#file = file;
  }

  /** Forgets what was called before. */
  begin(): void {
    writeFileSync(this.#file, "");
  }

  calls(): string[] {
    return readFileSync(this.#file, "utf8").trim().split("\n");
  }
}

/** What happens before it counts, and what counts. */
const stories: Record<string, (stops: readonly string[]) => Promise<string[]>> = {
  async "A quick call over stdio"(stops) {
    const home = new Traced(stops);
    const client = await home.connect({ revision: "2025-06-18" });
    await client.call("say_back", { text: "once before" });
    home.begin();
    const result = await client.call("say_back", { text: "hello" });
    expect(result.isError ?? false).toBe(false);
    return home.calls();
  },

  async "A slow call of a client without tasks"(stops) {
    const home = new Traced(stops, { hosts: { hasty: { limitSeconds: 1 } } });
    const client = await home.connect({ revision: "2025-06-18", name: "hasty" });
    home.begin();
    const work = gate();
    const { next_action } = handleOf(await client.call("work_gated", work.input));
    const waiting = client.call(next_action.tool, { ...next_action.arguments, wait_seconds: 20 });
    await waitFor(
      () => home.calls().some((call) => call.endsWith("task/feed.ts join")),
      () => "nobody waits for the task",
    );
    work.open();
    const result = await waiting;
    expect(result.structuredContent?.data).toEqual({ passed: work.input.file });
    return home.calls();
  },

  async "A task of 2026-07-28"(stops) {
    const home = new Traced(stops);
    const client = await home.connect({ revision: "2026-07-28", capabilities: takesTasks });
    home.begin();
    const work = gate();
    const { taskId = "" } = await client.call("work_long", work.input);
    work.open();
    await expect
      .poll(async () => (await client.request("tasks/get", { taskId })).result?.status, { timeout: 50_000 })
      .toBe("completed");
    return home.calls();
  },

  async "A call through an upstream"(stops) {
    const upstream = path.join(root, "test/fixtures/gateway/place.mjs");
    const home = new Traced(stops, { upstreams: { there: { command: process.execPath, args: [upstream] } } });
    home.begin();
    const client = await home.connect({ revision: "2025-06-18" });
    const result = await client.call("place");
    expect(result.isError ?? false).toBe(false);
    return home.calls();
  },

  async "A command in the terminal"(stops) {
    const home = new Traced(stops);
    home.begin();
    expect(await home.terminal("say", "back", "--text", "hello")).toMatchObject({ code: 0 });
    return home.calls();
  },

  async "A server that is diagnosed"(stops) {
    const home = new Traced(stops);
    home.begin();
    const server = path.join(root, "test/fixtures/diagnose/server.mjs");
    const { code, stderr } = await home.terminal("diagnose", "--suites", "completion", "--", process.execPath, server);
    expect(code, stderr).toBe(0);
    return home.calls();
  },
};

describe("docs/architecture.md", () => {
  test.for(Object.keys(stories))("%s", async (title) => {
    const stops = stopsOf(title);
    for (const stop of stops) expect(isDefined(stop), stop).toBe(true);
    const calls = (await stories[title]?.(stops)) ?? [];
    expect(stops.length).toBeGreaterThan(5);
    expect(
      inOrder(
        stops,
        calls.map((line) => line.slice(line.indexOf(" ") + 1)),
      ),
    ).toEqual(stops);
  });
});

/** As many of the stops as are called one after the other. */
function inOrder(stops: readonly string[], calls: readonly string[]): string[] {
  let at = 0;
  for (const call of calls) if (call === stops[at]) at += 1;
  return stops.slice(0, at);
}
