import { spawn } from "node:child_process";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { type LauncherFacts, toLauncherTexts } from "../../src/setup/launcher/launcher-text.ts";
import { shareAmongTests, temporaryFolder } from "../helpers/home.ts";

/** The launcher as hosts start it: the shell script, on Windows the .cmd, and everywhere its part in JavaScript. */

const isWindows = process.platform === "win32";
const nobody = 65_534;
const nodeName = isWindows ? "node.exe" : "node";
const native = isWindows ? "cmd" : "sh";
type Kind = typeof native | "js";

/** Prints how it was started, and the first line of its stdin. */
const printer = `
let input = "";
process.stdin.on("data", (part) => (input += part));
process.stdin.on("end", () => {
  const { MEANWHILE_HOME, MEANWHILE_STORE, MEANWHILE_ENTRY_STORE, PATH } = process.env;
  const env = { MEANWHILE_HOME, MEANWHILE_STORE, MEANWHILE_ENTRY_STORE, PATH };
  console.log(JSON.stringify({ file: __filename, node: process.execPath, args: process.argv.slice(2), env, input }));
});
`;

interface Printed {
  readonly file: string;
  readonly node: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input: string;
}

/** A home with a launcher, the package and the Node that it records, and a server of somebody. */
async function place(more: Partial<LauncherFacts> = {}, homeName = "home") {
  // Its path without links: a launcher starts a Node by where it really lies.
  const folder = realpathSync(temporaryFolder());
  const [home, own, package_] = [path.join(folder, homeName), path.join(folder, "own"), path.join(folder, "package")];
  for (const made of [path.join(home, "bin"), own, path.join(package_, "bin")]) mkdirSync(made, { recursive: true });
  const facts: LauncherFacts = {
    version: "1.0.0",
    node: await installNode(path.join(folder, "recorded")),
    nodeVersion: process.versions.node,
    package: path.join(package_, "bin", "meanwhile.cjs"),
    rangeFile: path.join(package_, "bin", "node-range.txt"),
    ...more,
  };
  writeFileSync(path.join(package_, "bin", "meanwhile.cjs"), printer);
  writeFileSync(path.join(package_, "bin", "node-range.txt"), ">=22.18\n");
  const server = path.join(folder, "server.cjs");
  writeFileSync(server, printer);
  const launcher = path.join(home, "bin", "meanwhile");
  const texts = { ...toLauncherTexts(facts, isWindows), ...toLauncherTexts(facts, true) };
  for (const [ending, text] of Object.entries(texts)) writeFileSync(`${launcher}${ending}`, text, { mode: 0o700 });
  return {
    folder,
    home,
    launcher,
    own,
    facts,
    server,
    original: [process.execPath, server],
    removeNode: () => rmSync(facts.node),
    removePackage: () => rmSync(package_, { recursive: true }),
    start: (kind: Kind, words: readonly string[], env: Readonly<Record<string, string>> = {}) =>
      run(launcher, kind, words, { ...ownEnvironment(own), ...env }),
  };
}

/** A copy of this Node on the file system of the temporary folders, for links to it. */
const copyOfNode = shareAmongTests(() => {
  const copy = path.join(temporaryFolder(), nodeName);
  copyFileSync(process.execPath, copy);
  return copy;
});

/** A Node that is not the one of this test, by its path. */
async function installNode(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, nodeName);
  linkSync(await copyOfNode(), file);
  return file;
}

/** Nothing is installed in it but the system. */
function ownEnvironment(own: string): Record<string, string> {
  const { SystemRoot = "", ComSpec = "" } = process.env;
  if (!isWindows) return { HOME: own, PATH: "/nowhere" };
  const programs = path.join(own, "Program Files");
  return { USERPROFILE: own, SystemRoot, ComSpec, ProgramFiles: programs, PATH: `${SystemRoot}\\System32` };
}

