import { globSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { defineConfig } from "tsdown";

/** The bundled pack is found by discovery, file by file, so each of its files stays a file. */
const pack = Object.fromEntries(globSync("commands/**/*.ts").map((file) => [file.replace(/\.ts$/, ""), file]));

/**
 * What is loaded together lies together: a file costs more to find and open than to compile. Each group takes along what its modules import,
 * unless a group before it has that already; what is loaded when it is first needed stays a file of its own.
 */
const groups = [
  // What every command file loads with `import … from "meanwhile"`.
  {
    name: "core",
    modules: [
      "index",
      "command/command",
      "command/content",
      "completion/(filter|lazily|references)",
      "config",
      "settings/[^.]*",
      "embed/(live-progress|create-cli|create-server)",
    ],
  },
  {
    name: "cli",
    modules: [
      "cli/entries/run-program",
      "cli/main",
      "cli/terminal",
      "project/stored-catalog",
      "project/project-commands",
      "failpoint",
    ],
  },
  { name: "server", modules: ["serve", "runtime/runtime", "transport/stdio", "cli/entries/serve-in-process"] },
  { name: "daemon", modules: ["daemon/main"] },
  { name: "tasks", modules: ["runtime/open-tasks", "store/sqlite/sqlite-store"] },
];

/** zod and yaml come as one file each: their own hundred take longer to find and open than all of ours. */
const oneFile = ["zod", "yaml"];
const asOneFile = {
  name: "as-one-file",
  resolveId: {
    order: "pre" as const,
    handler: (id: string) =>
      oneFile.includes(id) ? { id: path.resolve(`dist/${id}.js`), external: "relative" as const } : undefined,
  },
};

/**
 * Parts of Node whose `import` loads everything that they lead to: 4 ms for `node:process`, 33 ms for `node:http`, whose
 * exports contain a WebSocket. Taken as values they load only themselves. Each with the names that are imported.
 */
const lightBuiltins: Readonly<Record<string, readonly string[]>> = {
  "node:process": ["env", "nextTick", "versions"],
  "node:http": ["Agent", "createServer", "request"],
  "node:https": ["Agent", "request"],
};
const asValues = {
  name: "builtins-as-values",
  resolveId: { order: "pre" as const, handler: (id: string) => (id in lightBuiltins ? `\0${id}` : undefined) },
  load: (id: string) => {
    const names = lightBuiltins[id.slice(1)];
    if (names === undefined || !id.startsWith("\0")) return undefined;
    const value = `globalThis.process.getBuiltinModule(${JSON.stringify(id.slice(1))})`;
    return `const builtin = ${value};\nexport default builtin;\nexport const { ${names.join(", ")} } = builtin;\n`;
  },
};

/** What of yaml is used; it is of a kind whose names are not known from outside. */
const usedOfYaml = {
  name: "used-of-yaml",
  resolveId: (id: string) => (id === "used-of-yaml" ? id : undefined),
  load: (id: string) => (id === "used-of-yaml" ? 'export { parse, stringify } from "yaml";' : undefined),
};

/** Those that are bundled, each as its licence asks. */
function licensesOf({ moduleIds }: { readonly moduleIds: readonly string[] }): string {
  const folders = moduleIds
    .map((id) => /^.*\/node_modules\/[^/]+/.exec(id)?.[0])
    .filter((folder) => folder !== undefined);
  return [...new Set(folders)].map((folder) => `/*! ${path.basename(folder)}\n${licenseIn(folder)}*/\n`).join("");
}

function licenseIn(folder: string): string {
  return readFileSync(globSync(`${folder}/{LICENSE,license}`)[0] as string, "utf8");
}

/** Whoever has no hook has no SDK: then what a hook is handed is not typed, and nothing else is the worse for it. */
function withoutSdk(): void {
  for (const file of globSync("dist/*.d.ts")) {
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replace(/^import .* from "@modelcontextprotocol\/server";$/m, "// @ts-ignore\n$&"));
  }
}

/** What a function promises stands in the types; in the code it would be a sixth of what is installed. */
const comments = { jsdoc: false };

export default defineConfig([
  {
    entry: {
      index: "src/index.ts",
      client: "src/client/index.ts",
      testing: "src/testing/index.ts",
      diagnose: "src/diagnose/index.ts",
      "diagnose-child": "src/diagnose/process/check-child.ts",
      bin: "src/bin.ts",
      attempt: "src/task/isolated/child-process.ts",
    },
    format: "esm",
    platform: "node",
    fixedExtension: false,
    target: "node22.18",
    dts: { entry: ["src/index.ts", "src/client/index.ts", "src/testing/index.ts", "src/diagnose/index.ts"] },
    clean: true,
    hooks: { "build:done": withoutSdk },
    deps: { alwaysBundle: ["commander", "picocolors", /^fast-string/] },
    plugins: [asOneFile, asValues],
    outputOptions: {
      banner: licensesOf,
      comments,
      codeSplitting: {
        groups: groups.map(({ name, modules }, at) => ({
          name,
          priority: groups.length - at,
          test: new RegExp(`/src/(${modules.join("|")})\\.ts$`),
        })),
      },
    },
  },
  // The threads that renew leases. Each is one file, so that it can be copied beside a bundle.
  ...["src/store/sqlite/heartbeat.ts", "src/store/postgres/postgres-heartbeat.ts"].map((file) => ({
    entry: { [`meanwhile-${path.basename(path.dirname(file))}-leases`]: file },
    format: "esm" as const,
    platform: "node" as const,
    fixedExtension: true,
    target: "node22.18",
    plugins: [asValues],
    outputOptions: { comments },
    dts: false,
    clean: false,
  })),
  // A server on stdio starts with every session of a host: one file of the kind that Node loads fastest.
  {
    entry: { front: "src/daemon/front.ts" },
    format: "cjs",
    platform: "node",
    target: "node22.18",
    outputOptions: { comments: false },
    dts: false,
    clean: false,
  },
  // Whose the home is, is asked before anything in it is used.
  { entry: { paths: "src/paths.ts" }, format: "cjs", platform: "node", target: "node22.18", dts: false, clean: false },
  {
    entry: pack,
    format: "esm",
    platform: "node",
    fixedExtension: false,
    target: "node22.18",
    deps: { neverBundle: [/^meanwhile/] },
    plugins: [asOneFile],
    outputOptions: { comments },
    dts: false,
    clean: false,
  },
  // Each alone: the file that both would share asks for `import.meta.url` when it is loaded.
  ...Object.entries({ zod: "zod", yaml: "used-of-yaml" }).map(([name, module]) => ({
    entry: { [name]: module },
    format: "esm" as const,
    platform: "node" as const,
    fixedExtension: false,
    target: "node22.18",
    deps: { alwaysBundle: oneFile },
    plugins: [usedOfYaml],
    minify: true,
    outputOptions: { banner: licensesOf },
    dts: false,
    clean: false,
  })),
]);
