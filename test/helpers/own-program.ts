import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { onTestFinished } from "vitest";
import { killDaemons, killWorkers } from "./daemon.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { codeCache } from "./meanwhile.ts";
import { overPipes, WireClient } from "./wire.ts";

const root = path.resolve(import.meta.dirname, "../..");

interface Program {
  readonly name?: string;
  /** More options of createCli, as code. */
  readonly options?: string;
  /** Beside the executable. */
  readonly files?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Where the package lies, below a folder of its own. */
  readonly at?: string;
}

/** A package of an author's whose executable is made with createCli, and a user who runs it somewhere else. */
export class OwnProgram {
  readonly name: string;
  readonly folder: string;
  readonly cwd: string;
  /** The user's own folder. */
  readonly user: string;
  readonly home: string;
  readonly #env: NodeJS.ProcessEnv;

  constructor({ name = "acme", options = "", files = {}, env = {}, at = "package" }: Program = {}) {
    this.name = name;
    const place = temporaryFolder();
    this.user = path.join(place, "user");
    this.home = path.join(this.user, `.${name}`);
    this.cwd = path.join(place, "somewhere", "inside");
    for (const folder of [this.user, this.cwd]) mkdirSync(folder, { recursive: true });
    this.folder = writeFiles(path.join(place, at), {
      "package.json": `{ "name": "${name}-reports", "version": "1.2.0", "type": "module" }`,
      [`bin/${name}.js`]: `import { createCli, defineCommand, jsonSchema } from "meanwhile";
const commands = new URL("../commands/", import.meta.url);
await createCli({ name: "${name}", version: "1.2.0", commands, ${options} }).run();`,
      "commands/report/build.js": commandFile("built: input.quarter"),
      ...files,
    });
    mkdirSync(path.join(this.folder, "node_modules"));
    symlinkSync(root, path.join(this.folder, "node_modules/meanwhile"));
    const variable = `${name.replaceAll("-", "_").toUpperCase()}_HOME`;
    const own = Object.entries(process.env).filter(([key]) => !key.startsWith("MEANWHILE_"));
    this.#env = {
      ...Object.fromEntries(own),
      ...{ HOME: this.user, NODE_COMPILE_CACHE: codeCache, [variable]: this.home },
      ...env,
    };
    cleanUp(async () => {
      await killWorkers(this.home, variable);
      await killDaemons(this.home, variable);
    });
  }

  start(words: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcessWithoutNullStreams {
    const child = spawn(process.execPath, [path.join(this.folder, `bin/${this.name}.js`), ...words], {
      cwd: this.cwd,
      env: { ...this.#env, ...env },
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  }

  async run(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
    const child = this.start(words, env);
    child.stdin.end();
    const printed = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => (printed[name] += text));
    const [code] = (await once(child, "close")) as [number];
    return { code, ...printed };
  }

  /** A client of `serve`, hands shaken. */
  async connect({ words = ["serve"] }: { readonly words?: readonly string[] } = {}): Promise<WireClient> {
    const client = new WireClient(overPipes(this.start(words)), { revision: "2025-11-25" });
    onTestFinished(() => client.close());
    await client.begin();
    return client;
  }
}

/** A command that says `said`, an expression with `input` in it. */
export function commandFile(said: string, more = "", before = ""): string {
  return `import { defineCommand } from "meanwhile";
import { z } from "zod";
${before}
export default defineCommand({
  summary: "Build a report", input: z.object({ quarter: z.string() }), effects: "read", ${more}
  run: async (input, task) => { return { ${said} }; },
});`;
}
