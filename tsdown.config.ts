import { globSync } from "node:fs";
import { defineConfig } from "tsdown";

/** The bundled pack is found by discovery, file by file, so each of its files stays a file. */
const pack = Object.fromEntries(globSync("commands/**/*.ts").map((file) => [file.replace(/\.ts$/, ""), file]));

export default defineConfig([
  {
    entry: {
      index: "src/index.ts",
      client: "src/client/index.ts",
      testing: "src/testing/index.ts",
      diagnose: "src/diagnose/index.ts",
      "diagnose-child": "src/diagnose/child.ts",
      bin: "src/bin.ts",
      attempt: "src/attempt.ts",
      heartbeat: "src/store/sqlite/heartbeat.ts",
    },
    format: "esm",
    platform: "node",
    fixedExtension: false,
    target: "node22.18",
    dts: { entry: ["src/index.ts", "src/client/index.ts", "src/testing/index.ts", "src/diagnose/index.ts"] },
    clean: true,
  },
  // A server on stdio starts with every session of a host: one file of the kind that Node loads fastest.
  { entry: { front: "src/front.ts" }, format: "cjs", platform: "node", target: "node22.18", dts: false, clean: false },
  // Whose the home is, is asked before anything in it is used.
  { entry: { paths: "src/paths.ts" }, format: "cjs", platform: "node", target: "node22.18", dts: false, clean: false },
  { entry: pack, format: "esm", platform: "node", fixedExtension: false, target: "node22.18", deps: { neverBundle: [/^meanwhile/] }, dts: false, clean: false },
]);
