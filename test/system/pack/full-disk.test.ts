import { execFileSync, spawnSync } from "node:child_process";
import { describe, expect, onTestFinished, type TestContext, test } from "vitest";
import sync from "../../../commands/monitor/sync.ts";
import { Monitored, sha256 } from "../../fixtures/pack/monitored.ts";
import { writeFiles } from "../../helpers/home.ts";

describe("a disk that fills up", () => {
  /** A disk of its own size, or no test. */
  function mountDisk(context: TestContext, folder: string, kilobytes: number): void {
    const { status, stderr } = spawnSync(
      "mount",
      ["-t", "tmpfs", "-o", `size=${kilobytes}k,mode=0700`, "tmpfs", folder],
      { encoding: "utf8" },
    );
    if (status !== 0) context.skip(`no disk could be mounted here: ${stderr}`);
    onTestFinished(() => void execFileSync("umount", ["--lazy", folder]));
  }

  test("fails the files there is no room for, one by one; with more room the next run does the rest", async (context) => {
    const monitored = new Monitored();
    const names = Array.from({ length: 2_400 }, (_, at) => `d${at % 4}/${"long-".repeat(20)}${at}.txt`);
    writeFiles(monitored.root, Object.fromEntries(names.map((name) => [name, name])));
    mountDisk(context, monitored.home, 400);
    const first = await monitored.sync();
    expect(first.files_updated).toBeGreaterThan(0);
    expect(first.errors_total).toBeGreaterThan(0);
    expect(first.files_updated + first.errors_total).toBe(2_400);
    expect(first.errors[0]?.reason).toMatch(/^it was read but could not be recorded: /);
    execFileSync("mount", ["-o", "remount,size=20000k", monitored.home]);
    expect(await monitored.sync()).toMatchObject({
      files_updated: first.errors_total,
      files_skipped: first.files_updated,
      errors_total: 0,
    });
    const recorded = monitored.recorded();
    for (const name of names) expect(recorded[name]).toBe(sha256(name));
  });

  test("from the start is one sentence with the cure", async (context) => {
    const monitored = new Monitored({ "a.txt": "one" });
    mountDisk(context, monitored.home, 8);
    expect(await monitored.failure(sync, { path: monitored.root })).toMatch(
      /^The pack's database .*pack\.db cannot be used: .*\.$/,
    );
  });
});
