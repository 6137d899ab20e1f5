import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder, writeFiles } from "../helpers/home.ts";
import { expectWhole } from "../helpers/package-files.ts";

const root = path.resolve(import.meta.dirname, "../..");

test("what would be packed is what users need, and nothing else", () => {
  const words = ["pack", "--dry-run", "--ignore-scripts", "--json", "--loglevel=error"];
  const [packed] = JSON.parse(
    execFileSync("npm", words, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }),
  ) as [{ readonly files: readonly { readonly path: string }[] }];
  expectWhole(packed.files.map((file) => file.path));
});

test("nothing of MCP's SDK is installed with it, and its types are whole without", () => {
  const lock = JSON.parse(readFileSync(path.join(root, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly dev?: boolean }>>;
  };
  const installed = Object.keys(lock.packages).filter((place) => lock.packages[place]?.dev !== true);
  expect(installed).toContain("node_modules/better-sqlite3");
  expect(installed.filter((place) => place.includes("@modelcontextprotocol"))).toEqual([]);
  const folder = writeFiles(temporaryFolder(), {
    "package.json": '{ "name": "user", "private": true, "type": "module" }',
    "tsconfig.json": JSON.stringify({
      compilerOptions: {
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true },
        ...{ module: "nodenext", target: "es2024", types: [], skipLibCheck: false },
        lib: ["es2024", "esnext.disposable", "dom"],
      },
    }),
    "config.ts": `import { defineConfig } from "meanwhile";
import type {} from "meanwhile/client";
import type {} from "meanwhile/testing";
export default defineConfig({ name: "notes" });`,
  });
  const own = path.join(folder, "node_modules/meanwhile");
  for (const name of ["package.json", "dist"]) cpSync(path.join(root, name), path.join(own, name), { recursive: true });
  cpSync(
    path.join(root, "node_modules/@standard-schema/spec"),
    path.join(folder, "node_modules/@standard-schema/spec"),
    { recursive: true },
  );
  const { status, stdout } = spawnSync(path.join(root, "node_modules/typescript/bin/tsc"), ["--project", folder], {
    encoding: "utf8",
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});

test("a command file that imports it loads one file of ours, and no store or server", () => {
  const loadedBy = (file: string) =>
    [...readFileSync(path.join(root, "dist", file), "utf8").matchAll(/^(?:import|export)\b[^;]*?"([^"]+)";$/gm)].map(
      ([, name = ""]) => name,
    );
  const [core = "", ...others] = loadedBy("index.js");
  expect({ core, others }).toEqual({ core: expect.stringMatching(/^\.\/core-/), others: [] });
  expect(loadedBy(core).filter((name) => !name.startsWith("node:"))).toEqual([]);
});

test("what prints results loads yaml as one file, and none of the seventy that it is made of", () => {
  const files = globSync(["*.js", "commands/**/*.js"], { cwd: path.join(root, "dist") });
  const loading = (what: RegExp) =>
    files.filter((file) => what.test(readFileSync(path.join(root, "dist", file), "utf8")));
  expect(loading(/(from |import\()"[^"]*\/yaml\.js"/)).not.toEqual([]);
  expect(loading(/(from |import\()"yaml"/)).toEqual([]);
});

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
