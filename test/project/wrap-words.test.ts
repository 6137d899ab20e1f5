import path from "node:path";
import { describe, expect, test } from "vitest";
import { nameOfCommand, nameOfUrl, toUpstreamName } from "../../src/project/upstream-name.ts";
import { referencesIn, unsetVariable } from "../../src/project/variable-references.ts";
import { literalsOf, sessionEnvironment, wrapParts } from "../../src/project/wrap.ts";
import { readWrapWords, toWrap, type WrapSaid } from "../../src/project/wrap-words.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const nowhere = "/nowhere/at/all";
const wrapOf = (said: WrapSaid) => toWrap(said, nowhere);

describe("what is typed behind wrap", () => {
  test("a command is taken word by word: the shell has replaced what was to be replaced", () => {
    expect(wrapOf({ server: ["npx", "-y", "@scope/server-foo@1", "${X}"] })).toEqual({
      upstreams: { foo: { command: "npx", args: ["-y", "@scope/server-foo@1", "$${X}"] } },
    });
  });

  test("a url has its headers, and everything else that may be said of an upstream", () => {
    const said: WrapSaid = {
      ...{ url: "https://mcp.linear.app/mcp", header: ["Authorization: Bearer ${T}", "X-Team : a:b"], share: "all" },
      ...{ prefix: "always", allow: ["a,b", "c*"], deny: [" d "], rerun: ["a"], long: ["b"], timeLimit: "90" },
    };
    expect(wrapOf(said)).toEqual({
      prefix: "always",
      upstreams: {
        linear: {
          url: "https://mcp.linear.app/mcp",
          headers: { Authorization: "Bearer ${T}", "X-Team": "a:b" },
          ...{ share: "all", allow: ["a", "b", "c*"], deny: ["d"], rerun: ["a"], long: ["b"], timeLimitSeconds: 90 },
        },
      },
    });
  });

  test.each<[string, WrapSaid, string]>([
    ["nothing at all", {}, "wrap needs the server: a command behind --, --url <url>, or --from <file>."],
    ["no word behind --", { server: [] }, "wrap needs the server"],
    ["an empty word behind --", { server: [""] }, "The command behind -- is empty; name the server's program there."],
    ["an address with a password", { url: "http://a:b@c" }, "--url must not hold a name and password"],
    ["an empty --allow", { server: ["x"], allow: [""] }, "--allow names no tool; write one, or leave --allow out."],
    ["an empty --deny", { server: ["x"], deny: [" , "] }, "--deny names no tool"],
    ["both", { server: ["x"], url: "http://a" }, "a command behind -- or --url, not both"],
    ["no address", { url: "a.b/mcp" }, "--url must begin with http:// or https://"],
    ["a header for a command", { server: ["x"], header: ["A: b"] }, "--header is for --url."],
    ["a header without a colon", { url: "http://a", header: ["hidden"] }, "one that was given has no colon"],
    ["an unknown share", { server: ["x"], share: "me" }, '--share must be one of session, caller, all, not "me".'],
    ["an unknown prefix", { server: ["x"], prefix: "yes" }, "--prefix must be one of always, collision, never"],
    ["no time", { server: ["x"], timeLimit: "0" }, "--time-limit must be seconds above 0"],
    ["a name that is none", { server: ["x"], name: "a b" }, '--name "a b" is no name for an upstream'],
  ])("%s is refused by one sentence", (_, said, sentence) => {
    expect(() => wrapOf(said)).toThrow(sentence);
  });

  test.each(["Authorization: Bearer abc", "cookie: abc", "X-Api-Key: abc", "x-session-token: abc"])(
    "a secret in clear is refused, and not repeated: %s",
    (header) => {
      expect(() => wrapOf({ url: "http://a", header: [header] })).toThrow("could be read by everybody on this machine");
      expect(() => wrapOf({ url: "http://a", header: [header] })).not.toThrow("abc");
      expect(() => wrapOf({ url: "http://a", header: [header.replace(/: .*/, ": file:~/token")] })).not.toThrow();
    },
  );

  test("a command that means this folder is another in another folder; one that does not is one everywhere", () => {
    const here = writeFiles(temporaryFolder(), { "server.js": "" });
    const cwdOf = (server: string[], cwd: string) => Object.values(toWrap({ server }, cwd).upstreams)[0]?.cwd;
    expect(cwdOf(["node", "server.js"], here)).toBe(here);
    expect(cwdOf(["./server.js"], here)).toBe(here);
    expect(cwdOf(["npm", "start"], here)).toBe(here);
    expect(cwdOf(["node", path.join(here, "server.js")], here)).toBeUndefined();
    expect(cwdOf(["npx", "-y", "server.js"], nowhere)).toBeUndefined();
  });
});

