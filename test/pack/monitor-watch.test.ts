import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import status from "../../commands/monitor/status.ts";
import watch from "../../commands/monitor/watch.ts";
import { Monitored, sha256 } from "../fixtures/pack/monitored.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";
import { run } from "../helpers/run.ts";

/** Starts to watch, and resolves once everything that is there is recorded and watched. */
async function startWatching(monitored: Monitored, input: object = {}) {
  const controller = new AbortController();
  const said: string[] = [];
  const door = { progress: ({ message = "" }: { message?: string }) => void said.push(message) };
  const ended = run(
    watch,
    { path: monitored.root, ...input },
    { home: monitored.home, signals: [controller.signal], door },
  );
  const stop = async () => {
    controller.abort();
    return await ended;
  };
  onTestFinished(async () => void (await stop()));
  await waitFor(() => said.length > 0);
  return { ended, stop, said };
}

/** Waits until exactly these files are recorded. */
async function expectRecorded(monitored: Monitored, files: Readonly<Record<string, string>>): Promise<void> {
  const wanted = JSON.stringify(Object.fromEntries(Object.entries(files).map(([name, text]) => [name, sha256(text)])));
  await waitFor(
    () => existsSync(path.join(monitored.home, "pack.db")) && JSON.stringify(monitored.recorded()) === wanted,
    () => `recorded are ${Object.keys(monitored.recorded()).join(", ")}`,
  );
}

describe("monitor watch", () => {
  test("records what is there, then every change: new, changed, removed, moved, in new folders too", async () => {
    const monitored = new Monitored({ "a.txt": "1", "sub/b.txt": "2" });
    const below = (name: string) => path.join(monitored.root, name);
    await startWatching(monitored);
    await expectRecorded(monitored, { "a.txt": "1", "sub/b.txt": "2" });
    writeFileSync(below("sub/b.txt"), "two");
    writeFiles(monitored.root, { "new/deep/c.txt": "3" });
    await expectRecorded(monitored, { "a.txt": "1", "new/deep/c.txt": "3", "sub/b.txt": "two" });
    writeFileSync(below("new/deep/d.txt"), "4");
    rmSync(below("a.txt"));
    await expectRecorded(monitored, { "new/deep/c.txt": "3", "new/deep/d.txt": "4", "sub/b.txt": "two" });
    renameSync(below("new"), below("moved"));
    await expectRecorded(monitored, { "moved/deep/c.txt": "3", "moved/deep/d.txt": "4", "sub/b.txt": "two" });
    writeFileSync(below("moved/deep/d.txt"), "four");
    await expectRecorded(monitored, { "moved/deep/c.txt": "3", "moved/deep/d.txt": "four", "sub/b.txt": "two" });
  });

  test("notices changes in a folder that was removed and made again", async () => {
    const monitored = new Monitored({ "sub/a.txt": "1" });
    await startWatching(monitored);
    rmSync(path.join(monitored.root, "sub"), { recursive: true });
    mkdirSync(path.join(monitored.root, "sub"));
    writeFileSync(path.join(monitored.root, "sub/a.txt"), "one");
    await expectRecorded(monitored, { "sub/a.txt": "one" });
    writeFileSync(path.join(monitored.root, "sub/b.txt"), "two");
    await expectRecorded(monitored, { "sub/a.txt": "one", "sub/b.txt": "two" });
    rmSync(path.join(monitored.root, "sub"), { recursive: true });
    writeFileSync(path.join(monitored.root, "sub"), "a file now");
    await expectRecorded(monitored, { sub: "a file now" });
  });

  test("does not follow a link that takes the place of a folder", async () => {
    const outside = writeFiles(temporaryFolder(), { "secret.txt": "secret", "deep/secret.txt": "secret" });
    const monitored = new Monitored({ "sub/a.txt": "1", "sub/deep/b.txt": "2" });
    await startWatching(monitored);
    rmSync(path.join(monitored.root, "sub"), { recursive: true });
    symlinkSync(outside, path.join(monitored.root, "sub"));
    writeFileSync(path.join(monitored.root, "c.txt"), "3");
    await expectRecorded(monitored, { "c.txt": "3" });
    writeFileSync(path.join(monitored.root, "d.txt"), "4");
    await expectRecorded(monitored, { "c.txt": "3", "d.txt": "4" });
  });

  test("ends when it is cancelled, when its time is over, and when the folder is gone", async () => {
    const monitored = new Monitored({ "a.txt": "1" });
    const { stop } = await startWatching(monitored);
    expect(await stop()).toMatchObject({ ending: "cancelled" });
    expect(await monitored.data(watch, { path: monitored.root, seconds: 0.1 })).toMatchObject({
      ended: "time",
      files_updated: 0,
      errors_total: 0,
    });
    const { ended } = await startWatching(monitored);
    rmSync(monitored.root, { recursive: true });
    expect(await ended).toMatchObject({ ending: "completed", data: { ended: "vanished", files_removed: 1 } });
    expect(monitored.recorded()).toEqual({});
  });

  test("that is cancelled keeps its counts: in its last words, and in monitor status", async () => {
    const monitored = new Monitored({ "a.txt": "1", "b.txt": "2" });
    const { stop } = await startWatching(monitored);
    writeFileSync(path.join(monitored.root, "c.txt"), "3");
    rmSync(path.join(monitored.root, "a.txt"));
    await expectRecorded(monitored, { "b.txt": "2", "c.txt": "3" });
    const { ending, messages } = await stop();
    expect(ending).toBe("cancelled");
    expect(messages.map(({ text }) => text)).toContain(`Stopped watching ${monitored.root}: 3 updated, 1 removed`);
    expect(await monitored.data(status)).toMatchObject({
      syncs: [{ path: monitored.root, recursive: true, files_updated: 3, files_removed: 1 }],
    });
  });

  test("leaves folders out that the filter leaves out, and refuses a file", async () => {
    const monitored = new Monitored({ "a.txt": "1" });
    await startWatching(monitored);
    writeFiles(monitored.root, { "node_modules/x.js": "x", "b.txt": "2" });
    await expectRecorded(monitored, { "a.txt": "1", "b.txt": "2" });
    expect(await monitored.failure(watch, { path: path.join(monitored.root, "a.txt") })).toContain(
      "is not a folder; use monitor sync",
    );
  });
});
