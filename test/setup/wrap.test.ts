import { chmodSync, readFileSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { hosts } from "../../src/setup/hosts/index.ts";
import { wordsOf } from "../../src/setup/ownership.ts";
import { wrapplace } from "./workplace.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures/setup");
const golden = (id: string, which: string) => readFileSync(path.join(fixtures, id, which));
const ids = hosts.map(({ id }) => id);

describe("entries as hosts have them", () => {
  test.each(ids)("%s: wrapped, wrapped again, unwrapped, and every byte is as it was", (id) => {
    const before = golden(id, "entries");
    const { wrap, unwrap, bytes } = wrapplace(id, before);
    const { backup, left } = wrap();
    expect(left.filter(({ isFailure }) => isFailure)).toEqual([]);
    expect(readFileSync(backup ?? ""), "the backup").toEqual(before);
    expect(bytes().toString()).toBe(golden(id, "wrapped").toString());
    expect(wrap().names).toEqual([]);
    unwrap();
    expect(bytes()).toEqual(before);
    expect(unwrap().names).toEqual([]);
  });

  test.each(ids)("%s: one after another, and back in another order", (id) => {
    const before = golden(id, "entries");
    const { wrap, unwrap, bytes, read } = wrapplace(id, before);
    // Two folders may have servers of one name.
    const all = [...new Set(wrap().names)];
    const together = read();
    unwrap();
    for (const name of all.toReversed()) expect([...new Set(wrap(name).names)]).toEqual([name]);
    expect(read()).toBe(together);
    for (const name of [...all.filter((_, index) => index % 2 === 1), ...all.filter((_, index) => index % 2 === 0)])
      expect([...new Set(unwrap(name).names)]).toEqual([name]);
    expect(bytes()).toEqual(before);
  });

  test.each(ids)("%s: without a record, what stands behind us is run again, and the rest stays", (id) => {
    const { wrap, unwrap, entryOf, folder } = wrapplace(id, golden(id, "entries"));
    const all = [...new Set(wrap().names)].map((name) => ({ name }));
    const { names } = wrapplace(id, golden(id, "entries")).wrap();
    const original = wrapplace(id, golden(id, "entries"));
    rmSync(path.join(folder, "home", "setup", "wrapped.json"));
    expect(unwrap().names).toEqual(names);
    for (const { name } of all) {
      const [was, is] = [original.entryOf(name), entryOf(name)] as [Record<string, unknown>, Record<string, unknown>];
      expect(wordsOf(is), name).toEqual(wordsOf(was));
      const { type: _was, url, httpUrl, serverUrl, args: _args, oauth: _oauth, headers = {}, ...others } = was;
      expect([is.url, is.httpUrl, is.serverUrl]).toContain(url ?? httpUrl ?? serverUrl);
      expect(is.headers ?? {}, "headers").toEqual(headers);
      expect(is).toMatchObject(others);
    }
  });

  test("no value of a header, nor an address that may hold a key, is said on a command line", () => {
    const said = ids.flatMap((id) => {
      const { wrap, entryOf } = wrapplace(id, golden(id, "entries"));
      return wrap().names.flatMap((name) => wordsOf(entryOf(name)));
    });
    expect(said.length).toBeGreaterThan(200);
    for (const secret of ["not-real", "not_real", "Bearer $MY", "NTFjMTk4", "tavilyApiKey", "<token>", "env:API_KEY"])
      expect(said.filter((word) => word.includes(secret))).toEqual([]);
  });

  test("Claude Code's servers of every folder are wrapped, also those of one name", () => {
    const { wrap, read } = wrapplace("claude-code", golden("claude-code", "entries"));
    expect(wrap().done.flatMap(({ name, folder }) => (folder === undefined ? [] : [[name, folder]]))).toEqual([
      ["notes", "/home/ada/reports"],
      ["github", '/home/ada/notes: "old"'],
    ]);
    expect(read()).not.toContain('"command": "somebody-elses"');
  });
});

