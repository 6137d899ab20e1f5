import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { loadSettings } from "../../src/settings/settings.ts";
import { cleanUp, temporaryFolder, writeFiles } from "./home.ts";
import { serveHttpHere, servePipesHere } from "./in-process.ts";
import { runMeanwhile, waitFor } from "./meanwhile.ts";
import { overHttp, overStreams, type Result, WireClient, type WireOptions } from "./wire.ts";

const fixtures = path.resolve(import.meta.dirname, "../fixtures");
const folders = [path.join(fixtures, "deferral/commands"), path.join(fixtures, "questions/commands")];
const words = ["--no-bundled", ...folders.flatMap((folder) => ["--commands", folder])];

/**
 * A project with one home: servers in this process, terminals in processes of their own, and clients that share its
 * tasks.
 */
export class Project {
  readonly cwd: string;
  readonly home: string;
  readonly #env: Record<string, string>;
  #http: ReturnType<typeof serveHttpHere> | undefined;

  constructor(config: object = {}, env: Record<string, string> = {}) {
    this.cwd = writeFiles(temporaryFolder(), { "meanwhile.config.json": JSON.stringify(config) });
    this.home = path.join(this.cwd, "home");
    this.#env = { MEANWHILE_HOME: this.home, ...env };
  }

  /** What its durations are kept under. */
  async key(): Promise<string> {
    return (await loadSettings({ cwd: this.cwd, env: this.#env, flags: { bundled: false, commands: folders } }))
      .project;
  }

  /** A client on a server of its own, over stdio. */
  async stdio(options: WireOptions): Promise<WireClient> {
    const { stdin, stdout, close } = await servePipesHere(words, { cwd: this.cwd, env: this.#env });
    return await this.#begin(new WireClient(overStreams(stdin, stdout, close), options));
  }

  /** A client of the project's one HTTP server: the local user, unless it comes without the token. */
  async http(options: WireOptions & { isAnonymous?: boolean }): Promise<WireClient> {
    this.#http ??= serveHttpHere(words, { cwd: this.cwd, env: this.#env });
    const { url, token } = await this.#http;
    return await this.#begin(
      new WireClient(overHttp(url, options.isAnonymous === true ? {} : { token: token() }), options),
    );
  }

  /** `meanwhile …` in a process of its own. */
  terminal(...line: string[]) {
    return runMeanwhile([...words, ...line], { cwd: this.cwd, env: this.#env });
  }

  /** What `meanwhile tasks show` says about a task. */
  async show(taskId: string): Promise<{ status: string; reason: string; attempts: number; crashes: number }> {
    const { stdout, stderr } = await this.terminal("tasks", "show", taskId, "--json");
    if (stdout === "") throw new Error(`tasks show says: ${stderr}`);
    return JSON.parse(stdout);
  }

  /** The same of all tasks, by their ids, in one process. */
  async showAll(): Promise<ReadonlyMap<string, { reason: string }>> {
    const { stdout, stderr } = await this.terminal("tasks", "list", "--limit", "100", "--json");
    if (stdout === "") throw new Error(`tasks list says: ${stderr}`);
    const { tasks } = JSON.parse(stdout) as { tasks: readonly { taskId: string; reason: string }[] };
    return new Map(tasks.map((task) => [task.taskId, task]));
  }

  async #begin(client: WireClient): Promise<WireClient> {
    cleanUp(() => client.close());
    return await client.begin();
  }
}

/** A run's traces, and the gate that it waits at. */
export function gate() {
  const file = path.join(temporaryFolder(), "traces");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  return {
    input: { file },
    lines,
    starts: () => lines().filter((line) => line === "started").length,
    open: () => writeFileSync(`${file}.go`, ""),
    /** Resolves when a line has been written so many times. */
    seen: async (line: string, count = 1) => {
      await waitFor(
        () => lines().filter((other) => other === line).length >= count,
        () => `expected ${count} × ${line} in [${lines().join(", ")}]`,
      );
    },
  };
}

/** What a call was answered with. */
export function kindOf(result: Result): "task of 2025" | "task of 2026" | "handle" | "job" | "error" | "answer" {
  if (result.task !== undefined) return "task of 2025";
  if (result.resultType === "task") return "task of 2026";
  const data = result.structuredContent?.data;
  if (data?.next_action !== undefined) return "handle";
  if (data?.job_id !== undefined) return "job";
  return result.isError === true ? "error" : "answer";
}

/** The task behind a call's answer. */
export function taskIdOf(result: Result): string {
  const id = result.task?.taskId ?? result.taskId ?? result.structuredContent?.data.job_id;
  if (typeof id !== "string") throw new Error(`No task is in ${JSON.stringify(result)}`);
  return id;
}
