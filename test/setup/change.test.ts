import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { replaceFile } from "../../src/setup/config-file.ts";
import { hosts } from "../../src/setup/hosts/index.ts";
import { jsonText } from "../../src/setup/json-text.ts";
import { tomlText } from "../../src/setup/toml-text.ts";
import { rounds } from "../helpers/rounds.ts";
import { hostNamed, launch, workplace } from "./workplace.ts";

describe("added and removed, a file is as it was, byte for byte", () => {
  test.each([
    ["an empty file", ""],
    ["a file with nothing but a line end", "\n"],
    ["an empty object", "{}"],
    ["an empty object of two lines", "{\n}\n"],
    ["blanks in an empty object", "{ }\n"],
    ["a file on one line", '{ "mcpServers": { "a": { "command": "a" } } }\n'],
    ["a file on one line without a blank", '{"mcpServers":{"a":{"command":"a"}}}'],
    ["an empty list of servers", '{"mcpServers":{}}'],
    ["no list of servers", '{\n  "theme": "dark"\n}\n'],
    ["tabs", '{\n\t"mcpServers": {\n\t\t"a": {}\n\t}\n}\n'],
    ["tabs, and no list of servers", '{\n\t"theme": "dark"\n}'],
    ["line ends of Windows", '{\r\n  "theme": "dark",\r\n  "mcpServers": {\r\n    "a": {}\r\n  }\r\n}\r\n'],
    ["line ends of both kinds", '{\r\n  "theme": "dark",\n  "mcpServers": {\r\n    "a": {}\n  }\r\n}'],
    ["a byte order mark", '\uFEFF{\n  "theme": "dark"\n}\n'],
    [
      "comments everywhere",
      '// a\n{ // b\n  /* c */ "mcpServers": { // d\n    "a": {} // e\n    // f\n  } /* g */\n  // h\n}\n// i\n',
    ],
    ["nothing but comments", "// nothing yet\n/* really */"],
    ["comments in an empty object", '{\n  "mcpServers": {\n    // none yet\n  }\n}\n'],
    ["trailing commas", '{\n  "mcpServers": {\n    "a": {},\n    "b": {}, // last\n  },\n}\n'],
    ["a trailing comma on one line", '{"mcpServers":{"a":{},},}'],
    ["servers before and after on one line each", '{\n  "mcpServers": { "a": {}, "b": {} },\n  "z": 1\n}\n'],
    ["a key given twice", '{\n  "mcpServers": { "a": {} },\n  "mcpServers": { "b": {} }\n}\n'],
    ["no line end at the end", '{\n    "mcpServers": {\n        "a": {}\n    }\n}'],
  ])("JSON: %s", (_, before) => {
    const { add, remove, read } = workplace("claude-code", before);
    expect(add().kind).toBe("added");
    expect(read()).not.toBe(before);
    expect(add().kind).toBe("unchanged");
    expect(remove().kind).toBe("removed");
    expect(read()).toBe(before);
  });

  test.each([
    ["an empty file", ""],
    ["only comments", "# mine\n"],
    ["no line end at the end", 'model = "gpt-5"'],
    ["line ends of Windows", '[tui]\r\nx = 1\r\n\r\n[mcp_servers.a]\r\ncommand = "a"\r\n'],
    ["line ends of both kinds", 'model = "x"\r\n[tui]\nx = 1\n'],
    ["blank lines at the end", "[tui]\nx = 1\n\n\n\n"],
    ["an inline table", 'mcp_servers = { a = { command = "a" } } # short\n[tui]\nx = 1\n'],
    ["dotted keys", 'mcp_servers.a.command = "a"\nx = 1\n\n[tui]\ny = 2\n'],
    [
      "lists and texts that look like headers",
      'list = [\n  ["[mcp_servers.meanwhile]"],\n]\ntext = """\n[mcp_servers.meanwhile]\\"""\n"""\nraw = \'\'\'\n[x]\'\'\'\n',
    ],
    ["lists of tables", "[[rules]]\na = 1\n\n[[rules]]\na = 2 # two\n"],
    ["dates and numbers", "at = 2026-07-28T12:00:00Z\nday = 2026-07-28\nmask = 0xFF\nbig = 1_000_000\n"],
    ["a byte order mark", '\uFEFFmodel = "x"\n'],
  ])("TOML: %s", (_, before) => {
    const { add, remove, read } = workplace("codex", before);
    expect(add().kind).toBe("added");
    expect(add().kind).toBe("unchanged");
    expect(remove().kind).toBe("removed");
    expect(read()).toBe(before);
  });

  test("a file that was not there is gone again, with the folders made for it", () => {
    const { add, remove, file, folder } = workplace("cline");
    mkdirSync(path.join(folder, "user"));
    expect(add()).toEqual({ kind: "added", backup: undefined });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(remove()).toEqual({ kind: "removed", backup: undefined });
    expect(readdirSync(path.join(folder, "user"))).toEqual([]);
  });

  test("whatever JSON there is, however it is laid out", () => {
    const key = fc.oneof(fc.constantFrom("mcpServers", "a", "b", "meanwhile "), fc.string());
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue({ maxDepth: 0 }),
        fc.array(tie("value"), { maxLength: 3 }),
        fc.dictionary(key, tie("value"), { maxKeys: 4 }),
      ),
    }));
    const servers = fc.dictionary(key, value, { maxKeys: 3 });
    const text = fc
      .tuple(
        fc.dictionary(key, value, { maxKeys: 4 }),
        fc.option(servers, { nil: undefined }),
        fc.constantFrom("", " ", "  ", "\t", "    "),
        fc.constantFrom("\n", "\r\n"),
        fc.constantFrom("", "\n"),
      )
      .map(
        ([others, own, step, eol, end]) =>
          JSON.stringify({ ...others, mcpServers: own }, null, step).replaceAll("\n", eol) + end,
      );
    fc.assert(
      fc.property(text, (before) => {
        const after = jsonText.set(before, ["mcpServers", "meanwhile"], { args: ["x"] });
        const config = JSON.parse(before) as { mcpServers?: object };
        expect(JSON.parse(after)).toEqual({
          ...config,
          mcpServers: { ...config.mcpServers, meanwhile: { args: ["x"] } },
        });
        const left = jsonText.remove(after, ["mcpServers", "meanwhile"]);
        if (config.mcpServers !== undefined) expect(left).toBe(before);
        else if (Object.keys(config).length > 0) expect(jsonText.remove(left, ["mcpServers"])).toBe(before);
      }),
      { numRuns: 60 * rounds.propertyFactor },
    );
  });
});

