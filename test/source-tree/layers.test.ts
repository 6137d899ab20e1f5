import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { revisions } from "../../src/wire/revisions.ts";

/** What every room of the terminal may import. */
const cliRoom = [
  ...["cli", "command", "task", "project", "settings", "system"],
  ...["paths.ts", "errors.ts", "clock.ts", "log.ts"],
];

/** Who may import whom. A folder may always import its own files; `*` may import anything; which program this is may be asked by all. */
const table: Record<string, readonly string[] | "*"> = {
  "errors.ts": [],
  "clock.ts": [],
  "ids.ts": [],
  "log.ts": ["screen", "system", "clock.ts"],
  "paths.ts": ["errors.ts", "system"],
  "failpoint.ts": [],
  program: [],
  screen: [],
  system: ["errors.ts", "clock.ts", "ids.ts"],
  wire: ["system", "errors.ts", "clock.ts", "ids.ts"],
  command: ["system", "errors.ts", "clock.ts", "log.ts", "paths.ts"],
  auth: ["wire", "command", "program", "errors.ts", "clock.ts", "ids.ts", "log.ts"],
  host: [],
  completion: ["command", "errors.ts", "clock.ts"],
  task: ["auth", "command", "host", "errors.ts", "clock.ts", "ids.ts", "log.ts", "failpoint.ts"],
  "task/isolated": ["task", "command", "system", "errors.ts", "clock.ts", "ids.ts", "log.ts"],
  // A queue beside the store is reached as the store is.
  queue: ["store", "task", "system", "errors.ts", "clock.ts", "ids.ts", "log.ts"],
  store: ["auth", "command", "task", "system", "errors.ts", "clock.ts", "ids.ts", "log.ts", "paths.ts", "failpoint.ts"],
  testing: ["command", "task", "store", "project", "settings", "paths.ts", "clock.ts", "ids.ts", "errors.ts", "log.ts"],
  mcp: [
    "auth",
    "wire",
    "completion",
    "command",
    "task",
    "host",
    "errors.ts",
    "clock.ts",
    "ids.ts",
    "log.ts",
    "failpoint.ts",
  ],
  transport: ["auth", "mcp", "command", "errors.ts", "clock.ts", "ids.ts", "wire", "log.ts", "system"],
  daemon: ["system", "gateway", "paths.ts", "errors.ts", "clock.ts", "wire", "log.ts"],
  "daemon/front.ts": ["daemon", "daemon/waiting-note.ts", "project", "system", "paths.ts", "errors.ts", "screen"],
  "daemon/waiting-note.ts": [],
  "daemon/daemon.ts": "*",
  "daemon/counted-variables.ts": ["project", "settings", "task", "paths.ts", "log.ts"],
  "daemon/main.ts": "*",
  client: ["errors.ts", "clock.ts", "ids.ts", "wire", "log.ts"],
  diagnose: ["index.ts", "host", "errors.ts", "clock.ts", "ids.ts", "wire", "system", "screen"],
  setup: ["project", "paths.ts", "errors.ts", "log.ts"],
  // Its root, completion and screens.
  cli: [
    "command",
    "task",
    "client",
    "wire",
    "daemon",
    "daemon/front.ts",
    "daemon/main.ts",
    "project",
    "errors.ts",
    "clock.ts",
    "screen",
    "paths.ts",
    "system",
  ],
  "cli/own": [...cliRoom, "runtime", "store", "mcp", "gateway"],
  "cli/remote": [...cliRoom, "cli/own", "client", "wire"],
  "cli/daemons": [...cliRoom, "cli/own", "cli/remote", "daemon", "daemon/front.ts", "gateway"],
  "cli/diagnose": [...cliRoom, "cli/own", "cli/remote", "diagnose", "client", "runtime"],
  "cli/store": [...cliRoom, "auth", "store", "queue", "runtime", "ids.ts"],
  "cli/setup": [...cliRoom, "setup", "screen"],
  "cli/init": [...cliRoom, "cli/remote", "embed", "ids.ts"],
  "cli/entries": [
    ...[...cliRoom, "auth", "cli/own", "completion", "store", "daemon", "setup", "runtime"],
    ...["serve.ts", "failpoint.ts", "daemon/front.ts", "daemon/waiting-note.ts"],
  ],
  "cli/verbs": [
    ...cliRoom,
    "auth",
    ...["own", "remote", "daemons", "diagnose", "setup", "store", "init", "entries"].map((room) => `cli/${room}`),
    "daemon/front.ts",
    "diagnose",
    "host",
    "setup",
    "runtime",
    "serve.ts",
  ],
  project: ["command", "system", "errors.ts", "paths.ts", "log.ts"],
  "config.ts": ["auth", "host", "project", "log.ts"],
  settings: [
    "auth",
    "command",
    "host",
    "task",
    "store",
    "queue",
    "project",
    "config.ts",
    "errors.ts",
    "log.ts",
    "paths.ts",
    "system",
  ],
  runtime: [
    "auth",
    "command",
    "host",
    "wire",
    "task",
    "task/isolated",
    "store",
    "queue",
    "mcp",
    "system",
    "diagnose",
    "gateway",
    "project",
    "settings",
    "paths.ts",
    "errors.ts",
    "clock.ts",
    "ids.ts",
    "log.ts",
  ],
  gateway: [
    ...["auth", "command", "client", "wire", "mcp", "system", "project", "settings", "config.ts", "paths.ts"],
    // What an authorization server says of a sign-in is read on a screen.
    ...["errors.ts", "clock.ts", "ids.ts", "log.ts", "screen"],
  ],
  "serve.ts": ["auth", "command", "mcp", "transport", "system", "runtime", "paths.ts", "ids.ts", "errors.ts"],
  embed: [
    ...["auth", "wire", "command", "task", "store", "queue", "mcp", "transport", "project", "settings", "runtime"],
    ...["program", "cli/entries"],
    ...["daemon/front.ts", "serve.ts", "config.ts", "paths.ts", "errors.ts", "clock.ts", "ids.ts", "log.ts"],
  ],
  "index.ts": ["auth", "command", "completion", "task", "settings", "config.ts", "embed", "errors.ts"],
  "bin.ts": "*",
};

