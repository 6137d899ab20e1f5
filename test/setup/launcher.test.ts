import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { oldestNode } from "../../src/cli/init/dependency-versions.ts";
import { homeAt, packageFolder } from "../../src/paths.ts";
import { programVersion } from "../../src/project/project.ts";
import {
  type RunningNode,
  readLauncher,
  refreshLauncher,
  writeLauncher,
} from "../../src/setup/launcher/launcher-file.ts";
import {
  type LauncherFacts,
  ownRangeFile,
  readLauncherFacts,
  toLauncherTexts,
} from "../../src/setup/launcher/launcher-text.ts";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { executable } from "../helpers/meanwhile.ts";

const node: RunningNode = { file: process.execPath, version: process.versions.node, isWindows: false };

function homeWith(facts: Partial<LauncherFacts> | undefined) {
  const env = { MEANWHILE_HOME: temporaryFolder() };
  const home = homeAt(env);
  if (facts !== undefined) {
    mkdirSync(path.dirname(home.launcher), { mode: 0o700 });
    const own = {
      version: programVersion(),
      node: node.file,
      nodeVersion: node.version,
      package: executable,
      rangeFile: ownRangeFile(),
    };
    writeFileSync(home.launcher, toLauncherTexts({ ...own, ...facts }, false)[""] ?? "");
  }
  return { home, env, found: () => readLauncher(home, node) };
}

