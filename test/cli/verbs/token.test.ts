import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { callerKey } from "../../../src/command/caller.ts";
import { silentLog } from "../../../src/log.ts";
import { homeAt } from "../../../src/paths.ts";
import { deriveId, localUserIn, readHomeId } from "../../../src/runtime/home-id.ts";
import { resetToken } from "../../../src/runtime/reset-token.ts";
import { runCli } from "../../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { openServer } from "../../helpers/server.ts";

/** A home with a token of its own, and a user's folder with the files of hosts. */
function place() {
  const [home, user, cwd] = [temporaryFolder(), temporaryFolder(), temporaryFolder()];
  chmodSync(home, 0o700);
  const env = { MEANWHILE_HOME: home, HOME: user, XDG_CONFIG_HOME: path.join(user, ".config") };
  const read = (name: string) => readFileSync(path.join(home, name), "utf8").trim();
  return { home, user, cwd, read, token: (...words: string[]) => runCli(["token", ...words], { cwd, env }) };
}

test("--reset makes a new token, and the home keeps the ID that the old one gave it", async () => {
  const { home, read, token } = place();
  const first = (await token()).stdout.trim();
  const id = readHomeId(homeAt({ MEANWHILE_HOME: home }));
  expect(id).toBe(deriveId(first));
  expect(id).not.toContain(first.slice(0, 8));
  expect(existsSync(path.join(home, "home-id")), "derived as long as the token is the first").toBe(false);

  const { code, stdout, stderr } = await token("--reset");
  expect(code).toBe(0);
  const second = stdout.trim();
  expect(second).not.toBe(first);
  expect([read("token"), read("home-id")]).toEqual([second, id]);
  expect(stderr).toContain("This home has a new token, and its tasks stay.");
  expect(stderr).not.toContain("still send");

  await token("--reset");
  expect([read("token") === second, read("home-id")]).toEqual([false, id]);
});

test("nodes that share a token file share the ID, and another token is another ID", () => {
  const homeWith = (files: Record<string, string>) =>
    readHomeId(homeAt({ MEANWHILE_HOME: writeFiles(temporaryFolder(), files) }));
  const [one, other] = ["a-token-that-several-nodes-have-copied", "another-token-of-another-home-or-node"];
  expect(homeWith({ token: one })).toBe(homeWith({ token: `${one}\n` }));
  expect(homeWith({ token: one })).not.toBe(homeWith({ token: other }));
  expect(homeWith({ token: other, "home-id": `${deriveId(one)}\n` })).toBe(homeWith({ token: one }));
  expect(() => homeWith({ token: one, "home-id": "not an ID" })).toThrow(/home-id holds no home ID; restore it/);
});

test("in a home that cannot be made the local user is nobody's but this process's, and a warning says so", () => {
  const home = homeAt({ MEANWHILE_HOME: path.join(writeFiles(temporaryFolder(), { "a file": "" }), "a file", "home") });
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) };
  const users = [localUserIn({ home, project: "p" }, log), localUserIn({ home, project: "p" }, log)];
  const keys = users.map(callerKey);
  expect(keys[0]).not.toBe(keys[1]);
  expect(users.map(callerKey)).toEqual(keys);
  expect(warnings).toHaveLength(2);
  expect(warnings[0]).toContain(`Cannot use the home folder ${home.folder}`);
  expect(warnings[0]).toContain("no other process finds the tasks of the local user");
});

test.each(["token", "home-id"])(
  "--reset is refused where the file %s is a link to another place, and says the cure",
  async (name) => {
    const { home, cwd, read, token } = place();
    await token();
    const id = readHomeId(homeAt({ MEANWHILE_HOME: home }));
    if (name === "home-id") writeFileSync(path.join(home, name), `${id}\n`);
    const [file, mounted] = [path.join(home, name), path.join(cwd, "mounted")];
    renameSync(file, mounted);
    symlinkSync(mounted, file);
    const before = [read("token"), existsSync(path.join(home, "home-id"))];
    const { code, stdout, stderr } = await token("--reset");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain(`Nothing was changed: ${file} is a link`);
    const keep = name === "token" ? `write the ID of this home, ${id}, into` : `keep ${file} as it is`;
    expect(stderr).toContain(keep);
    expect([read("token"), existsSync(path.join(home, "home-id"))]).toEqual(before);
  },
);

