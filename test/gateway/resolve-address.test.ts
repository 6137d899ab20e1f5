import { chmodSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import type { UpstreamConfig } from "../../src/config.ts";
import { redact, resolveAddress } from "../../src/gateway/resolve-address.ts";
import { temporaryFolder } from "../helpers/home.ts";

const folder = "/work here";
const resolve = (config: UpstreamConfig, environment: Record<string, string> = {}) =>
  resolveAddress(config, { name: "github", environment, folder });

describe("an upstream's address, for a session", () => {
  test("a command has the session's variables and folder, and its own over them", () => {
    const { address } = resolve(
      { command: "npx", args: ["-y", "$${X}", "${X}"], env: { TOKEN: "${T}", MODE: "${M:-quick}", X: "own" } },
      { PATH: "/bin", T: "secret-1", X: "theirs" },
    );
    expect(address).toEqual({
      kind: "command",
      command: "npx",
      args: ["-y", "${X}", "theirs"],
      cwd: folder,
      env: { PATH: "/bin", T: "secret-1", TOKEN: "secret-1", MODE: "quick", X: "own" },
    });
  });

  test("its folder may be below the session's, or the user's own; without any it is the root", () => {
    const cwdOf = (cwd: string | undefined, at: string | undefined = folder) => {
      const config = { command: "x", ...(cwd !== undefined && { cwd }) };
      const { address } = resolveAddress(config, { name: "a", environment: {}, folder: at });
      return address.kind === "command" ? address.cwd : undefined;
    };
    expect(cwdOf("sub")).toBe("/work here/sub");
    expect(cwdOf("${workspaceFolder}/sub")).toBe("/work here/sub");
    expect(cwdOf("~/sub")).toBe(path.join(homedir(), "sub"));
    expect(resolveAddress({ command: "x" }, { name: "a", environment: {}, folder: undefined }).address).toMatchObject({
      cwd: path.resolve("/"),
    });
  });

  test("a url has its headers, as hosts write them", () => {
    const config: UpstreamConfig = {
      url: "https://${HOST}/mcp",
      headers: { Authorization: "Bearer ${env:T}", "X-Team": "${TEAM:-}" },
      transport: "sse",
    };
    const { address, secrets } = resolve(config, { HOST: "mcp.example", T: "secret-1" });
    expect(address).toMatchObject({
      url: "https://mcp.example/mcp",
      headers: { Authorization: "Bearer secret-1", "X-Team": "" },
      transport: "sse",
    });
    expect(secrets).toEqual(expect.arrayContaining(["Bearer secret-1", "secret-1"]));
  });

  test("a variable may hold a whole url, which is a secret then, and has to be one", () => {
    const { address, secrets } = resolve({ url: "${WHERE}" }, { WHERE: "https://a.b/mcp?key=1" });
    expect(address).toMatchObject({ url: "https://a.b/mcp?key=1" });
    expect(secrets).toContain("https://a.b/mcp?key=1");
    for (const WHERE of ["secret-1", "file:///etc/passwd", "https://"])
      expect(() => resolve({ url: "${WHERE}" }, { WHERE })).toThrow(
        "The upstream github, `url`: what the variables make of it is no address that begins with http:// or https://.",
      );
  });

  test("20: what is missing is one sentence with the upstream, the field and the variable, and no value", () => {
    const config = { url: "https://a.b", headers: { Authorization: "Bearer ${TOKEN}${OTHER}" } };
    expect(() => resolve(config, { TOKEN: "secret-1" })).toThrow(
      "The upstream github, `headers.Authorization`: the variable OTHER is not set; set it where this is started, or write ${OTHER:-default}.",
    );
    expect(() => resolve({ command: "x", env: { K: "${input:key}" } })).toThrow(
      "The upstream github, `env.K`: ${input:key} is for a host to ask; write ${NAME} and set the variable.",
    );
    expect(() => resolve({ command: "x", env: { K: "${EMPTY}" } }, { EMPTY: "" })).toThrow("EMPTY is not set");
  });

  test("20: a file holds the whole value, and is its user's alone", () => {
    const file = path.join(temporaryFolder(), "token");
    writeFileSync(file, "secret-of-file\n", { mode: 0o600 });
    const config = { url: "https://a.b", headers: { "X-Key": `file:${file}` } };
    expect(resolve(config)).toMatchObject({
      address: { headers: { "X-Key": "secret-of-file" } },
      secrets: ["secret-of-file"],
    });
    chmodSync(file, 0o640);
    expect(() => resolve(config)).toThrow(`may be read by others, or is another user's; chmod 600 ${file}`);
    expect(() => resolve({ command: "x", env: { K: "file:/nowhere/at/all" } })).toThrow(
      "The upstream github, `env.K`: /nowhere/at/all cannot be read (ENOENT)",
    );
  });
});

test("20: a text for a log has none of the secrets, whole or by line, and keeps what everybody knows", () => {
  const { secrets } = resolve(
    {
      command: "x",
      args: ["${HOME}"],
      env: { PEM: "${PEM}", API_KEY: "in-clear-here", MODE: "production", PIN: "${PIN}" },
    },
    { HOME: "/home/me", PEM: "line-one\nline-two", PIN: "12" },
  );
  expect(redact("in-clear-here, line-two; /home/me production 12 line-one\nline-two", secrets)).toBe(
    "[secret], [secret]; /home/me production 12 [secret]",
  );
});
