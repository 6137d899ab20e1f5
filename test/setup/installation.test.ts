import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { installationOf, lastingPath } from "../../src/setup/launcher/installation.ts";
import { takesOver } from "../../src/setup/launcher/launcher-file.ts";
import type { LauncherFacts } from "../../src/setup/launcher/launcher-text.ts";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";

const program = "meanwhile/bin/meanwhile.cjs";

/** Where each installer puts the executable, with a file beside node_modules where it puts one. */
const places = {
  "npm install -g": { kind: "global", file: `prefix/lib/node_modules/${program}` },
  "npm install -g on Windows": {
    kind: "global",
    file: `npm/node_modules/${program}`,
    beside: "npm/meanwhile.cmd",
  },
  "a formula of Homebrew": {
    kind: "global",
    file: `homebrew/Cellar/meanwhile/1.0.0/libexec/lib/node_modules/${program}`,
  },
  Volta: { kind: "global", file: `.volta/tools/image/packages/meanwhile/lib/node_modules/${program}` },
  "pnpm add -g": {
    kind: "global",
    file: `pnpm/global/5/.pnpm/meanwhile@1.0.0/node_modules/${program}`,
    beside: "pnpm/global/5/package.json",
  },
  "pnpm 11 add -g": {
    kind: "global",
    file: `pnpm/global/v11/a2a1/node_modules/${program}`,
    beside: "pnpm/global/v11/a2a1/package.json",
  },
  "yarn global add": {
    kind: "global",
    file: `.config/yarn/global/node_modules/${program}`,
    beside: ".config/yarn/global/package.json",
  },
  "bun add -g": {
    kind: "global",
    file: `.bun/install/global/node_modules/${program}`,
    beside: ".bun/install/global/package.json",
  },
  "an unpacked archive": { kind: "global", file: "opt/meanwhile/bin/meanwhile.cjs" },
  "a clone": { kind: "clone", file: "src/meanwhile/bin/meanwhile.cjs", beside: "src/meanwhile/.git/HEAD" },
  "a work tree": { kind: "clone", file: "src/tree/bin/meanwhile.cjs", beside: "src/tree/.git" },
  npx: { kind: "npx", file: `.npm/_npx/2f8a/node_modules/${program}`, beside: ".npm/_npx/2f8a/package.json" },
  "a project": { kind: "project", file: `shop/node_modules/${program}`, beside: "shop/package.json" },
  "a project in a folder named lib": {
    kind: "project",
    file: `lib/node_modules/${program}`,
    beside: "lib/package.json",
  },
  "a project with pnpm": {
    kind: "project",
    file: `shop/node_modules/.pnpm/meanwhile@1.0.0/node_modules/${program}`,
    beside: "shop/package.json",
  },
  "a project without package.json": { kind: "project", file: `deno/node_modules/${program}` },
  "pnpm dlx": {
    kind: "project",
    file: `.cache/pnpm/dlx/1a2b/3c4d/node_modules/.pnpm/meanwhile@1.0.0/node_modules/${program}`,
    beside: ".cache/pnpm/dlx/1a2b/3c4d/package.json",
  },
} as const satisfies Record<string, { kind: string; file: string; beside?: string }>;
type Place = keyof typeof places;

/** Returns the path of the executable that an installer has put below a folder. */
function install(place: Place, folder = realpathSync(temporaryFolder())): string {
  const { file, beside }: { file: string; beside?: string } = places[place];
  writeFiles(folder, { [file]: "", ...(beside !== undefined && { [beside]: "" }) });
  return path.join(folder, file);
}

test.each(Object.entries(places))("the copy of %s is known by its path", (place, { kind }) => {
  expect(installationOf(install(place as Place))).toBe(kind);
});

