import path from "node:path";
import { expect, test } from "vitest";
import { startCli } from "../helpers/cli.ts";
import { dataOf } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const command = (body: string, before = "") => `import { defineCommand } from "meanwhile";
${before}
export default defineCommand({ summary: "One of a folder", effects: "read", async run(): Promise<object> { ${body} } });`;

/** Commands that harm everybody in one way each, and one that does not. */
const commands = () =>
  writeFiles(temporaryFolder(), {
    "commands/good/now.ts": command("return { well: [1, { a: 2 }] };"),
    "commands/bad/json.ts": command('(Object.prototype as any).toJSON = () => "mine"; return {};'),
    "commands/bad/visible.ts": command("(Object.prototype as any).mine = 1; return {};"),
    "commands/bad/thenable.ts": command("(Object.prototype as any).then = () => {}; return {};"),
    "commands/bad/stringify.ts": command('JSON.stringify = () => { throw new Error("mine"); }; return {};'),
    "commands/bad/lists.ts": command("(Array.prototype as any)[Symbol.iterator] = () => { throw 1; }; return {};"),
    "commands/bad/loaded.ts": command("return { loaded: true };", "(Object.prototype as any).atLoad = 1;"),
  });

const harms = {
  bad_json: "toJSON was added to Object.prototype",
  bad_visible: "mine was added to Object.prototype",
  bad_thenable: "then was added to Object.prototype",
  bad_stringify: "JSON.stringify was replaced",
  bad_lists: "Symbol(Symbol.iterator) of Array.prototype was replaced",
};

test("a command that changes what all share: undone, the call fails with the reason, the log names it, and the server goes on", async () => {
  const cwd = commands();
  const server = startCli(["serve", "--in-process", "--no-bundled"], { cwd });
  const client = await server.client({ revision: "2025-11-25" }).begin();
  await client.request("tools/list");
  await server.says(/while the commands of .* were loaded, atLoad was added to Object\.prototype; that was undone/);
  for (const [name, change] of Object.entries(harms)) {
    const result = await client.call(name, {});
    expect(result.isError, name).toBe(true);
    expect(JSON.stringify(result)).toContain(
      `${name} changed what every command shares: ${change}. That was undone; leave the built-ins alone`,
    );
    expect(dataOf(await client.call("good_now", {}))).toEqual({ well: [1, { a: 2 }] });
    const file = path.join(cwd, "commands", `${name.replace("_", "/")}.ts`);
    expect(server.stderr()).toContain(
      `${name} (${file}) changed what every command shares: ${change}; that was undone, and this server should be restarted`,
    );
  }
  await client.close();
});
