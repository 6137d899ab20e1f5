import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { parse } from "@decimalturn/toml-patch";
import { describe, expect, test } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { hosts } from "../../src/setup/hosts/index.ts";
import { runCli } from "../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

/** A user with these files, in a project with commands, at a computer without any host's program. */
function user(
  files: Readonly<Record<string, string>> = {},
  project: Readonly<Record<string, string>> = { "commands/hello/world.ts": "" },
) {
  const folder = temporaryFolder();
  writeFiles(folder, Object.fromEntries(Object.entries(files).map(([name, text]) => [path.join("user", name), text])));
  writeFiles(
    folder,
    Object.fromEntries(Object.entries(project).map(([name, text]) => [path.join("project", name), text])),
  );
  const [home, cwd] = [path.join(folder, "user"), path.join(folder, "project")];
  mkdirSync(home, { recursive: true });
  const setup = async (words: readonly string[], more: Record<string, string> = {}) => {
    const env = { HOME: home, PATH: "/nowhere", MEANWHILE_HOME: undefined, ...more };
    const { code, stdout, stderr } = await runCli(["setup", ...words], { cwd, env });
    return { code, out: stdout, err: stderr };
  };
  const read = (name: string) => readFileSync(path.join(home, name), "utf8");
  return { home, cwd, setup, read };
}

interface Entry {
  readonly env?: object;
  readonly environment?: object;
}

interface Written {
  readonly mcpServers: { readonly meanwhile: { readonly args: readonly string[] } };
}

function fingerprint(folder: string): string {
  const hash = createHash("sha256");
  for (const name of globSync("**/*", { cwd: folder, exclude: ["**/.meanwhile/cache/**"] }).toSorted()) {
    const file = path.join(folder, name);
    hash.update(`${name}\n${statSync(file).mtimeMs}\n`);
    if (statSync(file).isFile()) hash.update(readFileSync(file));
  }
  return hash.digest("hex");
}

