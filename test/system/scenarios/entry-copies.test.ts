import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { homeAt } from "../../../src/paths.ts";
import { writeLauncher } from "../../../src/setup/launcher/launcher-file.ts";
import { daemonProcesses, killDaemons, recordsOf } from "../../helpers/daemon.ts";
import { cleanUp, temporaryFolder } from "../../helpers/home.ts";
import { codeCache, waitFor } from "../../helpers/meanwhile.ts";
import { commandUpstream } from "../../helpers/upstreams.ts";
import { modernMeta, overPipes, WireClient } from "../../helpers/wire.ts";

/**
 * Claude Desktop starts a second copy of a server to ask it `server/discover`, kills that copy, and starts further
 * copies for its other sessions, all at once.
 */

/** One entry of a host, started through the launcher as `setup --wrap` writes it. */
function entryOf(words: readonly string[]) {
  const folder = temporaryFolder();
  const env = { MEANWHILE_HOME: path.join(folder, "home") };
  const home = homeAt(env);
  writeLauncher(home, env, { file: process.execPath, version: process.versions.node, isWindows: false });
  cleanUp(() => killDaemons(home.folder));
  const starts = path.join(folder, "starts");
  const upstream = commandUpstream("plain", { PID_FILE: starts });
  return {
    home: home.folder,
    /** The processes of the server behind the entry that were started. */
    upstreams: () => readFileSync(starts, "utf8").trim().split("\n"),
    start() {
      const child = spawn(home.launcher, ["wrap", ...words, "--", upstream.command, ...upstream.args], {
        cwd: upstream.cwd,
        env: { ...process.env, ...upstream.env, NODE_COMPILE_CACHE: codeCache },
      });
      const ended = once(child, "close");
      cleanUp(async () => {
        child.kill("SIGKILL");
        await ended;
      });
      return { child, ended };
    },
  };
}

type Copy = ReturnType<ReturnType<typeof entryOf>["start"]>;

const discover = { jsonrpc: "2.0", id: 0, method: "server/discover", params: { _meta: modernMeta({}) } };

test("of eight copies of one entry four are killed in server/discover: one daemon, and the others are answered", async () => {
  const { start, home, upstreams } = entryOf(["--name", "notes", "--share", "all"]);
  const copies = Array.from({ length: 8 }, start);
  const [killed, living] = [copies.slice(0, 4), copies.slice(4)];
  /** What each copy that is killed has reached by then. */
  const moments: readonly ((copy: Copy) => Promise<unknown>)[] = [
    async () => {},
    ({ child }) => once(child, "spawn"),
    () =>
      waitFor(
        () => recordsOf(home).length > 0,
        () => "no daemon was started",
      ),
    ({ child }) => once(child.stdout, "data"),
  ];
  const probes = killed.map(async (copy, at) => {
    copy.child.stdin.on("error", () => {});
    copy.child.stdin.write(`${JSON.stringify(discover)}\n`);
    await moments[at]?.(copy);
    copy.child.kill("SIGKILL");
    await copy.ended;
  });
  const sessions = living.map(async ({ child }, at) => {
    const client = new WireClient(overPipes(child), { revision: "2026-07-28", name: "claude-ai" });
    await client.begin();
    const result = await client.call("echo", { text: `from ${at}` });
    return JSON.stringify(result.content);
  });
  const answers = await Promise.all(sessions);
  await Promise.all(probes);
  for (const [at, answer] of answers.entries()) expect(answer).toContain(`from ${at}`);
  expect(recordsOf(home)).toHaveLength(1);
  await waitFor(
    () => daemonProcesses(home).length === 1,
    () => `daemons: ${daemonProcesses(home).join(", ")}`,
  );
  expect(upstreams(), "the server cannot run twice").toHaveLength(1);
});
