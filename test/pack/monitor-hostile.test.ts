import {
  appendFileSync,
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { hashBatch, resultsOf } from "../../commands/_pack/hash-batch.ts";
import { hashFile } from "../../commands/_pack/hash-file.ts";
import { openHashPool } from "../../commands/_pack/hash-pool.ts";
import { walkFolders } from "../../commands/_pack/walk.ts";
import { Monitored, sha256 } from "../fixtures/pack/monitored.ts";
import { anywhere } from "../fixtures/pack/reaches.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { makeSocket } from "../helpers/unix-socket.ts";

const bytesOf = (root: string, name: Buffer) => Buffer.concat([Buffer.from(`${root}/`), name]);

describe("links", () => {
  test("that lead in a circle end, and nothing is recorded twice", async () => {
    const monitored = new Monitored({ "a/file.txt": "one" });
    symlinkSync("..", path.join(monitored.root, "a/up"));
    symlinkSync(monitored.root, path.join(monitored.root, "self"));
    symlinkSync("pong", path.join(monitored.root, "ping"));
    symlinkSync("ping", path.join(monitored.root, "pong"));
    const { errors } = await monitored.sync();
    expect(Object.keys(monitored.recorded())).toEqual(["a/file.txt"]);
    expect(errors.map(({ path: file, reason }) => `${path.basename(file)}: ${reason}`).sort()).toEqual([
      "ping: its links lead in a circle",
      "pong: its links lead in a circle",
    ]);
  });

  test("out of the folder are reported and never followed; what they once were is forgotten", async () => {
    const monitored = new Monitored({ "a.txt": "one", passwd: "mine" });
    await monitored.sync();
    rmSync(path.join(monitored.root, "passwd"));
    symlinkSync("/etc/passwd", path.join(monitored.root, "passwd"));
    symlinkSync("/etc", path.join(monitored.root, "etc"));
    expect(await monitored.sync()).toMatchObject({ files_skipped: 1, files_removed: 1, errors_total: 2 });
    const { errors } = await monitored.sync();
    expect(errors.map(({ path: file }) => file).sort()).toEqual([`${monitored.root}/etc`, `${monitored.root}/passwd`]);
    expect(errors[0]?.reason).toBe("it is a link that leads out of the folder, and was not followed");
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt"]);
  });

  test("to a file inside are that file; to nowhere are reported", async () => {
    const monitored = new Monitored({ "2026.log": "today" });
    symlinkSync("2026.log", path.join(monitored.root, "latest.log"));
    symlinkSync("2027.log", path.join(monitored.root, "next.log"));
    linkSync(path.join(monitored.root, "2026.log"), path.join(monitored.root, "hard.log"));
    expect(await monitored.sync()).toMatchObject({
      files_updated: 3,
      errors: [{ path: `${monitored.root}/next.log`, reason: "it is a link that leads nowhere" }],
    });
    expect(monitored.recorded()).toEqual({
      "2026.log": sha256("today"),
      "hard.log": sha256("today"),
      "latest.log": sha256("today"),
    });
  });
});

describe("names", () => {
  test("with a newline and names that are not UTF-8 are kept as the bytes they are", async () => {
    const monitored = new Monitored();
    writeFileSync(path.join(monitored.root, "two\nlines"), "1");
    writeFileSync(bytesOf(monitored.root, Buffer.from([0xff, 0xfe])), "2");
    mkdirSync(bytesOf(monitored.root, Buffer.from([0x64, 0xe4])));
    writeFileSync(bytesOf(monitored.root, Buffer.from([0x64, 0xe4, 0x2f, 0xf6])), "3");
    expect(await monitored.sync()).toMatchObject({ files_updated: 3, errors_total: 0 });
    expect(monitored.recorded()).toEqual({
      "d\xe4/\xf6": sha256("3"),
      "two\nlines": sha256("1"),
      "\xff\xfe": sha256("2"),
    });
    expect(await monitored.sync()).toMatchObject({ files_skipped: 3, files_removed: 0 });
    // As shown, each can be given again.
    expect(await monitored.sync({ path: `${monitored.root}/d%E4/%F6` })).toMatchObject({
      path: `${monitored.root}/d%E4/%F6`,
      files_skipped: 1,
    });
    rmSync(bytesOf(monitored.root, Buffer.from([0x64, 0xe4])), { recursive: true });
    expect(await monitored.sync({ path: `${monitored.root}/d%E4` })).toMatchObject({ files_removed: 1 });
  });
});

/** Root may read everything, so this becomes nobody for a while. */
async function asNobody<T>(monitored: Monitored, act: () => Promise<T>): Promise<T> {
  if (process.getuid?.() !== 0) return await act();
  chownSync(monitored.home, 65_534, 65_534);
  process.seteuid?.(65_534);
  try {
    return await act();
  } finally {
    process.seteuid?.(0);
  }
}

describe("what cannot be read", () => {
  test("is reported by name, and what is known of it stays; the rest goes on", async () => {
    const monitored = new Monitored({
      "a.txt": "one",
      "secret.txt": "two",
      "closed/b.txt": "three",
      "closed/deep/c.txt": "four",
    });
    chmodSync(monitored.root, 0o755);
    await asNobody(monitored, () => monitored.sync());
    chmodSync(path.join(monitored.root, "closed"), 0o000);
    chmodSync(path.join(monitored.root, "secret.txt"), 0o000);
    onTestFinished(() => chmodSync(path.join(monitored.root, "closed"), 0o755));
    writeFiles(monitored.root, { "a.txt": "one more" });
    appendFileSync(path.join(monitored.root, "secret.txt"), "!");
    const { errors, ...rest } = await asNobody(monitored, () => monitored.sync());
    expect(rest).toMatchObject({ files_updated: 1, files_removed: 0, errors_total: 2 });
    expect([...errors].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: `${monitored.root}/closed`, reason: "it may not be read; check its mode and owner" },
      { path: `${monitored.root}/secret.txt`, reason: "it may not be read; check its mode and owner" },
    ]);
    expect(Object.keys(monitored.recorded())).toEqual(["a.txt", "closed/b.txt", "closed/deep/c.txt", "secret.txt"]);
  });

  test("sockets are passed over", async () => {
    const monitored = new Monitored({ "a.txt": "one" });
    await makeSocket(path.join(monitored.root, "socket"));
    expect(await monitored.sync()).toMatchObject({ files_processed: 1, errors_total: 0 });
  });

  test("a hundred errors are listed, all are counted", async () => {
    const monitored = new Monitored();
    for (let at = 0; at < 130; at++) symlinkSync("nowhere", path.join(monitored.root, `link-${at}`));
    const { errors, errors_total } = await monitored.sync();
    expect([errors.length, errors_total]).toEqual([100, 130]);
  });
});

