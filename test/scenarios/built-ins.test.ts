import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { DaemonHome, dataOf } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { startMeanwhile, waitFor } from "../helpers/meanwhile.ts";
import { handleOf, overPipes, WireClient } from "../helpers/wire.ts";

const command = (body: string, before = "") => `import { setTimeout as sleep } from "node:timers/promises";
import { defineCommand } from "meanwhile";
${before}
export default defineCommand({ summary: "One of a folder", effects: "read", async run(): Promise<object> { ${body} } });`;

/** Commands that harm everybody in one way each, and two that do not. */
const commands = () =>
  writeFiles(temporaryFolder(), {
    "commands/good/now.ts": command("return { well: [1, { a: 2 }] };"),
    "commands/good/slow.ts": command("await sleep(1500); return { slow: true };"),
    "commands/bad/json.ts": command('(Object.prototype as any).toJSON = () => "mine"; return {};'),
    "commands/bad/visible.ts": command("(Object.prototype as any).mine = 1; return {};"),
    "commands/bad/thenable.ts": command("(Object.prototype as any).then = () => {}; return {};"),
    "commands/bad/stringify.ts": command('JSON.stringify = () => { throw new Error("mine"); }; return {};'),
    "commands/bad/lists.ts": command("(Array.prototype as any)[Symbol.iterator] = () => { throw 1; }; return {};"),
    "commands/bad/later.ts": command(
      "await sleep(20); Promise.prototype.then = (() => {}) as never; return await new Promise(() => {});",
    ),
    "commands/bad/loaded.ts": command("return { loaded: true };", "(Object.prototype as any).atLoad = 1;"),
  });

const harms = {
  bad_json: "toJSON was added to Object.prototype",
  bad_visible: "mine was added to Object.prototype",
  bad_thenable: "then was added to Object.prototype",
  bad_stringify: "JSON.stringify was replaced",
  bad_lists: "Symbol(Symbol.iterator) of Array.prototype was replaced",
  bad_later: "Promise.prototype.then was replaced",
};

test("a command that changes what all share: undone, the call fails with the reason, the log names it, and the server goes on", async () => {
  const cwd = commands();
  const server = startMeanwhile(["serve", "--in-process", "--no-bundled"], { cwd });
  const client = new WireClient(overPipes(server.child), { revision: "2025-11-25" });
  onTestFinished(() => client.close());
  await client.begin();
  expect(server.stderr()).toContain(
    `while the commands of ${path.join(cwd, "commands")} were loaded, atLoad was added to Object.prototype; that was undone`,
  );
  for (const [name, change] of Object.entries(harms)) {
    const result = await client.call(name, {});
    expect(result.isError, name).toBe(true);
    expect(JSON.stringify(result)).toContain(
      `${name} changed what every command shares: ${change}. That was undone; leave the built-ins alone`,
    );
    expect(dataOf(await client.call("good_now", {}))).toEqual({ well: [1, { a: 2 }] });
    const file = path.join(cwd, "commands", `${name.replace("_", "/")}.ts`);
    await waitFor(
      () =>
        server
          .stderr()
          .includes(
            `${name} (${file}) changed what every command shares: ${change}; that was undone, and this server should be restarted`,
          ),
      () => server.stderr(),
    );
  }
}, 60_000);

test("the daemon in which it happens is replaced, and its other clients have the results of their calls from the next one", async () => {
  const cwd = commands();
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
}, 60_000);
