import { chmodSync, chownSync, globSync, lstatSync, utimesSync } from "node:fs";
import path from "node:path";
import { temporaryFolder, writeFiles } from "./home.ts";

/** A home that another user of the machine may have prepared. */
export interface Planted {
  readonly folder: string;
  readonly home: string;
  readonly marker: string;
}

/** A home whose config names a folder of commands that leave a marker when they are loaded. */
export function plant(owner: number, mode: number): Planted {
  const folder = temporaryFolder();
  chmodSync(folder, 0o755);
  const home = path.join(folder, "home");
  const marker = path.join(folder, "marker");
  writeFiles(folder, {
    "evil/hack/run.ts": `import { writeFileSync } from "node:fs"; writeFileSync(${JSON.stringify(marker)}, "");`,
  });
  writeFiles(home, {
    "config.json": JSON.stringify({ commands: [path.join(folder, "evil")] }),
    token: `${"t".repeat(64)}\n`,
    "run/x.json": JSON.stringify({ pid: 1, socket: path.join(home, "run/x.sock") }),
    "cache/code/planted": "",
    "tasks.db": "",
  });
  for (const name of [".", ...globSync("**/*", { cwd: home })]) {
    const file = path.join(home, name);
    chmodSync(file, name === "." ? mode : lstatSync(file).isDirectory() ? 0o755 : 0o644);
    // A read would bring the time of the last one up to date.
    utimesSync(file, 1, 2);
    chownSync(file, owner, owner);
  }
  return { folder, home, marker };
}

/** Everything that a look from outside can tell. */
export function stateOf({ home, marker }: Planted): string {
  const facts = [".", ...globSync("**/*", { cwd: home }).toSorted()].map((name) => {
    const { atimeMs, mtimeMs, uid, size, mode } = lstatSync(path.join(home, name));
    const isFolder = lstatSync(path.join(home, name)).isDirectory();
    return [name, isFolder ? "" : atimeMs, mtimeMs, uid, size, mode].join(" ");
  });
  return [...facts, `marker: ${lstatSync(marker, { throwIfNoEntry: false }) !== undefined}`].join("\n");
}