test.each([
  ["the home folder", (home: string) => home, (home: string) => `the home folder ${home}`],
  ["the token file", (home: string) => path.join(home, "token"), (home: string) => path.join(home, "token")],
])("--reset names %s where it may not be written, and changes nothing", async (_, lockedIn, namedIn) => {
  const { home, read, token } = place();
  const first = (await token()).stdout.trim();
  const locked = lockedIn(home);
  // Root may write whatever the mode says, so the check is told.
  const access = (file: string) => {
    if (file === locked) throw new Error("EACCES");
  };
  expect(() => resetToken(homeAt({ MEANWHILE_HOME: home }), access)).toThrow(
    `Nothing was changed: ${namedIn(home)} may not be written. Make it writable (\`chmod u+w ${locked}\`;`,
  );
  expect([read("token"), existsSync(path.join(home, "home-id"))]).toEqual([first, false]);
});

test.each([
  ["", "holds no token; restore it from a backup, or delete it"],
  ["short", "holds 5 characters, and a token has at least 32; restore it from a backup, or delete it"],
])("a token file with the text «%s» names the file and its cure, and no other folder", async (text, cure) => {
  const { home, token } = place();
  writeFiles(home, { token: text });
  const { code, stderr } = await token();
  expect(code).toBe(70);
  expect(stderr).toContain(`${path.join(home, "token")} ${cure}`);
  expect(stderr).not.toContain("set MEANWHILE_HOME");
});

test("--reset names the entries of hosts, and the scripts they start, that still send the old token", async () => {
  const { user, cwd, token } = place();
  const old = (await token()).stdout.trim();
  const script = path.join(cwd, "connect.sh");
  writeFileSync(script, `exec mcp-remote http://localhost/mcp --header "Authorization: Bearer ${old}"\n`);
  const cursor = path.join(user, ".cursor", "mcp.json");
  mkdirSync(path.dirname(cursor));
  const header = { Authorization: `Bearer ${old}` };
  writeFileSync(
    cursor,
    JSON.stringify({
      mcpServers: {
        mine: { url: "http://localhost/mcp", headers: header },
        other: { url: "http://localhost/mcp", headers: { Authorization: "Bearer of-somebody-else" } },
        scripted: { command: "sh", args: [script] },
      },
    }),
  );
  const projects = path.join(cwd, ".mcp.json");
  writeFileSync(
    projects,
    JSON.stringify({ mcpServers: { team: { type: "http", url: "http://x/mcp", headers: header } } }),
  );
  const { stderr } = await token("--reset");
  expect(stderr).toContain("These still send the old token, and are refused with 401 until you change them:");
  expect(
    stderr
      .split("\n")
      .filter((line) => line.startsWith("  "))
      .sort(),
  ).toEqual(
    [`  mine in ${cursor}`, `  scripted in ${cursor}, by the script ${script}`, `  team in ${projects}`].sort(),
  );
  expect(stderr).not.toContain(old);
});

test("a running server takes the new token at its next request, and the tasks of the old one are still there", async () => {
  const home = temporaryFolder();
  const server = await openServer({ in: "http", home, store: "sqlite", commands: {} });
  const url = await server.url();
  const old = server.token();
  const asked = async (token: string) =>
    (
      await fetch(url, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: "{}",
      })
    ).status;
  expect(await asked(old)).not.toBe(401);
  const { stdout } = await runCli(["token", "--reset"], { env: { MEANWHILE_HOME: home } });
  expect([await asked(old), (await asked(stdout.trim())) === 401]).toEqual([401, false]);
  // A home that was moved away leaves the token in force.
  rmSync(path.join(home, "token"));
  expect(await asked(stdout.trim())).not.toBe(401);
  expect(existsSync(path.join(home, "token"))).toBe(false);
});
