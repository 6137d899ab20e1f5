import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { runOdd } from "../fixtures/client/odd.ts";
import { temporaryFolder } from "../helpers/home.ts";
import { processesAreForbidden } from "../helpers/meanwhile.ts";
import { programAt } from "../helpers/programs.ts";

const script = path.resolve(import.meta.dirname, "../fixtures/client/odd.ts");
if (processesAreForbidden()) programAt(script, (host) => runOdd(host.argv, host));

/** A server with one bad habit (test/fixtures/client/odd.ts), and what it has noted. */
export function oddServer(way: string) {
  const file = path.join(temporaryFolder(), "notes");
  const lines = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").slice(0, -1) : []);
  /** The process IDs of its starts. */
  const starts = () =>
    lines()
      .flatMap((line) => /^started (\d+)$/.exec(line)?.[1] ?? [])
      .map(Number);
  return {
    target: { command: process.execPath, args: [script, way, file] },
    methods: () => lines().filter((line) => !line.startsWith("started")),
    starts,
    running: () => starts().filter(isRunning),
  };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
