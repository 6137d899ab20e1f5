import { AsyncLocalStorage } from "node:async_hooks";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, onTestFinished, TestRunner } from "vitest";

type Cleanup = () => unknown;
const sharing = new AsyncLocalStorage<Cleanup[]>();

/** Cleans up after the test; what `shareAmongTests` opens is cleaned up after the last of its tests. */
export function cleanUp(cleanup: Cleanup): void {
  const cleanups = sharing.getStore();
  if (cleanups !== undefined) return void cleanups.push(cleanup);
  // Of tests that run at the same time nobody knows which one asks, and each would clean up after another.
  if (TestRunner.getCurrentTest()?.concurrent === true)
    throw new Error("Tests that run at the same time share what they open: see shareAmongTests.");
  onTestFinished(async () => void (await cleanup()));
}

/**
 * One server, home or client for the tests of a file or `describe`: opened by the first that asks, gone after the last.
 * For tests that leave nothing behind which another of them could see; a start costs more than most of them.
 */
export function shareAmongTests<T>(open: () => Promise<T> | T): () => Promise<T> {
  const cleanups: Cleanup[] = [];
  let opened: Promise<T> | undefined;
  afterAll(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  return () => (opened ??= sharing.run(cleanups, async () => await open()));
}

/** An empty folder that is gone after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
  cleanUp(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  return folder;
}

/** Writes files below a folder; names may hold slashes. */
export function writeFiles(folder: string, files: Readonly<Record<string, string>>): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(path.join(folder, name), text);
  }
  return folder;
}