describe("meanwhile setup", () => {
  test("alone lists the hosts, those that were found first, and changes nothing", async () => {
    const { setup, home, cwd } = user({
      ".cursor/mcp.json": "{}",
      ".codex/config.toml": "broken = \n",
      ".gemini/settings.json": '{"mcpServers":{"meanwhile":{}}}',
    });
    const before = [fingerprint(home), fingerprint(cwd)];
    const { code, out, err } = await setup([]);
    expect(code).toBe(0);
    const rows = out.split("\n").map((line) => line.split(/ {2,}/));
    expect(rows[0]).toEqual(["Host", "Found", "Entry", "Config file"]);
    expect(rows.slice(1, 5)).toEqual([
      ["codex", "yes", "broken", "~/.codex/config.toml"],
      ["cursor", "yes", "no", "~/.cursor/mcp.json"],
      ["gemini", "yes", "foreign", "~/.gemini/settings.json"],
      ["claude-code", "no", "no", "~/.claude.json"],
    ]);
    expect(rows).toHaveLength(13);
    expect(Math.max(...out.split("\n").map((line) => line.length)), "it fits a terminal").toBeLessThanOrEqual(80);
    expect(err).toContain("meanwhile setup cursor ");
    expect([fingerprint(home), fingerprint(cwd)]).toEqual(before);
  });

  test("--dry-run prints a diff that changes nothing; without it, that is what happens; --remove takes it back", async () => {
    const original = 'model = "gpt-5"\n';
    const { setup, home, cwd, read } = user({
      ".codex/config.toml": original,
      ".cursor/mcp.json": '{\n  "mcpServers": {}\n}\n',
    });
    const before = fingerprint(home);
    const shown = await setup(["--all", "--dry-run"]);
    expect(shown).toMatchObject({ code: 0 });
    expect(shown.out).toContain(
      `+++ ${home}/.codex/config.toml\n@@ -1 +1,5 @@\n model = "gpt-5"\n+\n+[mcp_servers.meanwhile]\n`,
    );
    expect(shown.out).toContain(`-  "mcpServers": {}\n+  "mcpServers": {\n`);
    expect(fingerprint(home)).toBe(before);

    const added = await setup(["--all"]);
    expect(added).toMatchObject({ code: 0, out: "" });
    expect(added.err).toMatch(
      /✓ Codex: added meanwhile to ~\/\.codex\/config\.toml\n {2}Backup {3}~\/\.meanwhile\/setup\/\w+-config\.toml\n {2}Next {5}Start Codex again/,
    );
    const launcher = `${home}/.meanwhile/bin/meanwhile`;
    const command = `command = "${launcher}"\nargs = [ "-C", "${cwd}", "serve" ]\n`;
    expect(read(".codex/config.toml")).toBe(`${original}\n[mcp_servers.meanwhile]\n${command}`);
    expect(added.err, "what hosts will run is said").toContain(`It runs  ${quoteWord(launcher)} -C ${cwd} serve\n`);

    const removed = await setup(["--remove", "--all"]);
    expect(removed.err).toMatch(/^✓ Codex: removed meanwhile from .*\n.*\n✓ Cursor: removed meanwhile from /);
    expect([read(".codex/config.toml"), read(".cursor/mcp.json")]).toEqual([original, '{\n  "mcpServers": {}\n}\n']);
  });

  test("one file that cannot be understood does not keep the others from it, and ends with 1", async () => {
    const { setup, read } = user({ ".claude.json": '{ "mcpServers": {\n' });
    const { code, err } = await setup(["claude-code", "zed", "--name", "reports", "--no-bundled"], {
      MEANWHILE_HOME: "/tmp/../tmp/own-home",
    });
    expect(code).toBe(1);
    expect(err).toMatch(/✗ Claude Code: \S+\.claude\.json was left alone: line 2, column 1: close brace expected\.\n/);
    expect(err).toContain("Zed was not found on this machine");
    expect(read(".claude.json")).toBe('{ "mcpServers": {\n');
    expect(JSON.parse(read(".config/zed/settings.json")).context_servers.reports).toMatchObject({
      args: expect.arrayContaining(["--no-bundled"]),
      env: { MEANWHILE_HOME: "/tmp/own-home" },
    });
  });

  test("an entry never runs what lies in the folder that a host starts it in: it names its own", async () => {
    const argsOf = ({ read }: ReturnType<typeof user>) =>
      (JSON.parse(read(".cursor/mcp.json")) as Written).mcpServers.meanwhile.args;
    const [none, config, typed, typedInProject, pack] = [
      user({}, { "notes.txt": "" }),
      user({}, { "meanwhile.config.json": "{}" }),
      user({}, { "tools/a/b.ts": "" }),
      user({}, { "tools/a/b.ts": "", "commands/a/b.ts": "" }),
      user({ ".meanwhile/config.json": '{ "commands": ["/tmp"] }' }, { "notes.txt": "" }),
    ];
    await Promise.all([
      ...[none, config, pack].map(({ setup }) => setup(["cursor"])),
      ...[typed, typedInProject].map(({ setup }) => setup(["cursor", "--commands", "tools"])),
    ]);
    expect(argsOf(none)).toEqual(["-C", `${none.home}/.meanwhile`, "serve"]);
    expect(argsOf(config)).toEqual(["-C", config.cwd, "serve"]);
    expect(argsOf(typed)).toEqual(["-C", `${typed.home}/.meanwhile`, "serve", "--commands", `${typed.cwd}/tools`]);
    expect(argsOf(typedInProject)).toEqual([
      "-C",
      typedInProject.cwd,
      "serve",
      "--commands",
      `${typedInProject.cwd}/tools`,
    ]);
    expect(argsOf(pack)).toEqual(["-C", `${pack.home}/.meanwhile`, "serve"]);
    expect(existsSync(`${none.home}/.meanwhile`)).toBe(true);
  });

  test("what it says it runs can be pasted into a shell, with the variables of the entry", async () => {
    const { setup, cwd } = user();
    const { err } = await setup(["cursor"], { MEANWHILE_HOME: `${cwd}/my home` });
    expect(err).toContain(`It runs  MEANWHILE_HOME='${cwd}/my home' '${cwd}/my home/bin/meanwhile' -C ${cwd} serve\n`);
  });

  test("--env writes variables into the entry, in the words of every host; again it keeps what is not named", async () => {
    const { setup, read } = user();
    const ids = hosts.map(({ id }) => id);
    const { code, err } = await setup([...ids, "--env", "ACME_KEY=a=b c", "--env=EMPTY="]);
    expect([code, err.match(/✓/g)?.length]).toEqual([0, ids.length]);
    expect(err).toContain("It runs  ACME_KEY='a=b c' EMPTY=''");
    const files = [...err.matchAll(/added meanwhile to ~\/(.+)$/gm)].map((match) => match[1] as string);
    const envs = files.map((name) => {
      const config = name.endsWith(".toml") ? parse(read(name)) : JSON.parse(read(name));
      const { env, environment } = Object.values(config as object).flatMap(
        (servers) => (servers as { meanwhile?: Entry }).meanwhile ?? [],
      )[0] as Entry;
      return [name, environment ?? env];
    });
    expect(envs).toHaveLength(ids.length);
    for (const [name, env] of envs) expect(env, String(name)).toEqual({ ACME_KEY: "a=b c", EMPTY: "" });

    await setup(["cursor", "--env", "ACME_KEY=new"]);
    expect(JSON.parse(read(".cursor/mcp.json")).mcpServers.meanwhile.env).toEqual({ ACME_KEY: "new", EMPTY: "" });
    await setup(["cursor"]);
    expect(JSON.parse(read(".cursor/mcp.json")).mcpServers.meanwhile.env).toEqual({ ACME_KEY: "new", EMPTY: "" });
    expect((await setup(["cursor", "--dry-run", "--env", "OTHER=x"])).out).toContain('+        "OTHER": "x"');
    const shared = await setup(["cursor", "--project", "--env", "ACME_KEY=x"]);
    expect(shared.err).toContain("The values are in a file of the project: whoever gets that reads them.");
  });

  test("--env with what is no name, or without a value, ends with 2 and a sentence that does not repeat the value", async () => {
    const { setup, home } = user();
    const said = async (...words: string[]) => {
      const { code, err } = await setup(["cursor", ...words]);
      expect([code, err.includes("s3cret")]).toEqual([2, false]);
      return err;
    };
    for (const name of ["1X", "A B", "A-B", "", "A\u001b"])
      expect(await said("--env", `${name}=s3cret`)).toMatch(
        /^✗ --env: ".*" is not the name of a variable; use letters, digits and _, the first no digit, /,
      );
    expect(await said("--env", "ACME_KEY")).toBe(
      "✗ --env ACME_KEY has no value; write --env ACME_KEY=value, or --env ACME_KEY= for an empty one.\n",
    );
    expect(await said("--remove", "--env", "A=s3cret")).toContain("--env and --remove do not go together");
    expect(existsSync(path.join(home, ".cursor"))).toBe(false);
  });

  test("an entry of another tool is refused, also by --dry-run and --remove, until --replace takes its place and --remove puts it back", async () => {
    const own = '{ "mcpServers": { "github": { "command": "mine", "env": { "TOKEN": "ghp_0123" } } } }\n';
    const { setup, read, home } = user({ ".cursor/mcp.json": own, ".gemini/settings.json": own });
    const before = fingerprint(home);
    const why = (host: string, cure: string) =>
      `: the entry github that ${host} has there was not written by setup; ${cure}.\n`;
    const cure = "give ours another name with --name, or put ours in its place with --replace";
    for (const words of [["cursor"], ["cursor", "--dry-run"]]) {
      const { code, out, err } = await setup([...words, "--name", "github"]);
      expect([code, out, err]).toEqual([
        1,
        "",
        `✗ Cursor: ${home}/.cursor/mcp.json was left alone${why("Cursor", cure)}`,
      ]);
    }
    expect(fingerprint(home)).toBe(before);

    expect((await setup(["cursor", "--name", "github", "--replace"])).err).toMatch(
      /✓ Cursor: updated github in .*\n {2}Backup /,
    );
    expect(read(".cursor/mcp.json")).not.toContain("ghp_0123");
    const { code, err } = await setup(["--remove", "--all", "--name", "github"]);
    expect(code).toBe(1);
    expect(err).toContain("✓ Cursor: put github in ~/.cursor/mcp.json back as it was before setup\n");
    expect(err).toContain(why("Gemini CLI", "take it out by hand if you want it gone"));
    expect([read(".cursor/mcp.json"), read(".gemini/settings.json")]).toEqual([own, own]);
    expect(await setup(["cursor", "--remove", "--replace"])).toMatchObject({
      code: 2,
      err: expect.stringContaining("do not go together"),
    });
  });

  test("--project writes what can be shared, and says what is needed", async () => {
    const { setup, cwd, home } = user(
      {},
      { "tools/a/b.ts": "", "meanwhile.config.json": '{ "name": "Ada\'s reports" }' },
    );
    const { code, err } = await setup(["claude-code", "vscode", "--project", "--commands", "tools"]);
    expect(code).toBe(0);
    const args = ["--no", "meanwhile", "serve", "--commands", "tools"];
    expect(JSON.parse(readFileSync(path.join(cwd, ".mcp.json"), "utf8"))).toEqual({
      mcpServers: { "Ada-s-reports": { type: "stdio", command: "npx", args } },
    });
    expect(JSON.parse(readFileSync(path.join(cwd, ".vscode/mcp.json"), "utf8")).servers).toHaveProperty(
      "Ada-s-reports",
    );
    expect(statSync(path.join(cwd, ".mcp.json")).mode & 0o777).toBe(0o644);
    expect(err).toContain("npm install --save-dev meanwhile");
    expect(existsSync(path.join(home, ".claude.json"))).toBe(false);
    expect(await setup(["claude-code", "vscode", "--project", "--remove"])).toMatchObject({ code: 0 });
    expect(globSync("**/*", { cwd }).toSorted()).toEqual(["meanwhile.config.json", "tools", "tools/a", "tools/a/b.ts"]);
  });

  test("words that make no sense end with 2 and one sentence", async () => {
    const { setup, home } = user();
    const said = async (...words: string[]) => {
      const { code, err, out } = await setup(words);
      expect([code, out]).toEqual([2, ""]);
      return err;
    };
    const answers = await Promise.all([
      said("cursr"),
      said("claude"),
      said("windsurf", "--project"),
      said("--remove"),
      said("cursor", "--commands", "nowhere"),
      ...["$(touch x)", "a;b", "a\nb", 'a"b', "--", "a&b", "__proto__", ""].map((name) =>
        said("cursor", `--name=${name}`),
      ),
    ]);
    const [typo, short, noProject, noHost, noFolder, ...names] = answers;
    expect(typo).toMatch(/"cursr" is not a host I know; did you mean cursor\?\n {2}There are: claude-code, /);
    expect(short).toContain("did you mean claude-code or claude-desktop?");
    expect(noProject).toBe("✗ Windsurf has no file for a project; leave --project out.\n");
    expect(noHost).toContain("Say from which hosts to take it, or --all");
    expect(noFolder).toContain("there is no folder");
    for (const answer of names) expect(answer).toMatch(/is not a name hosts take; use up to 64 letters/);
    expect(globSync("**/*", { cwd: home, exclude: ["**/.meanwhile/**"] })).toEqual([]);
  });

  test("a file outside of reach is told in a sentence", async () => {
    const { setup, home } = user();
    writeFileSync(path.join(home, ".cursor"), "a file where a folder should be");
    const { code, err } = await setup(["cursor"]);
    expect(code).toBe(1);
    expect(err).toMatch(/✗ Cursor: .*\.cursor\/mcp\.json cannot be read: ENOTDIR.*\n$/);
  });
});
