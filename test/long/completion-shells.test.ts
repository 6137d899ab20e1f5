import { spawnSync } from "node:child_process";
import path from "node:path";
import { expect, test } from "vitest";

test("the entry of bash at a prompt, with Tab and Enter", () => {
  const script = path.resolve(import.meta.dirname, "../../scripts/check-shells.mjs");
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, "bash"], { encoding: "utf8" });
  expect({ status, failed: stdout.match(/^(FAILED|not run).*$/gm), stderr }).toEqual({
    status: 0,
    failed: null,
    stderr: "",
  });
  expect(stdout.match(/^ok .*$/gm)?.length).toBeGreaterThan(15);
});
