import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { revisions } from "../../src/wire/revisions.ts";

/** Who may import whom. A folder may always import its own files; `*` may import anything. */
const table: Record<string, readonly string[] | "*"> = {
  "errors.ts": [],
  "clock.ts": [],
  "ids.ts": [],
  "log.ts": ["shown.ts"],
  "log-file.ts": ["clock.ts"],
  "prints.ts": ["clock.ts"],
  "shown.ts": [],
  "wrap.ts": [],
  "paths.ts": ["errors.ts"],
  "process-guard.ts": ["prints.ts"],
  "failpoint.ts": [],
  "machine.ts": ["ids.ts"],
  wire: ["errors.ts", "clock.ts", "ids.ts"],
  command: ["errors.ts", "clock.ts", "log.ts", "paths.ts"],
  host: [],
  completion: ["command", "errors.ts", "clock.ts"],
  task: ["command", "host", "errors.ts", "clock.ts", "ids.ts", "log.ts", "failpoint.ts"],
  store: ["command", "task", "errors.ts", "clock.ts", "log.ts", "failpoint.ts"],
  testing: ["command", "task", "store", "project.ts", "clock.ts", "ids.ts", "errors.ts"],
  mcp: ["wire", "completion", "command", "task", "host", "errors.ts", "clock.ts", "ids.ts", "log.ts", "failpoint.ts"],
  transport: ["mcp", "errors.ts", "clock.ts", "ids.ts", "wire", "log.ts"],
  daemon: ["paths.ts", "errors.ts", "clock.ts", "wire", "log.ts"],
  client: ["errors.ts", "clock.ts", "ids.ts", "wire", "log.ts"],
  diagnose: [
    "command",
    "client",
    "host",
    "project.ts",
    "errors.ts",
    "clock.ts",
    "ids.ts",
    "wire",
    "machine.ts",
    "log.ts",
    "wrap.ts",
  ],
  setup: ["paths.ts", "errors.ts", "log.ts"],
  cli: [
    "command",
    "task",
    "client",
    "wire",
    "paths.ts",
    "errors.ts",
    "clock.ts",
    "log.ts",
    "log-file.ts",
    "shown.ts",
    "wrap.ts",
  ],
  "cli/builtin": "*",
  "project.ts": ["errors.ts", "paths.ts"],
  "stored-project.ts": ["project.ts", "paths.ts"],
  "stored-catalog.ts": ["command", "project.ts", "paths.ts"],
  "project-commands.ts": ["command", "project.ts", "stored-catalog.ts", "paths.ts", "log.ts"],
  "front.ts": ["daemon", "project.ts", "stored-project.ts", "paths.ts", "errors.ts", "shown.ts"],
  "serve.ts": "*",
  "tasks.ts": "*",
  "live-progress.ts": "*",
  "attempt.ts": "*",
  "config.ts": "*",
  "bin.ts": "*",
  "index.ts": "*",
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
            (target) => target !== from && !allowed?.includes(target) && !(from === "cli" && target === "cli/builtin"),
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
  visit("src/front.ts");
  expect([...seen].sort()).toEqual(
    [
      "clock",
      "daemon/connect",
      "daemon/doing",
      "daemon/greeting",
      "daemon/kept-answers",
      "daemon/pump",
      "daemon/record",
      "daemon/session",
      "daemon/stand-in",
      "errors",
      "front",
      "paths",
      "project",
      "shown",
      "stored-project",
      "wire/envelope",
      "wire/json",
      "wire/lines",
      "wire/revisions",
    ].map((name) => `src/${name}.ts`),
  );
});

test("nobody imports the SDK: where an author has a hook it is loaded by name, and its types are the hook's", () => {
  const importers = sources.filter((file) => importsOf(file).some((name) => name.startsWith("@modelcontextprotocol/")));
  expect(importers).toEqual(["src/config.ts"]);
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
    (file) => !file.startsWith("src/wire/") && file !== "test/package/layers.test.ts",
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
    expect(parsing.toSorted()).toEqual(["src/client/plain-handle.ts", "src/diagnose/formats/json.ts"]);
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
    /^src\/(serve|bin|front|config|paths|log|machine|attempt|live-progress)\.ts$|^src\/daemon\/|^src\/diagnose\/child\.ts$|^src\/cli\/builtin\/|^src\/cli\/terminal\.ts$|^src\/transport\/stdio\.ts$/;
  const reads = (text: string) =>
    /(?<![\w.(])process\.(?!off\b)\w+/.test(text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$|`[^`]*`|"[^"]*"/gm, ""));
  expect(
    sources.filter((file) => reads(textOf(file)) && !allowed.test(file) && file !== "src/process-guard.ts"),
  ).toEqual([]);
});
