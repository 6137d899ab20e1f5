import { realpathSync } from "node:fs";
import { beforeEach, expect, test } from "vitest";
import index from "../../commands/vault/index/index.ts";
import { runCli, startCli } from "../helpers/cli.ts";
import { dataOf } from "../helpers/daemon.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { readDocumentsHere } from "../helpers/read-here.ts";
import { run } from "../helpers/run.ts";
import { openServer } from "../helpers/server.ts";
import { waitFor } from "../helpers/wait-for.ts";
import { handleOf, type Result } from "../helpers/wire.ts";

/** Bundled commands as they are typed, and as an MCP client calls them. */

readDocumentsHere();

let home: string;
let folder: string;

beforeEach(() => {
  home = temporaryFolder();
  folder = realpathSync(temporaryFolder());
});

const env = () => ({ MEANWHILE_HOME: home });
const textOf = ({ content = [] }: Result) => content.map(({ text }) => text).join("\n");
/** A client that has no tasks, in the folder. */
const connect = async () => {
  const server = await openServer({
    in: "memory",
    projectCommands: "with bundled",
    home,
    cwd: folder,
    store: "sqlite",
  });
  return await server.client("plain");
};

test("vault_check checks the vault of `path`, and refuses a path that is no vault", async () => {
  const [one, other] = ["one", "other"].map((name) => writeFiles(`${folder}/${name}`, { "a.md": "[[missing]]" }));
  for (const path of [one, other]) await run(index, { path }, { home });
  const client = await connect();
  expect(dataOf(await client.call("vault_check", { path: one }))).toMatchObject({ root: one, broken_count: 1 });
  expect(dataOf(await client.call("vault_check", { vault: other }))).toMatchObject({ root: other });
  const refused = await client.call("vault_check", { path: folder });
  expect(refused).toMatchObject({ isError: true });
  expect(textOf(refused)).toContain(`\`vault\` ${folder} has not been indexed`);
  expect(textOf(await client.call("vault_check", { path: one, vault: other }))).toContain(
    "`path` is another name of `vault`; give one of them.",
  );
});

test("`vault check <path>` refuses a path that is no vault", async () => {
  await run(index, { path: writeFiles(`${folder}/notes`, { "a.md": "" }) }, { home });
  expect(await runCli(["vault", "check", "notes", "--json"], { cwd: folder, env: env() })).toMatchObject({ code: 0 });
  const refused = await runCli(["vault", "check", "."], { cwd: folder, env: env() });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`${folder} has not been indexed`) });
});

test("`monitor filter show <list>` shows that list, and names the lists for another word", async () => {
  const show = async (...words: string[]) =>
    await runCli(["monitor", "filter", "show", ...words, "--json"], { cwd: folder, env: env() });
  const { filters } = JSON.parse((await show("exclude_dirnames")).stdout) as { filters: readonly unknown[] };
  expect(filters).toEqual([{ list: "exclude_dirnames", values: expect.arrayContaining([".git", "node_modules"]) }]);
  expect(await show("--list", "exclude_dirnames")).toMatchObject({ code: 0 });
  expect(JSON.parse((await show()).stdout).filters).toHaveLength(6);
  expect(await show("dirnames")).toMatchObject({ code: 2, stderr: expect.stringContaining("exclude_dirnames") });
});

test("`monitor watch` gives its counts on Ctrl-C", async () => {
  writeFiles(folder, { "a.txt": "1", "b.txt": "2" });
  const watch = startCli(["monitor", "watch", folder], { cwd: folder, env: env() });
  await waitFor(() => watch.stderr().includes("2 updated"));
  watch.signal("SIGINT");
  expect(await watch.exited).toBe(130);
  expect(watch.stderr()).toContain(`Stopped watching ${folder}: 2 updated, 0 removed`);
});

test("a cancelled task of monitor_watch gives its counts, at once and when it is asked for", async () => {
  writeFiles(folder, { "a.txt": "1", "b.txt": "2" });
  const client = await connect();
  const { job_id } = handleOf(await client.call("monitor_watch", { path: folder }));
  const progress = async () => JSON.stringify(dataOf(await client.call("task_status", { job_id })));
  await waitFor(async () => (await progress()).includes("2 updated"));
  const counts = "Last progress: Watching 1 folder: 2 updated, 0 removed.";
  expect(textOf(await client.call("task_cancel", { job_id }))).toContain(`monitor_watch was cancelled. ${counts}`);
  expect(textOf(await client.call("task_result", { job_id }))).toContain(`Cancelled by the caller. ${counts}`);
  const shown = await runCli(["tasks", "show", job_id], { cwd: folder, env: env() });
  expect(shown.stdout.replaceAll(/\s+/g, " ")).toContain(counts);
});