describe("the launcher in the home", () => {
  test("states in a text file which Node the package runs on, as everything else does", () => {
    expect(readFileSync(ownRangeFile(), "utf8")).toBe(`${oldestNode}\n`);
    expect(readFileSync(executable, "utf8")).toContain("major > 22 || (major === 22 && minor >= 18)");
  });

  test("is written for its user alone, and records the Node, the package and a home that is not the usual one", () => {
    const { home, env, found } = homeWith(undefined);
    writeLauncher(home, env, node);
    expect(statSync(home.launcher).mode & 0o777).toBe(0o700);
    expect(statSync(path.dirname(home.launcher)).mode & 0o777).toBe(0o700);
    expect(found()).toEqual({
      version: programVersion(),
      node: process.execPath,
      nodeVersion: process.versions.node,
      package: executable,
      rangeFile: ownRangeFile(),
      home: home.folder,
    });
  });

  test("can be run again after setup when it was not, with the same text", () => {
    const { home, env } = homeWith(undefined);
    writeLauncher(home, env, node);
    const text = readFileSync(home.launcher, "utf8");
    chmodSync(home.launcher, 0o600);
    writeLauncher(home, env, node);
    expect([readFileSync(home.launcher, "utf8"), statSync(home.launcher).mode & 0o777]).toEqual([text, 0o700]);
  });

  test("records the link of a global installation that it was started by, and keeps it for a newer version", () => {
    const { home, env, found } = homeWith(undefined);
    const package_ = path.join(temporaryFolder(), "pnpm/global/v11/a2a1/node_modules/meanwhile");
    mkdirSync(path.dirname(package_), { recursive: true });
    symlinkSync(packageFolder(), package_);
    const facts = {
      package: path.join(package_, "bin/meanwhile.cjs"),
      rangeFile: path.join(package_, "bin/node-range.txt"),
    };
    writeLauncher(home, env, { ...node, script: facts.package });
    expect(found()).toMatchObject(facts);
    writeFileSync(home.launcher, toLauncherTexts({ ...(found() as LauncherFacts), version: "0.0.9" }, false)[""] ?? "");
    refreshLauncher(home, env, { ...node, script: executable });
    expect(found()).toMatchObject({ ...facts, version: programVersion() });
  });

  test("takes any path for data", () => {
    const odd = "/a'b\n#\u2028process.exit(1);//$HOME`id`";
    const facts = { version: "1.0.0", node: odd, nodeVersion: "24.0.0", package: odd, rangeFile: odd, home: odd };
    const sh = toLauncherTexts(facts, false)[""] ?? "";
    expect(sh).toContain(`mw_node='/a'\\''b\n#\u2028process.exit(1);//$HOME\`id\`'\n`);
    const script = toLauncherTexts(facts, true)["-launcher.cjs"] ?? "";
    expect(script.split(/[\n\u2028]/).filter((line) => line.startsWith("process.exit"))).toEqual([]);
    expect([readLauncherFacts(sh), readLauncherFacts(script)]).toEqual([facts, facts]);
  });

  test("on Windows reads no line of its file once it has started a program: the file may be another one by then", () => {
    const cmd = readFileSync(path.join(packageFolder(), "bin/launcher.cmd"), "utf8").split(/\r?\n/);
    const starts = cmd.filter((line) => / & ("%mw_node%"|%mw_all:)/.test(line));
    expect(starts).toHaveLength(3);
    // A jump to a label that is not there ends the batch file, and the rest of the line is run.
    for (const line of starts)
      expect(line).toMatch(/^endlocal & .*goto #_undefined_# 2>nul \|\| title %ComSpec% & "?%mw_/);
  });

  test.each<[string, Partial<LauncherFacts>]>([
    ["an older version", { version: "0.0.9" }],
    ["a version before this one", { version: `${programVersion()}-beta.1` }],
    ["a package that is gone", { version: "9.0.0", package: "/gone/meanwhile.cjs" }],
    ["a Node that is gone", { node: "/gone/node" }],
  ])("is replaced by a version that starts in the home when it starts %s", (_, facts) => {
    const { home, env, found } = homeWith(facts);
    const before = statSync(home.launcher).ino;
    refreshLauncher(home, env, node);
    expect(found()).toMatchObject({ version: programVersion(), node: process.execPath, package: executable });
    expect(statSync(home.launcher).ino, "by rename").not.toBe(before);
  });

  test.each<[string, Partial<LauncherFacts>]>([
    ["this version", {}],
    ["a newer version", { version: "0.10.0" }],
    ["a newer version whose Node it will look for", { version: "1.0.0", node: "/gone/node" }],
  ])("stays when it starts %s", (_, facts) => {
    const { home, env } = homeWith(facts);
    const before = readFileSync(home.launcher, "utf8");
    refreshLauncher(home, env, node);
    expect(readFileSync(home.launcher, "utf8")).toBe(before);
  });

  test("is not made where there is none, and stays where it cannot be replaced", () => {
    const none = homeWith(undefined);
    refreshLauncher(none.home, none.env, node);
    expect(existsSync(none.home.launcher)).toBe(false);
    const { home, env, found } = homeWith({ version: "0.0.9" });
    // Stands for a home that nobody may write: root may write any.
    mkdirSync(`${home.launcher}.${process.pid}`);
    refreshLauncher(home, env, node);
    expect(found()?.version).toBe("0.0.9");
  });

  test("is replaced when any verb runs in the home", async () => {
    const { home, env, found } = homeWith({ version: "0.0.9" });
    expect(await runCli(["hosts"], { env })).toMatchObject({ code: 0 });
    expect(found()?.version).toBe(programVersion());
    chmodSync(path.dirname(home.launcher), 0o770);
    expect((await runCli(["hosts"], { env })).stderr).toMatch(/\/bin may be written by others \(mode 0770\)/);
  });
});

/** A user of Cursor whose entries were written by an earlier version, with paths that are gone or not. */
function user(servers: Readonly<Record<string, object>>, more: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  const text = `{\n  // mine\n  "mcpServers": ${JSON.stringify(servers, null, 2)}\n}\n`;
  writeFiles(folder, { "user/.cursor/mcp.json": text, "project/notes.txt": "", ...more });
  const [home, cwd] = [path.join(folder, "user"), path.join(folder, "project")];
  const file = path.join(home, ".cursor/mcp.json");
  return {
    home,
    text,
    launcher: path.join(home, ".meanwhile/bin/meanwhile"),
    read: () => readFileSync(file, "utf8"),
    write: (changed: string) => writeFileSync(file, changed),
    entry: (name: string) => JSON.parse(readFileSync(file, "utf8").replace("// mine", "")).mcpServers[name],
    setup: async (...words: string[]) => {
      const env = { HOME: home, PATH: "/nowhere", MEANWHILE_HOME: undefined };
      const { code, stdout, stderr } = await runCli(["setup", ...words], { cwd, env });
      return { code, out: stdout, err: stderr };
    },
  };
}

const gone = "/old/v22.18.0/bin/node";
const wrapped = (program: readonly string[], ...behind: string[]) => ({
  command: program[0],
  args: [...program.slice(1), "wrap", "--name", "docs", ...behind],
});

describe("entries that an upgrade has broken", () => {
  const old = wrapped([gone, "/old/meanwhile/bin/meanwhile.cjs"], "--allow", "a", "--", "npx", "-y", "docs");

  test("are listed with the reason and the cure, and nothing is changed", async () => {
    const { setup, read, text } = user({
      docs: old,
      meanwhile: { command: process.execPath, args: [executable, "-C", "/gone/project", "serve"] },
      fine: wrapped([process.execPath, executable], "--", "npx", "fine"),
      moved: wrapped(["/gone/home/bin/meanwhile"], "--", "npx", "x"),
    });
    const { code, err } = await setup();
    expect(code).toBe(0);
    const lines = err.split("\n");
    expect(lines).toContain(`✗ Cursor: docs would not start: ${gone} is gone`);
    expect(lines).toContain("  Repair   meanwhile setup --wrap docs");
    expect(lines).toContain("✗ Cursor: meanwhile would not start: the folder /gone/project is gone");
    expect(lines).toContain("  Repair   meanwhile setup cursor");
    expect(lines).toContain("✗ Cursor: moved would not start: /gone/home/bin/meanwhile is gone");
    expect(err).not.toContain("fine would");
    expect(read()).toBe(text);
  });

  test("start through the launcher after setup --wrap, with everything else that they say", async () => {
    const { setup, entry, launcher } = user({ docs: { ...old, env: { KEY: "x" }, disabled: false } });
    const { code, err } = await setup("--wrap", "docs");
    expect([code, err]).toEqual([0, expect.stringContaining("✓ Cursor: repaired docs in ~/.cursor/mcp.json\n")]);
    expect(entry("docs")).toEqual({
      command: launcher,
      args: ["wrap", "--name", "docs", "--allow", "a", "--", "npx", "-y", "docs"],
      env: { KEY: "x" },
      disabled: false,
    });
    expect((await setup()).err).not.toContain("would not start");
    expect((await setup("--wrap", "docs")).err).toContain("docs was left alone: it is behind Meanwhile already");
  });

  test("of the launcher's part in JavaScript are listed and repaired when their Node is gone, or their package is", async () => {
    const words = ["--", "npx", "docs"];
    const noNode = user({});
    const script = `${noNode.launcher}-launcher.cjs`;
    writeFiles(path.dirname(script), { [path.basename(script)]: "" });
    noNode.write(JSON.stringify({ mcpServers: { docs: wrapped(["/old/node.exe", script], ...words) } }));
    expect((await noNode.setup()).err).toContain(
      "✗ Cursor: docs would not start: /old/node.exe is gone\n  Repair   meanwhile setup --wrap docs\n",
    );
    expect((await noNode.setup("--wrap", "docs")).err).toContain("✓ Cursor: repaired docs in ~/.cursor/mcp.json\n");
    expect(noNode.entry("docs")).toEqual({ command: noNode.launcher, args: ["wrap", "--name", "docs", ...words] });
    expect((await noNode.setup()).err).not.toContain("would not start");

    const facts = {
      version: "1.0.0",
      node: process.execPath,
      nodeVersion: "24.0.0",
      package: "/gone/x.cjs",
      rangeFile: "",
    };
    writeFileSync(script, toLauncherTexts(facts, true)["-launcher.cjs"] ?? "");
    noNode.write(JSON.stringify({ mcpServers: { docs: wrapped([process.execPath, script], ...words) } }));
    expect((await noNode.setup()).err).toContain("✗ Cursor: docs would not start: /gone/x.cjs is gone\n");
  });

  test("that cmd starts are not said to lack /c", async () => {
    const { setup } = user({ docs: wrapped(["cmd", "/c", "npx", "-y", "meanwhile"], "--", "npx", "docs") });
    expect((await setup()).err).not.toContain("would not start");
  });

  test("are repaired by setup of their host too, and by --all; a project's own server as well", async () => {
    const own = { command: gone, args: ["/old/meanwhile/bin/meanwhile.cjs", "-C", "/srv/p", "serve"] };
    for (const words of [["cursor"], ["--all"]]) {
      const { setup, entry, launcher } = user({ docs: old, other: own });
      expect((await setup(...words)).err).toContain("✓ Cursor: repaired docs, other in ~/.cursor/mcp.json\n");
      expect(entry("docs").command).toBe(launcher);
      expect(entry("other")).toEqual({ command: launcher, args: ["-C", "/srv/p", "serve"] });
      expect(entry("meanwhile").command).toBe(launcher);
    }
  });

  test("stay as they are when the entry of that name is refused", async () => {
    const { setup, read, text } = user({ docs: old, meanwhile: { command: "somebody-elses" } });
    expect((await setup("cursor")).code).toBe(1);
    expect(read()).toBe(text);
  });

  test("are repaired in every file of the host", async () => {
    const { setup, home, launcher } = user(
      {},
      {
        "user/.config/Code/User/profiles/1f2e/mcp.json": JSON.stringify({ servers: { docs: old } }),
        "user/.config/Code/User/settings.json": "{}",
      },
    );
    const file = path.join(home, ".config/Code/User/profiles/1f2e/mcp.json");
    expect((await setup()).err).toContain("✗ VS Code: docs would not start: ");
    expect((await setup("vscode")).err).toContain(
      "✓ VS Code: repaired docs in ~/.config/Code/User/profiles/1f2e/mcp.json\n",
    );
    expect(JSON.parse(readFileSync(file, "utf8")).servers.docs.command).toBe(launcher);
  });

  test("and that were wrapped here come back byte for byte after the repair", async () => {
    const { setup, read, write, text, launcher } = user({ docs: { command: "npx", args: ["-y", "docs"] } });
    await setup("--wrap", "--all");
    const record = path.join(path.dirname(launcher), "../setup/wrapped.json");
    const asBefore = (content: string) =>
      content
        .replaceAll(JSON.stringify(launcher), `${JSON.stringify(gone)}`)
        .replaceAll('"wrap"', '"/old/meanwhile.cjs", "wrap"');
    write(asBefore(read()));
    const deeds = JSON.parse(readFileSync(record, "utf8")) as { lines: { after: string }; after: { args: string[] } }[];
    for (const deed of deeds) {
      deed.lines.after = asBefore(deed.lines.after);
      Object.assign(deed.after, { command: gone, args: ["/old/meanwhile.cjs", ...deed.after.args] });
    }
    writeFileSync(record, JSON.stringify(deeds));
    expect((await setup("--wrap", "--all")).err).toContain("repaired docs");
    expect(read()).toContain(launcher);
    await setup("--unwrap", "--all");
    expect(read()).toBe(text);
  });

  test("and the launcher itself is written again when it is gone", async () => {
    const { setup, launcher, read } = user({ docs: { command: "npx", args: ["-y", "docs"] } });
    await setup("--wrap", "--all");
    rmSync(launcher);
    expect((await setup()).err).toContain(`docs would not start: ${launcher} is gone`);
    const before = read();
    expect((await setup("--wrap", "docs")).err).toContain("repaired docs");
    expect(existsSync(launcher)).toBe(true);
    expect(read()).toBe(before);
  });
});

describe("what --unwrap leaves without the record", () => {
  const env = { KEY: "x", MEANWHILE_HOME: "/srv/theirs" };

  test.each([
    ["nothing of ours in env", { command: "npx", args: ["docs"] }],
    ["a home that the entry had before", { command: "npx", args: ["docs"], env }],
  ])("%s", async (_, entry) => {
    const { setup, read, text, home } = user({ docs: entry });
    const store = { MEANWHILE_HOME: path.join(home, "my home"), MEANWHILE_STORE: "postgres://db/x" };
    const run = (...words: string[]) => runCli(["setup", ...words], { cwd: home, env: { HOME: home, ...store } });
    await run("--wrap", "--all");
    expect(read()).toContain("my home/bin/meanwhile");
    rmSync(path.join(home, "my home", "setup"), { recursive: true });
    await run("--unwrap", "--all");
    expect(JSON.parse(read().replace("// mine", ""))).toEqual(JSON.parse(text.replace("// mine", "")));
    void setup;
  });

  test("no home and store that an earlier version has written; others with other values", async () => {
    const { read, home } = user({
      ours: {
        ...wrapped([gone, "/old/meanwhile.cjs"], "--", "a"),
        env: { MEANWHILE_HOME: "/srv/h", MEANWHILE_STORE: "/srv/s" },
      },
      theirs: { ...wrapped([gone, "/old/meanwhile.cjs"], "--", "a"), env: { MEANWHILE_HOME: "/srv/theirs" } },
    });
    const kept = temporaryFolder();
    writeFileSync(path.join(home, ".cursor/mcp.json"), read().replaceAll("/srv/h", kept));
    await runCli(["setup", "--unwrap", "--all"], {
      cwd: home,
      env: { HOME: home, MEANWHILE_HOME: kept, MEANWHILE_STORE: "/srv/s" },
    });
    expect(JSON.parse(read().replace("// mine", "")).mcpServers).toEqual({
      ours: { command: "a", args: [] },
      theirs: { command: "a", args: [], env: { MEANWHILE_HOME: "/srv/theirs" } },
    });
  });
});
