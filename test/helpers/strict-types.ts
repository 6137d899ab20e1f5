import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, globSync, mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { text } from "node:stream/consumers";
import { temporaryFolder, writeFiles } from "./home.ts";

const root = path.resolve(import.meta.dirname, "../..");

/** How TypeScript finds modules: as Node does, and as what bundles does. */
export const resolutions: readonly [[string, string], [string, string]] = [
  ["nodenext", "nodenext"],
  ["esnext", "bundler"],
];

interface StrictOptions {
  /** Folders of this repository that are checked with them. */
  readonly folders?: readonly string[];
  readonly module: string;
  readonly moduleResolution: string;
  readonly lib?: readonly string[];
  /** Whether the types of everybody's packages are looked at as well: ten times the work. */
  readonly isThorough?: boolean;
}

/** What the strictest compiler has to say of files that use Meanwhile as it is published; nothing where all is well. */
export async function complaintsOf(files: Readonly<Record<string, string>>, options: StrictOptions): Promise<string[]> {
  const {
    folders = [],
    module,
    moduleResolution,
    lib = ["es2024", "esnext.disposable", "dom"],
    isThorough = true,
  } = options;
  const folder = writeFiles(temporaryFolder(), {
    ...files,
    "package.json": '{ "name": "user", "private": true, "type": "module" }',
    "tsconfig.json": JSON.stringify({
      compilerOptions: {
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, noEmit: true },
        ...{ module, moduleResolution, target: "es2024", lib, types: ["node"] },
        ...{ skipLibCheck: !isThorough, verbatimModuleSyntax: true, allowImportingTsExtensions: true },
        resolveJsonModule: true,
      },
      include: [...Object.keys(files), ...folders],
    }),
  });
  const modules = path.join(folder, "node_modules");
  for (const name of ["package.json", "dist"])
    cpSync(path.join(root, name), path.join(modules, "meanwhile", name), { recursive: true });
  for (const name of globSync(["*", "@*/*"], { cwd: path.join(root, "node_modules") })) {
    if (name === "meanwhile" || (name.startsWith("@") && !name.includes(path.sep))) continue;
    mkdirSync(path.dirname(path.join(modules, name)), { recursive: true });
    symlinkSync(path.join(root, "node_modules", name), path.join(modules, name));
  }
  for (const name of folders) cpSync(path.join(root, name), path.join(folder, name), { recursive: true });
  const tsc = spawn(
    path.join(root, "node_modules/typescript/bin/tsc"),
    ["--project", ".", "--pretty", "false", "--checkers", "1"],
    {
      cwd: folder,
      // One that collects seldom and does nothing twice: half the work.
      env: { ...process.env, GOGC: "400" },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  const [said, [status]] = await Promise.all([text(tsc.stdout), once(tsc, "exit")]);
  const complaints = said.split("\n").filter((line) => /^\S.*error TS/.test(line));
  return status === 0 || complaints.length > 0 ? complaints : [`tsc ended with ${status}: ${said}`];
}
