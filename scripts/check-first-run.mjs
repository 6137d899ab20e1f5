// The first minutes of a user, in empty folders, with two versions of Node and with npm, pnpm and yarn: install the
// packed package, `new` and run, `init` and its tests, a package that is missing, and `diagnose`.
//   npm run check:first-run            every Node with every package manager, about five minutes
//   npm run check:first-run -- pnpm    those whose name contains a word
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const repository = path.resolve(import.meta.dirname, "..");
const nodeVersions = ["24.21.0", "26.10.0"];
const packages = { npm: "11.21.2", pnpm: "11.28.10", yarn: "1.22.22", "@yarnpkg/cli-dist": "4.18.1" };

/** How each package manager adds a package and runs a program of one. */
const managers = [
  { name: "npm", from: "npm", bin: "npm", add: ["install"], run: ["exec", "--no", "--"] },
  { name: "pnpm", from: "pnpm", bin: "pnpm", add: ["add"], run: ["exec"] },
  { name: "yarn 1", from: "yarn", bin: "yarn", add: ["add"], run: ["run", "--silent"], isMarked: true },
  // With Plug'n'Play, its default.
  { name: "yarn 4", from: "@yarnpkg/cli-dist", bin: "yarn", add: ["add"], run: ["run"] },
];

const slowServer = `import { createInterface } from "node:readline";
const tools = [{ name: "slow_report", description: "Takes ten minutes.", inputSchema: { type: "object" } }];
const answers = {
  initialize: ({ protocolVersion }) => ({
    ...{ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "slow", version: "1.0.0" } },
  }),
  "tools/list": () => ({ tools }),
  ping: () => ({}),
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  const answer = answers[method];
  const outcome = answer ? { result: answer(params) } : { error: { code: -32601, message: "Unknown method." } };
  if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, ...outcome }));
});
`;
const plainCommand = `import { defineCommand } from "meanwhile";
export default defineCommand({ summary: "Say hello", run: () => ({ greeting: "plain" }) });
`;

const wanted = process.argv.slice(2);
const temporary = mkdtempSync(path.join(tmpdir(), "meanwhile-first-"));
let failures = 0;
try {
  const tarball = pack();
  const tools = installTools();
  for (const version of nodeVersions)
    for (const manager of managers) {
      const name = `Node ${version}, ${manager.name}`;
      if (wanted.length > 0 && !wanted.some((word) => name.includes(word))) continue;
      const startedAt = performance.now();
      const problems = tryOut({ name, version, manager, tarball, tools });
      failures += problems.length;
      console.log(
        `${problems.length === 0 ? "✓" : "✗"} ${name} (${Math.round((performance.now() - startedAt) / 1000)} s)`,
      );
      for (const problem of problems) console.log(`    ${problem}`);
    }
} finally {
  rmSync(temporary, { recursive: true, force: true, maxRetries: 5 });
}
process.exitCode = failures === 0 ? 0 : 1;

function pack() {
  must("npm", ["pack", "--loglevel=error", "--pack-destination", temporary], repository);
  const [name] = readdirSync(temporary).filter((file) => file.endsWith(".tgz"));
  return path.join(temporary, name);
}

/** Every Node and every package manager in a folder of its own, because they share names. */
function installTools() {
  const folder = path.join(temporary, "tools");
  const install = (place, name, version) => {
    mkdirSync(path.join(folder, place), { recursive: true });
    must(
      "npm",
      ["install", "--no-save", "--ignore-scripts", "--loglevel=error", "--prefix", ".", `${name}@${version}`],
      path.join(folder, place),
    );
  };
  for (const version of nodeVersions) install(version, `node-${process.platform}-${process.arch}`, version);
  for (const [name, version] of Object.entries(packages)) install(name, name, version);
  return folder;
}

