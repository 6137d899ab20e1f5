import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { isTrackedByGit } from "../../src/setup/git-index.ts";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** The index files that git 2.47 writes for README.md and sub/.mcp.json; git itself may not run in this tier. */
const indexes = {
  "version 2":
    "RElSQwAAAAIAAAACav9Gpgqca35q/0amCpxrfgAA/gAAIWbSAACBpAAAAAAAAAAAAAAAAlh75rTD+T+TxInAERu6VZYUeibLAAlSRUFETUUubWQAav9Gpgqca35q/0amCpxrfgAA/gAAIWbiAACBpAAAAAAAAAAAAAAAAwln70JLzmeRiT6aV7uVL4D9U26TAA1zdWIvLm1jcC5qc29uAAAAAAB01C4zF70M1DOuWy29zY6MTbhRmA==",
  "version 3":
    "RElSQwAAAAMAAAADav9GphJfjXJq/0amEl+NcgAA/gAAIWICAACBpAAAAAAAAAAAAAAAAlh75rTD+T+TxInAERu6VZYUeibLAAlSRUFETUUubWQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACBpAAAAAAAAAAAAAAAAOad4puy0dZDS4sprnda2MLkjFORQAUgAGxhdGVyAAAAav9GphJfjXJq/0amEl+NcgAA/gAAIWISAACBpAAAAAAAAAAAAAAAAwln70JLzmeRiT6aV7uVL4D9U26TAA1zdWIvLm1jcC5qc29uAAAAAABOcuAN4TuOWGvz2OH/KxBgyiX2rQ==",
  "version 4":
    "RElSQwAAAAQAAAACav9GphqVxnxq/0amGpXGfAAA/gAAIWICAACBpAAAAAAAAAAAAAAAAlh75rTD+T+TxInAERu6VZYUeibLAAkAUkVBRE1FLm1kAGr/RqYalcZ8av9GphqVxnwAAP4AACFiEgAAgaQAAAAAAAAAAAAAAAMJZ+9CS85nkYk+mle7lS+A/VNukwANCXN1Yi8ubWNwLmpzb24AtWUyrLA7FnQVdm5V3F5zP6tA+Us=",
  "SHA-256":
    "RElSQwAAAAIAAAACav9GpiN0Tfxq/0amI3RN/AAA/gAAIWQyAACBpAAAAAAAAAAAAAAAAhT1Fi4v49JA0NN6qrD5Dkr5p8+nljnzurAFtb+0F02fAAlSRUFETUUubWQAAAAAAGr/RqYjdE38av9GpiN0TfwAAP4AACFkZgAAgaQAAAAAAAAAAAAAAAPTGjvKsej/N4HFA1xsBrHfAXCGFLS1sQLooaJCnQkqxwANc3ViLy5tY3AuanNvbgAdfMY2CCgiiPPbtrLfysFg5FstjMaruvocsH3lGpQV1g==",
};
const splitIndex =
  "RElSQwAAAAIAAAACav9GpiN0Tfxq/0amI3RN/AAA/gAAIWQyAACBpAAAAAAAAAAAAAAAAhT1Fi4v49JA0NN6qrD5Dkr5p8+nljnzurAFtb+0F02fAAAAAAAAAABq/0amI3RN/Gr/RqYjdE38AAD+AAAhZGYAAIGkAAAAAAAAAAAAAAAD0xo7yrHo/zeBxQNcbAax3wFwhhS0tbEC6KGiQp0JKscAAAAAAAAAAGxpbmsAAABQHXzGNggoIojz27ay38rBYORbLYzGq7r6HLB95RqUFdYAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAIAAAACAAAAAgAAAAAAAAAAAAAAAwAAAABuZafOjWBgjCEYujPTR8RafkuhSjfMmqbm4XWHyZ7YuA==";

