import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { addressOf } from "../../src/daemon/front.ts";
import {
  type Bundled,
  commandSources,
  fingerprint,
  type ProjectConfig,
  type ProjectFlags,
  projectParts,
} from "../../src/project/project.ts";
import { loadSettings } from "../../src/settings/settings.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

interface Place {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly flags?: ProjectFlags;
  readonly files?: Record<string, string>;
}

/** The keys of stdio proxies and daemons in these places, one after the other; both must be the same. */
async function keysOf(folder: string, places: readonly Place[]): Promise<string[]> {
  const home = path.join(folder, "home");
  mkdirSync(home, { recursive: true });
  const keys: string[] = [];
  for (const { cwd = "p", env = {}, flags = {}, files = {} } of places) {
    writeFiles(folder, files);
    const place = { cwd: path.join(folder, cwd), env: { ...process.env, MEANWHILE_HOME: home, ...env } };
    const { key } = await addressOf(flags, { place });
    const { daemon } = await loadSettings({ ...place, flags });
    expect(key, `the proxy's key at ${JSON.stringify({ cwd, env, flags, files })}`).toBe(daemon.key);
    keys.push(key);
  }
  return keys;
}

const isOne = (keys: readonly (string | undefined)[]) => expect(new Set(keys).size, keys.join(" ")).toBe(1);
const areMany = (keys: readonly (string | undefined)[]) => expect(new Set(keys).size, keys.join(" ")).toBe(keys.length);

describe("a front and its daemon come to one key", () => {
  test("without a project of their own, all folders have one daemon", async () => {
    const folder = writeFiles(temporaryFolder(), { "p/x": "", "q/x": "", "r/commands/x": "" });
    const [p, q, r, bare] = await keysOf(folder, [{}, { cwd: "q" }, { cwd: "r" }, { flags: { bundled: false } }]);
    isOne([p, q]);
    areMany([p, r, bare]);
  });

  test("folders that are named make the project, by their real places and in any spelling", async () => {
    const folder = writeFiles(temporaryFolder(), { "p/a/x": "", "p/b/x": "", "q/x": "" });
    symlinkSync(path.join(folder, "p"), path.join(folder, "linked"));
    symlinkSync(path.join(folder, "p/a"), path.join(folder, "q/a"));
    const absolute = path.join(folder, "p/a");
    const keys = await keysOf(folder, [
      { flags: { commands: ["a"] } },
      { flags: { commands: ["./b/../a/"] } },
      { flags: { commands: [absolute] } },
      { cwd: "linked", flags: { commands: ["a"] } },
      { cwd: "q", flags: { commands: ["a"] } },
      { cwd: "q", flags: { commands: [path.join(folder, "linked/a")] } },
      { flags: { commands: ["b"] } },
      { flags: { commands: ["a", "b"] } },
      { flags: { commands: ["a"], bundled: false } },
      { flags: { commands: ["a"], bundled: true } },
    ]);
    isOne(keys.slice(0, 6));
    areMany(keys.slice(5));
  });

  test("a config file in JSON makes a project, and each text of it another daemon", async () => {
    const file = "p/meanwhile.config.json";
    const folder = writeFiles(temporaryFolder(), { "p/c/x": "", "p/d/x": "", "q/x": "" });
    symlinkSync(path.join(folder, "p"), path.join(folder, "linked"));
    const keys = await keysOf(folder, [
      { files: { [file]: '{"commands":["c"],"bundled":false}' } },
      { cwd: "linked" },
      { files: { [file]: '{"commands":["c"],"bundled":false,"name":"n"}' } },
      { files: { [file]: '{"commands":["d"]}' } },
      { flags: { commands: ["c"] } },
      { files: { "home/config.json": '{"name":"mine"}' } },
      { files: { "home/config.json": '{"name":"mine","bundled":false}' } },
      { files: { "home/config.json": '{"name":"mine","bundled":["vault"]}' } },
    ]);
    isOne(keys.slice(0, 2));
    areMany(keys.slice(1));
  });

  test("the user's own config counts wherever the project's says nothing", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "p/mine/x": "",
      "p/meanwhile.config.json": '{"env":["A"]}',
      "home/config.json": '{"commands":["mine"],"env":["B"]}',
    });
    const keys = await keysOf(folder, [{}, { env: { A: "1" } }, { env: { A: "2" } }]);
    areMany(keys);
    isOne([keys[0], ...(await keysOf(folder, [{ env: { B: "1" } }]))]);
  });

  test("of the environment only the variables that the config names and our own count, and neither the home nor the host", async () => {
    const folder = writeFiles(temporaryFolder(), { "p/meanwhile.config.json": '{"env":["TOKEN","MEANWHILE_LOG"]}' });
    const keys = await keysOf(folder, [
      { env: { OTHER: "1" } },
      { env: { OTHER: "2", MEANWHILE_HOST: "cursor" } },
      { env: { MEANWHILE_HOST: "zed" } },
    ]);
    isOne(keys);
    const more = await keysOf(folder, [
      { env: { TOKEN: "" } },
      { env: { TOKEN: "1" } },
      { env: { TOKEN: "2" } },
      { env: { MEANWHILE_LOG: "debug" } },
      { env: { MEANWHILE_STORE: "x" } },
      { env: { MEANWHILE_IDLE_SECONDS: "1" } },
    ]);
    areMany([keys[0], ...more]);
  });
});

