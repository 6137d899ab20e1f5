import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { openTransfer } from "../../../../src/store/manage.ts";
import { openStore } from "../../../../src/store/open.ts";
import { tasks as firstSchema } from "../../../../src/store/sqlite/migrations/001-tasks.ts";
import { toLine } from "../../../../src/store/transfer.ts";
import { fillFile, largest } from "../../../helpers/full-store.ts";
import { shareAmongTests, temporaryFolder } from "../../../helpers/home.ts";
import { runMeanwhile } from "../../../helpers/meanwhile.ts";
import { newSchema, serverPort, testPassword, urlOf } from "../../../helpers/postgres.ts";

const fileHere = () => path.join(temporaryFolder(), "tasks.db");

/** A file with everything in it, which tests read and do not change. */
const full = shareAmongTests(async () => {
  const file = fileHere();
  await fillFile(file, { largestBytes: largest });
  return file;
});

async function store(words: readonly string[], env: Record<string, string> = {}) {
  const ran = await runMeanwhile(["store", ...words], { env });
  expect(ran.stdout + ran.stderr).not.toContain(testPassword);
  return ran;
}

async function linesOf(place: string): Promise<string[]> {
  const side = await openTransfer(place, "source");
  const lines = (await side.read(0, Number.MAX_SAFE_INTEGER)).map(toLine);
  await side.close();
  return lines;
}

test("check says one screen of a file, and changes nothing of it", async () => {
  const file = await full();
  const before = readFileSync(file);
  const { code, stdout } = await store(["check", "--store", file]);
  expect(stdout.split("\n").map((line) => line.replace(/\d{4}-.*Z/, "…").replace(/[\d.]+ MiB/, "… MiB"))).toEqual([
    `SQLite ${file}`,
    expect.stringMatching(/^ {2}version {6}3\.\d+\.\d+$/),
    expect.stringMatching(/^ {2}schema {7}\d+, as this program has it$/),
    "  tasks        8 live, 4 ended, 2 steps kept",
    "  oldest       …",
    "  newest       …",
    "  size         … MiB",
    "  clock        this machine's",
    "✓ Nothing is wrong with it.",
    "",
  ]);
  expect(code).toBe(0);
  expect(readFileSync(file).equals(before)).toBe(true);
});

test("the settings name the store that is meant; what is missing, or another's, cannot be opened", async () => {
  const file = fileHere();
  const missing = await store(["check"], { MEANWHILE_STORE: file });
  expect(missing).toMatchObject({ code: 70, stdout: "" });
  expect(missing.stderr).toContain(`There is no task database ${file}; the first task makes one`);
  writeFileSync(file, "not a database at all, but a text that is long enough to be taken for one\n".repeat(10));
  const other = await store(["check"], { MEANWHILE_STORE: file });
  expect(other.code).toBe(70);
});

test("check never migrates; migrate does, says from where to where, and two at once are fine", async () => {
  const file = fileHere();
  const db = new Database(file);
  db.exec(`${firstSchema} pragma user_version = 1`);
  db.close();
  const old = await store(["check", "--store", file, "--json"]);
  expect(old.code).toBe(1);
  const facts = JSON.parse(old.stdout) as { schema: { known: number }; problems: string[] };
  expect(facts.problems).toEqual([
    `Its schema is 1, and this program's is ${facts.schema.known}: \`meanwhile store migrate\` brings it up to date.`,
  ]);
  const source = await store(["copy", "--from", file, "--to", fileHere()]);
  expect(source).toMatchObject({ code: 70, stdout: "" });
  expect(source.stderr).toContain("`meanwhile store migrate` brings it up to date");
  const both = await Promise.all([1, 2].map(() => store(["migrate", "--store", file])));
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(both.map(({ stdout }) => stdout)).toContain(`${file}: schema 1 → ${facts.schema.known}.\n`);
  expect(await store(["migrate", "--store", file])).toMatchObject({
    code: 0,
    stdout: `Nothing to do: ${file} has schema ${facts.schema.known}.\n`,
  });
});

