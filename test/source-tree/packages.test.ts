import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import path from "node:path";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const tiers = ["system", "chaos", "package", "long"];

function packagesOf(manifest: string): string[] {
  const { dependencies, devDependencies, optionalDependencies } = JSON.parse(
    readFileSync(path.join(root, manifest), "utf8"),
  ) as Record<string, object | undefined>;
  return Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies });
}

/** The packages that a file imports when it is loaded. Types and later imports do not count. */
function importsOf(file: string): string[] {
  const imports = readFileSync(path.join(root, file), "utf8").matchAll(
    /^(?:import|export) (?!type\b)(?:[^;"]*? from )?"([^".][^"]*)";$/gm,
  );
  return [...imports].flatMap(([, name = ""]) => {
    const [scope = "", part] = name.split("/");
    return isBuiltin(name) ? [] : [scope.startsWith("@") ? `${scope}/${part}` : scope];
  });
}

test("the in-process tier imports only packages that `npm test` installs", () => {
  const installed = new Set(["meanwhile", ...packagesOf("package.json"), ...packagesOf("test/package.json")]);
  const files = globSync("test/**/*.ts", { cwd: root, exclude: ["**/node_modules/**", "test/fixtures/**"] }).filter(
    (file) => file.endsWith(".test.ts") && !tiers.includes(file.split(path.sep)[1] ?? ""),
  );
  expect(files.length).toBeGreaterThan(200);
  const missing = files.flatMap((file) =>
    importsOf(file)
      .filter((name) => !installed.has(name))
      .map((name) => `${file} imports ${name}`),
  );
  expect(missing).toEqual([]);
});