async function run(launcher: string, kind: Kind, words: readonly string[], env: Record<string, string>) {
  const line = [`${launcher}.cmd`, ...words].map((word) => `"${word}"`).join(" ");
  const child =
    kind === "sh"
      ? spawn(launcher, words, { env })
      : kind === "js"
        ? spawn(process.execPath, [`${launcher}-launcher.cjs`, ...words], { env })
        : spawn(process.env.ComSpec ?? "cmd.exe", ["/d", "/s", "/c", `"${line}"`], {
            env,
            windowsVerbatimArguments: true,
          });
  let [out, err] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (part: string) => (out += part));
  child.stderr.setEncoding("utf8").on("data", (part: string) => (err += part));
  child.stdin.on("error", () => {});
  child.stdin.end("the first line\n");
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("close", resolve));
  return { code, err, printed: out === "" ? undefined : (JSON.parse(out) as Printed) };
}

const odd = ["50%", "%PATH%", "a&b", "a^b", "a!b!", "it's", '"quoted"', "a b", "$HOME", "`x`", "", "*", "-", "ключ"];
const plainWords = ["a b", "it's", "--flag=1", "x,y;z", "(1)", "ключ"];
const wordsFor = (kind: Kind) => (kind === "cmd" ? plainWords : odd);
const kinds: readonly Kind[] = [native, "js"];

describe.each(kinds)("the launcher (%s)", (kind) => {
  const wrap = ["wrap", "--name", "x", "--"];

  test("starts the recorded package with the recorded Node, with every argument and stdin as they are", async () => {
    const { start, facts, original } = await place({}, isWindows ? "my home's" : `my "home's" \u00e4`);
    const words = [...wrap, ...original, ...wordsFor(kind)];
    const { code, err, printed } = await start(kind, words);
    expect([code, err]).toEqual([0, ""]);
    expect(printed).toMatchObject({ file: facts.package, node: facts.node, args: words, input: "the first line\n" });
    expect(printed?.env.MEANWHILE_HOME).toBeUndefined();
  });

  test("starts the original command as it was, with one line on stderr, when the package is gone", async () => {
    const { start, facts, original, server, removePackage } = await place(
      { home: "/srv/home" },
      isWindows ? "my home's" : `my "home's" $HOME`,
    );
    removePackage();
    const words = wordsFor(kind);
    const { code, err, printed } = await start(kind, [...wrap, ...original, ...words], {
      MEANWHILE_ENTRY_STORE: "postgres://db/x",
    });
    expect(err).toBe(
      `meanwhile: ${facts.package} is gone, so ${path.basename(process.execPath)} runs without Meanwhile. Install meanwhile again, then run: meanwhile setup\n`,
    );
    expect(code).toBe(0);
    expect(printed).toMatchObject({ file: server, node: process.execPath, args: words, input: "the first line\n" });
    expect(printed?.env).toMatchObject(isWindows ? {} : { PATH: "/nowhere" });
    expect(Object.keys(printed?.env ?? {})).toEqual(["PATH"]);
  });

  test.each([true, false])(
    "ends with the exit code of the package (%s) or of the original command",
    async (isPackage) => {
      const { start, facts, original, server, removePackage } = await place();
      if (!isPackage) removePackage();
      writeFileSync(isPackage ? facts.package : server, "process.exit(7);");
      expect(await start(kind, [...wrap, ...original])).toMatchObject({ code: 7, printed: undefined });
    },
  );

  test("reads nothing of its own file once the package runs: a newer version replaces it", async () => {
    const { start, facts, original, launcher } = await place();
    const ending = { sh: "", cmd: ".cmd", js: "-launcher.cjs" }[kind];
    const [file, aside] = [`${launcher}${ending}`, `${launcher}.new`].map((name) => JSON.stringify(name));
    const line = kind === "cmd" ? "@exit /b 9\\r\\n" : "exit 9\\n";
    const replace = `const fs = require("node:fs");\nfs.writeFileSync(${aside}, "${line}".repeat(2000));\nfs.renameSync(${aside}, ${file});\n`;
    writeFileSync(facts.package, `${replace}${printer}`);
    const { code, err, printed } = await start(kind, [...wrap, ...original]);
    expect([code, err, printed?.file]).toEqual([0, "", facts.package]);
  });

  test("starts the original command when no Node is in the range that the package states", async () => {
    const { start, facts, original, server } = await place();
    writeFileSync(facts.rangeFile, ">=99.1 <100\n");
    const { err, printed } = await start(kind, [...wrap, ...original]);
    expect(printed?.file).toBe(server);
    expect(err).toMatch(/^meanwhile: no Node\.js >=99\.1 <100 was found on this machine, and .* Install .*\n$/);
    expect(err.match(/\n/g)).toHaveLength(1);
  });

  test.each([
    ["an address", ["wrap", "--name", "x", "--url", "https://a.test/mcp"]],
    ["a project's own server", ["-C", "/srv/p", "serve"]],
    ["--allow", ["wrap", "--allow", "a,b", "--name", "x", "--", process.execPath]],
    ["--deny=", ["wrap", "--deny=a", "--", process.execPath]],
  ])("ends an entry with %s with one line when the package is gone", async (_, words) => {
    const { start, removePackage } = await place();
    removePackage();
    const { code, err, printed } = await start(kind, words);
    expect([code, printed]).toEqual([70, undefined]);
    expect(err).toMatch(
      /^meanwhile: \S+meanwhile\.cjs is gone[,.] .* Install meanwhile again, then run: meanwhile setup\n$/,
    );
  });

  test("knows its home and passes on the store of the entry; what the entry or the host sets stays", async () => {
    const { start, original } = await place({ home: "/srv/my home" });
    const store = { MEANWHILE_ENTRY_STORE: "postgres://db/x" };
    const none = await start(kind, [...wrap, ...original], store);
    expect(none.printed?.env).toMatchObject({ MEANWHILE_HOME: "/srv/my home", MEANWHILE_STORE: "postgres://db/x" });
    expect(none.printed?.env).not.toHaveProperty("MEANWHILE_ENTRY_STORE");
    const theirs = await start(kind, [...wrap, ...original], { MEANWHILE_HOME: "/srv/theirs" });
    expect(theirs.printed?.env.MEANWHILE_HOME).toBe("/srv/theirs");
  });
});

