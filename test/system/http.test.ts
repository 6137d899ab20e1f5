import { spawn, spawnSync } from "node:child_process";
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { quoteWord } from "../../src/cli/remote/server-target.ts";
import { cleanUp, temporaryFolder } from "../helpers/home.ts";
import { codeCache, executable, quickStart, startGuardedHttp, startHttp, waitFor } from "../helpers/meanwhile.ts";

/** What `serve --http` prints for a shell, in a shell and on a real terminal, and a log that nobody reads. */

/** Runs the line for a shell that a server has printed. */
function runShellLine(printed: string) {
  const line = /^ {4}(sed [\s\S]+?\}')$/m.exec(printed)?.[1] as string;
  return spawnSync("sh", ["-c", line], { encoding: "utf8", cwd: "/" });
}

test("the printed line for a shell works as it stands, for a home with a space and a quote", async () => {
  const server = await startGuardedHttp([], { env: { MEANWHILE_HOME: path.join(temporaryFolder(), "a home's") } });
  await waitFor(() => server.stderr().includes("Ctrl-C"));
  const { stdout, stderr } = runShellLine(server.stderr());
  expect(stderr).toBe("");
  expect(stdout).toMatch(/"success":true|"tools":\[/);
  server.child.kill("SIGTERM");
  expect(await server.exited).toBe(0);
});

test("on a terminal the token is printed, the line for a shell works, and Ctrl-C ends the server with 0", async () => {
  const home = temporaryFolder();
  const line = [process.execPath, quickStart, executable, "serve", "--http", "--port", "0"].map(quoteWord).join(" ");
  const screen = spawn("/usr/bin/script", ["-qec", `stty cols 100 rows 40; exec ${line}`, "/dev/null"], {
    cwd: temporaryFolder(),
    env: {
      ...process.env,
      TERM: "xterm-256color",
      NO_COLOR: "1",
      NODE_COMPILE_CACHE: codeCache,
      MEANWHILE_HOME: home,
    },
  });
  const exited = new Promise((resolve) => screen.on("close", resolve));
  cleanUp(async () => {
    // The terminal's end ends what runs in it.
    screen.kill("SIGTERM");
    await exited;
  });
  let printed = "";
  screen.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text.replaceAll("\r", "")));
  await waitFor(() => printed.includes("Ctrl-C"));
  const token = readFileSync(path.join(home, "token"), "utf8").trim();
  expect(printed).toContain(`    Authorization: Bearer ${token}\n`);
  expect(runShellLine(printed).stdout).toMatch(/"success":true|"tools":\[/);
  screen.stdin.write("\x03");
  expect(await exited).toBe(0);
});

test("a server whose log nobody reads any more goes on, and does not spin", async () => {
  const server = await startHttp();
  server.child.stderr.destroy();
  // Without its database the server has something to log every second.
  for (const name of ["tasks.db", "tasks.db-wal", "tasks.db-shm"])
    rmSync(path.join(server.home, name), { force: true });
  const before = ticksOf(server.child.pid as number);
  await new Promise((resolve) => setTimeout(resolve, 2_500));
  // A hundred ticks are a second of one core: the loop took all of it.
  expect(ticksOf(server.child.pid as number) - before).toBeLessThan(60);
  expect((await fetch(new URL("/healthz", server.url))).status).toBe(200);
});

/** The processor time a process has used, in hundredths of a second. */
function ticksOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return Number(fields[11]) + Number(fields[12]);
}
