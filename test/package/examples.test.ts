import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, expect, test, vi } from "vitest";
import { rounds } from "../helpers/rounds.ts";

const root = path.resolve(import.meta.dirname, "../..");

// They mostly wait for what is slow in them.
vi.setConfig({ maxConcurrency: 3 });

// One for all: of tests that run at the same time each would take the others' folders away.
const homes = mkdtempSync(path.join(tmpdir(), "meanwhile-"));
afterAll(() => rmSync(homes, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));

const notRun = rounds.examplesNotRun.map((name) => `examples/${name}/check.ts`);
const files = globSync("examples/*/{client,check}.ts", { cwd: root }).filter((file) => !notRun.includes(file));

test.concurrent.each(files)(
  "%s runs itself, checks its own output, ends with 0 and leaves no process",
  async (file) => {
    const env = { ...process.env, MEANWHILE_HOME: mkdtempSync(path.join(homes, "home-")) };
    // A group of its own: whatever it starts is in it, too.
    const child = spawn(process.execPath, [path.join(root, file)], {
      ...{ env, detached: true },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).not.toBe("");
    // `client.ts` leaves a daemon on purpose, which is of no group but its own.
    await vi.waitFor(() => expect(() => process.kill(-(child.pid ?? 0), 0)).toThrow("ESRCH"), { timeout: 50_000 });
  },
);
