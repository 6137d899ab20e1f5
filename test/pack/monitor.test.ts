import { mkdirSync, renameSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { Held } from "../../commands/monitor/_held.ts";
import sync from "../../commands/monitor/sync.ts";
import type { CallFacts, ProgressReport } from "../../src/command/context.ts";
import { Monitored, sha256 } from "../fixtures/pack/monitored.ts";
import { inSession, typed } from "../fixtures/pack/reaches.ts";
import { writeFiles } from "../helpers/home.ts";
import { run } from "../helpers/run.ts";
import { makeSocket } from "../helpers/unix-socket.ts";

const none = { errors: [], errors_total: 0 };

describe("monitor sync", () => {
  test("records hash and size of every file, and reads nothing that is as it was", async () => {
    const monitored = new Monitored({ "a.txt": "one", "sub/b.txt": "two", "sub/deep/c.txt": "" });
    expect(await monitored.sync()).toMatchObject({
      files_processed: 3,
      files_updated: 3,
      files_skipped: 0,
      files_removed: 0,
      bytes_read: 6,
      ...none,
    });
    expect(monitored.recorded()).toEqual({
      "a.txt": sha256("one"),
      "sub/b.txt": sha256("two"),
      "sub/deep/c.txt": sha256(""),
    });
    expect(await monitored.sync()).toMatchObject({
      files_processed: 3,
      files_updated: 0,
      files_skipped: 3,
      bytes_read: 0,
      ...none,
    });
  });

  test("reads a changed file again, also when another file of the same size and time took its place", async () => {
    const monitored = new Monitored({ "a.txt": "one", "b.txt": "two", "b.new": "TWO" });
    const [file, other] = [path.join(monitored.root, "b.txt"), path.join(monitored.root, "b.new")];
    for (const name of [file, other]) utimesSync(name, 1_000, 1_000);
    await monitored.sync();
    renameSync(other, file);
    expect(await monitored.sync()).toMatchObject({
      files_updated: 1,
      files_skipped: 1,
      files_removed: 1,
      bytes_read: 3,
    });
    expect(monitored.recorded()).toEqual({ "a.txt": sha256("one"), "b.txt": sha256("TWO") });
  });

  test("of a file that went back to what it was, after it was synced alone, records what it is", async () => {
    const monitored = new Monitored({ "a.txt": "one" });
    const file = path.join(monitored.root, "a.txt");
    const write = (text: string, seconds: number) => {
      writeFileSync(file, text);
      utimesSync(file, seconds, seconds);
    };
    write("one", 1_000);
    await monitored.sync();
    write("two", 2_000);
    await monitored.sync({ path: file });
    write("one", 1_000);
    await monitored.sync();
    expect(monitored.recorded()).toEqual({ "a.txt": sha256("one") });
  });

  test("without --recursive looks at the folder alone and leaves alone what it knows of those below", async () => {
    const monitored = new Monitored({ "a.txt": "one", "sub/b.txt": "two" });
    expect(await monitored.sync({ recursive: false })).toMatchObject({ files_processed: 1, folders_passed_over: 1 });
    expect(await run(sync, { path: monitored.root }, { home: monitored.home })).toMatchObject({
      messages: [
        { type: "status" },
        {
          type: "success",
          text: "0 updated, 1 skipped, 0 removed; 1 folder below passed over (--recursive looks there, too)",
        },
      ],
    });
    expect(await monitored.sync({ path: path.join(monitored.root, "sub"), recursive: false })).toMatchObject({
      folders_passed_over: 0,
    });
    await monitored.sync();
    rmSync(path.join(monitored.root, "a.txt"));
    expect(await monitored.sync({ recursive: false })).toMatchObject({ files_removed: 1 });
    expect(Object.keys(monitored.recorded())).toEqual(["sub/b.txt"]);
  });

  test("forgets files that vanished, and a vanished folder with all below it", async () => {
    const monitored = new Monitored({ "a.txt": "1", "sub/b.txt": "2", "sub/deep/c.txt": "3", "subway/d.txt": "4" });
    await monitored.sync();
    rmSync(path.join(monitored.root, "sub"), { recursive: true });
    rmSync(path.join(monitored.root, "a.txt"));
    expect(await monitored.sync()).toMatchObject({ files_processed: 1, files_removed: 3 });
    expect(Object.keys(monitored.recorded())).toEqual(["subway/d.txt"]);
  });

  test("of a path that is gone forgets it, whether it was a file or a folder", async () => {
    const monitored = new Monitored({ "a.txt": "1", "sub/b.txt": "2", "sub/deep/c.txt": "3" });
    await monitored.sync();
    rmSync(path.join(monitored.root, "sub"), { recursive: true });
    rmSync(path.join(monitored.root, "a.txt"));
    expect(await monitored.sync({ path: path.join(monitored.root, "sub") })).toMatchObject({ files_removed: 2 });
    expect(await monitored.sync({ path: path.join(monitored.root, "a.txt") })).toMatchObject({ files_removed: 1 });
    expect(monitored.recorded()).toEqual({});
  });

  test("of a path that is not there and of which nothing is recorded is refused", async () => {
    const monitored = new Monitored({ "sub/a.txt": "1" });
    await monitored.sync();
    const refusal = (name: string) => monitored.failure(sync, { path: path.join(monitored.root, name) });
    for (const name of ["su", "sub/b.txt", "sub/a.txt/c", "nowhere/at/all"]) {
      expect(await refusal(name)).toContain(
        `\`path\` ${path.join(monitored.root, name)} is not there, and nothing is recorded of it; check the path.`,
      );
    }
    expect(Object.keys(monitored.recorded())).toEqual(["sub/a.txt"]);
    await makeSocket(path.join(monitored.root, "socket"));
    expect(await refusal("socket")).toContain("is not a regular file");
  });

  test("of one file looks at that file", async () => {
    const monitored = new Monitored({ "a.txt": "1", "b.txt": "2" });
    const file = path.join(monitored.root, "b.txt");
    expect(await monitored.sync({ path: file })).toMatchObject({ files_processed: 1, files_updated: 1 });
    expect(await monitored.sync({ path: file })).toMatchObject({ files_skipped: 1, bytes_read: 0 });
    expect(Object.keys(monitored.recorded())).toEqual(["b.txt"]);
  });

  test("a folder that became a file, and a file that became a folder, are what they are now", async () => {
    const monitored = new Monitored({ "x/inner.txt": "1", y: "2" });
    await monitored.sync();
    rmSync(path.join(monitored.root, "x"), { recursive: true });
    rmSync(path.join(monitored.root, "y"));
    writeFiles(monitored.root, { x: "3", "y/inner.txt": "4" });
    expect(await monitored.sync()).toMatchObject({ files_updated: 2, files_removed: 2 });
    expect(Object.keys(monitored.recorded())).toEqual(["x", "y/inner.txt"]);
  });

  test("in threads gives the same hashes", async () => {
    const monitored = new Monitored();
    const names = Array.from({ length: 400 }, (_, at) => `d${at % 7}/file-${at}.txt`);
    writeFiles(monitored.root, Object.fromEntries(names.map((name) => [name, `content of ${name}`])));
    writeFileSync(path.join(monitored.root, "large.bin"), Buffer.alloc(17_000_000, "x"));
    // More than 16 MiB: threads read it.
    expect(await monitored.sync()).toMatchObject({ files_updated: 401, ...none });
    const recorded = monitored.recorded();
    expect(recorded["large.bin"]).toBe(sha256(Buffer.alloc(17_000_000, "x")));
    for (const name of names) expect(recorded[name]).toBe(sha256(`content of ${name}`));
    // The second time, a look at each folder is enough; a change in one of them is found all the same.
    writeFileSync(path.join(monitored.root, "d3/file-3.txt"), "changed");
    expect(await monitored.sync()).toMatchObject({ files_updated: 1, files_skipped: 400, bytes_read: 7 });
  });

  test("reads what is newest first, in batches", () => {
    const held = new Held();
    const seen = { path: Buffer.from("/x"), snapshot: Buffer.alloc(0), files: 0, isWhole: true };
    const times = Array.from({ length: 1_000 }, (_, at) => (at * 7_919) % 1_009);
    for (const time of times)
      held.push(
        { seen, key: String(time), priority: 0 },
        { size: 1, mtimeNs: BigInt(time) * 1_000_000_000n, inode: 1n },
      );
    const batches = [...held.batches()];
    expect(batches.length).toBe(8);
    expect(batches.flatMap(({ files }) => files.map(({ key }) => Number(key)))).toEqual(
      [...times].sort((a, b) => b - a),
    );
    expect(batches[0]?.batch.paths.startsWith("/x/1008\0/x/1007\0")).toBe(true);
  });

  test("tells how far it is, and ends at all of it", async () => {
    const monitored = new Monitored(Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`${at}.txt`, "x"])));
    const reports: ProgressReport[] = [];
    await run(
      sync,
      { path: monitored.root },
      { home: monitored.home, door: { progress: (report) => void reports.push(report) } },
    );
    expect(reports.at(-1)).toMatchObject({ done: 40, total: 40, message: "40 files" });
  });

  test("says beforehand how long it may take: a second for every hundred files", () => {
    const monitored = new Monitored(
      Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`d${at % 5}/${at}.txt`, "x"])),
    );
    const estimate = sync.estimate as unknown as (input: object, call: CallFacts) => number;
    expect(estimate({ path: monitored.root, recursive: true }, typed)).toBeCloseTo(0.5);
    expect(estimate({ path: monitored.root, recursive: false }, typed)).toBe(0);
    expect(estimate({ path: ".", recursive: true }, inSession(monitored.root))).toBeCloseTo(0.5);
    expect(() => estimate({ path: monitored.root, recursive: true }, inSession(monitored.home))).toThrow(
      "lies outside",
    );
  });

  test("stops within a moment when it is cancelled, also in the middle of a large file, and keeps what it has", async () => {
    const monitored = new Monitored({ "a.txt": "1" });
    await monitored.sync();
    for (let at = 0; at < 100; at++) writeFileSync(path.join(monitored.root, `hole-${at}`), "");
    for (let at = 0; at < 100; at++) truncateSync(path.join(monitored.root, `hole-${at}`), 1_000_000_000);
    const controller = new AbortController();
    const running = run(
      sync,
      { path: monitored.root },
      {
        home: monitored.home,
        signals: [controller.signal],
        door: { progress: () => controller.abort(new Error("enough")) },
      },
    );
    const startedAt = performance.now();
    await running;
    expect(performance.now() - startedAt).toBeLessThan(30_000);
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt"]);
  });

  test("leaves Meanwhile's own folder out", async () => {
    const monitored = new Monitored({ "a.txt": "1", "home/token": "secret" });
    const home = path.join(monitored.root, "home");
    await monitored.data(sync, { path: monitored.root, recursive: true }, { home });
    mkdirSync(path.join(home, "deep"));
    expect(await monitored.data(sync, { path: monitored.root, recursive: true }, { home })).toMatchObject({
      files_processed: 1,
    });
  });

  test("keeps its database to its user", async () => {
    const monitored = new Monitored({ "a.txt": "1" });
    await monitored.sync();
    expect(statSync(path.join(monitored.home, "pack.db")).mode & 0o777).toBe(0o600);
  });
});