/** An index of version 2 for one file, or for a folder of a sparse index; `name` ends with a slash then. */
function indexOf(name: string): Buffer {
  const bytes = Buffer.from(name);
  const entry = Buffer.alloc(Math.ceil((62 + bytes.length + 1) / 8) * 8);
  entry.writeUInt16BE(bytes.length, 60);
  bytes.copy(entry, 62);
  return Buffer.concat([Buffer.from("DIRC"), Buffer.from([0, 0, 0, 2, 0, 0, 0, 1]), entry, Buffer.alloc(20)]);
}

/** A repository that tracks sub/.mcp.json, and has another one at its root that it does not track. */
function repository(folder: string, index: string = indexes["version 2"]) {
  writeFiles(folder, { ".mcp.json": "{}", "sub/.mcp.json": "{}", "sub/deeper/.mcp.json": "{}", ".git/HEAD": "" });
  writeFileSync(path.join(folder, ".git/index"), Buffer.from(index, "base64"));
  return folder;
}

describe("whether git tracks a file", () => {
  test.each(Object.entries(indexes))("is read from an index of %s", (_, index) => {
    const root = repository(temporaryFolder(), index);
    expect(isTrackedByGit(path.join(root, "sub/.mcp.json"))).toBe(true);
    expect(isTrackedByGit(path.join(root, ".mcp.json"))).toBe(false);
    expect(isTrackedByGit(path.join(root, "sub/deeper/.mcp.json"))).toBe(false);
  });

  test("is read from the index of a work tree or submodule, whose .git is a file", () => {
    const folder = temporaryFolder();
    repository(path.join(folder, "main"));
    writeFiles(folder, { "tree/sub/.mcp.json": "{}", "tree/.git": "gitdir: ../main/.git\n" });
    expect(isTrackedByGit(path.join(folder, "tree/sub/.mcp.json"))).toBe(true);
  });

  test("is read for the file that a link leads to", () => {
    const folder = temporaryFolder();
    const root = repository(path.join(folder, "dotfiles"));
    symlinkSync(path.join(root, "sub/.mcp.json"), path.join(folder, ".mcp.json"));
    expect(isTrackedByGit(path.join(folder, ".mcp.json"))).toBe(true);
  });

  test.each([
    ["composed", "entwürfe/.mcp.json".normalize("NFC")],
    ["decomposed, as macOS has them,", "entwürfe/.mcp.json".normalize("NFD")],
    ["in another case", "ENTWÜRFE/.mcp.json"],
  ])("is the same for a path whose characters are %s", (_, name) => {
    const folder = temporaryFolder();
    writeFiles(folder, { [name]: "{}", [path.join("other", name)]: "{}", ".git/HEAD": "" });
    for (const tracked of ["entwürfe/.mcp.json", "entwürfe/"].flatMap((one) => [
      one.normalize("NFC"),
      one.normalize("NFD"),
    ])) {
      writeFileSync(path.join(folder, ".git/index"), indexOf(tracked));
      expect(isTrackedByGit(path.join(folder, name)), tracked).toBe(true);
      expect(isTrackedByGit(path.join(folder, "other", name))).toBe(false);
    }
  });

  test.each([
    ["an index that is split into two files", splitIndex],
    ["an index that is cut off", indexes["version 2"].slice(0, 120)],
    ["something else", Buffer.from("DIRC?").toString("base64")],
  ])("counts as true with %s", (_, index) => {
    expect(isTrackedByGit(path.join(repository(temporaryFolder(), index), ".mcp.json"))).toBe(true);
  });

  test("counts as true where the repository cannot be read", () => {
    const root = repository(temporaryFolder());
    rmSync(path.join(root, ".git/index"));
    mkdirSync(path.join(root, ".git/index"));
    expect(isTrackedByGit(path.join(root, ".mcp.json"))).toBe(true);
    expect(isTrackedByGit(path.join(root, "gone/.mcp.json"))).toBe(true);
  });

  test("is false without a repository, and before its first file was added", () => {
    const folder = temporaryFolder();
    writeFiles(folder, { ".mcp.json": "{}", "new/.git/HEAD": "", "new/.mcp.json": "{}" });
    expect(isTrackedByGit(path.join(folder, ".mcp.json"))).toBe(false);
    expect(isTrackedByGit(path.join(folder, "new/.mcp.json"))).toBe(false);
  });
});

