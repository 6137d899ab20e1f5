import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { toLauncherTexts } from "../../src/setup/launcher/launcher-text.ts";
import { temporaryFolder } from "../helpers/home.ts";

/**
 * Prints the processor time that the process has used, with the shell that it was before `exec`. Its children count in
 * steps of 10 ms, on Linux alone.
 */
const program = `
const { readFileSync } = require("node:fs");
const { userCPUTime, systemCPUTime } = process.resourceUsage();
let childTicks = 0;
try {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ");
  childTicks = Number(fields[13]) + Number(fields[14]);
} catch {}
console.log((userCPUTime + systemCPUTime) / 1000 + childTicks * 10);
`;

const isWindows = process.platform === "win32";
const mostMs = 10;
const turns = 9;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

test.each(isWindows ? (["js"] as const) : (["sh", "js"] as const))(
  "a start through the launcher (%s) takes at most 10 ms of processor time longer than a start without",
  (kind) => {
    const folder = temporaryFolder();
    const launcher = path.join(folder, "home", "bin", "meanwhile");
    const [package_, rangeFile] = ["meanwhile.cjs", "node-range.txt"].map((name) => path.join(folder, name)) as [
      string,
      string,
    ];
    const node = process.execPath;
    const facts = { version: "1.0.0", node, nodeVersion: process.versions.node, package: package_, rangeFile };
    mkdirSync(path.dirname(launcher), { recursive: true });
    for (const [ending, text] of Object.entries(toLauncherTexts(facts, kind === "js")))
      writeFileSync(`${launcher}${ending}`, text, { mode: 0o700 });
    writeFileSync(package_, program);
    writeFileSync(rangeFile, ">=22.18\n");

    const words = ["wrap", "--name", "x", "--", "npx", "-y", "server"];
    const direct = [node, package_];
    const launched = kind === "js" ? [node, `${launcher}-launcher.cjs`] : [launcher];
    const measureMs = ([file = "", ...args]: readonly string[]) => {
      const { stdout } = spawnSync(file, [...args, ...words], { encoding: "utf8" });
      return Number(stdout);
    };
    // They take turns, so that whatever else this machine does slows down both.
    const pairs = Array.from({ length: turns }, () => [measureMs(direct), measureMs(launched)] as const);
    const [without, through] = [0, 1].map((at) => median(pairs.map((pair) => pair[at] ?? 0))) as [number, number];
    expect(without).toBeGreaterThan(0);
    expect(through - without).toBeLessThanOrEqual(mostMs);
  },
);