const root = path.resolve(import.meta.dirname, "../..");
const sources = globSync("src/**/*.ts", { cwd: root });
const textOf = (file: string) => readFileSync(path.join(root, file), "utf8");

/** Every import of a file, static or not, type or value. */
function importsOf(file: string): string[] {
  return [...textOf(file).matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1] as string);
}

function layerOf(file: string): string {
  const [, first = "", second = ""] = file.split("/");
  return Object.hasOwn(table, `${first}/${second}`) ? `${first}/${second}` : first;
}

test("the table names every file of src", () => {
  expect(sources.length).toBeGreaterThan(20);
  expect(sources.filter((file) => table[layerOf(file)] === undefined)).toEqual([]);
});

describe("each folder imports only what the table allows it", () => {
  test.each(sources)("%s", (file) => {
    const from = layerOf(file);
    const allowed = table[from];
    const targets = importsOf(file)
      .filter((name) => name.startsWith("."))
      .map((name) => layerOf(path.join(path.dirname(file), name)));
    const forbidden =
      allowed === "*"
        ? []
        : targets.filter(
            (target) =>
              target !== from && target.split("/")[0] !== from && target !== "program" && !allowed?.includes(target),
          );
    expect(forbidden).toEqual([]);
  });
});

test("a front loads nothing but Node's own modules and a few small files of ours", () => {
  const seen = new Set<string>();
  const visit = (file: string) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const name of importsOf(file)) {
      if (name.startsWith(".")) visit(path.join(path.dirname(file), name));
      else expect(name, file).toMatch(/^node:/);
    }
  };
  visit("src/daemon/front.ts");
  expect([...seen].sort()).toEqual(
    [
      "clock",
      "daemon/carry/kept-answers",
      "daemon/carry/pump",
      "daemon/carry/session",
      "daemon/carry/stand-in",
      "daemon/doing",
      "daemon/front",
      "daemon/greeting",
      "daemon/proof",
      "daemon/reach/ask-daemon",
      "daemon/reach/connect",
      "daemon/reach/start",
      "daemon/reach/unreachable",
      "daemon/record",
      "daemon/waiting-note",
      "errors",
      "gateway/upstreams-control",
      "paths",
      "program/program",
      "project/project",
      "project/stored-project",
      "project/upstream-config",
      "project/upstream-name",
      "project/variable-references",
      "project/wrap",
      "project/wrap-variables",
      "project/wrap-words",
      "screen/clean",
      "system/access-list",
      "system/child-environment",
      "system/darwin",
      "system/linux",
      "system/own-module",
      "system/posix",
      "system/programs",
      "system/socket-file",
      "system/system",
      "system/windows",
      "wire/request-envelope",
      "wire/json",
      "wire/lines",
      "wire/revisions",
    ]
      .map((name) => `src/${name}.ts`)
      .sort(),
  );
});