const servers = (...names: readonly string[]) =>
  `{\n  "mcpServers": {\n${names.map((name) => `    "${name}":   { "command": "npx", "args": ["-y", "${name}"] }`).join(",\n")}\n  }\n}\n`;

/** A user of Claude Code with folders of every kind. */
function user() {
  const folder = temporaryFolder();
  const home = path.join(folder, "user");
  const [own, shared, gone] = ["own", "shared", "gone"].map((name) => path.join(folder, name)) as [
    string,
    string,
    string,
  ];
  repository(shared);
  const projects = {
    [own]: { mcpServers: { notes: { type: "stdio", command: "node", args: ["notes.js"], env: {} } } },
    [path.join(shared, "sub")]: { mcpServers: {}, lastCost: 1 },
    [gone]: { mcpServers: { github: { type: "http", url: "https://github.test/mcp" } } },
    "": { mcpServers: "odd" },
  };
  const claude = JSON.stringify({ numStartups: 4, projects, mcpServers: { github: { command: "gh-mcp" } } }, null, 2);
  const files = {
    "user/.claude.json": claude,
    "own/.mcp.json": servers("docs", "github"),
    "shared/sub/.mcp.json": servers("team", "docs"),
    "own/.cursor/mcp.json": servers("cursors"),
    "user/.config/Code/User/mcp.json": servers("code").replace("mcpServers", "servers"),
    "user/.config/Code/User/profiles/1f2e/mcp.json": servers("profiled").replace("mcpServers", "servers"),
    "user/.cline/data/settings/cline_mcp_settings.json": servers("cli"),
    "user/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json":
      servers("extension"),
  };
  writeFiles(folder, files);
  mkdirSync(path.join(folder, "cwd"));
  const read = (name: string) => readFileSync(path.join(folder, name), "utf8");
  return {
    folder,
    home,
    files,
    read,
    all: () => Object.fromEntries(Object.keys(files).map((name) => [name, read(name)])),
    changed: () => Object.entries(files).flatMap(([name, text]) => (read(name) === text ? [] : [name])),
    wrapped: (name: string) => [...read(name).matchAll(/"--name",\s*"([\w-]+)"/g)].map(([, found]) => found),
    setup: async (...words: string[]) => {
      const env = { HOME: home, PATH: "/nowhere", MEANWHILE_HOME: undefined };
      const { code, stdout, stderr } = await runCli(["setup", ...words], { cwd: path.join(folder, "cwd"), env });
      return { code, out: stdout, err: stderr };
    },
  };
}

const tracked = "shared/sub/.mcp.json";

