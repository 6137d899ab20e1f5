import { appendFileSync, closeSync, mkdirSync, openSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { keepLogBounded, maxLogBytes } from "../../src/daemon/log-file.ts";
import { startCli } from "../helpers/cli.ts";
import { dataOf } from "../helpers/daemon.ts";
import { DaemonHomeHere } from "../helpers/daemon-here.ts";
import { FakeClock } from "../helpers/fake-clock.ts";
import { cleanUp, temporaryFolder, writeFiles } from "../helpers/home.ts";
import { waitFor } from "../helpers/wait-for.ts";

/** What daemons and commands write into the home, and how much of it is kept. */

const printLines = `import { defineCommand } from "meanwhile";
import { z } from "zod";
export default defineCommand({
  summary: "Print lines",
  input: z.object({ count: z.number() }),
  run: ({ count }) => {
    for (let n = 0; n < count; n++) console.log("line " + n);
    return { count };
  },
});`;

test("of 100,000 lines that a command prints at once 500 a second are kept, and one line says how many were left out", async () => {
  const cwd = writeFiles(temporaryFolder(), { "commands/print/lines.ts": printLines });
  const server = startCli(["serve", "--in-process", "--no-bundled"], { cwd });
  const client = await server.client({ revision: "2025-11-25" }).begin();
  cleanUp(() => client.close());
  expect(dataOf(await client.call("print_lines", { count: 100_000 }))).toEqual({ count: 100_000 });
  const told = await server.says(/print_lines printed (\d+) lines more/);
  const kept = server.stderr().match(/^line \d+$/gm)?.length ?? 0;
  expect(kept).toBeGreaterThanOrEqual(500);
  expect(kept).toBeLessThan(20_000);
  expect(kept + Number(/\d+/.exec(told)?.[0])).toBeLessThanOrEqual(100_000);
  expect(server.stderr().match(/printed \d+ lines more/g)?.length).toBeLessThan(50);
});

test("while a daemon lives its log has at most 10 MiB, and 2 files of that beside it with `logFiles: 2`; who follows it goes across", async () => {
  const home = new DaemonHomeHere();
  mkdirSync(home.home);
  const log = path.join(home.home, "daemon.log");
  const fd = openSync(log, "a", 0o600);
  const clock = new FakeClock(Date.now());
  const stop = keepLogBounded({ file: log, files: 2, fd, clock });
  cleanUp(() => {
    stop();
    closeSync(fd);
  });
  const write = (text: string) => appendFileSync(log, text);
  /** More than a log may have, in long lines. */
  const fill = (word: string) => {
    const line = `${word}${"x".repeat(200)}\n`;
    const count = Math.ceil((maxLogBytes * 1.1) / line.length);
    write(line.repeat(count));
    clock.advance(1_000);
    expect(statSync(log).size).toBe(0);
    return count;
  };
  write("line 0\n");
  const followed = home.startCli(["daemon", "logs", "--follow", "--json"]);
  await waitFor(() => followed.stdout().includes("line 0"));
  const count = fill("one");
  write("between\n");
  await waitFor(() => followed.stdout().endsWith("between\n"));
  expect(followed.stdout().match(/^onex+$/gm)).toHaveLength(count);
  followed.signal("SIGINT");
  expect(await followed.exited).toBe(0);
  for (const word of ["two", "three"]) fill(word);
  expect(readdirSync(home.home).sort()).toEqual(["daemon.log", "daemon.log.1", "daemon.log.2"]);
  expect(statSync(`${log}.1`).mode & 0o777).toBe(0o600);
  write("last\n");
  const shown = await home.run(["daemon", "logs", "--json"]);
  expect(shown.code).toBe(0);
  const words = [...shown.stdout.matchAll(/^(one|between|two|three|last)x*$/gm)].map(([, word]) => word);
  expect([...new Set(words)]).toEqual(["between", "two", "three", "last"]);
});
