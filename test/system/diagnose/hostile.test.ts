import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startHostile } from "../../fixtures/diagnose/hostile.mjs";
import { isRunning } from "../../helpers/daemon.ts";
import { codeCache, executable, waitFor } from "../../helpers/meanwhile.ts";
import { casesOf } from "../../helpers/rounds.ts";

/** The whole of `meanwhile diagnose`, as it is installed, against servers that want to harm it. */

const fixtures = path.resolve(import.meta.dirname, "../../fixtures/diagnose");
const token = "Zq7Hostile0Token1";
/** The most telling; what else a server may do is asked of the parts themselves, in wire/bounds.test.ts. */
const overHttp = casesOf(["endless-events", "gzip", "many-tools", "escapes", "redirect-308", "slow-head"], 0, 1, 3, 4);
const started = ["stdout-flood", "stderr-flood", "stays"];
const atOnce = 3;

interface Run {
  readonly code: number | string;
  readonly stdout: string;
  readonly stderr: string;
  /** By format. */
  readonly reports: Readonly<Record<string, string>>;
  readonly elapsedMs: number;
  /** Of the diagnosing process and its children, the servers not counted. */
  readonly peakMb: number;
  /** `host:port` of everything that was connected to. */
  readonly connects: readonly string[];
  /** Of the servers and what they have started. */
  readonly pids: readonly number[];
}

const folder = mkdtempSync(path.join(tmpdir(), "meanwhile-hostile-"));
const runs = new Map<string, Promise<Run>>();
let hostile: Awaited<ReturnType<typeof startHostile>>;
let listener: net.Server;
let strangers = 0;

beforeAll(async () => {
  listener = net.createServer((socket) => socket.destroy()).on("connection", () => strangers++);
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  hostile = await startHostile({ elsewhere: `http://127.0.0.1:${(listener.address() as net.AddressInfo).port}/` });
  // A few at a time, those that wait longest first; each test waits for its own.
  const lanes = Array.from({ length: atOnce }, () => Promise.resolve());
  for (const [at, name] of [...overHttp, ...started].reverse().entries()) {
    const run = (lanes[at % atOnce] as Promise<void>).then(() => diagnose(name));
    runs.set(name, run);
    lanes[at % atOnce] = run.then(
      () => undefined,
      () => undefined,
    );
  }
});

afterAll(async () => {
  await Promise.allSettled(runs.values());
  await hostile.close();
  listener.close();
  rmSync(folder, { recursive: true, force: true });
});

const guardMs = 120_000;
const runOf = (name: string) => runs.get(name) as Promise<Run>;
const names = [...overHttp, ...started];

describe("a hostile server is diagnosed within bounds", () => {
  test.each(names)("%s: within its time and 300 MB", { timeout: guardMs }, async (name) => {
    const { code, elapsedMs, peakMb, stdout, stderr } = await runOf(name);
    expect([0, 1], stderr).toContain(code);
    expect(stdout).toMatch(/of 100|no grade/);
    expect(elapsedMs).toBeLessThan(90_000);
    expect(peakMb).toBeGreaterThan(50);
    // What it had at its most, each of its processes for itself; what is sent to it has no end.
    expect(peakMb).toBeLessThan(300);
  });

  test.each(names)(
    "%s: nothing of it moves the cursor or turns the writing, in any format",
    { timeout: guardMs },
    async (name) => {
      const { stdout, stderr, reports } = await runOf(name);
      expect(Object.keys(reports).sort()).toEqual(["html", "json", "md", "sarif"]);
      for (const [where, text] of Object.entries({ stdout, stderr, ...reports }))
        expect(text.replaceAll(/[\n\t]/g, ""), where).not.toMatch(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/u);
    },
  );

  test.each(overHttp)(
    "%s: nothing is connected to but the server itself, and no report holds the token",
    { timeout: guardMs },
    async (name) => {
      const { connects, stdout, stderr, reports } = await runOf(name);
      expect(new Set(connects)).toEqual(new Set([new URL(hostile.origin).host]));
      expect([stdout, stderr, ...Object.values(reports)].join("\n")).not.toContain(token);
      expect(strangers).toBe(0);
    },
  );

  test.each(started)("%s: no process of it is left", { timeout: guardMs }, async (name) => {
    const { pids } = await runOf(name);
    expect(pids.length).toBeGreaterThan(1);
    await waitFor(() => !pids.some(isRunning));
  });

  test("what it does is told", { timeout: guardMs }, async () => {
    const told = async (name: string) => JSON.stringify(JSON.parse((await runOf(name)).reports.json ?? "{}").findings);
    expect(await told("gzip")).toMatch(/packed \(gzip\)/);
    expect(await told("redirect-308")).toMatch(/redirects to another host/);
    expect(await told("stdout-flood")).toMatch(/floods its standard output/);
    expect(await told("escapes")).toMatch(/security\/hidden-text/);
  });
});

/** Runs the real executable to its end and watches it. */
async function diagnose(name: string): Promise<Run> {
  const own = mkdtempSync(path.join(folder, `${name}-`));
  const [connects, pids, out] = ["connects", "pids", "reports"].map((file) => path.join(own, file)) as [
    string,
    string,
    string,
  ];
  const target = started.includes(name)
    ? ["--", process.execPath, path.join(fixtures, "hostile.mjs"), name, pids]
    : [`${hostile.origin}/${name}`, "--header", `Authorization: Bearer ${token}`];
  // Whoever is not met at all is asked nothing more; of the others one gets every question.
  const isWhole = !["many-tools", "stderr-flood", "stays"].includes(name);
  const begun = performance.now();
  const child = spawn(
    process.execPath,
    [executable, "diagnose", ...(isWhole ? [] : ["--suites", "security"]), "--out", out, ...target],
    {
      cwd: own,
      env: {
        ...process.env,
        MEANWHILE_HOME: path.join(own, "home"),
        NODE_COMPILE_CACHE: codeCache,
        NODE_OPTIONS: `--import=${path.join(fixtures, "watch-connects.mjs")}`,
        WATCH_CONNECTS: connects,
      },
    },
  );
  const texts = { stdout: "", stderr: "" };
  for (const stream of ["stdout", "stderr"] as const)
    child[stream].setEncoding("utf8").on("data", (text: string) => (texts[stream] += text));
  child.stdin.end();
  let peakMb = 0;
  const watch = setInterval(() => (peakMb = Math.max(peakMb, residentMb(child.pid as number))), 100);
  const code = await new Promise<number | string>((resolve) =>
    child.on("close", (status, signal) => resolve(status ?? signal ?? -1)),
  );
  clearInterval(watch);
  const reports = Object.fromEntries(
    filesIn(out).map((file) => [path.extname(file).slice(1), readFileSync(path.join(out, file), "utf8")]),
  );
  return {
    code,
    ...texts,
    reports,
    elapsedMs: performance.now() - begun,
    peakMb,
    connects: linesOf(connects),
    pids: linesOf(pids).map(Number),
  };
}

/** A process and its children, but no server. */
function residentMb(pid: number): number {
  try {
    if (readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[1]?.endsWith("hostile.mjs") === true) return 0;
    // The most that it ever had: it need not be looked at often.
    const peakKb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number);
    return peakKb / 1024 + children.reduce((sum, child) => sum + residentMb(child), 0);
  } catch {
    return 0;
  }
}

function filesIn(where: string): string[] {
  try {
    return readdirSync(where);
  } catch {
    return [];
  }
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").trim().split("\n");
  } catch {
    return [];
  }
}