describe("setup --wrap --all sees every scope", () => {
  test("servers of every folder, their .mcp.json and every profile are wrapped, and come back byte for byte", async () => {
    const { setup, wrapped, files, all, changed, home, read } = user();
    const { code, err } = await setup("--wrap", "--all");
    expect(code).toBe(0);
    expect(wrapped("user/.claude.json").toSorted()).toEqual(["github", "github", "notes"]);
    expect(wrapped("own/.mcp.json")).toEqual(["docs", "github"]);
    expect(read("own/.mcp.json"), "nobody else gets it").toContain(path.join(home, ".meanwhile/bin/meanwhile"));
    expect(changed()).toEqual(Object.keys(files).filter((name) => ![tracked, "own/.cursor/mcp.json"].includes(name)));
    expect(err).toMatch(
      /✓ Claude Code: wrapped github, notes \(\S+\/own\) and github \(\S+\/gone\) in ~\/\.claude\.json\n/,
    );
    expect((await setup("--unwrap", "--all")).code).toBe(0);
    expect(all()).toEqual(files);
  });

  test("a file that git tracks is listed and left alone; what is not reached is named", async () => {
    const { setup, folder, read, files } = user();
    const { err } = await setup("--wrap", "--all");
    const file = path.join(folder, tracked);
    expect(err).toContain(
      `· Claude Code: team, docs was left alone: git tracks ${file}, so everybody who has the repository gets it; to change it, run: meanwhile setup --wrap ${file}\n`,
    );
    expect(err).toContain(
      `· not reached: ${folder}/gone (no such folder, or not readable); a .mcp.json there stays as it is\n`,
    );
    expect(err).toContain(
      `· Cursor: ${folder}/own/.cursor/mcp.json is a project's file; to change it, run meanwhile setup with --project there\n`,
    );
    expect(read(tracked)).toBe(files[tracked]);
    const listed = await setup("--wrap");
    const rows = listed.out.split("\n").map((line) => line.split(/ {2,}/));
    expect(rows).toContainEqual(["claude-code", `team (${file})`, "shared", "npx -y team"]);
    expect(rows).toContainEqual(["claude-code", `github (${folder}/gone)`, "yes", "https://github.test"]);
    expect(listed.err).toContain("not reached");
  });

  test("a file that git tracks is changed when it is named, and then names nothing of this machine", async () => {
    const { setup, folder, read, files, changed } = user();
    const named = await setup("--wrap", path.join(folder, tracked));
    expect([named.code, changed()]).toEqual([0, [tracked]]);
    expect(named.err).toContain(`Take back  meanwhile setup --unwrap ${folder}/${tracked}\n`);
    expect(JSON.parse(read(tracked)).mcpServers.team).toEqual({
      command: "npx",
      args: ["--no", "meanwhile", "wrap", "--name", "team", "--", "npx", "-y", "team"],
    });
    const { err } = await setup("--unwrap", "--all");
    expect(err, "--all alone is not enough to change it back either").toContain(`git tracks ${folder}`);
    await setup("--unwrap", path.join(folder, tracked));
    expect(read(tracked)).toBe(files[tracked]);
    const both = await setup("--wrap", "--all", path.join(folder, tracked));
    expect(changed()).toContain("user/.claude.json");
    expect(changed()).toContain(tracked);
    expect(both.err).toContain(`Take back  meanwhile setup --unwrap --all ${folder}/${tracked}\n`);
    await setup("--unwrap", "--all", path.join(folder, tracked));
    expect(changed()).toEqual([]);
  });

  test("an entry of a tracked file is listed as one that would not start until its project has the package", async () => {
    const { setup, folder } = user();
    await setup("--wrap", path.join(folder, tracked));
    const { err } = await setup();
    expect(err).toContain(
      `✗ Claude Code: team would not start: meanwhile is not installed in ${folder}/shared/sub\n  Repair   npm install --save-dev meanwhile\n`,
    );
    mkdirSync(path.join(folder, "shared/node_modules/meanwhile"), { recursive: true });
    expect((await setup()).err).not.toContain("would not start");
  });

  test("an entry's name reaches a tracked file only where no other file has it", async () => {
    const { setup, wrapped } = user();
    const both = await setup("--wrap", "docs");
    expect([wrapped("own/.mcp.json"), wrapped(tracked)]).toEqual([["docs"], []]);
    expect(both.err).toContain("· Claude Code: docs was left alone: git tracks ");
    await setup("--wrap", "team");
    expect(wrapped(tracked)).toEqual(["team"]);
  });

  test("a path that is no file of a host ends with 2", async () => {
    const { setup, folder, changed } = user();
    writeFileSync(path.join(folder, "notes.json"), "{}");
    const { code, err } = await setup("--wrap", path.join(folder, "notes.json"));
    expect([code, err]).toEqual([
      2,
      `✗ ${JSON.stringify(path.join(folder, "notes.json"))} is no file in which a host has the servers of a project.\n`,
    ]);
    expect((await setup("--wrap", path.join(folder, "gone/.mcp.json"))).code).toBe(2);
    expect(changed()).toEqual([]);
  });
});
