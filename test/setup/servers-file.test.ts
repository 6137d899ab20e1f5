import path from "node:path";
import { expect, test } from "vitest";
import { readServers } from "../../src/setup/servers-file.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const read = (text: string | object, name = "mcp.json") => {
  const folder = writeFiles(temporaryFolder(), { [name]: typeof text === "string" ? text : JSON.stringify(text) });
  return readServers(path.join(folder, name));
};

test("what most hosts write: commands and addresses, with all that belongs to them", () => {
  const { servers, skipped } = read({
    mcpServers: {
      "file system": {
        command: "npx",
        args: ["-y", "server-filesystem"],
        env: { PORT: 1, KEY: "${KEY}" },
        cwd: "/srv",
      },
      remote: { type: "streamable-http", url: "https://a.b/mcp", headers: { "X-A": "b" } },
      old: { type: "sse", url: "https://a.b/sse" },
      gemini: { httpUrl: "https://a.b/mcp" },
      windsurf: { serverUrl: "https://a.b/mcp" },
      off: { command: "x", disabled: true },
      away: { command: "x", enabled: false },
      us: { command: "npx", args: ["-y", "meanwhile", "serve"] },
      empty: {},
      wrong: "x",
    },
  });
  expect(servers).toEqual({
    "file-system": {
      command: "npx",
      args: ["-y", "server-filesystem"],
      env: { PORT: "1", KEY: "${KEY}" },
      cwd: "/srv",
    },
    remote: { url: "https://a.b/mcp", headers: { "X-A": "b" }, transport: "http" },
    old: { url: "https://a.b/sse", transport: "sse" },
    gemini: { url: "https://a.b/mcp", transport: "http" },
    windsurf: { url: "https://a.b/mcp" },
  });
  expect(skipped).toEqual([
    { name: "off", why: "it is disabled there" },
    { name: "away", why: "it is disabled there" },
    { name: "us", why: "it is Meanwhile itself" },
    { name: "empty", why: "it has neither a command nor a url" },
    { name: "wrong", why: "it is no object" },
  ]);
});

test("VS Code, Zed, opencode and Codex each write it their own way", () => {
  const one = { a: { command: "x", args: ["y"] } };
  expect(
    read(
      `{ "inputs": [], // as VS Code has it\n "servers": { "a": { "type": "stdio", "command": "x", "args": ["y"], } } }`,
    ).servers,
  ).toEqual(one);
  expect(read({ context_servers: { a: { command: { path: "x", args: ["y"] } } } }).servers).toEqual(one);
  expect(read({ context_servers: { a: { source: "custom", command: "x", args: ["y"] } } }).servers).toEqual(one);
  expect(
    read({ mcp: { a: { type: "local", command: ["x", "y"], environment: { K: "v" }, enabled: true } } }).servers,
  ).toEqual({
    a: { ...one.a, env: { K: "v" } },
  });
  expect(read({ mcp: { servers: one } }).servers).toEqual(one);
  const toml = `[mcp_servers.a]\ncommand = "x"\nargs = ["y"]\n\n[mcp_servers.b]\nurl = "https://a.b"\nbearer_token_env_var = "T"\nenv_http_headers = { "X-A" = "A" }\n`;
  expect(read(toml, "config.toml").servers).toEqual({
    ...one,
    b: { url: "https://a.b", headers: { "X-A": "${A}", Authorization: "Bearer ${T}" } },
  });
});

test("two names that become one stay two", () => {
  expect(Object.keys(read({ mcpServers: { "a b": { command: "x" }, "a.b": { command: "y" } } }).servers)).toEqual([
    "a-b",
    "a-b-2",
  ]);
});

test("what is no such file is refused by one sentence that names it", () => {
  expect(() => readServers("/nowhere/mcp.json")).toThrow("--from: there is no file /nowhere/mcp.json.");
  expect(() => read("{")).toThrow(/Cannot read .*mcp\.json: line 1/);
  expect(() => read({ other: {} })).toThrow(/has none of the tables in which hosts name servers: mcpServers, servers,/);
  expect(() => read({ mcpServers: { off: { command: "x", disabled: true } } })).toThrow(
    /names no server that could be wrapped \(off: it is disabled there\)\.$/,
  );
  const wrong = { a: { url: "a.b" }, b: { url: "https://a:b@c" }, c: { command: "x", args: "y" } };
  expect(() => read({ mcpServers: wrong })).toThrow(
    /\(a: its url must begin with http.*; b: its url must .* without a name and password in it; c: its args are no list\)/,
  );
});