test("a schema of PostgreSQL is made, checked and looked through without its password being told", async () => {
  const schema = newSchema();
  const url = urlOf(await serverPort(), schema);
  const before = await store(["check", "--store", url]);
  expect(before).toMatchObject({ code: 1 });
  expect(before.stdout).toContain("✗ It has no schema yet: `meanwhile store migrate` brings it up to date.");
  expect((await store(["migrate", "--store", url])).stdout).toMatch(
    /^PostgreSQL 127\.0\.0\.1:\d+\/postgres was made, with schema \d+\.$/m,
  );
  const { code, stdout } = await store(["check"], { MEANWHILE_STORE: url });
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^PostgreSQL 127\\.0\\.0\\.1:\\d+/postgres, schema ${schema}$`, "m"));
  expect(stdout).toMatch(/^ {2}connections {2}\d+ of \d+ in use; a node opens up to 11$/m);
  expect(stdout).toMatch(/^ {2}clock {8}.* this machine's$/m);
  for (const wrong of [url.replace(testPassword, `${testPassword}x`), url.replace(/127\.0\.0\.1:\d+/, "127.0.0.1:1")]) {
    const { code: refused, stderr, stdout: nothing } = await store(["check", "--store", wrong]);
    expect({ refused, nothing }).toEqual({ refused: 70, nothing: "" });
    expect(stderr).toMatch(/cannot be used: (the password or the user's name is wrong|nothing answers)/);
  }
});

test("a copy that is killed goes on, and comes to the same; run once more there is nothing to do", async () => {
  const from = await full();
  const to = urlOf(await serverPort());
  const words = ["copy", "--from", from, "--to", to];
  expect((await store(words, { MEANWHILE_FAILPOINT: "after-copied-page:2" })).code).toBe("SIGKILL");
  await expect(openTransfer(to, "source")).rejects.toThrow("not finished");
  expect((await store(words, { MEANWHILE_FAILPOINT: "before-comparison:1" })).code).toBe("SIGKILL");
  const other = await store(["copy", "--from", to, "--to", fileHere()]);
  expect(other.stderr).toContain("holds a copy that is not finished");
  const { code, stdout, stderr } = await store(words);
  expect(stderr).toContain("100%");
  expect(code).toBe(0);
  expect(stdout).toMatch(
    /^12 tasks copied from \/.*tasks\.db to PostgreSQL 127\.0\.0\.1:\d+\/postgres, schema \w+, 12 of them by an earlier run\.\nAll of it was read back from both sides and is the same: sha256 [0-9a-f]{16}\.\n8 live tasks would run in both: start nothing on .*, and set MEANWHILE_STORE to the other\.\n$/,
  );
  expect(await linesOf(to)).toEqual(await linesOf(from));
  expect((await store(words)).stdout).toMatch(/^Nothing to do: 12 tasks of .* are in PostgreSQL/);
});

test("a target with tasks or keys of its own, and a source that somebody works on, are refused", async () => {
  const [from, to] = [fileHere(), fileHere()];
  await fillFile(from);
  await fillFile(to);
  const before = await linesOf(to);
  const occupied = await store(["copy", "--from", from, "--to", to]);
  expect(occupied).toMatchObject({ code: 1, stdout: "" });
  expect(occupied.stderr).toContain(
    `${to} has tasks or API keys of its own, and two stores are never mixed; nothing was changed.`,
  );
  expect(await linesOf(to)).toEqual(before);
  const withKey = fileHere();
  const opened = await openStore(withKey);
  const key = { id: "id", project: "home", name: "ci", hash: "hash", scopes: [], commands: [] };
  await opened.shared.keys.add(key);
  const refused = await store(["copy", "--from", from, "--to", withKey]);
  expect(refused).toMatchObject({ code: 1, stdout: "" });
  expect(refused.stderr).toContain(`${withKey} has tasks or API keys of its own`);
  expect((await opened.shared.keys.list("home")).keys).toMatchObject([{ id: "id", name: "ci" }]);
  await opened.close();
  const db = new Database(from);
  db.exec("update tasks set lease_until = unixepoch() * 1000 + 60000 where worker is not null");
  db.close();
  const used = await store(["copy", "--from", from, "--to", fileHere()]);
  expect(used).toMatchObject({ code: 1, stdout: "" });
  expect(used.stderr).toMatch(
    /1 worker of .* holds \d tasks: stop them first \(`meanwhile daemon stop --all`, .* or wait .* s if they are dead/,
  );
});

test("what cannot be a copy is said before anything is opened", async () => {
  const file = fileHere();
  for (const [words, sentence] of [
    [["copy", "--from", file], "`store copy` takes --from and --to"],
    [["copy", "--from", file, "--to", file], "are the same store"],
    [["copy", "--from", ":memory:", "--to", file], "A store in memory ends with its process"],
  ] as const) {
    const { code, stderr } = await store(words);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(sentence) });
  }
});