describe("the launcher, with its Node gone", () => {
  const wrap = ["wrap", "--name", "x", "--"];
  const installed: Readonly<Record<string, readonly [string, Record<string, string>?]>> = isWindows
    ? {
        "Program Files": ["Program Files\\nodejs"],
        nvm: ["AppData\\Roaming\\nvm\\v24.0.0"],
        fnm: ["AppData\\Roaming\\fnm\\node-versions\\v24.0.0\\installation"],
        Volta: ["AppData\\Local\\Volta\\tools\\image\\node\\24.0.0"],
      }
    : {
        nvm: [".nvm/versions/node/v24.0.0/bin"],
        "nvm in a folder of its own": ["my nvm/versions/node/v24.0.0/bin", { NVM_DIR: "my nvm" }],
        fnm: [".local/share/fnm/node-versions/v24.0.0/installation/bin"],
        "fnm on macOS": ["Library/Application Support/fnm/node-versions/v24.0.0/installation/bin"],
        Volta: [".volta/tools/image/node/24.0.0/bin"],
        "Volta in a folder of its own": ["volta/tools/image/node/24.0.0/bin", { VOLTA_HOME: "volta" }],
        asdf: [".asdf/installs/nodejs/24.0.0/bin"],
        Homebrew: [".linuxbrew/Cellar/node@24/24.0.0/bin"],
        "the PATH": ["my programs", { PATH: "my programs" }],
      };

  test.each(Object.entries(installed))("finds the Node of %s", async (_, [folder, variables = {}]) => {
    const { start, own, facts, original, removeNode } = await place();
    removeNode();
    const node = await installNode(path.join(own, folder));
    const local = path.join(own, "AppData", "Local");
    const windows = isWindows ? { APPDATA: path.join(own, "AppData", "Roaming"), LOCALAPPDATA: local } : {};
    const named = Object.entries(variables).map(([name, value]) => [name, path.join(own, value)]);
    const { err, printed } = await start(native, [...wrap, ...original], { ...windows, ...Object.fromEntries(named) });
    expect(err).toBe("");
    expect(printed).toMatchObject({ file: facts.package, node });
  });

  test("and no other, or with the package gone as well, starts the original command", async () => {
    const { start, own, facts, original, server, removeNode, removePackage } = await place();
    removeNode();
    // This machine may have a Node where Homebrew installs it.
    writeFileSync(facts.rangeFile, ">=99\n");
    const alone = await start(native, [...wrap, ...original]);
    expect([alone.printed?.file, alone.err.match(/\n/g)?.length]).toEqual([server, 1]);
    expect(alone.err).toContain("no Node.js");
    removePackage();
    const both = await start(native, [...wrap, ...original]);
    expect([both.printed?.file, both.err.match(/\n/g)?.length]).toEqual([server, 1]);
    expect(await start(native, ["-C", own, "serve"])).toMatchObject({ code: 70, printed: undefined });
  });

  test.skipIf(isWindows)("asks npx again for a copy that npx had fetched", async () => {
    const { start, facts, original, server, removePackage } = await place({ npx: "meanwhile@1.0.0" });
    removePackage();
    const without = await start("sh", [...wrap, ...original]);
    expect(without.printed?.file, "no npx lies beside the Node").toBe(server);
    writeFileSync(path.join(path.dirname(facts.node), "npx"), printer);
    const { printed } = await start("sh", [...wrap, ...original]);
    expect(printed).toMatchObject({ node: facts.node, args: ["-y", "meanwhile@1.0.0", ...wrap, ...original] });
  });

  /** Puts a Node into a folder of its own, as `PATH` would name it; each is one that the launcher must not start. */
  const untrusted: Readonly<Record<string, (folder: string) => Promise<string>>> = {
    "that others may write to the folder of": async (folder) => {
      await installNode(folder);
      chmodSync(folder, 0o777);
      return folder;
    },
    "of another user": async (folder) => {
      await installNode(folder);
      if (process.getuid?.() === 0) chownSync(folder, nobody, nobody);
      else chmodSync(folder, 0o775);
      return folder;
    },
    "in a folder of shims": async (folder) => {
      const shims = path.join(folder, "shims");
      await installNode(shims);
      return shims;
    },
    "that is a script": async (folder) => {
      const node = await installNode(path.join(folder, "hidden"));
      writeFileSync(path.join(folder, "node"), `#!/bin/sh\nexec '${node}' "$@"\n`, { mode: 0o755 });
      return folder;
    },
    "that is a link to a program of another name": async (folder) => {
      const shim = path.join(folder, "hidden", "shim");
      renameSync(await installNode(path.dirname(shim)), shim);
      symlinkSync(shim, path.join(folder, "node"));
      return folder;
    },
    "in a relative folder": async (folder) =>
      path.relative(process.cwd(), path.dirname(await installNode(path.join(folder, "relative")))),
  };

  test.skipIf(isWindows).each(Object.entries(untrusted))("does not start a Node %s", async (_, install) => {
    const { start, own, original, removeNode } = await place();
    removeNode();
    const { printed } = await start("sh", [...wrap, ...original], { PATH: `${await install(path.join(own, "x"))}:` });
    // Where this machine has a Node that Homebrew installed, that one starts the package.
    expect(printed?.node.startsWith(own)).toBe(false);
  });
});
