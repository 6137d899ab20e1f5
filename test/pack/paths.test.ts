import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { compileGlob } from "../../commands/_pack/glob.ts";
import { allowedRoots, isInside, readName, resolveGiven, showName } from "../../commands/_pack/paths.ts";
import { temporaryFolder } from "../helpers/home.ts";

function allowOnly(...roots: string[]): void {
  vi.stubEnv("MEANWHILE_PACK_ROOTS", roots.join(path.delimiter));
  onTestFinished(() => void vi.unstubAllEnvs());
}

describe("a name", () => {
  test.each([
    ["plain.txt", "plain.txt"],
    ["ümläut 100%.txt", "ümläut 100%.txt"],
    ["two\nlines", "two%0Alines"],
    ["looks%0Aescaped", "looks%250Aescaped"],
    [Buffer.from([0x61, 0xff, 0x62]), "a%FFb"],
    [Buffer.from("half \xe2\x82", "latin1"), "half %E2%82"],
    ["line\u2028separator", "line%E2%80%A8separator"],
  ])("%j is shown as %s", (name, shown) => {
    expect(showName(Buffer.from(name))).toBe(shown);
  });

  test("of any bytes is shown in one line, and what is shown can be given again", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 40 }), (bytes) => {
        const shown = showName(Buffer.from(bytes));
        expect(shown).not.toMatch(/[\n\r\0]/);
        expect(readName(shown)).toEqual(Buffer.from(bytes));
      }),
    );
  });
});

describe("a given path", () => {
  test("inside an allowed folder is resolved", () => {
    const root = realpathSync(temporaryFolder());
    writeFileSync(path.join(root, "a.txt"), "");
    allowOnly(root);
    expect(resolveGiven(`${root}/x/../a.txt`)).toMatchObject({ shown: path.join(root, "a.txt"), kind: "file" });
    expect(resolveGiven(`${root}/missing/too`)).toMatchObject({ shown: path.join(root, "missing/too"), kind: "missing" });
  });

  test("outside is refused, with the folders that are allowed and the cure", () => {
    const root = realpathSync(temporaryFolder());
    allowOnly(root);
    expect(() => resolveGiven("/etc/passwd")).toThrow(`\`path\` /etc/passwd lies outside the allowed folders (${root}); set MEANWHILE_PACK_ROOTS`);
    expect(() => resolveGiven(`${root}/../../etc/passwd`)).toThrow("lies outside");
    expect(() => resolveGiven(`${root}-neighbour/file`, "file")).toThrow("`file`");
    expect(() => resolveGiven("a\0b")).toThrow("NUL");
    expect(() => resolveGiven("")).toThrow("`path` is empty");
  });

  test("that leaves its folder by a link is refused, also when the link leads nowhere yet", () => {
    const root = realpathSync(temporaryFolder());
    symlinkSync("/etc", path.join(root, "out"));
    symlinkSync("/etc/not-there-yet", path.join(root, "later"));
    allowOnly(root);
    expect(() => resolveGiven(path.join(root, "out/passwd"))).toThrow("lies outside");
    expect(() => resolveGiven(path.join(root, "later"))).toThrow("lies outside");
  });

  test("as it was shown finds the file with the strange name", () => {
    const root = realpathSync(temporaryFolder());
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff, 0x0a])]), "");
    writeFileSync(path.join(root, "a%41"), "");
    allowOnly(root);
    expect(resolveGiven(path.join(root, "%FF%0A")).kind).toBe("file");
    // A file of this very name comes before what it could stand for.
    expect(resolveGiven(path.join(root, "a%41")).path.toString()).toBe(path.join(root, "a%41"));
  });

  test("may begin with ~, and without a setting the home and the working folder are allowed, but not / as a working folder", () => {
    allowOnly();
    expect(resolveGiven("~").path).toEqual(realpathSync.native(Buffer.from(homedir()), "buffer"));
    expect(allowedRoots().map(String)).toEqual([realpathSync(homedir()), realpathSync(process.cwd())]);
    vi.spyOn(process, "cwd").mockReturnValue("/");
    onTestFinished(() => void vi.restoreAllMocks());
    expect(allowedRoots().map(String)).toEqual([realpathSync(homedir())]);
  });
});

test("a folder holds itself and what is below it, not its namesakes", () => {
  const inside = (file: string, folder: string) => isInside(Buffer.from(file), Buffer.from(folder));
  expect([inside("/a/b", "/a"), inside("/a", "/a"), inside("/ab", "/a"), inside("/", "/a"), inside("/x", "/")]).toEqual([true, true, false, false, true]);
});

describe("a pattern", () => {
  test.each([
    ["*.log", "a.log", true],
    ["*.log", "a/b.log", false],
    ["**/*.log", "a/b.log", true],
    ["**/*.log", "b.log", true],
    ["/data/**", "/data/a/b", true],
    ["file-?.txt", "file-1.txt", true],
    ["file-[0-9].txt", "file-x.txt", false],
    ["file-[!0-9].txt", "file-x.txt", true],
    ["*.{jpg,png}", "a.png", true],
    ["*.{jpg,png}", "a.gif", false],
    ["a.b", "axb", false],
    ["(a+b)|$^", "(a+b)|$^", true],
    ["\\*", "*", true],
    ["two*", "two\nlines", true],
    ["[a^\\]", "^", true],
    ["{a,b{c,d}}.x", "bd.x", true],
    ["**/a/**/b/*", "x/a/b/c", true],
    ["**/a/**/b/*", "a/x/y/b/c", true],
    ["**/a/**/b/*", "a/x/y/b/c/d", false],
    ["*a*b*c", "xaxbxc", true],
    ["*a*b*c", "xa/bxc", false],
  ])("%s on %j: %s", (pattern, text, isMatch) => {
    expect(compileGlob(pattern)(text)).toBe(isMatch);
  });

  test.each(["", "{a", "x".repeat(501), "{a,b}".repeat(7), "[z-a]"])("%j is refused", (pattern) => {
    expect(() => compileGlob(pattern)).toThrow(/[Pp]attern/);
  });

  test("full of wildcards is tried in a moment", () => {
    const startedAt = performance.now();
    expect(compileGlob(`${"*a".repeat(20)}b`)("a".repeat(2_000))).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});

test("making folders below a link inside does not hide where it is", () => {
  const root = realpathSync(temporaryFolder());
  mkdirSync(path.join(root, "real"));
  symlinkSync("real", path.join(root, "link"));
  allowOnly(root);
  expect(resolveGiven(path.join(root, "link/new/file")).shown).toBe(path.join(root, "real/new/file"));
});