describe("a copy that was started", () => {
  const versions = { older: "0.9.0", same: "1.0.0", newer: "1.1.0" } as const;

  function start(own: Place, version: keyof typeof versions, found: Place, more: Partial<LauncherFacts> = {}): boolean {
    const toFacts = (place: Place, its: string): LauncherFacts => ({
      version: its,
      node: process.execPath,
      nodeVersion: process.versions.node,
      package: install(place),
      rangeFile: "",
      ...(place === "npx" && { npx: `meanwhile@${its}` }),
    });
    return takesOver(toFacts(own, versions[version]), { ...toFacts(found, versions.same), ...more });
  }

  test.each<[Place, Place]>([
    ["a project", "npm install -g"],
    ["a project", "a clone"],
    ["a project", "npx"],
    ["a project", "a project with pnpm"],
    ["pnpm dlx", "npm install -g"],
    ["a clone", "npm install -g"],
    ["a clone", "a work tree"],
    ["npx", "npm install -g"],
    ["npx", "a project"],
  ])("of %s does not take over a launcher that starts that of %s", (own, found) => {
    expect(start(own, "newer", found)).toBe(false);
    expect(start(own, "newer", found, { node: "/gone/node" }), "the launcher finds another Node").toBe(false);
  });

  test.each<[Place, Place]>([
    ["npm install -g", "npm install -g"],
    ["pnpm add -g", "npm install -g"],
    ["a formula of Homebrew", "pnpm 11 add -g"],
    ["npm install -g", "a clone"],
    ["npx", "npx"],
  ])("of %s takes over a launcher that starts an older one of %s", (own, found) => {
    expect((["older", "same", "newer"] as const).map((version) => start(own, version, found))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test.each<Place>(["npx", "a project"])("for all projects replaces one of %s of the same version", (found) => {
    expect(start("npm install -g", "same", found)).toBe(true);
    expect(start("npm install -g", "older", found)).toBe(false);
  });

  test.each<Place>(["npm install -g", "a clone", "npx", "a project"])(
    "of %s takes over a launcher whose copy is gone; one that npx fetches again only when it stays as long",
    (own) => {
      expect(start(own, "older", "a project", { package: "/gone/meanwhile.cjs" })).toBe(true);
      const fetched = start(own, "older", "npx", { package: "/gone/_npx/meanwhile.cjs" });
      expect(fetched).toBe(own === "npm install -g" || own === "npx");
    },
  );
});

describe("the path that a launcher records", () => {
  test("of pnpm and Homebrew is the one that an upgrade keeps", () => {
    const folder = realpathSync(temporaryFolder());
    const pnpm = install("pnpm add -g", folder);
    const homebrew = install("a formula of Homebrew", folder);
    expect([pnpm, homebrew].map((file) => lastingPath(file, []))).toEqual([pnpm, homebrew]);
    for (const made of ["pnpm/global/5/node_modules", "homebrew/opt"]) mkdirSync(path.join(folder, made));
    const modules = "pnpm/global/5/.pnpm/meanwhile@1.0.0/node_modules/meanwhile";
    symlinkSync(path.join(folder, modules), path.join(folder, "pnpm/global/5/node_modules/meanwhile"));
    symlinkSync(path.join(folder, "homebrew/Cellar/meanwhile/1.0.0"), path.join(folder, "homebrew/opt/meanwhile"));
    expect([pnpm, homebrew].map((file) => lastingPath(file, []))).toEqual([
      path.join(folder, `pnpm/global/5/node_modules/${program}`),
      path.join(folder, `homebrew/opt/meanwhile/libexec/lib/node_modules/${program}`),
    ]);
  });

  test("is the link that it was found by, where that leads to the same file", () => {
    const folder = realpathSync(temporaryFolder());
    const file = install("npm install -g", folder);
    symlinkSync(path.join(folder, "prefix"), path.join(folder, "current"));
    const link = path.join(folder, "current/lib/node_modules", program);
    expect(lastingPath(file, ["/gone/meanwhile.cjs", link])).toBe(link);
    expect(lastingPath(file, [install("a project")])).toBe(file);
  });
});