describe("an entry of ours that is there already", () => {
  const old =
    '{\n  "mcpServers": {\n    "meanwhile": {\n      "command": "meanwhile", // by hand\n      "args": ["serve"],\n      "timeout": 90,\n      "env": { "A": "1" }\n    },\n    "b": {}\n  }\n}\n';

  test("is brought up to date in its place, and keeps what its user added", () => {
    const { add, read } = workplace("cline", old);
    const { kind, backup } = add({ command: "new", args: ["x"], env: { B: "2" } });
    expect(kind).toBe("updated");
    expect(readFileSync(backup ?? "", "utf8")).toBe(old);
    expect(read()).toBe(
      '{\n  "mcpServers": {\n    "meanwhile": {\n      "command": "new", // by hand\n      "args": [\n        "x"\n      ],\n      "timeout": 90,\n      "env": {\n        "A": "1",\n        "B": "2"\n      }\n    },\n    "b": {}\n  }\n}\n',
    );
  });

  test("comes back byte for byte, also after two updates", () => {
    const { add, remove, read } = workplace("cline", old);
    add();
    add({ command: "two", args: ["2"] });
    expect(remove().kind).toBe("restored");
    expect(read()).toBe(old);
    expect(() => remove(), "now it is not ours any more").toThrow("was not written by setup");
  });

  test.each([
    ["cline", old, (text: string) => text.replace('"b": {}', '"b": { "new": 1 }')],
    [
      "codex",
      '[mcp_servers.meanwhile]\ncommand = "meanwhile"\nargs = ["serve"]\n\n[mcp_servers.meanwhile.env]\nA = "1"\n',
      (text: string) => `${text}\n[tui]\nx = 1\n`,
    ],
  ])("comes back in %s with its values when the rest was changed in between", (id, text, change) => {
    const { add, remove, read, write, target } = workplace(id, text);
    const parse = (written: string) => (target.host.format === "json" ? jsonText : tomlText).read(written);
    add();
    write(change(read()));
    add({ command: "two", args: ["2"] });
    expect(remove().kind).toBe("restored");
    expect(parse(read())).toEqual(parse(change(text)));
  });

  test("cannot come back when its backup is gone, and then nothing is changed", () => {
    const { add, remove, read, write } = workplace("cline", old);
    rmSync(add().backup ?? "");
    write(read().replace('"b": {}', '"b": { "new": 1 }'));
    const before = read();
    expect(() => remove()).toThrow(
      "the backup of the entry meanwhile that was there before is gone; change the entry by hand.",
    );
    expect(read()).toBe(before);
  });

  test("is left alone by a removal when setup never wrote it, unless it is just what setup would write", () => {
    const byUser = workplace("cline", old);
    expect(() => byUser.remove()).toThrow(
      `${byUser.file} was left alone: the entry meanwhile that Cline has there was not written by setup; take it out by hand`,
    );
    expect(byUser.read()).toBe(old);
    const byHand = workplace(
      "cursor",
      JSON.stringify({ mcpServers: { meanwhile: hostNamed("cursor").toEntry(launch) } }),
    );
    expect(byHand.remove().kind).toBe("removed");
    expect(JSON.parse(byHand.read())).toEqual({ mcpServers: {} });
  });

  test("two updates, and the removal still brings back the first text", () => {
    const { add, remove, read } = workplace("cline", '{ "mcpServers": {} }');
    add({ command: "one", args: [] });
    add({ command: "two", args: ["2"] });
    remove();
    expect(read()).toBe('{ "mcpServers": {} }');
  });

  test("in TOML its other keys, its tables and its comments stay", () => {
    const before =
      '# ours\n[mcp_servers.meanwhile]\ncommand = "meanwhile" # by hand\nargs = ["serve"]\nstartup_timeout_sec = 20\n\n[mcp_servers.meanwhile.env]\nA = "1"\n\n# next\n[mcp_servers.b]\ncommand = "b"\n';
    const { add, remove, read } = workplace("codex", before);
    expect(add({ command: "new", args: ["x"], env: { B: "2" } }).kind).toBe("updated");
    expect(read()).toBe(
      '# ours\n[mcp_servers.meanwhile]\ncommand = "new" # by hand\nargs = ["x"]\nstartup_timeout_sec = 20\n\n[mcp_servers.meanwhile.env]\nA = "1"\nB = "2"\n\n# next\n[mcp_servers.b]\ncommand = "b"\n',
    );
    remove();
    expect(read()).toBe(before);
  });

  test.each([
    ["as setup writes it", "/usr/bin/node", ["/opt/meanwhile/bin/meanwhile.cjs", "-C", "/srv/p", "serve"], true],
    ["for a project", "npx", ["--no", "meanwhile", "serve"], true],
    ["for a project, by an earlier version", "npx", ["meanwhile", "serve", "--no-bundled"], true],
    ["by npx with a version", "npx", ["-y", "meanwhile@0.1.0", "-C", "/srv/p", "serve"], true],
    ["on Windows", "cmd", ["/c", "npx", "-y", "meanwhile@0.1.0", "serve"], true],
    ["by Windows' node", "C:\\node\\node.exe", ["C:\\m\\bin\\meanwhile.cjs", "serve"], true],
    ["by its name alone", "/usr/local/bin/meanwhile", ["serve"], true],
    ["another package", "npx", ["-y", "meanwhile-but-mine", "serve"], false],
    ["another verb", "meanwhile", ["daemon", "stop"], false],
    ["a word that is not the verb", "meanwhile", ["call", "serve"], false],
    ["a shell around it", "sh", ["-c", "meanwhile serve"], false],
    ["another program with our words", "github-mcp", ["meanwhile.cjs", "serve"], false],
  ])("is known by what it runs: %s", (_, command, args, isOurs) => {
    const { add } = workplace("cursor", JSON.stringify({ mcpServers: { meanwhile: { command, args } } }));
    if (isOurs) expect(add().kind).toBe("updated");
    else expect(() => add()).toThrow("was not written by setup");
  });
});

