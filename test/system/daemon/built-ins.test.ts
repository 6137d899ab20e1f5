import path from "node:path";
import { expect, test } from "vitest";
import { DaemonHome, dataOf } from "../../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { handleOf } from "../../helpers/wire.ts";

const command = (body: string) => `import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "One of a folder", effects: "read", async run(): Promise<object> { ${body} } });`;

const files = {
  "commands/good/now.ts": command("return { well: [1, { a: 2 }] };"),
  "commands/good/slow.ts": command("await sleep(1500); return { slow: true };"),
  "commands/bad/json.ts": command('(Object.prototype as any).toJSON = () => "mine"; return {};'),
  "commands/bad/later.ts": command(
    "await sleep(20); Promise.prototype.then = (() => {}) as never; return await new Promise(() => {});",
  ),
};

test("a command that changes a built-in, at once or while it waits: the daemon is replaced, and its other clients get the results of their calls from the next one", async () => {
  const cwd = writeFiles(temporaryFolder(), files);
  const home = new DaemonHome();
  const words = ["--no-bundled", "--commands", path.join(cwd, "commands")];
  const [hers, his] = [await home.connect({ words }), await home.connect({ words })];
  const before = home.daemon();
  const slow = his.call("good_slow", {});
  const harmed = await hers.call("bad_json", {});
  expect(JSON.stringify(harmed)).toContain(
    "bad_json changed what every command shares: toJSON was added to Object.prototype.",
  );
  const { job_id } = handleOf(await slow);
  expect(dataOf(await his.call("task_result", { job_id }))).toEqual({ slow: true });
  for (const client of [hers, his]) expect(dataOf(await client.call("good_now", {}))).toEqual({ well: [1, { a: 2 }] });
  expect(home.daemon().pid).not.toBe(before.pid);
  await home.hasOneDaemon();
  expect(home.log()).toMatch(
    /bad_json \([^)]+json\.ts\) changed what every command shares: [^;]+; that was undone, and this daemon is replaced/,
  );
  expect(JSON.stringify(await hers.call("bad_later", {}))).toContain(
    "bad_later changed what every command shares: Promise.prototype.then was replaced.",
  );
}, 60_000);
