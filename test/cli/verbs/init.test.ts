import {
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
} from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { dependencyVersions, meanwhileSpecifier, oldestNode } from "../../../src/cli/init/dependency-versions.ts";
import { checkPackageName, toPackageName, toProgramName } from "../../../src/cli/init/package-name.ts";
import { checkProgramName } from "../../../src/embed/program-names.ts";
import { homeAt } from "../../../src/paths.ts";
import { isMade } from "../../../src/project/stored-project.ts";
import { runCli } from "../../helpers/cli.ts";
import { temporaryFolder, writeFiles } from "../../helpers/home.ts";
import { typeHere } from "../../helpers/terminal.ts";

const root = path.resolve(import.meta.dirname, "../../..");
const readManifest = (folder: string) => JSON.parse(readFileSync(path.join(root, folder, "package.json"), "utf8"));
const manifest = readManifest("");
/** Of the tools that the tests use, and so a new project. */
const tools = { ...readManifest("test").dependencies, ...readManifest("test/system").dependencies };

const projectNames = [
  "package.json",
  "tsconfig.json",
  ".gitignore",
  "README.md",
  "test/report-build.test.ts",
  "meanwhile.config.ts",
  "commands/report/build.ts",
];
const packageNames = [
  "package.json",
  "tsconfig.json",
  "tsconfig.build.json",
  ".gitignore",
  "README.md",
  "bin/acme.js",
  "test/report-build.test.ts",
  "commands/report/build.ts",
];

let home: string;
beforeEach(() => {
  home = temporaryFolder();
  vi.stubEnv("MEANWHILE_HOME", home);
});
afterEach(() => {
  vi.unstubAllEnvs();
});

/** Types `init` in a folder. */
const init = (folder: string, ...words: string[]) => typeHere(["init", ...words], { folder });
/** Every file below a folder, by its name. */
const filesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)))
    .sort();
const readJson = (...names: string[]) => JSON.parse(readFileSync(path.join(...names), "utf8"));

describe("a project is made", () => {
  test("in a new folder, and what to type next is said", async () => {
    const folder = temporaryFolder();
    expect(await init(folder, "acme")).toEqual({
      code: 0,
      printed: projectNames.map((name) => `acme/${name}\n`).join(""),
      said: `✓ Made the project acme
  Go there    cd acme
  Install     npm install
  Test it     npm test
  Run it      npx --no meanwhile report build Q3
  As a tool   npx --no meanwhile setup <host>; without a host it lists them
`,
    });
    expect(filesIn(path.join(folder, "acme"))).toEqual(projectNames.toSorted());
    expect(readJson(folder, "acme/package.json")).toEqual({
      name: "acme",
      private: true,
      type: "module",
      engines: { node: oldestNode },
      scripts: { start: "meanwhile serve --http", test: "node --test", types: "tsc --noEmit" },
      // The package is not on npm yet, so that a version of it could not be installed.
      dependencies: { meanwhile: `file:${root}`, zod: manifest.dependencies.zod },
      devDependencies: {
        "@types/node": tools["@types/node"],
        typescript: tools.typescript,
      },
    });
  });

  test("here, under the folder's name made fit, beside what is no part of it", async () => {
    const folder = path.join(temporaryFolder(), "My Tools");
    writeFiles(folder, { ".git/HEAD": "", LICENSE: "mine", "commands/hello.ts": "", "test/other.test.ts": "" });
    const { code, said } = await init(folder);
    expect({ code, said }).toEqual({
      code: 0,
      said: expect.stringMatching(/^✓ Made the project my-tools\n {2}Install {5}npm/),
    });
    expect(readJson(folder, "package.json").name).toBe("my-tools");
    expect(readFileSync(path.join(folder, "LICENSE"), "utf8")).toBe("mine");
    expect(filesIn(folder)).toEqual(expect.arrayContaining([...projectNames, "commands/hello.ts"]));
  });

  test("several folders deep, with a name of its own; a scope is no part of what the server is called", async () => {
    const folder = temporaryFolder();
    const { code, said } = await init(folder, "a b/it's", "--name", "@acme/tools");
    expect({ code, said }).toEqual({ code: 0, said: expect.stringContaining("Go there    cd 'a b/it'\\''s'\n") });
    expect(readJson(folder, "a b/it's/package.json").name).toBe("@acme/tools");
    expect(readFileSync(path.join(folder, "a b/it's/meanwhile.config.ts"), "utf8")).toContain('name: "tools"');
  });

  test("through a link that its user has named", async () => {
    const folder = temporaryFolder();
    mkdirSync(path.join(folder, "real"));
    symlinkSync("real", path.join(folder, "link"));
    expect(await init(folder, "link")).toMatchObject({ code: 0 });
    expect(filesIn(path.join(folder, "real"))).toEqual(projectNames.toSorted());
  });

  test("that nobody else may write, whatever the umask is, and that sessions which are connected there take up", async () => {
    const folder = temporaryFolder();
    const before = process.umask(0);
    try {
      expect(await init(folder, "acme", "--package")).toMatchObject({ code: 0 });
    } finally {
      process.umask(before);
    }
    for (const name of ["acme", ...globSync("acme/**/*", { cwd: folder })])
      expect(statSync(path.join(folder, name)).mode & 0o022, name).toBe(0);
    expect(statSync(path.join(folder, "acme/bin/acme.js")).mode & 0o111).not.toBe(0);
    expect(isMade(homeAt({ MEANWHILE_HOME: home }), path.join(folder, "acme/commands"))).toBe(true);
  });
});