function tryOut({ name, version, manager, tarball, tools }) {
  const folder = path.join(temporary, name.replaceAll(/[^\w.]+/g, "-"));
  const home = path.join(folder, "home");
  const own = path.join(folder, "bin");
  for (const one of [home, own]) mkdirSync(one, { recursive: true });
  const node = path.join(tools, version, "node_modules", `node-${process.platform}-${process.arch}`, "bin/node");
  symlinkSync(node, path.join(own, "node"));
  const env = environment(home, own);
  const problems = [];
  const type = (cwd, words, { status = 0, printed = /^/, said = /^/ }) => {
    const ended = spawnSync(node, words, { cwd, env, encoding: "utf8", timeout: 180_000 });
    const isRight = ended.status === status && printed.test(ended.stdout) && said.test(ended.stderr);
    // A warning of Node has its process ID in front. Only Plug'n'Play has one of its own: it uses the old loader API.
    const warnings = ended.stderr
      .split("\n")
      .filter((line) => /^\(node:\d+\)/.test(line) && !/loader|register/.test(line));
    if (!isRight || warnings.length > 0)
      problems.push(
        `${words.slice(1).join(" ")} ended with ${ended.status}: ${ended.stdout}${ended.stderr}`.slice(0, 1_500),
      );
  };
  const manage = (cwd, words, expected = {}) => type(cwd, [programOf(tools, manager), ...words], expected);
  // yarn 1 takes the first `--` away.
  const mark = manager.isMarked === true ? ["--"] : [];
  const meanwhile = (cwd, words, expected) => manage(cwd, [...manager.run, "meanwhile", ...mark, ...words], expected);
  const file = (name, text) => writeFileSync(path.join(folder, name), text);

  // What `npm init -y` writes with npm 11.
  mkdirSync(path.join(folder, "first"));
  file("first/package.json", '{ "name": "first", "version": "1.0.0", "license": "ISC", "type": "commonjs" }');
  const project = path.join(folder, "first");
  manage(project, [...manager.add, tarball]);
  meanwhile(project, ["new", "hello/world"], { printed: /^commands\/hello\/world\.ts\n$/ });
  meanwhile(project, ["hello", "world", "Ada", "--quiet"], { printed: /^greeting: Hello, Ada!\n$/ });
  file("first/commands/hello/plain.js", plainCommand);
  meanwhile(project, ["hello", "plain", "--quiet"], { printed: /^greeting: plain\n$/ });
  file("first/commands/hello/needs.ts", `import "@acme/none";\n${plainCommand}`);
  const said = /✗ hello needs could not be loaded .*; install it: `(npm install|pnpm add|yarn add) @acme\/none` in /;
  meanwhile(project, ["hello", "needs"], { status: 1, said });
  file("slow.mjs", slowServer);
  meanwhile(project, ["diagnose", "--quiet", "--", node, path.join(folder, "slow.mjs")], {
    status: 1,
    printed: /^✗ slow_report says that it is slow, and was not tested: \d+ hosts would\s+cut it/,
  });
  meanwhile(project, ["init", "../acme"], { said: /Made the project acme/ });
  const acme = path.join(folder, "acme");
  manage(acme, ["install"]);
  manage(acme, ["test"], { printed: /pass 2/ });
  meanwhile(acme, ["report", "build", "Q3", "--pages", "1", "--quiet"], {
    printed: /^title: Report of Q3\npages: 1\n$/,
  });
  return problems;
}

/** The file that a package manager is started from. */
function programOf(tools, { from, bin }) {
  const folder = path.join(tools, from, "node_modules", from);
  return path.join(folder, JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8")).bin[bin]);
}

/** Nothing of this repository, and the registry that this user's npm is set to. */
function environment(home, own) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|NODE_(?!EXTRA_CA_CERTS)|MEANWHILE_|INIT_CWD|CI$|FORCE_COLOR)/i.test(name),
  );
  const searchPath = (process.env.PATH ?? "").split(path.delimiter).filter((entry) => !entry.includes("node_modules"));
  const setting = (name) => spawnSync("npm", ["config", "get", name], { encoding: "utf8", cwd: home }).stdout.trim();
  const registry = setting("registry");
  return {
    ...Object.fromEntries(inherited),
    PATH: [own, ...searchPath].join(path.delimiter),
    HOME: home,
    npm_config_userconfig: setting("userconfig"),
    npm_config_registry: registry,
    YARN_REGISTRY: registry,
    YARN_NPM_REGISTRY_SERVER: registry,
    YARN_UNSAFE_HTTP_WHITELIST: new URL(registry).hostname,
    YARN_ENABLE_TELEMETRY: "0",
    YARN_ENABLE_IMMUTABLE_INSTALLS: "false",
  };
}

function must(program, words, cwd) {
  const { status } = spawnSync(program, words, { cwd, stdio: ["ignore", 2, 2] });
  if (status !== 0) throw new Error(`${program} ${words.join(" ")} ended with ${status}`);
}