describe("a file that changes while it is read", () => {
  const state = { size: 2_000_000, mtimeNs: 0n, inode: 0n };

  test("is read again, and its hash is that of what it became", () => {
    const file = path.join(temporaryFolder(), "log");
    writeFileSync(file, Buffer.alloc(2_000_000, "x"));
    let changes = 0;
    const hashed = hashFile(Buffer.from(file), state, () => {
      if (changes++ === 0) appendFileSync(file, "!");
      return false;
    });
    expect(hashed).toMatchObject({ size: 2_000_001, hasChanged: true });
    expect(hashed.sha256.toString("hex")).toBe(sha256(Buffer.concat([Buffer.alloc(2_000_000, "x"), Buffer.from("!")])));
  });

  test("all the time is reported, and the others of its batch are hashed", () => {
    const folder = temporaryFolder();
    const file = path.join(folder, "log");
    writeFiles(folder, { calm: "one", log: "x".repeat(2_000_000) });
    const paths = [path.join(folder, "calm"), file, path.join(folder, "gone")].join("\0");
    const hashed = hashBatch({ paths, states: new BigInt64Array(9) }, () => {
      appendFileSync(file, "!");
      return false;
    });
    const [calm, log, gone] = [...resultsOf(hashed)];
    expect(calm).toMatchObject({ sha256: Buffer.from(sha256("one"), "hex") });
    expect(log).toEqual({ reason: "it kept changing while it was read; sync it again later" });
    expect(gone).toEqual({ reason: "it vanished while it was looked at" });
  });
});

test("a thread in the middle of a very large file stops at once", async () => {
  const file = path.join(temporaryFolder(), "hole");
  writeFileSync(file, "");
  truncateSync(file, 500_000_000_000);
  const controller = new AbortController();
  const pool = openHashPool(controller.signal);
  const hashing = pool.hash({ paths: file, states: new BigInt64Array([500_000_000_000n, 0n, 0n]) });
  setImmediate(() => controller.abort(new Error("enough")));
  await expect(hashing).rejects.toThrow("enough");
  await pool.close();
});

test("a folder that vanishes during the walk is reported, and the walk goes on", async () => {
  const root = writeFiles(temporaryFolder(), { "a/1.txt": "1", "b/2.txt": "2", "c/3.txt": "3" });
  const failed: string[] = [];
  const met: string[] = [];
  const onFolder = (folder: Buffer) => {
    if (folder.toString().endsWith("/b")) rmSync(folder, { recursive: true });
  };
  const onError = (file: Buffer, error: unknown) =>
    void failed.push(`${path.basename(file.toString())}: ${(error as { code: string }).code}`);
  for await (const { files } of walkFolders(Buffer.from(root), { reach: anywhere, onFolder, onError }))
    for (const { name } of files) met.push(name.toString());
  expect([met.sort(), failed]).toEqual([["1.txt", "3.txt"], ["b: ENOENT"]]);
});
