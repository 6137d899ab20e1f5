import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { DaemonHome, dataOf, isRunning, kill } from "../../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { type Started, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";
import { overPipes, WireClient } from "../../helpers/wire.ts";

const command = (
  isolation: string,
  input: string,
  body: string,
) => `import { execFileSync, spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { defineCommand } from "meanwhile";
import { z } from "zod";
const leaveBehind = (file: string) => {
  const child = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
  child.unref();
  appendFileSync(file, child.pid + "\\n");
  return child.pid;
};
export default defineCommand({ summary: "One of a folder", effects: "read", ${isolation} input: z.object({ ${input} }), async run({ file, how }: { file?: string; how?: string }, task): Promise<object> { ${body} } });`;

const isolated = 'isolation: "process",';
const commands = () =>
  writeFiles(temporaryFolder(), {
    "commands/child/strays.ts": command(
      isolated,
      "file: z.string(), how: z.string()",
      `leaveBehind(file!); leaveBehind(file!);
  if (how === "dies") process.kill(process.pid, "SIGKILL");
  if (how === "stays") await new Promise(() => setInterval(() => {}, 1000));
  if (how === "throws") throw new Error("no luck");
  return { how };`,
    ),
    "commands/child/env.ts": command(isolated, "", "return { ...process.env };"),
    "commands/own/env.ts": command("", "", 'return { all: execFileSync("env", { encoding: "utf8" }) };'),
  });

function pidsIn(file: string): number[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n").map(Number);
  } catch {
    return [];
  }
}

async function areGone(pids: readonly number[]): Promise<void> {
  await waitFor(
    () => pids.every((pid) => !isRunning(pid)),
    () => `still there: ${pids.filter(isRunning).join(", ")}`,
  );
}

test("the error of an isolated run: its place is for the local user, its stack is in the log alone", async () => {
  const server = startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd: commands() });
  const client = await new WireClient(overPipes(server.child), { revision: "2025-11-25" }).begin();
  onTestFinished(() => client.close());
  const file = path.join(temporaryFolder(), "strays");
  const result = await client.call("child_strays", { file, how: "throws" });
  const { messages } = (result as unknown as { structuredContent: { messages: { details: string }[] } })
    .structuredContent;
  expect(messages.at(-1)?.details).toMatch(/^Error: no luck\nat \S*commands\/child\/strays\.ts:\d+:\d+$/);
  const logged = await waitFor(() =>
    server
      .stderr()
      .split("\n")
      .find((line) => line.includes("command failed")),
  );
  expect(logged).toMatch(/no luck[\s\S]*at .*strays\.ts:\d+/);
});

describe("what an isolated run has started and let go", () => {
  const open = async (): Promise<{ client: WireClient; server: Started; file: (how: string) => string }> => {
    const cwd = commands();
    const server = startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd });
    const client = new WireClient(overPipes(server.child), { revision: "2025-11-25" });
    const file = (how: string) => path.join(cwd, `${how}.pids`);
    onTestFinished(async () => {
      await client.close();
      for (const how of ["returns", "throws", "dies", "stays"]) for (const pid of pidsIn(file(how))) kill(pid);
    });
    await client.begin();
    return { client, server, file };
  };

  test("is ended and counted, however the run ends", async () => {
    const { client, server, file } = await open();
    for (const how of ["returns", "throws", "dies"]) {
      const result = await client.call("child_strays", { file: file(how), how });
      const pids = pidsIn(file(how));
      expect(pids).toHaveLength(2);
      expect(result.isError === true, how).toBe(how !== "returns");
      expect(JSON.stringify(result), how).toContain("2 processes that it had left behind were ended.");
      await areGone(pids);
    }
    const slow = client.start("tools/call", { name: "child_strays", arguments: { file: file("stays"), how: "stays" } });
    await waitFor(
      () => pidsIn(file("stays")).length === 2,
      () => server.stderr(),
    );
    client.cancel(slow.id);
    await areGone(pidsIn(file("stays")));
    expect(server.stderr()).toMatch(/child_strays: 2 processes that it had left behind were ended\./);
  }, 60_000);

  test("is ended also when the server is killed", async () => {
    const { client, server, file } = await open();
    client.start("tools/call", { name: "child_strays", arguments: { file: file("stays"), how: "stays" } });
    await waitFor(
      () => pidsIn(file("stays")).length === 2,
      () => server.stderr(),
    );
    kill(server.child.pid ?? 0);
    await areGone(pidsIn(file("stays")));
  }, 60_000);
});

test("commands and what they start get the environment they need, and no secret of ours is in anybody's", async () => {
  const cwd = commands();
  const home = new DaemonHome({ env: { AUTHORS_API_KEY: "authors", MEANWHILE_IDLE_SECONDS: "600" } });
  const client = await home.connect({ words: ["--no-bundled", "--commands", path.join(cwd, "commands")] });
  const child = dataOf<Record<string, string>>(await client.call("child_env", {}));
  const names = (env: readonly string[]) => env.filter((name) => name.startsWith("MEANWHILE_")).sort();
  expect(names(Object.keys(child))).toEqual(["MEANWHILE_HOME", "MEANWHILE_RUN"]);
  expect(child).toMatchObject({ AUTHORS_API_KEY: "authors", PATH: expect.any(String) });
  const { all } = dataOf<{ all: string }>(await client.call("own_env", {}));
  const spawned = all.split("\n").map((line) => line.split("=", 1)[0] as string);
  expect(spawned).toContain("AUTHORS_API_KEY");
  expect(spawned).not.toContain("MEANWHILE_DAEMON_KEY");
  const token = (await home.terminal("token")).stdout.trim();
  expect(token.length).toBeGreaterThan(30);
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
    for (const what of ["cmdline", "environ"])
      expect(readOr(`/proc/${pid}/${what}`).includes(token), `${what} of ${pid}`).toBe(false);
}, 60_000);

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