/** A server of another tool under the name we would take, with what must never reach us. */
const another = { command: "github-mcp", args: ["stdio"] };
const token = "ghp_0123456789";
const foreignFiles: Record<string, (variables: string) => string> = {
  json: (key) =>
    `{\n  "${key}": {\n    "meanwhile": ${JSON.stringify({ ...another, env: { TOKEN: token } })},\n    "b": {}\n  }\n}\n`,
  jsonc: (key) =>
    `// mine\n{\n  "${key}": {\n    /* GitHub */ "meanwhile": ${JSON.stringify({ ...another, env: { TOKEN: token } })}, // keep\n    "b": {},\n  },\n}\n`,
  "an address": (key) =>
    `{ "${key}": { "meanwhile": { "url": "https://api.example/mcp", "headers": { "Authorization": "${token}" } }, "b": {} } }\n`,
  "one list": (key) =>
    `{ "${key}": { "meanwhile": { "type": "local", "command": ["github-mcp", "stdio"], "environment": { "TOKEN": "${token}" } }, "b": {} } }\n`,
  toml: (key) =>
    `[${key}.meanwhile]\ncommand = "github-mcp"\nargs = ["stdio"]\n\n[${key}.meanwhile.env]\nTOKEN = "${token}"\n\n[${key}.b]\ncommand = "b"\n`,
  "inline toml": (key) =>
    `[${key}]\nmeanwhile = { command = "github-mcp", env = { TOKEN = "${token}" } }\nb = { command = "b" }\n`,
};

