import { cpSync, globSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { temporaryFolder } from "./home.ts";

const repository = path.resolve(import.meta.dirname, "../..");

interface Differences {
  readonly version: string;
  /** What it changes of PostgreSQL's schema beyond this build, where `SCHEMA` stands for the schema's name. */
  readonly migration?: string;
}

/** The built package again, as if installed in another version; its folder, which is gone after the test. */
export function copyPackage({ version, migration }: Differences): string {
  const folder = temporaryFolder();
  for (const name of ["bin", "dist"]) cpSync(path.join(repository, name), path.join(folder, name), { recursive: true });
  symlinkSync(path.join(repository, "node_modules"), path.join(folder, "node_modules"));
  const manifest = JSON.parse(readFileSync(path.join(repository, "package.json"), "utf8")) as object;
  writeFileSync(path.join(folder, "package.json"), JSON.stringify({ ...manifest, version }));
  if (migration !== undefined) addMigration(folder, migration);
  return folder;
}

/** Where its executable is. */
export function executableIn(folder: string): string {
  return path.join(folder, "bin/meanwhile.cjs");
}

function addMigration(folder: string, migration: string): void {
  const [file, ...others] = globSync(path.join(folder, "dist/migrate-schema-*.js"));
  if (file === undefined || others.length > 0) throw new Error("The build has not one file that migrates PostgreSQL.");
  const text = readFileSync(file, "utf8");
  const end = "] };\nconst knownVersion =";
  if (text.split(end).length !== 2) throw new Error("The list of migrations does not end as it used to.");
  writeFileSync(
    file,
    text.replace(end, () => `, ${JSON.stringify(migration)}${end}`),
  );
}
