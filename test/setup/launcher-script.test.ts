import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { packageFolder } from "../../src/paths.ts";

/** The part of the launcher in JavaScript, with the paths and the files of a made-up machine. */

interface Machine {
  readonly path: path.PlatformPath;
  readonly env: Readonly<Record<string, string>>;
  /** Where a Node executable lies. */
  readonly files: readonly string[];
}

/** Returns the Node executables whose version the launcher asks when the recorded Node is gone. */
function consideredNodes({ path: paths, env, files }: Machine): string[] {
  const recorded = { name: "meanwhile", title: "Meanwhile", variables: "MEANWHILE_", package: "x.cjs", node: "gone" };
  const considered: string[] = [];
  const modules: Record<string, unknown> = {
    "node:path": paths,
    "node:fs": {
      existsSync: (file: string) => file === recorded.package || files.includes(file),
      readFileSync: () => ">=22.18\n",
      readdirSync: () => [],
    },
    "node:child_process": {
      execFileSync: (file: string) => {
        considered.push(file);
        return "v24.0.0\n";
      },
      spawn: () => ({ on: () => {} }),
    },
  };
  const stderr = { write: () => {} };
  const machine = { argv: [], env, stderr, execPath: "started", version: "v18.0.0", platform: "win32", on: () => {} };
  const text = readFileSync(path.join(packageFolder(), "bin", "launcher.cjs"), "utf8");
  new Function("require", "process", "recorded", text)((name: string) => modules[name], machine, recorded);
  return considered;
}

function considers(paths: path.PlatformPath, folder: string, profile?: string): boolean {
  const env =
    paths === path.win32
      ? { USERPROFILE: profile ?? "C:\\Users\\ada", ProgramFiles: "C:\\Program Files", PATH: folder }
      : { HOME: profile ?? "/home/ada", PATH: folder };
  const file = paths.join(folder, "node.exe");
  return consideredNodes({ path: paths, env, files: [file] }).includes(file);
}

describe("the launcher in JavaScript, whose recorded Node is gone, asks a Node on the PATH for its version", () => {
  test.each([
    "C:\\Users\\ada\\tools",
    "c:\\users\\ADA\\tools",
    "C:\\Users\\ada",
    "C:\\Users\\ada\\..tools",
    "C:\\Program Files\\nodejs",
  ])("in %s on Windows", (folder) => {
    expect(considers(path.win32, folder)).toBe(true);
  });

  test.each(["/home/ada/bin", "/home/ada/..bin", "/home/ada"])("in %s elsewhere", (folder) => {
    expect(considers(path.posix, folder)).toBe(true);
  });
});

describe("the launcher in JavaScript does not start a Node", () => {
  test.each([
    "C:\\Users\\adam\\tools",
    "C:\\Users\\ada\\..\\adam",
    "C:\\Users",
    "C:\\tools",
    "D:\\Users\\ada\\tools",
    "\\\\server\\share\\tools",
    "C:tools",
    "tools",
    "..",
  ])("in %s on Windows", (folder) => {
    expect(considers(path.win32, folder)).toBe(false);
  });

  test.each(["/home/adam/bin", "/home/ada/../adam", "/home", "/tmp", "bin", ".."])("in %s elsewhere", (folder) => {
    expect(considers(path.posix, folder)).toBe(false);
  });

  test.each([
    ["Windows", path.win32],
    ["POSIX", path.posix],
  ])("in a relative folder below the user's own, with paths of %s", (_, paths) => {
    expect(considers(paths, "bin", paths.resolve("."))).toBe(false);
    expect(considers(paths, paths.resolve("bin"), paths.resolve("."))).toBe(true);
  });
});
