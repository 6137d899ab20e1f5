// Installs and builds what a checkout needs. Does nothing where nothing has changed since the last time.
//   node scripts/setup.mjs              the product, to serve it
//   node scripts/setup.mjs in-process   and what the in-process tests need; likewise system, bench, check
// It runs on the machine's own Node, from 20 on: the Node of the repository is one of the packages that it installs.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");

/** The folders whose packages each part needs, beside those of the root. */
const foldersOf = {
  "in-process": ["test"],
  system: ["test", "test/system"],
  bench: ["test", "bench"],
  check: ["test", "test/system", "bench", "scripts"],
};
const lockPollMs = 200;
/** A lock without a process ID is younger than this, unless its process was killed before it wrote the ID. */
const emptyLockMs = 5_000;

const parts = process.argv.slice(2);
const unknown = parts.filter((part) => !(part in foldersOf));
if (unknown.length > 0) fail(`There is no part ${unknown.join(", ")}. Parts: ${Object.keys(foldersOf).join(", ")}.`);

acquireLock();
const folders = [...new Set(["", ...parts.flatMap((part) => foldersOf[part])])];
for (const folder of folders) install(folder);
linkPackages(folders);
build({ withTypes: folders.includes("test/system") });

/** Installs the packages of one folder, unless its package files are those of the last installation. */
function install(folder) {
  const cwd = path.join(root, folder);
  const stamp = path.join(cwd, "node_modules/.installed");
  const state = () =>
    hashOf([
      process.platform,
      process.arch,
      ...["package.json", "package-lock.json"].map((name) => readFileSync(path.join(cwd, name))),
    ]);
  const missing = () => packagesOf(folder).filter((name) => !existsSync(path.join(cwd, "node_modules", name)));
  if (read(stamp) === state() && missing().length === 0) return;
  // Without --no-save npm adds packages of other systems to the lock file, and the checkout has a change.
  runNpm(["install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error"], cwd);
  if (missing().length > 0) fail(`npm did not install ${missing().join(", ")} in ${folder || "the root"}.`);
  writeStamp(stamp, state());
}

/** The packages that a folder's manifest names; those that are optional may be missing on this machine. */
function packagesOf(folder) {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(
    readFileSync(path.join(root, folder, "package.json"), "utf8"),
  );
  return [...Object.keys(dependencies), ...Object.keys(devDependencies)];
}

/**
 * Links the packages of the other folders into the root's node_modules, where `src` and `examples` find them (optional
 * peers such as `pg` are installed by the tests that use them), and the package itself for imports of "meanwhile".
 */
function linkPackages(folders) {
  link("meanwhile", root);
  for (const folder of folders.filter(Boolean))
    for (const name of packagesOf(folder)) link(name, path.join(root, folder, "node_modules", name));
}

function link(name, target) {
  const place = path.join(root, "node_modules", name);
  if (existsSync(place)) return;
  // A link to a package that was removed since.
  if (lstatSync(place, { throwIfNoEntry: false }) !== undefined) rmSync(place);
  mkdirSync(path.dirname(place), { recursive: true });
  const isWindows = process.platform === "win32";
  symlinkSync(isWindows ? target : path.relative(path.dirname(place), target), place, isWindows ? "junction" : "dir");
}

/** Builds `dist`, unless it was built from the same files. Type declarations need the compiler that system tests install. */
function build({ withTypes }) {
  const stamp = path.join(root, "dist/.built");
  const files = ["src", "commands"].flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true }).map((name) => path.join(folder, name)),
  );
  const sources = [...files, "tsdown.config.ts", "package.json", "package-lock.json"]
    .filter((file) => statSync(path.join(root, file)).isFile())
    .sort();
  const state = hashOf(sources.flatMap((file) => [file, readFileSync(path.join(root, file))]));
  const built = read(stamp);
  if (built === `${state} with types` || (built === state && !withTypes)) return;
  const words = withTypes ? [] : ["--no-dts"];
  runNpm(["run", "build", "--silent", "--", "--log-level=error", ...words], root);
  writeStamp(stamp, withTypes ? `${state} with types` : state);
}

/** Replaces the file: a copy of the checkout made of hard links keeps its own. */
function writeStamp(file, text) {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

/** Waits until no other set-up of this checkout runs. The lock is released when this process exits. */
function acquireLock() {
  const file = path.join(root, "node_modules/.setup-lock");
  mkdirSync(path.dirname(file), { recursive: true });
  for (;;) {
    try {
      closeSync(openSync(file, "wx"));
      process.once("exit", () => rmSync(file, { force: true }));
      writeFileSync(file, String(process.pid));
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    if (isAbandoned(file)) rmSync(file, { force: true });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, lockPollMs);
  }
}

/** True for the lock of a set-up that was killed. */
function isAbandoned(file) {
  const owner = Number(read(file));
  if (owner > 0) return !isAlive(owner) && Number(read(file)) === owner;
  const createdAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs;
  return createdAt !== undefined && Date.now() - createdAt > emptyLockMs;
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

function hashOf(parts) {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part).update("\0");
  return hash.digest("hex");
}

/** The npm that has started us, by its file: on Windows its name is that of a script, which only a shell can start. */
function runNpm(words, cwd) {
  const npm = process.env.npm_execpath?.endsWith("npm-cli.js") ? process.env.npm_execpath : undefined;
  const [program, ...rest] = npm === undefined ? ["npm", ...words] : [process.execPath, npm, ...words];
  // Everything goes to stderr: stdout belongs to what is started afterwards.
  const { status, error } = spawnSync(program, rest, { cwd, stdio: ["ignore", 2, 2], env: environment() });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

/** Without what npm says of the run that has started us: it names the root's folder, and npm would install there. */
function environment() {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(npm_config_local_prefix|npm_package_|INIT_CWD)/i.test(name)),
  );
}

function fail(text) {
  process.stderr.write(`✗ ${text}\n`);
  process.exit(1);
}