test("nobody imports the SDK: where an author has a hook it is loaded by name, and its types are the hook's", () => {
  const importers = sources.filter((file) => importsOf(file).some((name) => name.startsWith("@modelcontextprotocol/")));
  expect(importers).toEqual(["src/config.ts"]);
});

test("nobody outside store knows which database there is; a daemon's lock is one of its kind", () => {
  const importers = sources.filter(
    (file) => !file.startsWith("src/store/") && importsOf(file).some((name) => name.includes("/sqlite/")),
  );
  expect(importers).toEqual(["src/daemon/daemon.ts"]);
});

test("only wire names a revision", () => {
  const named = new RegExp(`"(${revisions.join("|")})"`);
  // What is said to people is no code.
  const codeOf = (file: string) => textOf(file).replaceAll(/'[^'\n]*'|\/\/.*$/gm, "");
  expect(sources.filter((file) => !file.startsWith("src/wire/") && named.test(codeOf(file)))).toEqual([]);
});

describe("only wire reads messages", () => {
  /** Servers that misbehave on purpose read by hand, too: with our wire they would behave. */
  const others = globSync(["test/**/*.{ts,mjs}", "bench/**/*.mjs"], {
    cwd: root,
    exclude: ["test/fixtures/**", "test/wire/**", "**/node_modules/**"],
  });
  const all = [...sources, ...others].filter(
    (file) => !file.startsWith("src/wire/") && file !== "test/source-tree/layers.test.ts",
  );
  const among = (files: readonly string[], pattern: RegExp) => files.filter((file) => pattern.test(textOf(file)));

  test("from server-sent events, in tests and in the bench as well", () => {
    expect(others.length).toBeGreaterThan(200);
    expect(among(all, /\^data|startsWith\(["'`]data:|slice\(["'`]data:|split\(["'`]\\n\\n/)).toEqual([]);
    expect(
      among(
        sources.filter((file) => !file.startsWith("src/wire/")),
        /["`]data:|\ndata:/,
      ),
    ).toEqual([]);
  });

  test("from lines, in tests as well; the bench's one client says why it does", () => {
    expect(among(all, /\+ .*\)\.split\("\\n"\)/)).toEqual(["bench/client.mjs"]);
    expect(among(all, /JSON\.parse\(.*\) as (JSONRPC)?Message\b/)).toEqual([]);
  });

  test("for the client and for diagnose, which parse nothing themselves but what stands in a result or in a report", () => {
    const parsing = among(sources, /JSON\.parse\(/).filter((file) => /^src\/(client|diagnose)\//.test(file));
    expect(parsing.toSorted()).toEqual(["src/client/follow/plain-handle.ts", "src/diagnose/formats/json-report.ts"]);
  });

  test("and only wire sends a client's requests, or starts a server for one", () => {
    const clients = sources.filter((file) => /^src\/(client|diagnose)\//.test(file));
    expect(among(clients, /\bspawn\(|\bhttps?\.request\(|\{ request \} =|(?<![\w.#])fetch\(/)).toEqual([]);
  });
});

test("the bundled pack imports public names and npm packages only", () => {
  const files = globSync("commands/**/*.ts", { cwd: root });
  expect(files.length).toBeGreaterThan(0);
  for (const file of files) for (const name of importsOf(file)) expect(name, file).not.toMatch(/src\/|dist\//);
});

test("time and chance come from clock.ts and ids.ts alone", () => {
  const pattern = /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bsetTimeout\(|\bsetInterval\(|\brandomUUID\(/;
  expect(
    sources.filter((file) => pattern.test(textOf(file)) && !["src/clock.ts", "src/ids.ts"].includes(file)),
  ).toEqual([]);
});

test("process is read only where the outside is meant to come in", () => {
  const allowed =
    /^src\/(serve|bin|paths|log)\.ts$|^src\/(system|daemon|runtime|embed)\/|^src\/(cli\/entries\/run-program|diagnose\/process\/check-child|task\/isolated\/child-process|transport\/stdio|command\/(?:module-format|process-guard))\.ts$/;
  const reads = (text: string) =>
    /(?<![\w.(])process\.(?!off\b)\w+/.test(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|`[^`]*`|"[^"]*"/gm, ""));
  expect(sources.filter((file) => reads(textOf(file)) && !allowed.test(file))).toEqual([]);
});
