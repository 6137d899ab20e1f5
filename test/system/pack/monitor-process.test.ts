import { realpathSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import Database from "better-sqlite3";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { runMeanwhile, startMeanwhile, waitFor } from "../../helpers/meanwhile.ts";
import { rounds } from "../../helpers/rounds.ts";

const fileBytes = 16 * 1024 * 1024;
const files = 24;

function countRows(home: string): number {
  try {
    const db = new Database(path.join(home, "pack.db"), { readonly: true, fileMustExist: true });
    try {
      return db.prepare("select count(*) from monitor_files").pluck().get() as number;
    } finally {
      db.close();
    }
  } catch {
    return 0; // Not made yet.
  }
}

test("after kill -9 in the middle, what was recorded is not read again", async () => {
  const cwd = temporaryFolder();
  for (let at = 0; at < files; at++) {
    writeFileSync(path.join(cwd, `hole-${at}`), "");
    truncateSync(path.join(cwd, `hole-${at}`), fileBytes);
  }
  const killed = startMeanwhile(["monitor", "sync", "."], { cwd });
  await waitFor(() => countRows(killed.home) > 0, killed.stderr);
  killed.child.kill("SIGKILL");
  await killed.exited;
  const recorded = countRows(killed.home);
  expect(recorded).toBeLessThan(files);
  const resumed = await runMeanwhile(["monitor", "sync", ".", "--json", "--quiet"], {
    cwd,
    env: { MEANWHILE_HOME: killed.home },
  });
  expect(JSON.parse(resumed.stdout)).toMatchObject({
    files_processed: files,
    files_skipped: recorded,
    files_updated: files - recorded,
    bytes_read: (files - recorded) * fileBytes,
    errors_total: 0,
  });
}, 120_000);

test("several processes sync into one database at once, and each records all of its files", async () => {
  const cwd = realpathSync(temporaryFolder());
  const home = temporaryFolder();
  const folders = ["a", "b", "c"];
  const count = rounds.syncedFiles;
  for (const folder of folders)
    writeFiles(
      cwd,
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`${folder}/${at}.txt`, `${folder}${at}`])),
    );
  const runs = folders.map((folder) =>
    runMeanwhile(["monitor", "sync", folder, "--json", "--quiet"], { cwd, env: { MEANWHILE_HOME: home } }),
  );
  for (const { code, stdout, stderr } of await Promise.all(runs)) {
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ files_updated: count, errors_total: 0 });
  }
  expect(countRows(home)).toBe(3 * count);
}, 120_000);