describe("what is wrapped is a project of its own", () => {
  const one = { command: "npx", args: ["server"] };
  const wrapping = (upstream: object): Place => ({ flags: { wrap: { upstreams: { one: { ...one, ...upstream } } } } });

  test("in every folder, whatever lies in it; and each way to say it has its daemon", async () => {
    const folder = writeFiles(temporaryFolder(), { "p/x": "", "q/meanwhile.config.json": "{}", "q/commands/x": "" });
    const plain = wrapping({});
    isOne(await keysOf(folder, [plain, { ...plain, cwd: "q" }]));
    areMany(
      await keysOf(folder, [
        plain,
        wrapping({ args: ["other"] }),
        wrapping({ share: "all" }),
        wrapping({ env: { KEY: "one" } }),
        wrapping({ env: { KEY: "two" } }),
        { flags: { wrap: { upstreams: { other: one } } } },
        {},
      ]),
    );
  });

  test("by the values of the variables that it refers to, as an upstream of a config does", async () => {
    const folder = writeFiles(temporaryFolder(), {
      "p/x": "",
      "q/meanwhile.config.json": '{"upstreams":{"a":{"url":"https://a.b","headers":{"X-Key":"${T}"}}}}',
      "home/config.json": '{"upstreams":{"b":{"command":"x","args":["${B:-1}"]}}}',
    });
    const referring = wrapping({ env: { KEY: "${T:-none}" } });
    areMany(await keysOf(folder, [referring, { ...referring, env: { T: "1" } }, { ...referring, env: { T: "2" } }]));
    isOne(await keysOf(folder, [referring, { ...referring, env: { B: "1" } }]));
    areMany(await keysOf(folder, [{ cwd: "q" }, { cwd: "q", env: { T: "1" } }, { cwd: "q", env: { B: "1" } }]));
  });
});

test("fingerprints of similar values differ, and fit a file name", () => {
  const seen = new Set<string>();
  for (let at = 0; at < 5_000; at++) seen.add(fingerprint([`/home/user/project${at}`, at % 7]));
  for (const value of ["", [], {}, null, "a", "b", ["a", ""], ["", "a"], [["a"], ""], "ü", "u"])
    seen.add(fingerprint(value));
  expect(seen.size).toBe(5_011);
  for (const text of seen) expect(text).toMatch(/^[0-9a-z]{28}$/);
});

test("the bundled pack is the same wherever it is installed: a task made by one installation is another one's to run", () => {
  const partsIn = (cwd: string, bundled?: Bundled) =>
    projectParts(commandSources(cwd, bundled === undefined ? {} : { bundled }, {}), undefined);
  const nowhere = temporaryFolder();
  expect([undefined, true, ["vault", "monitor"]].map((bundled) => partsIn(nowhere, bundled))).toEqual([
    ["the bundled pack"],
    ["the bundled pack"],
    ["the bundled pack: monitor, vault"],
  ]);
  const own = writeFiles(temporaryFolder(), { "commands/x": "" });
  expect(partsIn(own)).toEqual([path.join(realpathSync(own), "commands"), "the bundled pack"]);
});

test("a project stays the same with its first command, and is another where it serves the bundled ones too", () => {
  const own = writeFiles(temporaryFolder(), { "commands/x": "" });
  const partsWith = (config: ProjectConfig, flags: ProjectFlags = {}) =>
    projectParts(commandSources(own, config, flags), undefined);
  const empty = partsWith({});
  writeFiles(own, { "commands/say/hello.ts": "" });
  expect(partsWith({})).toEqual(empty);
  expect(partsWith({}, { commands: ["commands"] })).toEqual(empty);
  const parts = [empty, ...[true, false, ["monitor"], ["monitor", "vault"]].map((bundled) => partsWith({ bundled }))];
  areMany(parts.map((part) => part.join()));
  expect(partsWith({}, { bundled: true })).toEqual(partsWith({ bundled: true }));
  expect(partsWith({ bundled: ["vault", "monitor"] })).toEqual(partsWith({ bundled: ["monitor", "vault"] }));
});
