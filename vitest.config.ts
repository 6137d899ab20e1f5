import { tmpdir } from "node:os";
import path from "node:path";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Compiled code is kept for all that is started in here, the files' own processes too; an empty home would compile everything anew.
process.env.NODE_COMPILE_CACHE ??= path.join(tmpdir(), "meanwhile-test-code");

// The compiler is started over and over: with more room it does half the work.
process.env.GOGC ??= "400";

/** Files that mostly wait begin first: begun last, everybody would wait for them. */
const slow = [
  "ninety-seconds",
  "chaos/",
  "conformance/",
  "scenarios/diagnose",
  "scenarios/wrap-rounds",
  "store/sqlite",
  "diagnose/golden",
  "scenarios/daemon",
  "scenarios/orderly-stop",
  "scenarios/slow-sdk-tool",
  "scenarios/wrap-slow-tool",
  "scenarios/task-",
  "scenarios/bounded",
  "scenarios/hostile-folder",
  "scenarios/tasks",
  "diagnose/suites/tasks",
  "diagnose/hostile",
  "package/",
  "wire/fuzz",
];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => slow.findIndex((name) => moduleId.includes(name));
    const sorted = await super.sort(files);
    return [
      ...sorted.filter((file) => rank(file) !== -1).toSorted((a, b) => rank(a) - rank(b)),
      ...sorted.filter((file) => rank(file) === -1),
    ];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    // Many of these tests wait for processes: six files at a time, also on two cores.
    maxWorkers: 6,
    // Without isolation a file is handed to a process that has loaded our code for another: whatever it opens it closes,
    // too. All files are one project: vitest starts a new process wherever the next file is of another.
    include: ["test/**/*.test.ts"],
    isolate: false,
    // They guard against hanging alone: on a machine that has twenty other things to do, a test of forty starts takes minutes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    experimental: { viteModuleRunner: false },
  },
});