describe("a file that was changed in between", () => {
  const cursor =
    '{\n\t"mcpServers": {\n\t\t"a": { "command":"a", "args":[ "1" ] },\n\t\t"b": {"url":"https://b.test/mcp"}\n\t}\n}\n';

  test("others' changes stay, and the entries' own text is back", () => {
    const { wrap, unwrap, read, write } = wrapplace("cursor", cursor);
    wrap();
    write(
      read().replace('"mcpServers": {', '"theme": "dark", // mine\n\t"mcpServers": {\n\t\t"new": { "command": "n" },'),
    );
    expect(unwrap().names).toEqual(["a", "b"]);
    expect(read()).toBe(
      cursor.replace('"mcpServers": {', '"theme": "dark", // mine\n\t"mcpServers": {\n\t\t"new": { "command": "n" },'),
    );
  });

  test("what its host or its user has added to a wrapped entry stays in it", () => {
    const { wrap, unwrap, read, write, entryOf } = wrapplace("cursor", cursor);
    wrap();
    write(read().replace('"type": "stdio",', '"type": "stdio",\n\t\t\t"disabled": true,'));
    unwrap();
    expect(entryOf("b")).toEqual({ url: "https://b.test/mcp", disabled: true });
    expect(read()).toContain('"a": { "command":"a", "args":[ "1" ] }');
  });

  test("a server that was changed behind us stays changed", () => {
    const { wrap, unwrap, read, write, entryOf } = wrapplace("cursor", cursor);
    wrap();
    write(read().replace('"a", "1"', '"a", "2"').replace('"wrap",', '"wrap", "--share", "all",'));
    unwrap();
    expect(entryOf("a")).toEqual({ command: "a", args: ["2"] });
  });

  test("a file that its host has written anew has its values back", () => {
    const { wrap, unwrap, read, write } = wrapplace("cursor", cursor);
    wrap();
    write(JSON.stringify(JSON.parse(read())));
    unwrap();
    expect(JSON.parse(read())).toEqual(JSON.parse(cursor));
  });

  test("an entry that is no longer behind us is left alone", () => {
    const { wrap, unwrap, write, read } = wrapplace("cursor", cursor);
    wrap();
    const other = cursor.replace('"a":', '"c":').replace('"b":', '"a":');
    write(other);
    expect(unwrap("a").left).toEqual([{ name: "a", why: "it is not behind Meanwhile", isFailure: false }]);
    expect(read()).toBe(other);
  });
});

describe("TOML in many ways", () => {
  const files: Readonly<Record<string, string>> = {
    "an inline table": '[mcp_servers]\na = { command = "a", args = ["1"] } # one\nb = { command = "b" }\n',
    "dotted keys": '[mcp_servers]\na.command = "a" # it\na.args = [\n  "1", # one\n]\nb.url = "https://b.test/mcp"\n',
    "dotted keys at the top": 'mcp_servers.a.command = "a"\nmcp_servers.a.env.X = "1"\nmodel = "m"\n',
    "line ends of Windows":
      '# c\r\n[mcp_servers.a]\r\ncommand = "a"\r\n\r\n[mcp_servers.b]\r\nurl = "https://b.test/mcp"\r\n',
    "no line end at the end": "[mcp_servers.a]\nargs = [\"1\"]\ncommand = 'a'",
    "its variables elsewhere":
      '[mcp_servers.a]\ncommand = "a"\n[mcp_servers.b]\ncommand = "b"\n[mcp_servers.a.env]\nX = "1"\n',
    "a table of the same name below": '[mcp_servers.a]\ncommand = "a"\n\n[profiles.p.mcp_servers.a]\ncommand = "a"\n',
    "texts over lines": '[mcp_servers.a]\ncommand = """a"""\nargs = [\'\'\'\n1\'\'\', "\\u00e4"]\n',
    "two alike": '[mcp_servers.a]\ncommand = "x"\nargs = ["1"]\n[mcp_servers.b]\ncommand = "x"\nargs = ["1"]\n',
  };
  test.each(Object.entries(files))("%s: wrapped, and back byte for byte in any order", (_, text) => {
    const { wrap, unwrap, read, entryOf } = wrapplace("codex", text);
    const { names, left } = wrap();
    expect(left).toEqual([]);
    for (const name of names) expect(wordsOf(entryOf(name)), name).toContain("wrap");
    for (const name of names) unwrap(name);
    expect(read()).toBe(text);
    wrap();
    for (const name of names.toReversed()) unwrap(name);
    expect(read()).toBe(text);
  });
});