describe("an entry of another tool", () => {
  const cases = hosts.flatMap(({ id, format }) =>
    Object.keys(foreignFiles)
      .filter((name) => name.endsWith("toml") === (format === "toml"))
      .map((name) => [id, name] as const),
  );

  test.each(cases)("in %s, written as %s, is refused, and --replace takes nothing of it along", (id, layout) => {
    const { host } = workplace(id).target;
    const text = foreignFiles[layout]?.(host.place({}).join(".")) ?? "";
    const { add, replace, remove, read, file } = workplace(id, text);
    const refusal = `${file} was left alone: the entry meanwhile that ${host.title} has there was not written by setup; `;
    expect(() => add()).toThrow(
      `${refusal}give ours another name with --name, or put ours in its place with --replace.`,
    );
    expect(() => remove()).toThrow(`${refusal}take it out by hand if you want it gone.`);
    expect(read()).toBe(text);

    const { kind, backup } = replace();
    expect(kind).toBe("updated");
    expect(readFileSync(backup ?? "", "utf8")).toBe(text);
    expect(read()).not.toContain(token);
    expect(read()).not.toContain("github");
    const format = host.format === "json" ? jsonText : tomlText;
    const servers = format.read(read())[host.place({})[0] ?? ""];
    expect(servers).toEqual({ b: expect.anything(), meanwhile: host.toEntry(launch) });
    expect(replace().kind).toBe("unchanged");
    expect(remove().kind, "what was there before comes back").toBe("restored");
    expect(read()).toBe(text);
  });

  test("written over ours later is not ours any more", () => {
    const { add, replace, remove, read, write } = workplace("cursor", "{}");
    add();
    const theirs = JSON.stringify({ mcpServers: { meanwhile: another } });
    write(theirs);
    expect(() => add()).toThrow("was not written by setup");
    expect(() => remove()).toThrow("was not written by setup");
    expect(read()).toBe(theirs);
    replace();
    expect(remove().kind).toBe("restored");
    expect(read()).toBe(theirs);
  });
});

