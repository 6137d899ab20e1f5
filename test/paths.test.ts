import { chmodSync, chownSync, lchownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { RuntimeError } from "../src/errors.ts";
import { ensureHome, homeAt, openHome } from "../src/paths.ts";
import { temporaryFolder } from "./helpers/home.ts";

const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
const own = process.getuid?.();

const guarded = ["config.json", "token", "tasks.db", "upstreams", "run"];
const files = [
  "config.json",
  "token",
  "tasks.db",
  "tasks.db-wal",
  "pack.db",
  "pack.db-wal",
  "worker.log",
  "daemon.log",
  "mcp.sock",
];
const folders = ["run", "upstreams", "cache", "cache/catalog", "reports"];

/** A home with everything in it, as Meanwhile makes it. */
function fullHome() {
  const folder = path.join(temporaryFolder(), "home");
  const home = homeAt({ MEANWHILE_HOME: folder });
  ensureHome(home);
  for (const name of folders) mkdirSync(path.join(folder, name), { mode: 0o700 });
  for (const name of files) writeFileSync(path.join(folder, name), "{}", { mode: 0o600 });
  return { folder, home, env: { MEANWHILE_HOME: folder } };
}

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    expect(error).toBeInstanceOf(RuntimeError);
    expect((error as RuntimeError).code).toBe("HOME_UNUSABLE");
    return (error as Error).message;
  }
  return "";
}

describe("a home", () => {
  test("that is this user's alone is taken, and so is one that is not there or may be read by others", () => {
    const { folder, env } = fullHome();
    expect(openHome(env).folder).toBe(folder);
    chmodSync(folder, 0o755);
    expect(openHome(env).folder).toBe(folder);
    expect(openHome({ MEANWHILE_HOME: path.join(folder, "none") }).folder).toBe(path.join(folder, "none"));
    expect(openHome({ MEANWHILE_HOME: path.join(folder, "token", "below-a-file") }).folder).toContain("below-a-file");
  });

  test.each(["", ...guarded])(
    "in which others may write %j is refused, with the mode and the cure, and is not mended",
    (part) => {
      const { folder, env, home } = fullHome();
      const file = path.join(folder, part);
      const before = statSync(file).mode & 0o7777;
      for (const bits of [0o020, 0o002, 0o022]) {
        chmodSync(file, before | bits);
        const mode = (before | bits).toString(8).padStart(4, "0");
        const sentence = `${file} may be written by others (mode ${mode}), so nothing in it was read; if what is there is yours, chmod go-w ${file}, or set MEANWHILE_HOME to a folder of your own.`;
        expect(refusal(() => openHome(env))).toBe(sentence);
        expect(refusal(() => ensureHome(home))).toBe(sentence);
        expect(statSync(file).mode & 0o7777).toBe(before | bits);
      }
      chmodSync(file, before);
      expect(refusal(() => openHome(env))).toBe("");
    },
  );

  test.runIf(isRoot).each(["", ...files, ...folders])("in which %j is another user's is refused", (part) => {
    const { folder, env } = fullHome();
    chownSync(path.join(folder, part), nobody, nobody);
    expect(refusal(() => openHome(env))).toBe(
      `${path.join(folder, part)} belongs to another user (uid ${nobody}, you are ${own}), so nothing in it was read; set MEANWHILE_HOME to a folder of your own.`,
    );
  });

  test.runIf(isRoot)("that is a link is judged by where it leads, and by whose link it is", () => {
    const { folder, env } = fullHome();
    const link = path.join(temporaryFolder(), "link");
    symlinkSync(folder, link);
    expect(refusal(() => openHome({ MEANWHILE_HOME: link }))).toBe("");
    lchownSync(link, nobody, nobody);
    expect(refusal(() => openHome({ MEANWHILE_HOME: link }))).toContain("belongs to another user");
    lchownSync(link, 0, 0);
    chownSync(folder, nobody, nobody);
    expect(refusal(() => openHome({ MEANWHILE_HOME: link }))).toContain("belongs to another user");
    expect(refusal(() => openHome(env))).toContain("belongs to another user");
  });

  test.each([0o000, 0o002, 0o077])("made under umask %o is its user's alone", (umask) => {
    const before = process.umask(umask);
    try {
      const { folder, env } = fullHome();
      expect(statSync(folder).mode & 0o777).toBe(0o700);
      expect(refusal(() => openHome(env))).toBe("");
    } finally {
      process.umask(before);
    }
  });
});
