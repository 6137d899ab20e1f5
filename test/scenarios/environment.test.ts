import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runCli, startCli } from "../helpers/cli.ts";
import { dataOf } from "../helpers/daemon.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { writeFiles } from "../helpers/home.ts";
import { taskIdOf } from "../helpers/project.ts";
import { waitFor } from "../helpers/wait-for.ts";
import type { Result, WireClient } from "../helpers/wire.ts";

/** What a host's entry sets in `env` reaches the command, and no other session's does. */

const words = ["--no-bundled"];

/** A command that tells what it has read. */
const command = (read: string, more = "") =>
  `import { defineCommand } from "meanwhile";
${more}
export default defineCommand({ summary: "Tells", run: () => ({ value: (${read}) ?? null }) });
`;

/** A project without a config, with these files below commands/. */
function projectOf(files: Readonly<Record<string, string>>): DaemonHomeHere {
  const home = new DaemonHomeHere();
  writeFiles(path.join(home.cwd, "commands"), files);
  return home;
}

const seenBy = async (client: WireClient, tool: string) =>
  dataOf<{ value: string | null }>(await client.call(tool)).value;

test("two hosts whose entries differ in a variable that a command reads: each call sees its own, and equal ones share a daemon", async () => {
  const home = projectOf({
    "dotted.ts": command("process.env.ACME_KEY"),
    "bracket.ts": command(`process.env["ACME_KEY"]`),
    "imported.ts": command("readKey()", `import { readKey } from "../lib/key.ts";`),
    "other.ts": command("0", "// what process.env.ONLY_IN_A_COMMENT would say"),
  });
  writeFiles(home.cwd, {
    "lib/key.ts": `import { env } from "node:process"; export const readKey = () => env.ACME_KEY;`,
  });
  // All at once, in a home where nobody has looked at the project yet.
  const [a, b, again, none] = await Promise.all([
    home.connect({ words, env: { ACME_KEY: "canary-a" } }),
    home.connect({ words, env: { ACME_KEY: "canary-b" } }),
    home.connect({ words, env: { ACME_KEY: "canary-a", UNREAD: "1" } }),
    home.connect({ words }),
  ]);
  const sessions = [a, b, again, none];
  for (const tool of ["dotted", "bracket", "imported"]) {
    const seen = await Promise.all(sessions.map((client) => seenBy(client, tool)));
    expect(seen, tool).toEqual(["canary-a", "canary-b", "canary-a", null]);
  }
  expect(home.daemons).toHaveLength(3);
  expect(home.log()).not.toContain("canary");
  for (const file of filesBelow(home.home)) expect(readFileSync(file).includes("canary"), file).toBe(false);
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) =>
    entry.isFile() ? [path.join(entry.parentPath, entry.name)] : [],
  );
}

test("what front and daemon say to each other holds no value", async () => {
  const home = projectOf({ "key.ts": command("process.env.ACME_KEY") });
  const env = { ACME_KEY: "canary-on-the-wire" };
  await (await home.connect({ words, env })).close();
  const { daemon } = home;
  const { socket, pid } = daemon;
  // Somebody who listens in the daemon's place.
  const heard = Promise.withResolvers<string>();
  const place = path.join(path.dirname(socket), "listener");
  const callers: Socket[] = [];
  const server = createServer((caller) => {
    callers.push(caller);
    caller.once("data", (chunk) => heard.resolve(chunk.toString("utf8")));
  });
  await new Promise<void>((resolve) => server.listen(place, resolve));
  onTestFinished(() => void server.close());
  const file = path.join(home.home, "run", `${daemon.settings.daemon.key}.json`);
  const record = readFileSync(file);
  writeFileSync(file, JSON.stringify({ pid, socket: place }));
  const front = home.openProxy({ words, env });
  const hello = await heard.promise;
  expect(hello).toContain('"hello"');
  expect(hello).not.toContain("canary");
  expect(socket).not.toContain("canary");
  // The front finds the daemon again, and leaves as usual.
  writeFileSync(file, record);
  for (const caller of callers) caller.destroy();
  await front.close();
});

