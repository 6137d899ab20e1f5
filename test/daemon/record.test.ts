import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import path from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  ensurePrivateFolder,
  forgetSocketFolder,
  placeSocket,
  readRecord,
  readRecords,
  refusalOf,
  removeRecord,
  writeRecord,
} from "../../src/daemon/record.ts";
import { homeAt } from "../../src/paths.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";

const key = "k".repeat(28);
const isRoot = process.getuid?.() === 0;

afterEach(() => void vi.unstubAllEnvs());

test("a socket whose path would be cut off lies among the temporary files, in a folder of this user's", () => {
  const lengthOf = (folder: string) => Buffer.byteLength(path.join(folder, "run", `${key}.sock`));
  const short = `/${"a".repeat(99 - lengthOf("/"))}`;
  expect(lengthOf(short)).toBe(100);
  expect(placeSocket(homeAt({ MEANWHILE_HOME: short }), key)).toBe(`${short}/run/${key}.sock`);
  const temporary = temporaryFolder();
  vi.stubEnv("TMPDIR", temporary);
  for (const folder of [`${short}a`, `${short.slice(0, -1)}ü`]) {
    expect(placeSocket(homeAt({ MEANWHILE_HOME: folder }), key)).toBe(
      path.join(temporary, `meanwhile-${process.getuid?.()}`, `${key}.sock`),
    );
  }
  vi.stubEnv("TMPDIR", `/tmp/${"t".repeat(80)}`);
  const spare = placeSocket(homeAt({ MEANWHILE_HOME: `${short}a` }), key);
  expect(path.dirname(path.dirname(spare))).toBe("/tmp");
  forgetSocketFolder(spare);
  expect(existsSync(path.dirname(spare))).toBe(false);
});

describe("where somebody else has taken the folder's name, another folder is made, for this user alone", () => {
  const takings: Record<string, (folder: string) => void> = {
    "a folder of another user's": (folder) => {
      mkdirSync(folder);
      if (isRoot) chownSync(folder, 65_534, 65_534);
      else chmodSync(folder, 0o777);
    },
    "a folder that others may write": (folder) => {
      mkdirSync(folder);
      chmodSync(folder, 0o777);
    },
    "a file": (folder) => writeFileSync(folder, ""),
    "a link to a folder": (folder) => symlinkSync("/usr", folder),
    "a link that leads nowhere": (folder) => symlinkSync("/nowhere/at/all", folder),
  };

  test.each(Object.entries(takings))("%s", (_, take) => {
    const home = homeAt({ MEANWHILE_HOME: path.join(temporaryFolder(), "x".repeat(100)) });
    const temporary = temporaryFolder();
    vi.stubEnv("TMPDIR", temporary);
    const usual = path.join(temporary, `meanwhile-${process.getuid?.()}`);
    take(usual);
    const socket = placeSocket(home, key);
    expect(path.dirname(socket)).toMatch(new RegExp(`^${usual}-\\w{6}$`));
    expect(statSync(path.dirname(socket)).mode & 0o777).toBe(0o700);
    expect(readdirSync(temporary).length).toBe(2);
    // One that crashed has left its folder and its record: the next takes the same.
    mkdirSync(home.runFolder, { recursive: true });
    writeRecord(home, key, { pid: 1, socket });
    expect(placeSocket(home, key)).toBe(socket);
    forgetSocketFolder(socket);
    expect(readdirSync(temporary)).toEqual([path.basename(usual)]);
  });
});

test("a record that is absent, cut off or of another kind names nobody", () => {
  const home = homeAt({ MEANWHILE_HOME: temporaryFolder() });
  expect(readRecords(home).size).toBe(0);
  mkdirSync(home.runFolder);
  writeRecord(home, "a", { pid: 1, socket: "/s" });
  for (const [name, text] of [
    ["b.json", '{"pid":1,"so'],
    ["c.json", "null"],
    ["d.json", "7"],
    ["e.json", '{"pid":1}'],
    ["f.lock", ""],
  ] as const) {
    writeFileSync(path.join(home.runFolder, name), text);
  }
  expect([...readRecords(home)]).toEqual([["a", { pid: 1, socket: "/s" }]]);
  for (const name of ["b", "c", "d", "e", "z"]) expect(readRecord(home, name), name).toBeUndefined();
  removeRecord(home, "a", 2);
  expect(readRecords(home).size).toBe(1);
  removeRecord(home, "a", 1);
  expect(readRecords(home).size).toBe(0);
});

test("only a socket of this user's own is talked to", async () => {
  const folder = temporaryFolder();
  const file = path.join(folder, "s");
  expect(refusalOf(file)).toBeUndefined();
  const server = createServer().listen(file);
  onTestFinished(() => void server.close());
  await waitFor(() => server.listening);
  expect(refusalOf(file)).toBeUndefined();
  symlinkSync(file, path.join(folder, "link"));
  expect(refusalOf(path.join(folder, "link"))).toMatch(/is a symbolic link; remove it$/);
  writeFileSync(path.join(folder, "file"), "");
  expect(refusalOf(path.join(folder, "file"))).toMatch(/is not a socket; remove it$/);
  if (!isRoot) return;
  chownSync(file, 65_534, 65_534);
  expect(refusalOf(file)).toMatch(/belongs to another user; remove it, or use another MEANWHILE_HOME$/);
});

test("a folder that is a file, a link or another user's is refused", () => {
  const folder = temporaryFolder();
  symlinkSync(folder, path.join(folder, "link"));
  expect(() => ensurePrivateFolder(path.join(folder, "link"))).toThrow(/link is not a folder/);
  writeFileSync(path.join(folder, "file"), "");
  expect(() => ensurePrivateFolder(path.join(folder, "file"))).toThrow(/EEXIST/);
  if (!isRoot) return;
  mkdirSync(path.join(folder, "theirs"));
  chownSync(path.join(folder, "theirs"), 65_534, 65_534);
  expect(() => ensurePrivateFolder(path.join(folder, "theirs"))).toThrow(/theirs belongs to another user/);
});