describe("what somebody changed in between", () => {
  test("stays, while our entry and the list we made for it go", () => {
    const { add, remove, read, write } = workplace("claude-code", '{\n  "theme": "dark"\n}\n');
    add();
    write(read().replace('"theme": "dark"', '"theme": "light"'));
    remove();
    expect(read()).toBe('{\n  "theme": "light"\n}\n');
  });

  test("a server that was added to our list keeps it", () => {
    const { add, remove, read, write } = workplace("claude-code", "{}\n");
    add();
    write(read().replace('"mcpServers": {', '"mcpServers": {\n    "b": {},'));
    remove();
    expect(JSON.parse(read())).toEqual({ mcpServers: { b: {} } });
  });

  test("a file we made is kept once there is something else in it, even if we wrote to it again", () => {
    const { add, remove, read, write, file } = workplace("cursor");
    add();
    write(read().replace("{", '{\n  "mine": true,'));
    add({ type: "stdio", command: "newer", args: [] });
    remove();
    expect(JSON.parse(read())).toEqual({ mine: true });
    write(read().replace(/"mine": true,?/, ""));
    expect(existsSync(file)).toBe(true);
  });

  test("a file we made and its host laid out anew is removed all the same", () => {
    const { add, remove, read, write, file } = workplace("cursor");
    add();
    write(JSON.stringify(JSON.parse(read())));
    remove();
    expect(existsSync(file)).toBe(false);
  });

  test("two names do not get in each other's way", () => {
    const { add, remove, read } = workplace("codex", "[tui]\nx = 1\n");
    add();
    add({ command: "other", args: [] }, "other");
    remove();
    expect(read()).toBe('[tui]\nx = 1\n\n[mcp_servers.other]\ncommand = "other"\nargs = []\n');
    remove("other");
    expect(read()).toBe("[tui]\nx = 1\n");
  });

  test("a record that is lost or damaged costs no more than the blanks around our entry", () => {
    const { add, remove, read, folder } = workplace("cursor", '{\n  "theme": 1\n}\n');
    add();
    writeFileSync(path.join(folder, "home/setup/record.json"), "{}");
    expect(remove().kind).toBe("removed");
    expect(read()).toBe('{\n  "theme": 1,\n  "mcpServers": {}\n}\n');
  });

  test("a backup that was tampered with is not brought back", () => {
    const { add, remove, read } = workplace("cursor", '{ "mcpServers": { } }');
    writeFileSync(add().backup ?? "", "something else");
    remove();
    expect(read()).toBe('{ "mcpServers": {} }');
  });
});

describe("refused, in one sentence, and left alone", () => {
  test.each([
    [
      "a brace is missing",
      "claude-code",
      '{\n  "a": {\n',
      /\.claude\.json was left alone: line 3, column 1: close brace expected\.$/,
    ],
    ["a value is missing", "cursor", '{\n  "a": ,\n}', /line 2, column 8: value expected/],
    ["it is a list", "cursor", "[]", /line 1, column 1: an object \{ … \} was expected/],
    ["the servers are a list", "cursor", '{ "mcpServers": [] }', /line 1, column 17: "mcpServers" is not an object/],
    ["the servers are null", "zed", '{ "context_servers": null }', /"context_servers" is not an object/],
    [
      "it is not UTF-8",
      "cursor",
      Buffer.from([0x7b, 0xff, 0x7d]),
      /mcp\.json is not UTF-8 text, so it was left alone\.$/,
    ],
    ["it is not TOML", "codex", "model = \n[tui]\n", /config\.toml was left alone: line 2, column 1: /],
    ["the servers are a number", "codex", "mcp_servers = 3\n", /"mcp_servers" is not a table/],
    [
      "the servers are written so that other lines would change",
      "codex",
      'mcp_servers = { a = { command = "a" } }\r\n[tui]\nx = 1\n',
      /cannot be changed without touching other lines/,
    ],
  ])("%s", (_, id, content, sentence) => {
    const { add, file } = workplace(id, content);
    expect(() => add()).toThrow(sentence);
    expect(readFileSync(file)).toEqual(Buffer.from(content as string));
  });

  test("a comment that would go with our entry", () => {
    const ours = `meanwhile = { command = ${JSON.stringify(launch.command)}, args = ${JSON.stringify(launch.args)} }`;
    const { remove, read } = workplace("codex", `[mcp_servers]\n# precious\n${ours}\nb = { command = "b" }\n`);
    expect(() => remove()).toThrow(
      /cannot be changed without touching other lines; change mcp_servers\.meanwhile there by hand/,
    );
    expect(read()).toContain("# precious\nmeanwhile");
  });

  test("a read-only file", () => {
    const { add, file, read } = workplace("cursor", "{}");
    chmodSync(file, 0o444);
    expect(() => add()).toThrow(/is read-only, so it was left alone/);
    expect(read()).toBe("{}");
  });

  test("a file that its host wrote while we thought", () => {
    const { file, read } = workplace("cursor", "{}");
    const replace = (expected: string | undefined) => () =>
      replaceFile({
        file,
        expected: expected === undefined ? undefined : Buffer.from(expected),
        bytes: Buffer.from("ours"),
        mode: 0o600,
      });
    expect(replace("{ }")).toThrow(/was changed by somebody else just now/);
    expect(replace(undefined)).toThrow(/was changed by somebody else just now/);
    expect(read()).toBe("{}");
    expect(readdirSync(path.dirname(file)), "nothing is left of the attempt").toEqual(["mcp.json"]);
  });

  test("any file, when no backup can be kept", () => {
    const { add, read, folder } = workplace("cursor", "{}");
    writeFileSync(path.join(folder, "home"), "a file where the home should be");
    expect(() => add()).toThrow(/^Nothing was changed: a backup cannot be kept in /);
    expect(read()).toBe("{}");
  });

  test("a folder in its place, and a link that leads nowhere", () => {
    const { add, file } = workplace("cursor");
    mkdirSync(file, { recursive: true });
    expect(() => add()).toThrow(/is not a file/);
    const other = workplace("cursor");
    mkdirSync(path.dirname(other.file), { recursive: true });
    symlinkSync("/nowhere/at/all", other.file);
    expect(() => other.add()).toThrow(/is a link that leads nowhere/);
  });
});

