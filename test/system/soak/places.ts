import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type Link, overHttp, overPipes } from "../../helpers/wire.ts";

const executable = path.resolve(import.meta.dirname, "../../../bin/meanwhile.cjs");
const commands = path.resolve(import.meta.dirname, "../../fixtures/soak/commands");
const startMs = 60_000;

/** A client's way to a server, and how it breaks. */
export interface Connection {
  readonly link: Link;
  /** Without a word: the front is killed, or its requests are cut off. */
  vanish(): void;
}

/** A home with a daemon, fronts, and perhaps an HTTP server, all started here and ended by `close`. */
export class Place {
  readonly name: string;
  readonly home: string;
  readonly #folder: string;
  readonly #children = new Set<ChildProcessWithoutNullStreams>();
  #url: string | undefined;
  #http: ChildProcessWithoutNullStreams | undefined;
  kills = 0;

  constructor(folder: string, name: string) {
    this.name = name;
    this.#folder = path.join(folder, name);
    this.home = path.join(this.#folder, "home");
    mkdirSync(this.home, { recursive: true, mode: 0o700 });
    // A host that cuts calls after two seconds: what takes longer becomes a handle.
    writeFileSync(path.join(this.home, "config.json"), JSON.stringify({ hosts: { soak: { limitSeconds: 2 } } }), {
      mode: 0o600,
    });
  }

  /** Starts the HTTP server, and waits until it listens. */
  async serveHttp(): Promise<void> {
    const child = this.#start(["--http", "--port", "0"]);
    this.#http = child;
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-10_000);
      this.#url ??= /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(said)?.[0];
    });
    const end = performance.now() + startMs;
    while (this.#url === undefined) {
      if (performance.now() > end) throw new Error(`The HTTP server said no address: ${said}`);
      await wait(20);
    }
  }

  get hasHttp(): boolean {
    return this.#url !== undefined;
  }

  connect(door: "stdio" | "http"): Connection {
    if (door === "http") {
      const link = overHttp(this.#url as string, {
        token: readFileSync(path.join(this.home, "token"), "utf8").trim(),
        fetch: fetchAlone,
      });
      return { link, vanish: () => void link.close() };
    }
    const child = this.#start([]);
    child.stderr.resume();
    return { link: overPipes(child), vanish: () => child.kill("SIGKILL") };
  }

  get httpPid(): number | undefined {
    return this.#http?.pid;
  }

  /** The daemon's, while there is one. */
  get daemonPid(): number | undefined {
    try {
      const folder = path.join(this.home, "run");
      const record = readdirSync(folder).find((name) => name.endsWith(".json"));
      return record === undefined
        ? undefined
        : (JSON.parse(readFileSync(path.join(folder, record), "utf8")) as { pid: number }).pid;
    } catch {
      // There is none, or it is just leaving.
      return undefined;
    }
  }

  killDaemon(): void {
    if (this.daemonPid === undefined) return;
    kill(this.daemonPid);
    this.kills += 1;
  }

  async close(): Promise<void> {
    const { daemonPid } = this;
    for (const child of this.#children) child.kill("SIGKILL");
    if (daemonPid !== undefined) kill(daemonPid);
    while (this.#children.size > 0) await wait(10);
    // A front that died while it started a daemon may have left one.
    await wait(200);
    if (this.daemonPid !== undefined && this.daemonPid !== daemonPid) kill(this.daemonPid);
  }

  #start(words: readonly string[]): ChildProcessWithoutNullStreams {
    const own = Object.entries(process.env).filter(([name]) => !name.startsWith("MEANWHILE_"));
    const child = spawn(process.execPath, [executable, "serve", ...words, "--no-bundled", "--commands", commands], {
      cwd: this.#folder,
      env: {
        ...Object.fromEntries(own),
        MEANWHILE_HOME: this.home,
        NODE_COMPILE_CACHE: path.join(tmpdir(), "meanwhile-test-code"),
      },
    });
    this.#children.add(child);
    child.stdin.on("error", () => {});
    child.on("close", () => this.#children.delete(child));
    return child;
  }
}

/** On a connection of its own: a kept one may be closed by the server just when it is used again. */
async function fetchAlone(url: string, init: RequestInit): Promise<Response> {
  return await fetch(url, { ...init, headers: { ...(init.headers as Record<string, string>), connection: "close" } });
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It is gone.
  }
}
