import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../helpers/home.ts";

const root = path.resolve(import.meta.dirname, "../..");

test.each(globSync("examples/*/client.ts", { cwd: root }))(
  "%s runs itself, checks its own output and ends with 0",
  (file) => {
    const env = { ...process.env, MEANWHILE_HOME: temporaryFolder() };
    const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(root, file)], { encoding: "utf8", env });
    expect({ status, stderr }).toMatchObject({ status: 0 });
    expect(stdout).not.toBe("");
  },
);
