import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { hosts } from "../../src/setup/hosts/index.ts";
import type { Machine } from "../../src/setup/machine.ts";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures/setup");

/** A user who has these hosts, each with entries as people have them, and `files` beside them. */
function user(ids: readonly string[], files: Readonly<Record<string, string>> = {}) {
  const folder = temporaryFolder();
  const [home, cwd] = [path.join(folder, "user"), path.join(folder, "project")];
  mkdirSync(cwd);
  writeFiles(folder, files);
  const machine: Machine = { platform: "linux", home, project: cwd, env: {}, isThere: () => false, list: () => [] };
  const had = hosts
    .filter(({ id }) => ids.includes(id))
    .map((host) => ({ file: host.userFile(machine), bytes: readFileSync(path.join(fixtures, host.id, "entries")) }));
  for (const { file, bytes } of had) {
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  }
  const setup = async (...words: string[]) => {
    const env = { HOME: home, PATH: "/nowhere", MEANWHILE_HOME: undefined };
    const { code, stdout, stderr } = await runCli(["setup", ...words], { cwd, env });
    return { code, out: stdout, err: stderr };
  };
  return { home, cwd, setup, had, read: (name: string) => readFileSync(path.join(home, name), "utf8") };
}

const now = (had: ReturnType<typeof user>["had"]) => had.map(({ file }) => ({ file, bytes: readFileSync(file) }));

describe("meanwhile setup --wrap", () => {
  test("setup --wrap --all on fake homes of eleven hosts, then --unwrap --all: byte-identical", async () => {
    const { setup, had, home } = user(hosts.map(({ id }) => id));
    expect(had).toHaveLength(11);
    const wrapped = await setup("--wrap", "--all");
    expect([wrapped.code, wrapped.out]).toEqual([0, ""]);
    expect(wrapped.err.match(/^✓ .*: wrapped .* in ~\/.*$/gm)).toHaveLength(11);
    for (const { file, bytes } of now(had))
      expect(bytes.toString(), file).toContain(`${home}/.meanwhile/bin/meanwhile"`);
    expect(wrapped.err).toMatch(
      /\nNext {7}start Claude Code, .* and Zed again.*\nTake back {2}meanwhile setup --unwrap --all\n$/,
    );
    expect(wrapped.err, "of what stays as it is, why is said").toContain(
      "· Codex: off was left alone: it is disabled there\n",
    );
    expect(await setup("--unwrap", "--all")).toMatchObject({ code: 0, out: "" });
    expect(now(had)).toEqual(had);
  });

  test("alone lists what could be, and changes nothing; --dry-run shows the diff", async () => {
    const { setup, had, home } = user(["cursor", "codex"]);
    const listed = await setup("--wrap");
    const rows = listed.out.split("\n").map((line) => line.split(/ {2,}/));
    expect(rows[0]).toEqual(["Host", "Entry", "Behind", "What it is"]);
    expect(rows).toContainEqual(["cursor", "playwright", "no", "npx -y @playwright/mcp@latest"]);
    expect(rows, "nothing that may hold a password").toContainEqual([
      "codex",
      "postgres",
      "no",
      "npx -y @modelcontextprotocol/server-postgres",
    ]);
    expect(rows).toContainEqual(["codex", "off", "–", "it is disabled there"]);
    expect(listed.err).toContain("meanwhile setup --wrap postgres ");
    const shown = await setup("--wrap", "--dry-run");
    expect(shown.out).toContain(`+++ ${home}/.cursor/mcp.json\n`);
    expect(shown.out).toContain('\n-\t\t\t"command": "npx",\n');
    expect(now(had)).toEqual(had);
    await setup("--wrap", "playwright");
    expect((await setup("--unwrap")).out, "what is behind it can be seen").toMatch(
      /\ncursor +playwright +yes +npx -y @playwright\/mcp@latest\n/,
    );
  });

  test("an entry by its name wherever it is, in one host, or every entry of a host", async () => {
    const { setup, read, had } = user(["cursor", "vscode", "copilot"]);
    const isIn = (file: string, name: string) => new RegExp(`"--name",\\s*"${name}"`).test(read(file));
    await setup("--wrap", "github", "copilot");
    const [code, mine] = [".config/Code/User/mcp.json", ".copilot/mcp-config.json"];
    expect([isIn(mine, "github"), isIn(mine, "everything"), isIn(code, "github")]).toEqual([true, false, false]);
    const { err } = await setup("--wrap", "github");
    expect(err).toContain("· Copilot CLI: github was left alone: it is behind Meanwhile already\n");
    expect(isIn(code, "github")).toBe(true);
    await setup("--wrap", "cursor");
    expect(isIn(".cursor/mcp.json", "playwright") && isIn(".cursor/mcp.json", "linear")).toBe(true);
    await setup("--unwrap", "github", "cursor", "vscode", "copilot");
    expect([isIn(mine, "github"), isIn(code, "github")]).toEqual([false, false]);
    await setup("--unwrap", "cursor");
    expect(now(had)).toEqual(had);
  });

  test("a project's file has nothing of this machine in it, and is looked at once for two hosts", async () => {
    const project = '{ "mcpServers": { "docs": { "command": "npx", "args": ["-y", "docs"] } } }\n';
    const { setup, cwd } = user([], { "project/.mcp.json": project });
    const { code, err } = await setup("--wrap", "--all", "--project");
    expect([code, err.match(/✓/g)?.length]).toEqual([0, 1]);
    const file = path.join(cwd, ".mcp.json");
    expect(JSON.parse(readFileSync(file, "utf8")).mcpServers.docs).toEqual({
      command: "npx",
      args: ["--no", "meanwhile", "wrap", "--name", "docs", "--", "npx", "-y", "docs"],
    });
    expect(err).toContain("meanwhile setup --unwrap --all --project\n");
    await setup("--unwrap", "--all", "--project");
    expect(readFileSync(file, "utf8")).toBe(project);
  });

  test("a file that cannot be understood keeps no other from it, and ends with 1", async () => {
    const { setup, read } = user(["cursor"], { "user/.codex/config.toml": "broken = \n" });
    const { code, err } = await setup("--wrap", "--all");
    expect(code).toBe(1);
    expect(err).toMatch(/✗ Codex: \S+config\.toml was left alone: /);
    expect(err).toContain("✓ Cursor: wrapped playwright, ");
    expect(read(".codex/config.toml")).toBe("broken = \n");
  });

  test("words that make no sense end with 2 and one sentence", async () => {
    const { setup, had } = user(["cursor"]);
    const said = async (...words: string[]) => {
      const { code, err } = await setup(...words);
      return [code, err];
    };
    const [both, removed, typo, none, noProject] = await Promise.all([
      said("--wrap", "--unwrap", "--all"),
      said("--wrap", "--remove", "--all"),
      said("--wrap", "playwrigth"),
      said("--unwrap", "zzz"),
      said("--wrap", "windsurf", "--project"),
    ]);
    expect(both).toEqual([2, "✗ --wrap and --unwrap do not go together; leave one of them out.\n"]);
    expect(removed).toEqual([2, "✗ --wrap and --remove do not go together; leave one of them out.\n"]);
    expect(typo).toEqual([2, '✗ "playwrigth" is neither a host nor an entry of one; did you mean playwright?\n']);
    expect(none).toEqual([
      2,
      '✗ "zzz" is neither a host nor an entry of one; there are playwright, linear, internal, python, registered\n',
    ]);
    expect(noProject).toEqual([2, "✗ Windsurf has no file for a project; leave --project out.\n"]);
    expect(now(had)).toEqual(had);
  });
});
