// One minute in a terminal: a slow call, the death of its host and of the daemon, the return, the result.
// `npm run demo`; with --quick it takes ten seconds. It checks itself and ends with 1 when something is not as told.
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";

const secondsPerPage = process.argv.includes("--quick") ? 0.6 : 3;
const pages = 12;
const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-story-"));
const home = path.join(folder, "home");
const journal = path.join(folder, "journal");
const env = { ...process.env, MEANWHILE_HOME: home };
const meanwhile = path.resolve(import.meta.dirname, "../../bin/meanwhile.cjs");
const isLive = process.stdout.isTTY === true;
let drawn = "";

interface Progress {
  readonly share: number;
  readonly message: string;
}

try {
  tell("A host asks for a report, which takes long: the call becomes a task.");
  const first = startHost("call", JSON.stringify({ quarter: "Q3", pages, secondsPerPage, journal }));
  const taskId = await first.until(({ task }) => task as string | undefined);
  await first.until(({ progress }) => ((progress as Progress | undefined)?.share ?? 0) >= 0.25 || undefined);
  first.kill();
  tell(`The host and its server are killed: kill -9 ${first.pids.join(" ")}`);

  const daemon = daemonStatus();
  assert.deepEqual([daemon.connections, daemon.running], [0, 1]);
  tell(`Nobody is connected, and the work goes on: daemon ${daemon.pid} runs ${daemon.running} task.`);
  await made(5);
  // In the middle of the next page: this one is remembered by then.
  await sleep(secondsPerPage * 600);
  process.kill(daemon.pid, "SIGKILL");
  tell(`The daemon is killed too: kill -9 ${daemon.pid}`);

  tell("Another host asks for the task by its id; a new daemon goes on where it was.");
  const second = startHost("resume", taskId);
  const { success, data } = await second.until(
    ({ result }) => result as { success: boolean; data: unknown } | undefined,
  );
  await second.ended;
  tell(`The result: ${JSON.stringify(data)}`);

  assert.equal(success, true);
  assert.deepEqual(data, { pages, file: "q3.pdf" });
  const lines = readFileSync(journal, "utf8").trim().split("\n");
  assert.deepEqual(
    lines,
    Array.from({ length: pages }, (_, at) => `page ${at + 1}`),
  );
  tell(`${lines.length} pages were made, none twice.`);
} finally {
  if (daemonStatus().pid > 0)
    execFileSync(process.execPath, [meanwhile, "daemon", "stop"], { env, cwd: import.meta.dirname, stdio: "ignore" });
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

function tell(text: string): void {
  process.stdout.write(isLive ? `${drawn === "" ? "" : "\n"}\x1b[1m${text}\x1b[0m\n` : `${text}\n`);
  drawn = "";
}

/** A host in a process of its own, what it says drawn as a bar. */
function startHost(...words: string[]) {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, "host.ts"), ...words], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    ended: new Promise<void>((resolve) => child.on("close", () => resolve())),
    pids: [] as number[],
    /** Kills it and the server it has started, as a crash or an impatient user does. */
    kill() {
      this.pids = [child.pid as number, ...childrenOf(child)];
      for (const pid of this.pids) process.kill(pid, "SIGKILL");
    },
    async until<T>(look: (said: Record<string, unknown>) => T | undefined): Promise<T> {
      for (;;) {
        const { value, done } = await lines.next();
        assert.ok(done !== true, "the host ended too early");
        const said = JSON.parse(value) as Record<string, unknown>;
        if (said.progress !== undefined) draw(said.progress as Progress);
        const found = look(said);
        if (found !== undefined) return found;
      }
    },
  };
}

function childrenOf({ pid }: ChildProcess): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
}

function draw({ share, message }: Progress): void {
  const filled = Math.round(share * 24);
  const line = `  ▕${"█".repeat(filled)}${"░".repeat(24 - filled)}▏ ${String(Math.round(share * 100)).padStart(3)}%  ${message}`;
  if (isLive) process.stdout.write(`\r\x1b[K${line}`);
  else if (line !== drawn) process.stdout.write(`${line}\n`);
  drawn = line;
}

function daemonStatus(): { pid: number; connections: number; running: number } {
  const told = execFileSync(process.execPath, [meanwhile, "daemon", "status", "--json"], {
    env,
    cwd: import.meta.dirname,
    encoding: "utf8",
  });
  const { daemons } = JSON.parse(told) as { daemons: { pid: number; connections: number; running: number }[] };
  return daemons[0] ?? { pid: 0, connections: 0, running: 0 };
}

/** Resolves when so many pages are made. */
async function made(count: number): Promise<void> {
  while (readFileSync(journal, "utf8").split("\n").length - 1 < count) await sleep(20);
}