test.each([
  ["npx -y @modelcontextprotocol/server-everything@2.1 stdio", "everything"],
  ["npx --yes @playwright/mcp@latest", "playwright"],
  ["uvx mcp-server-git --repository .", "git"],
  ["uvx --from mcp-tools git-mcp", "tools"],
  ["python3 -m mcp_server_fetch", "fetch"],
  ["node /srv/github/dist/index.js", "github"],
  ["docker run -i --rm -e TOKEN ghcr.io/github/github-mcp-server:1", "github"],
  ["cmd /c npx -y foo-mcp", "foo"],
  ["/usr/local/bin/github-mcp-server.exe stdio", "github"],
  ["node --input-type=module -e await(start(key))", "node"],
  ["python3 -c import(server)", "python3"],
  ["mcp", "mcp"],
])("%s is called %s", (line, name) => {
  expect(nameOfCommand(line.split(" "))).toBe(name);
});

test.each([
  ["https://mcp.linear.app/mcp", "linear"],
  ["https://api.githubcopilot.com/mcp/", "githubcopilot"],
  ["http://localhost:3000/mcp", "localhost"],
  ["http://127.0.0.1:3000/mcp", "127-0-0-1"],
  ["http://[2001:db8::1]:3000/mcp", "2001-db8-1"],
  ["http://mcp:3000/mcp", "mcp"],
  ["https://user:pass@mcp.example.com", "example"],
])("%s is called %s", (url, name) => {
  expect(nameOfUrl(url)).toBe(name);
});

test("names that hosts allow are made to fit", () => {
  expect(["My Server", "io.github.foo/bar", "ü", "x".repeat(50)].map(toUpstreamName)).toEqual([
    ...["My-Server", "io-github-foo-bar", "server"],
    "x".repeat(32),
  ]);
});

describe("the quick reading of a front", () => {
  const read = (line: string) => readWrapWords(line.split(" "), nowhere, { url: undefined, headers: [] });

  test("comes to what the verb does", () => {
    expect(read("wrap --name a --allow=x --allow y,z --time-limit 5 -- npx serve --http")).toEqual(
      toWrap({ name: "a", allow: ["x", "y,z"], timeLimit: "5", server: ["npx", "serve", "--http"] }, nowhere),
    );
    expect(read("wrap --url http://a.b")).toEqual(toWrap({ url: "http://a.b" }, nowhere));
  });

  test.each([
    "wrap",
    "serve",
    "wrap --http -- x",
    "wrap --from f",
    "wrap --name",
    "wrap --url",
    "wrap --help -- x",
    "wrap x",
  ])("leaves the rest to the verb: %s", (line) => {
    expect(read(line)).toBeUndefined();
  });
});

describe("what names a wrap", () => {
  const upstreams = {
    a: { url: "https://a.b", headers: { Authorization: "Bearer ${T}", "X-Key": "in clear" }, share: "all" as const },
    b: { command: "x", args: ["${N:-1}", "$${NOT}"], env: { KEY: "also clear", V: "file:~/v", W: "${env:W}" } },
  };

  test("is what is started or called, as it is written; what stands there in clear is not in it", () => {
    const parts = wrapParts({ upstreams }).join("\n");
    expect(parts).toContain("Bearer ${T}");
    expect(parts).not.toMatch(/clear/);
    expect(
      wrapParts({ upstreams: { ...upstreams, a: { ...upstreams.a, share: "session" as never } } }).join("\n"),
    ).toBe(parts);
    expect(literalsOf({ upstreams })).toEqual({ "a header X-Key": "in clear", "b env KEY": "also clear" });
  });

  test("the variables it refers to are known by name, and the first that is not set is named", () => {
    expect(referencesIn(upstreams)).toEqual(["N", "T", "W"]);
    expect(referencesIn({ a: null, b: "x", c: { env: ["${A}"], args: { x: "${B}" } } })).toEqual(["A", "B"]);
    expect(unsetVariable(upstreams, { T: "1", W: "1" })).toBeUndefined();
    expect(unsetVariable(upstreams, { T: "1" })).toBe(
      "The upstream b, `env.W`: the variable W is not set; set it where this is started, or write ${W:-default}.",
    );
  });
});

test("a session's variables go to its servers, without what is between our own processes", () => {
  const env = { A: "1", MEANWHILE_HOME: "/h", MEANWHILE_WRAP: "{}", MEANWHILE_DAEMON_KEY: "k", MEANWHILE_HOST: "x" };
  expect(sessionEnvironment({ ...env, MEANWHILE_RUN: "r", GONE: undefined })).toEqual({ A: "1", MEANWHILE_HOME: "/h" });
});
