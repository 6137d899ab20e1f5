import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { openStore } from "../../src/store/open.ts";

let bytes: Promise<Buffer> | undefined;

/** Writes an SQLite file of the present schema without tasks, unless the file exists: all migrations take 20 ms. */
export async function writeEmptyDatabase(file: string): Promise<void> {
  if (existsSync(file)) return;
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  bytes ??= createBytes();
  writeFileSync(file, await bytes, { mode: 0o600 });
}

async function createBytes(): Promise<Buffer> {
  const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
  try {
    const file = path.join(folder, "tasks.db");
    await (await openStore(file)).close();
    return readFileSync(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
