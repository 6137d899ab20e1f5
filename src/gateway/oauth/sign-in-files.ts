import { createHash } from "node:crypto";
import { readFileSync, rmSync, statSync } from "node:fs";
import path from "node:path";
import type { Clock } from "../../clock.ts";
import { RuntimeError } from "../../errors.ts";
import { ensureHome, type Home, writePrivately } from "../../paths.ts";
import { thisProgram } from "../../program/program.ts";
import { withLock } from "../../system/lock-file.ts";
import { system } from "../../system/system.ts";
import { isObject, type Json } from "../../wire/json.ts";

/**
 * What is kept in the home of signing in: one small file for each upstream and client, its user's alone. It holds
 * tokens, so a file that others may read, or could have written, is not used.
 */
export class SignInFile {
  readonly #home: Home;
  readonly #file: string;
  #last: { readonly stamp: string; readonly content: Json | undefined } | undefined;

  /** `about`: what tells it from the others. */
  constructor(home: Home, about: readonly (string | undefined)[]) {
    const print = createHash("sha256").update(JSON.stringify(about)).digest("hex").slice(0, 32);
    this.#home = home;
    this.#file = path.join(home.upstreamsFolder, `${print}.json`);
  }

  /** What it holds; undefined where there is none, or none of ours. Throws a RuntimeError when others had access. */
  read(): Json | undefined {
    const stat = statSync(this.#file, { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    const stamp = `${stat.ino} ${stat.mtimeMs} ${stat.size} ${stat.mode} ${stat.uid}`;
    if (this.#last?.stamp === stamp) return this.#last.content;
    refuseOpenFile(this.#home, this.#file, system.isPrivate(stat));
    this.#last = { stamp, content: parse(readFileSync(this.#file, "utf8")) };
    return this.#last.content;
  }

  write(content: object): void {
    ensureHome(this.#home);
    system.ensurePrivateFolder(this.#home.upstreamsFolder);
    writePrivately(this.#file, `${JSON.stringify(content, undefined, 2)}\n`);
    this.#last = undefined;
  }

  remove(): void {
    rmSync(this.#file, { force: true });
    this.#last = undefined;
  }

  /** Does something while nobody else does, in any process: a refresh token that is used twice is worth nothing. */
  async alone<T>(clock: Clock, act: () => Promise<T>): Promise<T> {
    ensureHome(this.#home);
    system.ensurePrivateFolder(this.#home.upstreamsFolder);
    return await withLock(this.#file.replace(/json$/, "lock"), clock, act);
  }
}

function refuseOpenFile(home: Home, file: string, isPrivate: boolean): void {
  const cure = `set ${thisProgram.variable("HOME")} to a folder of your own`;
  const rules = [home.upstreamsFolder, file].map((it) => ({ file: it, isRootTrusted: true, cure }));
  const refusal =
    system.refusalOf(rules) ??
    (isPrivate
      ? undefined
      : `${file} holds tokens, and others may read it, so it was not used; remove it, and sign in again.`);
  if (refusal !== undefined) throw new RuntimeError("HOME_UNUSABLE", refusal);
}

function parse(text: string): Json | undefined {
  try {
    const content: unknown = JSON.parse(text);
    return isObject(content) ? content : undefined;
  } catch {
    return undefined;
  }
}
