import { expect } from "vitest";

/** Fails unless the files of a package are those that users need, and no others. */
export function expectWhole(listed: readonly string[]): void {
  expect(listed).toEqual(
    expect.arrayContaining([
      "package.json",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "SECURITY.md",
      "bin/meanwhile.cjs",
      "dist/index.js",
      "dist/index.d.ts",
      "dist/commands/config/path.js",
    ]),
  );
  expect(listed.filter((name) => /node_modules|^src\/|^test\/|\.tgz$/.test(name))).toEqual([]);
}