describe("nothing is written, and one sentence says why,", () => {
  /** Tries it, and looks whether anything has changed. */
  async function refuse(folder: string, ...words: string[]): Promise<string> {
    const before = filesIn(folder);
    const { code, printed, said } = await init(folder, ...words);
    expect({ code, printed }).toEqual({ code: 2, printed: "" });
    expect(filesIn(folder)).toEqual(before);
    expect(said).toMatch(/^✗ [^\n]+\n$/);
    return said;
  }

  test.each(projectNames)("where %s is there already", async (name) => {
    const folder = writeFiles(temporaryFolder(), { [name]: "mine" });
    expect(await refuse(folder)).toBe(
      `✗ ${path.join(folder, name)} exists already, so nothing was written; name a new folder, as in \`meanwhile init my-tools\`, or add a command to what is there with \`meanwhile new report/build\`.\n`,
    );
    expect(readFileSync(path.join(folder, name), "utf8")).toBe("mine");
  });

  test.each(["meanwhile.config.json", "commands/report/build.mjs", "commands/report/build/index.ts"])(
    "where %s is there, whose place it would take",
    async (name) => {
      const folder = writeFiles(temporaryFolder(), { [name]: "" });
      expect(await refuse(folder)).toContain(`${path.join(folder, name)} exists already`);
    },
  );

  test("the first of several is named", async () => {
    const folder = writeFiles(temporaryFolder(), { "README.md": "", "package.json": "", "tsconfig.json": "" });
    expect(await refuse(folder)).toContain(`${path.join(folder, "package.json")} exists`);
  });

  test("where a file, or a link that leads nowhere, is in the folder's place or above it", async () => {
    const folder = writeFiles(temporaryFolder(), { file: "" });
    symlinkSync("nowhere", path.join(folder, "link"));
    for (const name of ["file", "link"]) {
      const place = path.join(folder, name);
      expect(await refuse(folder, name)).toBe(
        `✗ ${place} is no folder, so no project can be made there; name another one.\n`,
      );
      expect(await refuse(folder, `${name}/a/b`)).toBe(
        `✗ ${place} is no folder, so ${place}/a/b cannot be made; name another one.\n`,
      );
    }
  });

  test("where a file of it is a link that leads nowhere", async () => {
    const folder = temporaryFolder();
    symlinkSync(path.join(home, "stolen"), path.join(folder, "README.md"));
    expect(await refuse(folder)).toContain("README.md exists already");
    expect(existsSync(path.join(home, "stolen"))).toBe(false);
  });

  test.each(["commands", "commands/report", "test"])("where %s leads out of the folder", async (name) => {
    const folder = temporaryFolder();
    const outside = temporaryFolder();
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    symlinkSync(outside, path.join(folder, name));
    expect(await refuse(folder)).toContain(
      `${path.join(folder, name)} leads out of the folder, to ${realpathSync(outside)}, so nothing was written`,
    );
    expect(filesIn(outside)).toEqual([]);
  });

  test("where a file is in the place of a folder of it", async () => {
    const folder = writeFiles(temporaryFolder(), { test: "" });
    expect(await refuse(folder)).toContain(
      `${path.join(folder, "test")} is no folder, and test/report-build.test.ts was to be in it`,
    );
  });

  test("where a folder without a name, two folders or an unknown flag is typed", async () => {
    const folder = temporaryFolder();
    expect(await refuse(folder, "")).toContain("The folder has no name");
    expect((await init(folder, "a", "b")).code).toBe(2);
    expect((await init(folder, "--force")).code).toBe(2);
    expect(filesIn(folder)).toEqual([]);
  });

  test("where the system says no", async () => {
    expect(await init("/proc", "acme")).toMatchObject({
      code: 2,
      printed: "",
      said: expect.stringMatching(
        /^✗ Cannot make a project in \/proc\/acme: \w+: [^\n]+; nothing was written; name a folder you may write\.\n$/,
      ),
    });
  });

  test("where it fails in the middle: what was made is gone, the folders above it too", async () => {
    const folder = temporaryFolder();
    // Paths have 4095 bytes at most: there is room for package.json, and none for test/report-build.test.ts.
    const rest = 4075 - folder.length;
    const deep = `${"d".repeat(199)}/`.repeat(Math.floor(rest / 200)) + "e".repeat(rest % 200);
    const { code, said } = await init(folder, deep.slice(0, -1));
    expect({ code, said }).toEqual({ code: 2, said: expect.stringContaining("ENAMETOOLONG") });
    expect(readdirSync(folder)).toEqual([]);
  });
});

