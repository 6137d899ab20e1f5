import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { UpstreamLog, upstreamLogFile } from "../../src/gateway/upstream-log.ts";
import { homeAt } from "../../src/paths.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { temporaryFolder } from "../helpers/home.ts";

const openLog = (secrets: readonly string[] = []) => {
  const file = path.join(temporaryFolder(), "upstream.log");
  const clock = new FakeClock();
  return {
    file,
    clock,
    log: new UpstreamLog({ file, secrets, clock, pid: 7 }),
    read: () => readFileSync(file, "utf8"),
  };
};

test("an upstream's log lies in the home, by its name and project", () => {
  const home = homeAt({ MEANWHILE_HOME: "/h" });
  expect(upstreamLogFile(home, "P1", "git")).toBe("/h/run/upstream-git-P1.log");
});

test("lines are written whole, with their time, and a secret that comes in two pieces is not read in them", () => {
  const { file, log, read } = openLog(["secret-word"]);
  log.write("one\ntwo sec");
  expect(read()).toMatch(/^\S+Z 7 one\n$/);
  log.write("ret-word\r\nlast");
  log.close();
  expect(read().replaceAll(/^\S+ 7 /gm, "")).toBe("one\ntwo [secret]\nlast\n");
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a secret across the cut of an endless line is not read either", () => {
  const { log, read } = openLog(["secret-word"]);
  for (let at = 0; at < 8; at++) log.write(`${"x".repeat(8 * 1024 - 5)}secret-word`);
  log.close();
  expect(read().replaceAll(/\n\S+ 7 /g, "")).not.toMatch(/secret-word|sec\n|secret-\n/);
});

test("it stays within its bounds: one older file, and so much a second", () => {
  const { file, clock, log } = openLog();
  const line = `${"x".repeat(999)}\n`;
  for (let second = 0; second < 12; second++) {
    for (let at = 0; at < 1_000; at++) log.write(line);
    clock.advance(1_000);
  }
  log.close();
  const sizes = [file, `${file}.1`].map((one) => statSync(one).size);
  expect(Math.max(...sizes)).toBeLessThan(1.5 * 1024 * 1024);
  expect(readFileSync(file, "utf8")).toMatch(/… \d+ lines left out: too many in a second/);
});