describe("nothing is harmed", () => {
  test("an entry that could not be changed without touching lines of others keeps none of them from it", () => {
    const a = '[mcp_servers.a]\nurl = "https://a.test/mcp"\n';
    const b = '[mcp_servers.b]\ncommand = "b"\n';
    const headers = '[mcp_servers.a.http_headers]\nX = "1" # x\n';
    const { wrap, unwrap, read } = wrapplace("codex", `${a}${b}${headers}`);
    const { names, left } = wrap();
    expect(names).toEqual(["b"]);
    expect(left).toMatchObject([{ name: "a", isFailure: true, why: expect.stringContaining("change mcp_servers.a") }]);
    expect(read()).toContain(a);
    unwrap();
    expect(read()).toBe(`${a}${b}${headers}`);
  });

  test("a file keeps its mode", () => {
    const { wrap, unwrap, file } = wrapplace("cursor", '{"mcpServers":{"a":{"command":"a"}}}');
    chmodSync(file, 0o640);
    wrap();
    expect(statSync(file).mode & 0o777).toBe(0o640);
    unwrap();
    expect(statSync(file).mode & 0o777).toBe(0o640);
  });

  test("what is kept to bring entries back is its user's alone to read", () => {
    const { wrap, folder } = wrapplace("cursor", '{"mcpServers":{"a":{"command":"a","env":{"KEY":"s"}}}}');
    wrap();
    expect(statSync(path.join(folder, "home", "setup", "wrapped.json")).mode & 0o777).toBe(0o600);
  });

  test("the way back stays, however many backups come after it", () => {
    const text = '{"mcpServers":{"a":{"command":"a",  "args":[ "1" ]}}}';
    const { wrap, unwrap, read, record, file } = wrapplace("cursor", text);
    wrap();
    for (let at = 0; at < 60; at++) record.backUp(file, Buffer.from(`${at}`));
    unwrap();
    expect(read()).toBe(text);
  });

  test("a file that is not valid is left alone", () => {
    const { wrap, read } = wrapplace("cursor", '{"mcpServers":{"a":{"command":"a"}}');
    expect(() => wrap()).toThrow(/mcp\.json was left alone: line 1, column 36/);
    expect(read()).toBe('{"mcpServers":{"a":{"command":"a"}}');
  });

  test("entries of any shape: left alone with a sentence, or wrapped and brought back", () => {
    const text = JSON.stringify({
      mcpServers: {
        "": { command: "a" },
        __proto__x: null,
        number: 7,
        list: ["a"],
        empty: {},
        odd: { command: 7 },
        args: { command: "a", args: "no list" },
        numbers: { command: "a", args: [1] },
        "ключ 🔑": { command: "a", args: ["--", "--name", "wrap"], env: { N: 1 } },
      },
    });
    const { wrap, unwrap, read } = wrapplace("cursor", text);
    const { names, left } = wrap();
    expect(left.map(({ name }) => name)).toEqual(["__proto__x", "number", "list", "empty", "odd", "args", "numbers"]);
    expect(names).toEqual(["", "ключ 🔑"]);
    unwrap();
    expect(read()).toBe(text);
  });
});
