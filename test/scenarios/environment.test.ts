import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DaemonHome, dataOf, kill } from "../helpers/daemon.ts";
import { writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import type { WireClient } from "../helpers/wire.ts";

/** What a host's entry sets in `env` reaches the command, and no other session's does. */

interface Seen {
  readonly value: string | null;
  readonly pid: number;
}

const words = ["--no-bundled"];

/** A command that tells what it has read. */
const command = (read: string, more = "") =>
  `import { defineCommand } from "meanwhile";
${more}
export default defineCommand({ summary: "Tells", run: () => ({ value: (${read}) ?? null, pid: process.pid }) });
`;

/** A project without a config, with these files below commands/. */
function projectOf(files: Readonly<Record<string, string>>): DaemonHome {
  const home = new DaemonHome();
  writeFiles(path.join(home.cwd, "commands"), files);
  return home;
}

const seenBy = async (client: WireClient, tool: string) => dataOf<Seen>(await client.call(tool));

test("two hosts whose entries differ in a variable that a command reads: each call sees its own, and equal ones share a daemon", async () => {
  const home = projectOf({
    "dotted.ts": command("process.env.ACME_KEY"),
    "bracket.ts": command(`process.env["ACME_KEY"]`),
    "taken.ts": command("key", "const { ACME_KEY: key, ACME_REGION = 'none' } = process.env;"),
    "imported.ts": command("readKey()", `import { readKey } from "../lib/key.ts";`),
    "isolated.ts": `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Tells", isolation: "process", run: () => ({ value: process.env.ACME_KEY ?? null, pid: process.ppid }) });`,
    "other.ts": command("0", "// what process.env.ONLY_IN_A_COMMENT would say"),
  });
  writeFiles(home.cwd, { "lib/key.ts": `import { env } from "node:process"; export const readKey = () => env.ACME_KEY;` });
  // All at once, in a home where nobody has looked at the project yet.
  const [a, b, again, none] = await Promise.all([
    home.connect({ words, env: { ACME_KEY: "canary-a" } }),
    home.connect({ words, env: { ACME_KEY: "canary-b" } }),
    home.connect({ words, env: { ACME_KEY: "canary-a", UNREAD: "1" } }),
    home.connect({ words }),
  ]);
  const pids: number[][] = [];
  for (const tool of ["dotted", "bracket", "taken", "imported", "isolated"]) {
    const seen = await Promise.all([a, b, again, none].map((client) => seenBy(client, tool)));
    expect(
      seen.map(({ value }) => value),
      tool,
    ).toEqual(["canary-a", "canary-b", "canary-a", null]);
    pids.push(seen.map(({ pid }) => pid));
  }
  for (const each of pids) expect(each).toEqual(pids[0]);
  const [ofA, ofB, ofAgain, ofNone] = pids[0] as number[];
  expect(ofAgain).toBe(ofA);
  expect(new Set([ofA, ofB, ofNone]).size).toBe(3);
  expect(
    home
      .daemons()
      .map(({ pid }) => pid)
      .toSorted(),
  ).toEqual([ofA, ofB, ofNone].toSorted());
  expect(home.log()).not.toContain("canary");
  for (const file of filesBelow(home.home)) expect(readFileSync(file).includes("canary"), file).toBe(false);
});

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true }).flatMap((entry) => (entry.isFile() ? [path.join(entry.parentPath, entry.name)] : []));
}

test("what front and daemon say to each other holds no value", async () => {
  const home = projectOf({ "key.ts": command("process.env.ACME_KEY") });
  const env = { ACME_KEY: "canary-on-the-wire" };
  await (await home.connect({ words, env })).close();
  const { key, pid, socket } = home.daemon();
  // Somebody who listens in the daemon's place.
  const heard = Promise.withResolvers<string>();
  const place = path.join(path.dirname(socket), "listener");
  const server = createServer((caller: Socket) => caller.once("data", (chunk) => heard.resolve(chunk.toString("utf8"))));
  await new Promise<void>((resolve) => server.listen(place, resolve));
  onTestFinished(() => void server.close());
  writeFileSync(path.join(home.home, "run", `${key}.json`), JSON.stringify({ pid, socket: place }));
  const front = home.start({ words, env });
  onTestFinished(() => void front.child.kill("SIGKILL"));
  const hello = await heard.promise;
  expect(hello).toContain('"hello"');
  expect(hello).not.toContain("canary");
  expect(socket).not.toContain("canary");
  kill(pid);
});

test("a command that begins to read a variable: connected sessions are sorted anew, and each sees its own value", async () => {
  const home = projectOf({ "key.ts": command("'before'") });
  const [a, b] = await Promise.all(["a", "b"].map((value) => home.connect({ words, env: { ACME_KEY: value } })));
  const before = home.daemon();
  expect([await seenBy(a as WireClient, "key"), await seenBy(b as WireClient, "key")]).toEqual([
    { value: "before", pid: before.pid },
    { value: "before", pid: before.pid },
  ]);
  writeFiles(home.cwd, { "commands/key.ts": command("process.env.ACME_KEY") });
  for (const client of [a, b])
    await waitFor(
      () => client?.received.some(({ method }) => method === "notifications/tools/list_changed"),
      () => `no word of other tools: ${home.log()}`,
    );
  const seen = await Promise.all([a, b].map((client) => seenBy(client as WireClient, "key")));
  expect(seen.map(({ value }) => value)).toEqual(["a", "b"]);
  expect(new Set([before.pid, ...seen.map(({ pid }) => pid)]).size).toBe(3);
});