test("a command that begins to read a variable: connected sessions are sorted anew, and each sees its own value", async () => {
  const home = projectOf({ "key.ts": command("'before'") });
  const [a, b] = await Promise.all(["a", "b"].map((value) => home.connect({ words, env: { ACME_KEY: value } })));
  const before = home.daemon;
  expect([await seenBy(a as WireClient, "key"), await seenBy(b as WireClient, "key")]).toEqual(["before", "before"]);
  writeFiles(home.cwd, { "commands/key.ts": command("process.env.ACME_KEY") });
  for (const client of [a, b])
    await waitFor(
      () => client?.received.some(({ method }) => method === "notifications/tools/list_changed"),
      () => `no word of other tools: ${home.log()}`,
    );
  const seen = await Promise.all([a, b].map((client) => seenBy(client as WireClient, "key")));
  expect(seen).toEqual(["a", "b"]);
  expect(home.daemons.filter((daemon) => daemon !== before)).toHaveLength(2);
});

/** Waits for a file, and tells what it has read. */
const slow = `import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Waits, then tells", long: true, idempotent: true, estimate: () => 3600, input: z.object({ file: z.string() }),
  async run({ file }, { signal }) {
    appendFileSync(file, "started\\n");
    while (!existsSync(file + ".go")) await sleep(20, undefined, { signal });
    return { value: process.env.ACME_KEY ?? null };
  },
});`;

test("a task runs with the environment it was asked for in: another session's daemon leaves it to the next one of its own", async () => {
  const home = projectOf({ "slow.ts": slow });
  const [ofA, ofB] = ["a", "b"].map((name) => path.join(home.cwd, name));
  const capabilities = { tasks: {} };
  const a = await home.connect({ words, capabilities, env: { ACME_KEY: "value-a" } });
  const started = await a.call("slow", { file: ofA }, { task: {} });
  await waitFor(() => existsSync(ofA as string));
  const daemonOfA = home.daemon;
  const b = await home.connect({ words, capabilities, env: { ACME_KEY: "value-b" } });
  // Nobody of its kind is left; the daemon of the other sees that its worker is dead, and would take it up.
  await a.close();
  await daemonOfA.kill();
  const taskId = taskIdOf(started);
  const terminal = { cwd: home.cwd, env: { MEANWHILE_HOME: home.home } };
  const stateOf = async () =>
    JSON.parse((await runCli(["--no-bundled", "tasks", "show", taskId, "--json"], terminal)).stdout) as {
      status: string;
    };
  expect((await stateOf()).status).toBe("queued");
  // An equal call of another session is no reason to join it; and what comes after it is taken first.
  const own = await b.call("slow", { file: ofA }, { task: {} });
  expect(taskIdOf(own)).not.toBe(taskId);
  const after = await b.call("slow", { file: ofB }, { task: {} });
  writeFileSync(`${ofA}.go`, "");
  writeFileSync(`${ofB}.go`, "");
  const resultOf = async (client: WireClient, id: string) =>
    dataOf<{ value: string }>((await client.request("tasks/result", { taskId: id })).result as Result);
  expect([(await resultOf(b, taskIdOf(own))).value, (await resultOf(b, taskIdOf(after))).value]).toEqual([
    "value-b",
    "value-b",
  ]);
  expect((await stateOf()).status).toBe("queued");
  const watching = startCli(["--no-bundled", "tasks", "watch", taskId], {
    ...terminal,
    env: { ...terminal.env, ACME_KEY: "value-c" },
  });
  await watching.says(
    /It was asked for with another value of ACME_KEY, so nobody is started to run it here\. A session with that value runs it; `meanwhile tasks retry [0-9a-f-]+` runs it with the values of this terminal\./,
  );
  const again = await home.connect({ words, capabilities, env: { ACME_KEY: "value-a" } });
  expect((await resultOf(again, taskId)).value).toBe("value-a");
});
