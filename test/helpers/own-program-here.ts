import { AsyncLocalStorage } from "node:async_hooks";
import { mkdirSync, realpathSync, symlinkSync } from "node:fs";
import path from "node:path";
import { type CliOptions, prepareProgram } from "../../src/embed/create-cli.ts";
import { packageFolder } from "../../src/paths.ts";
import { findProgramBy, newProgramState, type ProgramState } from "../../src/program/program.ts";
import { type CliResult, runCli } from "./cli.ts";
import { DaemonHomeHere } from "./daemon-here.ts";
import { temporaryFolder, writeFiles } from "./home.ts";
import { commandFile } from "./own-program.ts";
import type { WireClient } from "./wire.ts";

interface Program {
  readonly name?: string;
  readonly options?: Partial<CliOptions>;
  /** Below its folder. */
  readonly files?: Readonly<Record<string, string>>;
  /** Where the package lies, below a folder of its own. */
  readonly at?: string;
  /** Commands in code, in place of or beside its folder. */
  readonly toCommands?: (folder: string) => CliOptions["commands"];
}

/** The program that the current code belongs to. */
const current = new AsyncLocalStorage<ProgramState>();
findProgramBy(() => current.getStore());

/**
 * A package of an author's with a program made with createCli, and a user who runs it somewhere else, in the test's
 * process.
 */
export class OwnProgramHere {
  readonly name: string;
  readonly folder: string;
  readonly bin: string;
  readonly cwd: string;
  /** The user's own folder. */
  readonly user: string;
  readonly home: string;
  readonly #become: () => void;
  readonly #variable: string;
  #daemons: DaemonHomeHere | undefined;

  /** Throws what createCli throws. */
  constructor({
    name = "acme",
    options = {},
    files = {},
    at = "package",
    toCommands = (folder) => folder,
  }: Program = {}) {
    this.name = name;
    const place = realpathSync(temporaryFolder());
    this.user = path.join(place, "user");
    this.home = path.join(this.user, `.${name}`);
    this.cwd = path.join(place, "somewhere", "inside");
    for (const folder of [this.user, this.cwd]) mkdirSync(folder, { recursive: true });
    this.folder = writeFiles(path.join(place, at), {
      "package.json": `{ "name": "${name}-reports", "version": "1.2.0", "type": "module" }`,
      [`bin/${name}.js`]: "",
      "commands/report/build.js": commandFile("built: input.quarter"),
      ...files,
    });
    mkdirSync(path.join(this.folder, "node_modules"));
    symlinkSync(packageFolder(), path.join(this.folder, "node_modules/meanwhile"));
    this.#variable = `${name.replaceAll("-", "_").toUpperCase()}_HOME`;
    this.bin = path.join(this.folder, `bin/${name}.js`);
    const commands = toCommands(path.join(this.folder, "commands"));
    this.#become = prepareProgram({ name, version: "1.2.0", bin: this.bin, commands, ...options });
  }

  async run(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Omit<CliResult, "home">> {
    const { home: _, ...result } = await this.#here(() =>
      runCli(words, { cwd: this.cwd, env: { ...this.#env, ...env } }),
    );
    return result;
  }

  /** A client of `serve`, after its handshake. */
  async connect(): Promise<WireClient> {
    return await this.#here(async () => {
      this.#daemons ??= new DaemonHomeHere({ home: this.home, cwd: this.cwd, env: this.#env });
      return await this.#daemons.connect({ words: [] });
    });
  }

  get #env(): Record<string, string> {
    return { HOME: this.user, [this.#variable]: this.home };
  }

  #here<T>(run: () => Promise<T>): Promise<T> {
    return current.run(newProgramState(), async () => {
      this.#become();
      return await run();
    });
  }
}