describe("nested 200,000 deep", () => {
  const deep = 200_000;
  const around = (open: string, close: string) => open.repeat(deep) + close.repeat(deep);
  test.each([
    ["JSON objects", "cursor", around('{"a":', "}").replace("}", "1}")],
    ["JSON lists", "claude-code", `{"a":${around("[", "]")}}`],
    ["lists that never end", "zed", `{"a":${"[".repeat(deep)}`],
    ["among the servers, with comments", "cline", `{"mcpServers": /* x */ ${around('{"a":[', "]}")}}`],
    ["TOML lists", "codex", `a = ${around("[", "]")}\n`],
    ["TOML tables in one line", "codex", `a = ${around("{a = ", "}").replace("}", "1}")}\n`],
    ["a TOML key", "codex", `${"a.".repeat(deep)}a = 1\n`],
    ["a TOML key of quoted parts", "codex", `${'"a" . '.repeat(deep)}a = 1\n`],
    ["a TOML header", "codex", `[${"a.".repeat(deep)}a]\n`],
    ["a TOML header of a list", "codex", `[[${"a.".repeat(deep)}a]]\n`],
    [
      "TOML keys in tables in one line",
      "codex",
      `x = ${`{${"a.".repeat(100)}b = `.repeat(2_000)}1${"}".repeat(2_000)}\n`,
    ],
  ])("%s: one sentence, and the file is left alone", (_, id, text) => {
    const { add, remove, replace, read, file, folder } = workplace(id, text);
    for (const act of [add, remove, replace])
      expect(() => act()).toThrow(
        `${file} was left alone: it nests deeper than 200 levels, which no settings of a host do.`,
      );
    expect(read()).toBe(text);
    expect(existsSync(path.join(folder, "home"))).toBe(false);
  });

  test("what only looks deep is taken", () => {
    const flat = `a = [${"1.5, ".repeat(500)}]\n${"# [[[[ a.b.c\n".repeat(300)}t = "${"[.".repeat(300)}"\n${"x.y.z = 1\n".replace("x", "k")}`;
    expect(workplace("codex", flat).add().kind).toBe("added");
    expect(workplace("cursor", `{ "a": [${"[], ".repeat(5_000)}[]], "t": "${"[{".repeat(300)}" }`).add().kind).toBe(
      "added",
    );
  });
});

describe("the file itself", () => {
  test("keeps its mode", () => {
    const { add, remove, file } = workplace("cursor", "{}");
    chmodSync(file, 0o640);
    add();
    expect(statSync(file).mode & 0o777).toBe(0o640);
    remove();
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  test("stays a link where it is one", () => {
    const { add, remove, file, folder } = workplace("cursor");
    const real = path.join(folder, "dotfiles.json");
    writeFileSync(real, "{}");
    mkdirSync(path.dirname(file), { recursive: true });
    symlinkSync(real, file);
    add();
    expect(lstatSync(file).isSymbolicLink()).toBe(true);
    expect(readFileSync(real, "utf8")).toContain("meanwhile");
    remove();
    expect([lstatSync(file).isSymbolicLink(), readFileSync(real, "utf8")]).toEqual([true, "{}"]);
  });

  test("has its backup where only its user can look", () => {
    const { add } = workplace("cursor", '{ "secret": 1 }');
    const { backup = "" } = add();
    expect(statSync(backup).mode & 0o777).toBe(0o600);
    expect(statSync(path.dirname(backup)).mode & 0o777).toBe(0o700);
  });
});