test("of two at the same time one makes the project, and the other leaves it alone", async () => {
  const folder = temporaryFolder();
  const both = await Promise.all([1, 2].map(() => runCli(["init", "acme"], { cwd: folder })));
  expect(both.map(({ code }) => code).sort()).toEqual([0, 2]);
  expect(filesIn(path.join(folder, "acme"))).toEqual(projectNames.toSorted());
});

describe("names", () => {
  test.each([
    ["My Tools", "my-tools"],
    ["Über.Café_2", "uber.cafe_2"],
    ["_private", "private"],
    ["..", "my-tools"],
    ["日本", "my-tools"],
    ["meanwhile", "meanwhile-tools"],
    ["zod", "zod-tools"],
    ["http", "http-tools"],
    ["node_modules", "node_modules-tools"],
    ['"; process.exit(1) //', "process.exit-1"],
    ["x".repeat(255), "x".repeat(100)],
  ])("a folder %j makes %s, which npm takes", (folder, name) => {
    expect(toPackageName(folder)).toBe(name);
    expect(checkPackageName(name)).toBe(name);
  });

  test.each([
    ["acme", "acme"],
    ["@acme/tools", "tools"],
    ["uber.cafe_2", "uber-cafe-2"],
    ["7-zip", "zip"],
    ["1", "my-tools"],
    ["docker", "docker-tools"],
    ["com1", "com1-tools"],
    [`${"x".repeat(33)}.y`, "x".repeat(33)],
  ])("the program of a package %s is typed %s", (name, program) => {
    expect(toProgramName(name)).toBe(program);
    expect(() => checkProgramName(program)).not.toThrow();
  });

  test.each([
    ["Acme", "acme"],
    ["@acme/My Tools", "@acme/my-tools"],
    ["@Acme/tools", "acme-tools"],
    ["meanwhile", "meanwhile-tools"],
    [".hidden", "hidden"],
    ["", "my-tools"],
    ["a/b", "a-b"],
    ["x".repeat(215), "x".repeat(100)],
  ])("--name %j is refused, with one that does", (name, better) => {
    expect(() => checkPackageName(name)).toThrow(`write --name ${better}, with`);
    expect(checkPackageName(better)).toBe(better);
  });
});

test("a copy in an archive of Plug'n'Play is named by what the project around it depends on", () => {
  const archive = "/first/.yarn/__virtual__/meanwhile-1/0/cache/meanwhile.zip/node_modules/meanwhile";
  const specifierIn = (manifest: object) =>
    meanwhileSpecifier(
      path.join(writeFiles(temporaryFolder(), { "package.json": JSON.stringify(manifest), "a/b.txt": "" }), "a"),
      archive,
    );
  expect(specifierIn({ dependencies: { meanwhile: "/tmp/meanwhile-0.1.0.tgz" } })).toBe(
    "file:/tmp/meanwhile-0.1.0.tgz",
  );
  expect(specifierIn({ devDependencies: { meanwhile: "file:../x.tgz::locator=first" } })).toMatch(
    /^file:\/.*\/x\.tgz$/,
  );
  expect(specifierIn({ dependencies: { meanwhile: "0.1.0" } })).toBe("0.1.0");
  expect(specifierIn({})).toBe(`file:${archive}`);
});

test("the versions that a project gets are those of this repository", () => {
  const { zod, ...others } = dependencyVersions;
  expect(zod).toBe(manifest.dependencies.zod);
  expect(tools).toMatchObject(others);
  expect(readFileSync(path.join(root, "scripts/manifest.mjs"), "utf8")).toContain(`{ node: "${oldestNode}" }`);
});

test("what is published is the program and what was built, and its program names itself", async () => {
  const folder = temporaryFolder();
  const { said } = await init(folder, "published", "--package", "--name", "@acme/acme");
  expect(said).toMatch(/\n {2}To publish {3}replace the path of meanwhile in package\.json by a version on npm\n$/);
  expect(filesIn(path.join(folder, "published"))).toEqual(packageNames.toSorted());
  expect(readJson(folder, "published/package.json")).toMatchObject({
    name: "@acme/acme",
    version: "0.1.0",
    bin: { acme: "bin/acme.js" },
    files: ["bin", "dist"],
    scripts: { prepack: "npm run build" },
    dependencies: { meanwhile: `file:${root}` },
  });
  expect(readFileSync(path.join(folder, "published/bin/acme.js"), "utf8")).toContain(
    'await createCli({ name: "acme", version: manifest.version, summary: manifest.description, commands }).run();',
  );
});
