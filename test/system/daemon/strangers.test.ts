import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { codeCache, waitFor } from "../../helpers/meanwhile.ts";
import { type Fields, modernMeta } from "../../helpers/wire.ts";

/** What a process of another user gets from an HTTP server on the same machine. The rest is in test/scenarios. */

const root = path.resolve(import.meta.dirname, "../../..");
const nobody = 65_534;
const secret = "-----BEGIN OPENSSH PRIVATE KEY----- nobody but its owner reads this";

/**
 * The user whose server it is: a key, a home, and the server of `npm start`, in the folder and with the words of the
 * README.
 */
const npmStart = shareAmongTests(async () => {
  const user = writeFiles(temporaryFolder(), { ".ssh/id_rsa": secret });
  const home = path.join(user, ".meanwhile");
  const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  const [program, ...words] = scripts.start.split(" ");
  expect([program, ...words]).toEqual(["node", "bin/meanwhile.cjs", "serve", "--http"]);
  const { MEANWHILE_HOME: _own, ...env } = process.env;
  const child = spawn(process.execPath, words, {
    cwd: root,
    env: { ...env, HOME: user, MEANWHILE_PORT: "0", NODE_COMPILE_CACHE: codeCache },
  });
  let printed = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const exited = new Promise((resolve) => child.on("close", resolve));
  cleanUp(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  const url = await waitFor(
    () => printed.includes("Ctrl-C") && /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(printed)?.[0],
    () => `it printed no address: ${printed}`,
  );
  return { url, user, home, token: readFileSync(path.join(home, "token"), "utf8").trim(), printed: () => printed };
});

interface Attack {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Got {
  readonly status: number;
  readonly text: string;
}

/**
 * Sends requests from a process that is another user, where this one may become that; else from one that merely has no
 * token.
 */
function asNobody(url: string, attacks: readonly Attack[]): Got[] {
  const program = `
    if (process.getuid() === 0) { process.setgroups([]); process.setgid(${nobody}); process.setuid(${nobody}); }
    const { url, attacks } = JSON.parse(require("fs").readFileSync(0, "utf8"));
    const plain = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const send = async ({ method = "POST", path = "/mcp", headers, body }) => {
      const signal = AbortSignal.timeout(60_000);
      const response = await fetch(new URL(path, url), { method, headers: { ...plain, ...headers }, signal, ...(method === "POST" && { body: JSON.stringify(body) }) });
      return { status: response.status, text: await response.text() };
    };
    Promise.all(attacks.map(send)).then((got) => process.stdout.write(JSON.stringify(got)));`;
  // It becomes that user only once it runs: another user may not be able to start what lies in this one's folders.
  const { stdout, stderr } = spawnSync(process.execPath, ["-e", program], {
    input: JSON.stringify({ url, attacks }),
    encoding: "utf8",
    cwd: "/",
  });
  if (stdout === "") throw new Error(`the stranger failed: ${stderr}`);
  return JSON.parse(stdout) as Got[];
}

/** A request as clients without a session, and clients of 2026-07-28, send it. */
function everyWay(method: string, params: Fields = {}): Attack[] {
  const body = { jsonrpc: "2.0", id: 1, method };
  const name = params.name as string | undefined;
  const routing = {
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": method,
    ...(name !== undefined && { "mcp-name": name }),
  };
  return [
    { body: { ...body, params } },
    { headers: routing, body: { ...body, params: { ...params, _meta: modernMeta({}) } } },
  ];
}

test("another user of the machine is refused by the server that `npm start` starts, whatever it asks", async () => {
  const { url, user, home, token } = await npmStart();
  const file = (name: string) =>
    everyWay("tools/call", { name: "transform", arguments: { file: name, engine: "text" } });
  const planted = { key: "commands", value: '["/tmp/theirs"]' };
  const answers = asNobody(url, [
    ...["tools/list", "prompts/list", "resources/list"].flatMap((method) => everyWay(method)),
    ...file(path.join(user, ".ssh/id_rsa")),
    ...file(path.join(home, "token")),
    ...everyWay("tools/call", { name: "config_set", arguments: planted }),
  ]);
  for (const answer of answers)
    expect(answer).toMatchObject({ status: 401, text: expect.stringContaining("Authorization: Bearer") });
  expect(JSON.stringify(answers)).not.toContain("OPENSSH");
  expect(JSON.stringify(answers)).not.toContain(token);
  expect(existsSync(path.join(home, "config.json"))).toBe(false);
});
