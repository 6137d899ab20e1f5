import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { readMessage } from "../../src/wire/message.ts";
import { revisions } from "../../src/wire/revisions.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";
import type { Message, WireClient } from "../helpers/wire.ts";

/**
 * A front whose daemon is still starting answers with what the last one left behind, and says so when that has changed.
 */

const legacy = revisions.filter((revision) => revision < "2026-07-28");

/** A project whose commands are not loaded as long as it is held up. */
class HeldProject extends DaemonHomeHere {
  readonly folder = path.join(this.cwd, "own");
  readonly #hold = path.join(this.cwd, "hold");
  readonly words = ["--no-bundled", "--commands", this.folder];

  constructor() {
    super();
    const wait = `import { existsSync } from "node:fs"; while (existsSync(${JSON.stringify(this.#hold)})) await new Promise((resolve) => setTimeout(resolve, 10));`;
    writeFiles(this.folder, { "say/first.ts": commandOf("First", wait) });
  }

  /** Serves it once, and lets the daemon end. */
  async leaveBehind(): Promise<void> {
    const client = await this.front();
    await client.request("tools/list");
    await waitFor(
      () => this.kept() !== undefined,
      () => `nothing was left behind: ${this.log()}`,
    );
    await client.close();
    await this.daemon.stop({ isNow: true });
  }

  front(revision = "2025-11-25"): Promise<WireClient> {
    return this.connect({ revision, words: this.words });
  }

  hold(): void {
    writeFileSync(this.#hold, "");
  }

  letGo(): void {
    rmSync(this.#hold);
  }

  /** The file that the daemon leaves behind. */
  kept(): string | undefined {
    const folder = path.join(this.home, "run");
    const name = existsSync(folder) ? readdirSync(folder).find((one) => one.endsWith(".answers")) : undefined;
    return name === undefined ? undefined : path.join(folder, name);
  }
}

function commandOf(summary: string, before = ""): string {
  return `import { defineCommand } from "meanwhile"; import { z } from "zod"; ${before}
export default defineCommand({ summary: "${summary}", input: z.object({}), output: z.object({ said: z.string() }), effects: "read", run: () => ({ said: "${summary}" }) });`;
}

const namesOf = ({ result }: Message) =>
  ((result?.tools ?? []) as { name: string }[]).map(({ name }) => name).filter((name) => name.startsWith("say_"));
const resultsOf = async (client: WireClient, methods: readonly string[]) =>
  await Promise.all(methods.map(async (method) => (await client.request(method)).result));

describe("the second start", () => {
  const lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

  test.for(revisions)(
    "lists what there is before its daemon is there, as that daemon lists it then (%s)",
    async (revision) => {
      const project = new HeldProject();
      await project.leaveBehind();
      project.hold();
      const client = await project.front(revision);
      const methods = [...lists, legacy.includes(revision) ? "ping" : "server/discover"];
      const early = await resultsOf(client, methods);
      expect(project.daemons, "daemons that can be reached").toEqual([]);
      const called = client.call("say_first");
      project.letGo();
      expect((await called).structuredContent?.data).toEqual({ said: "First" });
      expect(await resultsOf(client, methods)).toEqual(early);
      expect(client.received.filter(({ method }) => method !== undefined)).toEqual([]);
    },
  );

  test("begins as the daemon begins a session", async () => {
    const project = new HeldProject();
    const first = await project.front();
    await project.leaveBehind();
    project.hold();
    const second = await project.front();
    expect(second.received[0]).toEqual(first.received[0]);
    expect(project.daemons).toEqual([]);
    project.letGo();
    expect((await second.call("say_first")).isError).toBeFalsy();
  });

  test("tells a session when the commands have changed in between", async () => {
    const project = new HeldProject();
    await project.leaveBehind();
    writeFiles(project.folder, { "say/second.ts": commandOf("Second") });
    project.hold();
    const client = await project.front();
    expect(namesOf(await client.request("tools/list"))).toEqual(["say_first"]);
    expect(project.daemons).toEqual([]);
    project.letGo();
    await waitFor(() => client.received.some(({ method }) => method === "notifications/tools/list_changed"));
    expect(namesOf(await client.request("tools/list"))).toEqual(["say_first", "say_second"]);
  });

  test("tells a subscription of 2026-07-28 when the commands have changed in between", async () => {
    const project = new HeldProject();
    await project.leaveBehind();
    writeFiles(project.folder, { "say/second.ts": commandOf("Second") });
    project.hold();
    const client = await project.front("2026-07-28");
    expect(namesOf(await client.request("tools/list"))).toEqual(["say_first"]);
    const { id } = client.start("subscriptions/listen", { notifications: { toolsListChanged: true } });
    expect(project.daemons).toEqual([]);
    project.letGo();
    const changed = await waitFor(() =>
      client.received.find(({ method }) => method === "notifications/tools/list_changed"),
    );
    expect(changed.params).toEqual({ _meta: { "io.modelcontextprotocol/subscriptionId": id } });
    expect(namesOf(await client.request("tools/list"))).toEqual(["say_first", "say_second"]);
  });

  test("answers all that a script asks before it hangs up", async () => {
    const project = new HeldProject();
    await project.leaveBehind();
    const { stdin, stdout, exited } = project.openProxy({ words: project.words });
    const written = text(stdout);
    const hello = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "script", version: "1" } };
    const messages = [
      { id: 1, method: "initialize", params: hello },
      { method: "notifications/initialized" },
      { id: 2, method: "tools/list" },
      { id: 3, method: "tools/call", params: { name: "say_first", arguments: {} } },
    ];
    // The last line has no end.
    stdin.end(messages.map((message) => JSON.stringify({ jsonrpc: "2.0", ...message })).join("\n"));
    expect(await exited).toBe(0);
    const answers = (await written)
      .trim()
      .split("\n")
      .map((line) => readMessage(line) as Message);
    expect(answers.map(({ id }) => id)).toEqual([1, 2, 3]);
    expect(answers[2]?.result?.structuredContent?.data).toEqual({ said: "First" });
  });
});

test("what is left behind is the user's alone, and follows the commands", async () => {
  const project = new HeldProject();
  const client = await project.front();
  const file = await waitFor(() => project.kept());
  expect((statSync(file).mode & 0o777).toString(8)).toBe("600");
  expect(readFileSync(file, "utf8")).not.toContain("say_second");
  writeFiles(project.folder, { "say/second.ts": commandOf("Second") });
  await waitFor(() => readFileSync(file, "utf8").includes("say_second"));
  await client.close();
});

test.for(["damaged", "of another version"])("what is left behind is not used when it is %s", async (how) => {
  const project = new HeldProject();
  await project.leaveBehind();
  const file = project.kept() as string;
  const text = readFileSync(file, "utf8").replaceAll("say_first", "say_wrong");
  const [head = "", ...rest] = text.split("\n");
  const { version, ...index } = JSON.parse(head) as { version: string };
  writeFileSync(
    file,
    how === "damaged"
      ? text.slice(0, head.length / 2)
      : [JSON.stringify({ ...index, version: `${version}0` }), ...rest].join("\n"),
  );
  const client = await project.front();
  expect(namesOf(await client.request("tools/list"))).toEqual(["say_first"]);
  expect(project.daemons).toHaveLength(1);
});
