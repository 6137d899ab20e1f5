import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";

/** A config that is code is loaded by child processes; all other cases are in test/daemon/key.test.ts. */

const program = path.resolve(import.meta.dirname, "../../fixtures/daemon/keys.ts");
const config = "p/meanwhile.config.ts";

/** The keys of a stdio proxy and its daemon for each of these config texts, in a process of their own. */
function keysOf(folder: string, texts: readonly string[]): string[] {
  const home = path.join(folder, "home");
  mkdirSync(home, { recursive: true });
  const input = texts.map((text) => ({
    cwd: path.join(folder, "p"),
    env: { MEANWHILE_HOME: home },
    flags: {},
    files: { [path.join(folder, config)]: text },
  }));
  const { stdout, stderr } = spawnSync(process.execPath, [program], { input: JSON.stringify(input), encoding: "utf8" });
  expect(stdout, stderr).not.toBe("");
  // The output of the config comes first.
  const keys = JSON.parse(stdout.split("\n").at(-1) as string) as { front: string; daemon: string }[];
  for (const { front, daemon } of keys) expect(front).toBe(daemon);
  return keys.map(({ front }) => front);
}

test("a config file of code is run once for each of its texts", () => {
  const code = (value: string) => `console.log("noise"); const config: object = ${value}; export default config;`;
  const folder = writeFiles(temporaryFolder(), { "p/c/x": "" });
  const text = code('{ commands: ["c"], bundled: false }');
  const [first, again] = keysOf(folder, [text, text]);
  expect(again).toBe(first);
  const [other] = keysOf(folder, [code('{ commands: ["c"], bundled: false, env: ["A"] }')]);
  expect(other).not.toBe(first);
  expect(readdirSync(path.join(folder, "home/run")).filter((name) => name.endsWith(".said"))).toHaveLength(1);
});
