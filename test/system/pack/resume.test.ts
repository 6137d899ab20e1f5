import { realpathSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { killNine, type Started, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";
import { taskIdOf } from "../../helpers/project.ts";
import { overPipes, type Result, resultOf, takesTasks, WireClient } from "../../helpers/wire.ts";

const count = 1_000;
/** As `transform batch` has them. */
const filesAStep = 20;

/** What a home's database says; `missing` where neither it nor its tables are there yet. */
function read<T>(home: string, missing: T, act: (db: Database.Database) => T): T {
  try {
    const db = new Database(path.join(home, "pack.db"), { readonly: true, fileMustExist: true });
    try {
      return act(db);
    } finally {
      db.close();
    }
  } catch {
    return missing;
  }
}

/** What each command has finished so far, with the moment it was written, where that is kept. */
function readDone(home: string) {
  return {
    notes: read(home, 0, (db) => db.prepare("select count(*) from vault_files").pluck().get() as number),
    texts: new Map(
      read(
        home,
        [],
        (db) => db.prepare("select key, created_at from transform_entries").raw().all() as [string, number][],
      ),
    ),
    files: new Map(
      read(
        home,
        [],
        (db) =>
          db.prepare("select shown, ingested_at from ingest_files where stamp <> ''").raw().all() as [string, number][],
      ),
    ),
  };
}

async function connect(options: {
  cwd: string;
  env: Record<string, string>;
}): Promise<{ server: Started; client: WireClient }> {
  const server = startMeanwhile(["serve", "--in-process"], options);
  const client = await new WireClient(overPipes(server.child), {
    revision: "2026-07-28",
    capabilities: takesTasks,
  }).begin();
  onTestFinished(() => client.close());
  return { server, client };
}

async function dataOf(client: WireClient, taskId: string): Promise<Record<string, number>> {
  return await waitFor(async () => {
    const task = resultOf(await client.request("tasks/get", { taskId }));
    if (task.status === "completed") return (task.result as Result).structuredContent?.data as Record<string, number>;
    if (task.status !== "working") throw new Error(`The task ended as ${JSON.stringify(task)}`);
    return undefined;
  });
}

test("after kill -9 of the server the next one goes on with every task where it was, and does nothing twice", {
  timeout: 180_000,
}, async () => {
  const cwd = realpathSync(temporaryFolder());
  const broken = "[[none]] ".repeat(9);
  const words = "some words and more of them, ".repeat(60);
  writeFiles(
    cwd,
    Object.fromEntries(
      Array.from({ length: count }, (_, at) => [
        `notes/d${at % 10}/n${at}.md`,
        `# N${at}\n[[n${(at + 1) % count}]] ${broken}\n${words}`,
      ]),
    ),
  );
  const home = path.join(cwd, "home");
  const options = { cwd, env: { HOME: cwd, MEANWHILE_HOME: home } };
  const first = await connect(options);
  const start = async (tool: string, input: object) => taskIdOf(await first.client.call(tool, input));
  const batch = await start("transform_batch", { glob: "notes/**/*.md" });
  await waitFor(() => readDone(home).texts.size > filesAStep, first.server.stderr);
  const sources = await start("ingest_sources", { paths: ["notes"] });
  await waitFor(() => readDone(home).files.size > 0, first.server.stderr);
  const vault = await start("vault_index", { path: "notes" });
  await waitFor(() => readDone(home).notes > 0, first.server.stderr);
  await killNine(first.server);
  const done = readDone(home);
  for (const some of [done.notes, done.texts.size, done.files.size]) expect(some).toBeLessThan(count);

  const { client } = await connect(options);
  expect(await dataOf(client, vault)).toMatchObject({
    notes_unchanged: done.notes,
    notes_parsed: count - done.notes,
    notes: count,
    links: 10 * count,
    broken_links: 9 * count,
  });
  const transformed = await dataOf(client, batch);
  expect(transformed).toMatchObject({ files_matched: count, errors_total: 0 });
  // Of the step that was cut short, what was made is in the cache; the steps before it are not gone through again.
  const { files_cached: cached = 0, files_transformed: made = 0 } = transformed;
  expect(cached).toBeLessThanOrEqual(filesAStep);
  expect([cached % filesAStep, cached + made]).toEqual([done.texts.size % filesAStep, count]);
  expect(await dataOf(client, sources)).toMatchObject({
    files_seen: count,
    files_unchanged: done.files.size,
    files_ingested: count - done.files.size,
    errors_total: 0,
  });

  const all = readDone(home);
  expect([all.texts.size, all.files.size]).toEqual([count, count]);
  for (const [key, createdAt] of done.texts) expect(all.texts.get(key)).toBe(createdAt);
  for (const [file, ingestedAt] of done.files) expect(all.files.get(file)).toBe(ingestedAt);
  const chunks = read(home, undefined, (db) =>
    db
      .prepare(
        "select count(*), count(distinct file || '-' || ordinal), (select count(*) from ingest_texts) from ingest_chunks",
      )
      .raw()
      .get(),
  );
  const [total] = chunks as number[];
  expect(chunks).toEqual([total, total, total]);
  expect(
    read(home, undefined, (db) =>
      db.prepare("select count(*) from ingest_texts where ingest_texts match 'n7'").pluck().get(),
    ),
  ).toBe(2);
});
