import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import path from "node:path";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { posix } from "../../src/system/posix.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/meanwhile.ts";

const { ensurePrivateFolder, ownSocket, placeSocket, refusalOfProjectFile, refusalOfSocket } = posix;
const key = "k".repeat(28);
const nobody = 65_534;
const isRoot = process.getuid?.() === 0;

afterEach(() => void vi.unstubAllEnvs());

test("a socket whose path would be cut off lies among the temporary files, in a folder of this user's", () => {
  const inHome = (folder: string) => path.join(folder, "run", `${key}.sock`);
  const lengthOf = (folder: string) => Buffer.byteLength(inHome(folder));
  const short = `/${"a".repeat(99 - lengthOf("/"))}`;
  expect(lengthOf(short)).toBe(100);
  expect(placeSocket(inHome(short), undefined)).toBe(`${short}/run/${key}.sock`);
  const temporary = temporaryFolder();
  vi.stubEnv("TMPDIR", temporary);
  for (const folder of [`${short}a`, `${short.slice(0, -1)}ü`]) {
    expect(placeSocket(inHome(folder), undefined)).toBe(
      path.join(temporary, `meanwhile-${process.getuid?.()}`, `${key}.sock`),
    );
  }
  vi.stubEnv("TMPDIR", `/tmp/${"t".repeat(80)}`);
  const spare = placeSocket(inHome(`${short}a`), undefined);
  expect(path.dirname(path.dirname(spare))).toBe("/tmp");
  ownSocket(spare).remove();
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
    const inHome = path.join(temporaryFolder(), "x".repeat(100), `${key}.sock`);
    const temporary = temporaryFolder();
    vi.stubEnv("TMPDIR", temporary);
    const usual = path.join(temporary, `meanwhile-${process.getuid?.()}`);
    take(usual);
    const socket = placeSocket(inHome, undefined);
    expect(path.dirname(socket)).toMatch(new RegExp(`^${usual}-\\w{6}$`));
    expect(statSync(path.dirname(socket)).mode & 0o777).toBe(0o700);
    expect(readdirSync(temporary).length).toBe(2);
    // One that crashed has left its folder and its record: the next takes the same.
    expect(placeSocket(inHome, socket)).toBe(socket);
    ownSocket(socket).remove();
    expect(readdirSync(temporary)).toEqual([path.basename(usual)]);
  });
});

test("only a socket of this user's own is talked to", async () => {
  const folder = temporaryFolder();
  const file = path.join(folder, "s");
  expect(refusalOfSocket(file)).toBeUndefined();
  const server = createServer().listen(file);
  onTestFinished(() => void server.close());
  await waitFor(() => server.listening);
  expect(refusalOfSocket(file)).toBeUndefined();
  symlinkSync(file, path.join(folder, "link"));
  expect(refusalOfSocket(path.join(folder, "link"))).toMatch(/is a symbolic link; remove it$/);
  writeFileSync(path.join(folder, "file"), "");
  expect(refusalOfSocket(path.join(folder, "file"))).toMatch(/is not a socket; remove it$/);
  if (!isRoot) return;
  chownSync(file, 65_534, 65_534);
  expect(refusalOfSocket(file)).toMatch(/belongs to another user; remove it, or use another MEANWHILE_HOME$/);
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
describe("a project's config", () => {
  test("that anybody may write is refused; one that a group shares is taken", () => {
    const file = path.join(writeFiles(temporaryFolder(), { "meanwhile.config.json": "{}" }), "meanwhile.config.json");
    chmodSync(file, 0o664);
    expect(refusalOfProjectFile(file)).toBeUndefined();
    chmodSync(file, 0o666);
    expect(refusalOfProjectFile(file)).toBe(
      `${file} may be written by anybody (mode 0666), and would be run as you; read it through, then chmod o-w ${file}.`,
    );
  });

  test.runIf(isRoot)(
    "of another user is taken by root, who reads mounted volumes, but from no place where anybody may write",
    () => {
      const volume = mkdtempSync(path.join(userInfo().homedir, "meanwhile-volume-"));
      onTestFinished(() => rmSync(volume, { recursive: true }));
      const name = "project/meanwhile.config.json";
      const file = path.join(writeFiles(volume, { [name]: "{}" }), name);
      chownSync(file, nobody, nobody);
      expect(refusalOfProjectFile(file)).toBeUndefined();
      chmodSync(volume, 0o1777);
      const refused = (where: string, below: string) =>
        `${where} belongs to another user (uid ${nobody}, you are 0) below ${below}, where anybody may write, and would be run as you; work on a copy of your own, or have its owner changed.`;
      expect(refusalOfProjectFile(file)).toBe(refused(file, volume));
      chmodSync(volume, 0o755);
      const link = path.join(temporaryFolder(), "meanwhile.config.json");
      symlinkSync(file, link);
      expect(refusalOfProjectFile(link)).toBe(refused(link, tmpdir()));
      lchownSync(link, nobody, nobody);
      chownSync(file, 0, 0);
      expect(refusalOfProjectFile(link)).toBe(refused(link, tmpdir()));
    },
  );
});

test("a socket is opened by the short name of a folder that is a link, however long its own is", async () => {
  const folder = path.join(temporaryFolder(), "x".repeat(120));
  mkdirSync(folder, { mode: 0o700 });
  const link = path.join(temporaryFolder(), "home");
  symlinkSync(folder, link);
  const server = createServer();
  const socket = ownSocket(path.join(link, "mcp.sock"), folder);
  await socket.open(async (name) => void (await once(server.listen(name), "listening")));
  expect(socket.isThere()).toBe(true);
  socket.remove();
  server.close();
});
