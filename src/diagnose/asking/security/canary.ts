import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createSecret } from "../../../ids.ts";

/**
 * A file that nobody but its owner should ever get to see, made to find out who hands it out. It holds nothing but
 * chance.
 */
export interface Canary {
  /** How it can be asked for, and what that is called. */
  readonly ways: readonly { readonly what: string; readonly path: string }[];
  /** Whether an answer holds what is in the file, as it is or packed. */
  isIn(answer: string): boolean;
  remove(): void;
}

/** Lays one in a folder of the user's; undefined where there is none, or nothing can be written there. */
export function layCanary(folder: string | undefined): Canary | undefined {
  if (folder === undefined) return undefined;
  const secret = createSecret();
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const own = mkdtempSync(path.join(folder, "canary-"));
    const file = path.join(own, "secret.txt");
    writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
    const packed = Buffer.from(`${secret}\n`).toString("base64").slice(0, secret.length);
    return {
      ways: [
        { what: "the path", path: file },
        { what: "a path that begins with ../", path: `${"../".repeat(24)}${path.relative("/", file)}` },
        { what: "a file:// address", path: `file://${file}` },
      ],
      isIn: (answer) => answer.includes(secret) || answer.includes(packed),
      remove: () => rmSync(own, { recursive: true, force: true }),
    };
  } catch {
    return undefined;
  }
}
