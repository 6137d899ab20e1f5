// Bundles programs with Meanwhile inside by esbuild, tsup, rspack and Next, and starts each output in an empty folder,
// where no package is installed: `npm run check:bundlers`.
//   npm run check:bundlers -- next     these alone
// One line a check; exits non-zero when one fails. The first run installs the bundlers that bundlers/package.json pins.
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

const root = path.resolve(import.meta.dirname, "..");
const folder = path.join(import.meta.dirname, "bundlers");
/** Below the folder of the bundlers, because Next reads no package from outside of the folder above it. */
const work = path.join(folder, "work");
const programs = ["created", "wrapped"];
const answerLimitMs = 30_000;
/** What runs now, by its folder. */
const children = new Map();
/** Packages that must not be needed, neither by a build nor by a start. */
const optional = ["pg", "bullmq", "ioredis"];

const bundlers = { esbuild: bundleByEsbuild, tsup: bundleByTsup, rspack: bundleByRspack, next: buildNext };
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in bundlers));
if (unknown.length > 0) {
  process.stderr.write(`✗ There is no bundler ${unknown.join(", ")}. Bundlers: ${Object.keys(bundlers).join(", ")}.\n`);
  process.exit(2);
}

install();
let failures = 0;
try {
  for (const name of wanted.length > 0 ? wanted : Object.keys(bundlers)) {
    rmSync(work, { recursive: true, force: true });
    cpSync(path.join(root, "test/fixtures/bundle"), work, { recursive: true });
    // The repository's own would lead to the sources.
    writeFileSync(path.join(work, "tsconfig.json"), "{}");
    await check(name, bundlers[name]);
  }
} finally {
  rmSync(work, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);

/** Bundles by one of them, and starts everything that comes of it. */
async function check(name, bundle) {
  try {
    for (const { title, start } of await bundle()) {
      const label = `${name}, ${title}`;
      await start().then(
        (answer) => process.stdout.write(`✓ ${label}: ${answer}\n`),
        (error) => fail(label, error),
      );
    }
  } catch (error) {
    fail(name, error);
  }
}

function fail(label, error) {
  failures += 1;
  process.stdout.write(`✗ ${label}: ${error.stack ?? error}\n`);
}

/** Installs the bundlers where they are missing, and this package as its users get it. */
function install() {
  const { dependencies } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
  const versionOf = (name) => {
    const file = path.join(folder, "node_modules", name, "package.json");
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")).version : undefined;
  };
  if (!Object.entries(dependencies).every(([name, version]) => versionOf(name) === version))
    npm(["install", "--ignore-scripts"], folder);
  const packed = mkdtempSync(path.join(tmpdir(), "mw-pack-"));
  try {
    npm(["pack", "--ignore-scripts", "--pack-destination", packed], root);
    npm(["install", "--ignore-scripts", "--no-save", ...globSync(path.join(packed, "*.tgz"))], folder);
  } finally {
    rmSync(packed, { recursive: true, force: true });
  }
  const there = optional.filter((name) => existsSync(path.join(folder, "node_modules", name)));
  if (there.length > 0) throw new Error(`${there.join(", ")} must not be installed in ${folder}.`);
}

function npm(words, cwd) {
  const { status, error } = spawnSync("npm", [...words, "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd,
    stdio: ["ignore", 2, 2],
    shell: process.platform === "win32",
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`npm ${words[0]} ended with ${status}.`);
}

/** A package of the bundlers' folder. */
async function load(name) {
  return await import(pathToFileURL(createRequire(path.join(folder, "package.json")).resolve(name)).href);
}

function entries() {
  return programs.map((name) => path.join(work, `${name}.ts`));
}

/** Every program in a format that a bundler has written. `files` names its file, and those that belong to it. */
function startEach(title, files) {
  return programs.map((name) => ({ title: `${title}, ${name}`, start: () => startStdio(...files(name)) }));
}

async function bundleByEsbuild() {
  const { build } = await load("esbuild");
  const formats = [
    ["esm", "mjs"],
    ["cjs", "cjs"],
  ];
  for (const [format, ending] of formats) {
    const { warnings } = await build({
      entryPoints: entries(),
      outdir: path.join(work, "out"),
      outExtension: { ".js": `.${ending}` },
      bundle: true,
      platform: "node",
      format,
      logLevel: "silent",
    });
    if (warnings.length > 0) throw new Error(warnings.map(({ text }) => text).join("\n"));
  }
  return formats.flatMap(([format, ending]) =>
    startEach(format, (name) => [path.join(work, "out", `${name}.${ending}`)]),
  );
}

async function bundleByTsup() {
  const { build } = await load("tsup");
  const out = path.join(work, "out");
  await build({
    entry: entries(),
    outDir: out,
    format: ["esm", "cjs"],
    platform: "node",
    noExternal: [/./],
    config: false,
    silent: true,
  });
  return [".mjs", ".js", ".cjs"]
    .filter((ending) => existsSync(path.join(out, `created${ending}`)))
    .flatMap((ending) =>
      startEach(ending, (name) => [path.join(out, `${name}${ending}`), globSync(path.join(out, `*${ending}`))]),
    );
}

async function bundleByRspack() {
  const { rspack } = await load("@rspack/core");
  const out = path.join(work, "out");
  const compiler = rspack({
    mode: "production",
    target: "node22",
    context: work,
    entry: Object.fromEntries(programs.map((name) => [name, path.join(work, `${name}.ts`)])),
    output: { path: out, filename: "[name].cjs" },
    resolve: { extensions: [".ts", "..."] },
    module: {
      rules: [{ test: /\.ts$/, loader: "builtin:swc-loader", options: { jsc: { parser: { syntax: "typescript" } } } }],
    },
  });
  const stats = await new Promise((resolve, reject) =>
    compiler.run((error, result) => (error ? reject(error) : resolve(result))),
  );
  const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
  if (errors.length > 0) throw new Error(errors.map(({ message }) => message).join("\n"));
  for (const { message, moduleName } of warnings) process.stdout.write(`  rspack warns of ${moduleName}: ${message}\n`);
  return startEach("CommonJS", (name) => [path.join(out, `${name}.cjs`), globSync(path.join(out, "*"))]);
}

/** The server build of Next, as it is deployed without node_modules: `output: "standalone"`. */
async function buildNext() {
  mkdirSync(path.join(work, "app/mcp"), { recursive: true });
  // With it Next asks for types that the check does not need.
  rmSync(path.join(work, "tsconfig.json"));
  const tracing = JSON.stringify(folder);
  const files = {
    "package.json": '{ "name": "app", "private": true }',
    "next.config.mjs": `export default { output: "standalone", outputFileTracingRoot: ${tracing}, turbopack: { root: ${tracing} } };`,
    "app/layout.js": "export default function Layout({ children }) { return <html><body>{children}</body></html>; }",
    "app/mcp/route.js": `import { createServer } from "meanwhile";
import { commands } from "../../commands";
export const dynamic = "force-dynamic";
const mcp = createServer({ name: "bundled", version: "1.0.0", commands });
export const GET = (request) => mcp.fetch(request);
export const POST = GET;
export const DELETE = GET;`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(path.join(work, name), text);
  const next = createRequire(path.join(folder, "package.json")).resolve("next/dist/bin/next");
  const { status, stdout, stderr } = spawnSync(process.execPath, [next, "build"], {
    cwd: work,
    encoding: "utf8",
    env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1", CI: "1" },
  });
  if (status !== 0) throw new Error(`next build ended with ${status}: ${stdout}${stderr}`);
  return [{ title: "standalone", start: () => startHttp(path.join(work, ".next/standalone"), "work/server.js") }];
}

/** Copies files of a bundle into an empty folder, starts the first, and calls a tool over stdio. */
async function startStdio(file, others = [file]) {
  return await inEmptyFolder(async (place) => {
    for (const one of others) cpSync(one, path.join(place, path.basename(one)));
    const child = spawnIn(place, [path.basename(file)]);
    const ask = (id, method, params) =>
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    ask(1, "initialize", {
      protocolVersion: "2025-11-25",
      capabilities: {},
      clientInfo: { name: "check", version: "1" },
    });
    await child.says('"id":1');
    ask(2, "tools/call", { name: "greet", arguments: { name: "ab" } });
    return greetingIn(await child.says('"id":2'));
  });
}

/** The same for a server over HTTP. */
async function startHttp(built, server) {
  return await inEmptyFolder(async (place) => {
    cpSync(built, place, { recursive: true, verbatimSymlinks: true });
    const port = await freePort();
    const child = spawnIn(place, [server], { PORT: String(port), HOSTNAME: "127.0.0.1" });
    await child.says("Ready");
    const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "initialize",
        params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "check", version: "1" } },
      }),
    });
    const session = response.headers.get("mcp-session-id");
    await response.text();
    const called = await fetch(`http://127.0.0.1:${port}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2025-11-25",
        ...(session !== null && { "mcp-session-id": session }),
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 2,
        method: "tools/call",
        params: { name: "greet", arguments: { name: "ab" } },
      }),
    });
    return greetingIn(await called.text());
  });
}

function greetingIn(text) {
  const greeting = /Hello ab/.exec(text)?.[0];
  if (greeting === undefined) throw new Error(`It answered with ${text}`);
  return greeting;
}

async function inEmptyFolder(act) {
  const place = mkdtempSync(path.join(tmpdir(), "mw-bundle-"));
  try {
    return await act(place);
  } finally {
    children.get(place)?.kill("SIGKILL");
    children.delete(place);
    rmSync(place, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }
}

function spawnIn(place, words, env = {}) {
  const child = spawn(process.execPath, words, { cwd: place, env: { PATH: "", HOME: place, ...env } });
  children.set(place, child);
  let printed = "";
  let onNews = () => {};
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      printed += text;
      onNews();
    });
  child.on("close", () => {
    printed += "\n(it has ended)";
    onNews();
  });
  child.stdin.on("error", () => {});
  child.says = async (text) =>
    await new Promise((resolve, reject) => {
      const limit = setTimeout(() => reject(new Error(`no ${text} came: ${printed}`)), answerLimitMs);
      onNews = () => {
        const line = printed.split("\n").find((one) => one.includes(text));
        if (line === undefined && !printed.endsWith("(it has ended)")) return;
        clearTimeout(limit);
        if (line === undefined) reject(new Error(`no ${text} came: ${printed}`));
        else resolve(line);
      };
      onNews();
    });
  return child;
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}
